/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair — requests and responses of a connection brought together.
 *
 * An exchange opens with its request's head and finishes with its response's last byte, or when the
 * connection ends. FIFO protocols: the n-th response answers the n-th request; others number them. Nothing is guessed:
 * when records were lost, what can not be paired for certain is ended without a response or left out,
 * each counted.
 *
 * A client's request and its response may reach us the wrong way round: the sending system call
 * returns (and is recorded) after another thread has read the answer. On a connection that was seen
 * whole, a response without a request is therefore kept for the request that must follow.
 *
 * Bounded: at most `max` exchanges are open; the oldest gives way (finished as RS_XEND_LOST: it did not fail).
 * Field values are copied: at most RS_PAIR_FIELD bytes each. Not thread-safe.
 */
#ifndef RS_PAIR_PAIR_H
#define RS_PAIR_PAIR_H

#include "base/counters.h"
#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"
#include "conn/conn.h"
#include "proto/exchange.h"

#define RS_PAIR_FIELD 8192 /* bytes of one field's value that are kept */
#define RS_PAIR_PEER  256  /* bytes of the other end's name; a longer one is not kept */
#define RS_PAIR_FACTS 8	   /* facts kept for one exchange; the rest are counted */

/* Something the kernel saw while the exchange was open. */
struct rs_open_fact {
	uint64_t ts_ns;
	uint8_t kind; /* enum rs_ev_fact_kind, RS_FACT_TLS_HANDSHAKE, or RS_FACT_PROC + enum rs_ev_proc_kind */
	uint32_t value; /* as in the record: bytes and µs, summed up; signal; exit code */
	uint32_t count; /* how many of this kind were merged into it */
};
#define RS_FACT_PROC	      64
/* Not told by the kernel, but by the connection's TLS records; value: µs. */
#define RS_FACT_TLS_HANDSHAKE 63

/* A message within the body of a call (gRPC). */
struct rs_open_part {
	uint64_t ts_ns;
	uint8_t dir; /* enum rs_ev_dir */
	uint32_t size;
};
#define RS_PAIR_PARTS 32 /* kept for one call; the rest are counted */

/* How a span's parent was found: attribute ringspan.parent.source. */
enum rs_parent_source {
	RS_PARENT_NONE,
	RS_PARENT_WIRE,	     /* the context the message itself carries */
	RS_PARENT_THREAD,    /* the request the sending thread was handling */
	RS_PARENT_SEQUENCE,  /* the client's span at the other end of the connection */
	RS_PARENT_GOROUTINE, /* as THREAD, of the goroutine */
	RS_PARENT_SDK,	     /* the span that the sending thread's SDK has active */
};

/* Why a span is linked to another: attribute ringspan.link.type. */
enum rs_link_type {
	RS_LINK_RETRY,	      /* the attempt before this one, which failed */
	RS_LINK_REDIRECT,     /* the request whose answer sent the client here */
	RS_LINK_CONNECTION,   /* the request for which the connection was opened */
	RS_LINK_THREAD,	      /* the thread was at this request, but others waited there too */
	RS_LINK_THREAD_ENDED, /* the last request of the thread, which had ended */
	RS_LINK_OTHER_CONTEXT, /* another context in the same headers, or the thread's, of another trace */
	RS_LINK_SEQUENCE, /* the other end of the connection, when the headers name another parent */
	RS_LINK_MESSAGE,  /* who sent a message that was consumed: trace/messages.h */
};

struct rs_open_link {
	uint8_t trace_id[16], span_id[8];
	uint8_t type; /* enum rs_link_type */
	bool remote;
};
#define RS_PAIR_LINKS 4

struct rs_root;	    /* trace/root.h */
struct rs_messages; /* trace/messages.h */
struct rs_thread;   /* trace/thread.h */

/* A call that failed or was redirected: what comes next may be sent for it again. */
struct rs_attempt {
	uint64_t key, location; /* hashes of the URL asked for and of the one answered; 0: none */
	uint8_t trace_id[16], span_id[8];
	uint32_t count; /* http.request.resend_count of this attempt */
	uint64_t end_ns;
};

/* What a server's request does while its thread is at another one (trace/thread.h). */
enum rs_idle {
	RS_IDLE_NOT,   /* the thread is at it, or a call for it is under way */
	RS_IDLE_QUIET, /* its body is still coming, or its answer going */
	RS_IDLE_DARK,  /* it waits for something that is not seen */
};

struct rs_open {
	struct rs_exchange x;
	struct rs_conn *conn;
	struct rs_list of_conn; /* in conn->open */
	struct rs_list of_all;	/* oldest first */
	bool has_request;
	bool response_done;
	bool finished;	   /* set by rs_pair_add: the caller assembles it and calls rs_pair_put */
	bool proc_gone;	   /* its process has ended */
	uint32_t id;	   /* RS_PAIR_BY_ID; 0: none */
	uint64_t heard_ns; /* RS_PAIR_BY_ID: last message */
	uint32_t seq;	   /* TCP sequence number of the request's first byte, or 0 */

	/* The span's context, trace's own: */
	struct rs_root *root; /* its trace */
	uint8_t span_id[8], parent_id[8];
	uint8_t parent_source; /* enum rs_parent_source */
	bool parent_remote;
	bool forwarded; /* client: its headers carry on what its server request had received */
	uint8_t idle;	/* server: enum rs_idle */
	bool served;	/* server: the runtime said which task handles it */
	uint8_t wire_span_id[8]; /* server: parent id on the wire, to know a forwarded header by */
	uint32_t waits;		 /* server: calls and connects under way for it */
	uint32_t resend;	 /* client: http.request.resend_count */
	uint8_t nlinks;
	uint32_t dropped_links;
	struct rs_messages *messages, *last_messages; /* trace/messages.h */
	uint32_t nmessages;
	uint64_t join_key;	   /* trace/join.c; 0: none */
	uint64_t far_key;	   /* the same, for an agent on another node; 0: met on this one */
	struct rs_attempt attempt; /* client: this one; server: the last call for it that failed */
	struct rs_thread *thread;  /* server: where it was last heard of */
	struct rs_open *parent;	   /* client: the request it was sent for, while that is open */
	bool unsure;		   /* client: perhaps; its span has no parent then */
	struct rs_list of_parent, children;
	struct rs_list of_thread; /* in thread->open */
	struct rs_list borrowers; /* server: rs_thread.of_lent */
	struct rs_list of_wire; /* server: others of its process in the same trace from the wire */
	struct rs_list opened;	/* server: rs_connect.of_opener */
	struct rs_open_fact facts[RS_PAIR_FACTS];
	uint32_t nfacts, nparts, dropped_facts;
	struct rs_open_part parts[RS_PAIR_PARTS];
	struct rs_open_link links[RS_PAIR_LINKS];

	char peer[RS_PAIR_PEER]; /* x.peer */

	char *more; /* from the big pool, or NULL */
	uint32_t used, more_used;
	char buf[768];
};

struct rs_pair {
	struct rs_pool pool, big;
	struct rs_list all;  /* oldest first */
	struct rs_map by_id; /* open exchanges with an id, by connection and id */
	struct rs_counters *n;
	bool keep_parts; /* --rpc-messages */
};

/* max: open exchanges at once. */
void rs_pair_init(struct rs_pair *p, uint32_t max, struct rs_counters *n);
void rs_pair_release(struct rs_pair *p);

/* A message of a connection. Returns the exchange it belongs to, or NULL (counted). When the result's
 * `finished` is set the caller hands it on and gives it back. */
struct rs_open *rs_pair_add(struct rs_pair *p, struct rs_conn *c, const struct rs_msg *m);

/* A message of o comes soon: its memory comes nearer. */
void rs_open_ahead(const struct rs_open *o);
/* Is there room for one more request? If not, the caller ends rs_pair_oldest() first. */
bool rs_pair_full(const struct rs_pair *p);
struct rs_open *rs_pair_oldest(const struct rs_pair *p);

/* The other end is called so; is_name: by a name server. Counts only once. */
void rs_pair_peer(struct rs_open *o, struct str name, bool is_name);

/* Notes a fact on the exchange; the same kind again is merged. */
void rs_pair_fact(struct rs_open *o, uint8_t kind, uint32_t value, uint64_t ts_ns);

/*
 * Bytes of one direction were lost, and with them perhaps the beginning or end of a message. The caller
 * then ends all open exchanges but the one returned (NULL: all) with RS_XEND_LOST.
 *
 * Losses come in bursts: the next response may answer a request that is missing too, so that at most a
 * request whose body is not complete goes on. With pipelining the order of what follows is not certain:
 * nothing is paired until the connection has been quiet for RS_PAIR_QUIET_NS.
 */
struct rs_open *rs_pair_lost(struct rs_conn *c, enum rs_ev_dir dir);
#define RS_PAIR_QUIET_NS 1000000000ull

/* The exchange ends with what it has. Sets finished, x.end and x.end_ns. */
void rs_pair_end(struct rs_pair *p, struct rs_open *o, enum rs_xend end, uint64_t ts_ns);

/* Takes a finished exchange from its connection, to be given back later. x.conn is the caller's then. */
void rs_pair_detach(struct rs_pair *p, struct rs_open *o);

/*
 * Of a protocol whose messages are numbered no loss makes a pair uncertain, but what has been silent since
 * may have ended in it: true from then on.
 */
bool rs_pair_doubtful(const struct rs_open *o);

/* Gives a finished exchange back. */
void rs_pair_put(struct rs_pair *p, struct rs_open *o);

#endif
