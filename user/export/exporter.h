/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exporter — spans to one backend: encoded once, queued, sent, and each accounted for.
 *
 *   batch -> encoder -> messages -> queue -> (compressed) request -> the protocol's verdict
 *
 * An exporter is one file with a struct rs_exporter_ops and a line in exporters.def. The core does what is
 * the same for all: batches to messages (intake.c), where to (endpoint.c), the queue and the spool, requests,
 * waiting between tries, counting. A protocol's file says what a request looks like and what an answer means.
 *
 * Every span given is in exactly one place: spans_in = sent + lost[…] + waiting or in flight.
 * What is retried may arrive twice when the first outcome is not known (`uncertain`); nothing else is.
 * Single-threaded. Nothing here blocks, but the file exporter on a slow disk.
 */
#ifndef RS_EXPORT_EXPORTER_H
#define RS_EXPORT_EXPORTER_H

#include "config/config.h"
#include "encoder.h"
#include "export/compress.h"
#include "export/http.h"
#include "export/queue.h"

#define RS_EXPORT_FORMS	   4 /* encoders of one exporter */
#define RS_EXPORT_INFLIGHT 4 /* requests at once */
#define RS_EXPORT_SECRETS  8

/* How spans are lost: RS_LOSS(id, name in status). Each is also counter EXPORT_<id>. */
#define RS_LOSSES                                                                                  \
	RS_LOSS(ENCODE, "not_encodable")                                                           \
	RS_LOSS(QUEUE_FULL, "queue_full")                                                          \
	RS_LOSS(REJECTED, "rejected")                                                              \
	RS_LOSS(TOO_BIG, "too_big")                                                                \
	RS_LOSS(LIMITED, "rate_limited")                                                           \
	RS_LOSS(GAVE_UP, "gave_up")                                                                \
	RS_LOSS(SHUTDOWN, "not_sent_at_end")                                                       \
	RS_LOSS(NO_MEMORY, "no_memory")

enum rs_loss {
#define RS_LOSS(id, name) RS_LOSS_##id,
	RS_LOSSES
#undef RS_LOSS
		RS_LOSS_COUNT,
};

/* As status and metrics call it. */
const char *rs_loss_name(enum rs_loss l);

enum rs_verdict_kind {
	RS_V_DONE,  /* taken; `rejected` spans of it were not */
	RS_V_RETRY, /* again, after `wait_ns` at least and the usual growing wait */
	RS_V_DROP,  /* never again; counted as `loss` */
	RS_V_SPLIT, /* too big: again in two parts */
	RS_V_LATER, /* not begun or not finished (file, stdout): go on when it can be written to */
};

struct rs_verdict {
	enum rs_verdict_kind kind;
	uint64_t wait_ns;  /* RS_V_RETRY; 0: none was named */
	uint64_t rejected; /* RS_V_DONE */
	enum rs_loss loss; /* RS_V_DROP */
	char why[240]; /* of anything but plain success; made safe and free of secrets by the core */
};

struct rs_exporter;

/* One message on its way. */
struct rs_send {
	struct rs_exporter *e;
	struct rs_item *item; /* NULL: free */
	struct rs_http_req req;
	struct rs_payload zip; /* the compressed body; empty: not compressed */
	char frame[8];	       /* gRPC's message head */
	struct iovec iov[RS_PAYLOAD_BUFS + 1];
	const char *url;
	/* Of the answer's headers, by the protocols that look at them: */
	int grpc_status; /* -1: none */
	char grpc_message[160];
	uint8_t grpc_details[1024];
	size_t grpc_details_len;
};

struct rs_exporter_ops {
	const char *name;
	const char
		*encoder[RS_EXPORT_FORMS]; /* names in encoders.def; the first is used at first */
	const char *endpoint;		   /* NULL: this exporter has no default */
	const char *path;		   /* appended to a base endpoint */
	size_t max_payload;		   /* bytes of a message at most; 0: RS_ENC_MAX_PAYLOAD */
	bool gzip, zstd;		   /* the protocol takes such bodies */
	bool grpc;			   /* HTTP/2, compressed per message */
	bool by_container;		   /* a message holds spans of one container: see rs_item */
	size_t state_size;

	/* All optional but `verdict` or `write`. open: 0 or -errno and a line in err; before the encoders. Of what goes by HTTP
	 * it sends nothing. Anew when the
	 * configuration changes: state is zeroed, what waits and what was counted stays. */
	int (*open)(struct rs_exporter *e, char *err, size_t size);
	void (*close)(struct rs_exporter *e);
	/* A few times a second. */
	void (*tick)(struct rs_exporter *e, uint64_t now_ns);
	/* Before a message is queued: is it to be dropped already? (Sentry's limits) */
	bool (*refuse)(struct rs_exporter *e, uint64_t now_ns);
	/* HTTP: what to append to the body, if anything; it stays until the request is over. */
	struct str (*tail)(struct rs_send *s);
	/* HTTP: adds headers to s->req, may change s->url. The core has set the body. */
	void (*request)(struct rs_send *s);
	void (*header)(struct rs_send *s, struct str name, struct str value);
	/* What the end of a request means. *v is zeroed. */
	void (*verdict)(struct rs_send *s, struct rs_verdict *v);
	/* Not HTTP, and not moved by a reload: writes as much as can be written now. */
	void (*write)(struct rs_exporter *e, struct rs_item *it, struct rs_verdict *v);
	/* A message as two: halves, each with its number of spans. false: it cannot be done. */
	bool (*split)(struct rs_exporter *e, const struct rs_item *it, struct rs_payload half[2],
		      uint32_t spans[2]);
};

struct rs_spool;

struct rs_exporter {
	const struct rs_exporter_ops *ops;
	const struct rs_config *cfg;
	struct rs_http *http;
	struct rs_loop *loop;
	struct rs_arena mem; /* strings below, the state */
	void *state;
	struct rs_bufpool pool;
	struct rs_encoder_opts enc_opts;
	struct rs_encoder *enc[RS_EXPORT_FORMS];
	uint8_t form; /* that new batches are encoded in */
	struct rs_queue q;
	struct rs_spool *spool; /* NULL: none */
	struct rs_zip zip;
	enum rs_compression compression;

	const char *asked;  /* target that was given with the name, or NULL */
	const char *url;    /* NULL for files */
	const char *target; /* for people: no user, no query */
	struct rs_http_conf conf;
	const char *secret[RS_EXPORT_SECRETS]; /* never shown, wherever they turn up */
	int nsecrets;
	char protocol[32]; /* what was negotiated, for status */

	struct rs_send send[RS_EXPORT_INFLIGHT];
	struct rs_loop_fd writable; /* stdout: waiting for room */
	uint32_t failures;	    /* in a row */
	uint64_t hold_until_ns;	    /* nothing is sent before; 0: no wait */
	bool server_wait;	    /* hold_until was named by the server */
	bool draining;
	uint64_t rng;

	/* The backend's sampling rates (Datadog): service and env as it named them. May be NULL. */
	void (*on_rate)(void *arg, struct str service, struct str env, double rate);
	void *rate_arg;

	uint64_t spans_in, sent, retried, uncertain;
	uint64_t lost[RS_LOSS_COUNT];
	uint64_t requests, bytes_sent;
	bool begun;			  /* a request was made since the endpoint was set */
	uint64_t last_ok_ns, last_err_ns; /* CLOCK_MONOTONIC, 0: never */
	uint64_t told_ns;		  /* when the log last told of an error */
	char last_error[256];
};

/*
 * target: URL, file or NULL (from the configuration, the environment, the protocol's default).
 * 0, or -errno with a line in err. Release in either case.
 */
int rs_exporter_open(struct rs_exporter *e, const struct rs_exporter_ops *ops, const char *target,
		     const struct rs_config *cfg, struct rs_http *http, struct rs_loop *loop,
		     char *err, size_t size);
void rs_exporter_release(struct rs_exporter *e);
/* Could it be opened, as far as the configuration says? Nothing is asked or opened. 0, or -errno with a line in err. */
int rs_exporter_check(const struct rs_exporter_ops *ops, struct str target,
		      const struct rs_config *cfg, char *err, size_t size);
/*
 * Endpoint, headers, certificates and the like from another configuration; what is queued stays, what is under way is
 * sent again. Nothing happens to one that does not go by HTTP. cfg must outlive it. 0, or -errno with a line in err: then
 * it is as it was.
 */
int rs_exporter_move(struct rs_exporter *e, const struct rs_config *cfg, char *err, size_t size);
/* Requests are broken off; what is still queued is counted as lost (SHUTDOWN), unless it is in the spool:
 * that stays held, for the next run. */
void rs_exporter_end(struct rs_exporter *e);

/* Encodes and queues; sends what can be sent. Never fails: what is lost is counted. */
void rs_exporter_batch(struct rs_exporter *e, const struct rs_batch *b);
void rs_exporter_tick(struct rs_exporter *e, uint64_t now_ns);
/* From now on waits are short: there is not much time. */
void rs_exporter_hurry(struct rs_exporter *e);
/* Spans waiting or in flight. */
uint64_t rs_exporter_held(const struct rs_exporter *e);

/* -- for protocols' files -- */

/* v from the request's end by HTTP's general rules: 2xx done, 413 split, 429 502 503 504 again, no answer
 * again, all else never. */
void rs_verdict_http(struct rs_send *s, struct rs_verdict *v);
/* Gives up a message, waiting or in flight: its spans are counted as lost. */
void rs_exporter_drop(struct rs_exporter *e, struct rs_item *it, enum rs_loss how);
/* Remembers a text that must not be shown; at least 4 bytes, others are too common. */
void rs_exporter_secret(struct rs_exporter *e, const char *text);
/* A trouble that concerns no single message. */
void rs_exporter_error(struct rs_exporter *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* How a path is made from the endpoint's and the protocol's own. */
enum rs_endpoint_path {
	RS_PATH_AUTO,	/* the protocol's, unless the endpoint has one */
	RS_PATH_APPEND, /* the protocol's behind the endpoint's */
	RS_PATH_EXACT,	/* the endpoint's, "/" without one */
};

/* Sets url, target, conf.unix_path and conf.userpwd. scheme: of a text without one. `unix:///path` is a
 * Unix socket. 0, or -EINVAL and err. */
int rs_exporter_endpoint(struct rs_exporter *e, const char *text, enum rs_endpoint_path path,
			 const char *scheme, char *err, size_t size);
/* The same from what was asked for (e->asked, --endpoint), else the protocol's default. */
int rs_exporter_default_endpoint(struct rs_exporter *e, char *err, size_t size);
/* A NUL-terminated copy in e->mem; NULL without memory. */
const char *rs_exporter_str(struct rs_exporter *e, struct str s);

/* All there are; NULL when there is none of this name. */
const struct rs_exporter_ops *rs_exporter_find(struct str name);
const struct rs_exporter_ops *rs_exporter_ops_at(size_t i);

#endif
