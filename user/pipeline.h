/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline — the flow: records in, spans out. Owns the stages; knows no source and no exporter.
 *
 * Feed it records in order with rs_pipeline_event(), call rs_pipeline_tick() now and then, and take
 * what is in `batch` when `flush` is called. After warm-up it does not allocate.
 */
#ifndef RS_PIPELINE_H
#define RS_PIPELINE_H

#include "base/counters.h"
#include "conn/conn.h"
#include "meta/dns.h"
#include "meta/proc.h"
#include "pair/pair.h"
#include "status/services.h"
#include "tls/tls_mode.h"
#include "trace/sample.h"
#include "trace/trace.h"

struct rs_pipeline_opts {
	uint32_t max_conns, max_requests, max_procs, max_threads; /* 0: the default */
	size_t batch_bytes;	     /* memory of a batch at most; 0: the default */
	uint32_t batch_spans;	     /* spans in a batch at most; 0: the default */
	uint64_t request_timeout_ns; /* an exchange silent for longer is ended; 0: never */
	uint64_t max_spans;	     /* after so many spans nothing more is taken in; 0: no limit */
	uint64_t seed;		     /* of ids; 0: random */
	int64_t wall_offset;	     /* CLOCK_MONOTONIC to wall time */
	bool live;		     /* read /proc of processes */
	const char *host_root;	     /* where the host's files are; NULL: found out */
};

#define RS_PL_AHEAD 4 /* records: see rs_pipeline_ahead() */
#define RS_PEERS    3 /* tables of pods and Services at most in which a peer's address is looked up */

/* A finished exchange whose span waits, for the other end's record (trace.h) or for its process's pod to be
 * known (meta/proc.h); conn may be gone. */
struct rs_held {
	struct rs_list node;
	struct rs_open *o;
	struct rs_proc *p; /* stays while this is there */
	struct rs_conn_info conn;
	struct rs_tls_facts facts; /* conn's */
};

/* Looks on at one process's records and messages. Zeroed: at nobody's. */
struct rs_pl_watch {
	uint32_t tgid; /* 0: nobody */
	/* open: the exchange the message is part of, or NULL. Neither is kept. */
	void (*message)(void *arg, const struct rs_conn *c, const struct rs_open *open,
			const struct rs_msg *m);
	/* Open records when they have been read, data and close records before. c: NULL: it is not known. */
	void (*record)(void *arg, const struct rs_conn *c, const struct rs_ev_hdr *ev);
	void *arg;
};

struct rs_pipeline {
	struct rs_pipeline_opts o;
	struct rs_counters n;
	struct rs_conns conns;
	struct {
		uint64_t conn; /* 0: of none */
		uint64_t who;  /* rs_thread_id() of data's mover */
		uint32_t tgid;
		int dir; /* enum rs_ev_dir of data; -1: a fact */
	} ahead[RS_PL_AHEAD];
	uint32_t nahead;
	struct rs_list closing; /* rs_conn.closing, oldest first */
	struct rs_l7_env l7;
	struct rs_pair pair;
	struct rs_trace trace;
	struct rs_procs procs;
	struct rs_dns dns;
	struct rs_batch batch;
	uint64_t emitted; /* finished requests, but those that are held */
	struct rs_pool held_pool;
	struct rs_list held;	/* struct rs_held.node, oldest first: for the other end */
	struct rs_list podless; /* likewise: for the pod */
	struct {
		uint64_t requests, spans, errors;
	} proto[RS_PROTO_COUNT];
	struct rs_services services;
	bool done; /* max_spans were made, and flushed */
	/* Since when exchanges may be open that have ended in what was lost; 0: none. */
	uint64_t lost_ns;
	uint64_t last_span_ns; /* CLOCK_MONOTONIC; 0: none yet */
	uint64_t now;	       /* time of the newest record or tick, CLOCK_MONOTONIC */

	bool skip_probes; /* no spans of the kubelet's health probes; set by the caller */
	struct {
		/* A process begins TLS on a connection; opaque: earlier ones showed no plain text. */
		void (*does)(void *arg, uint32_t tgid, bool opaque);
		void (*loads)(void *arg, const struct rs_ev_proc *ev); /* RS_PROC_LOADS */
		/* Is its plain text read, and since when? */
		enum rs_tls_reading (*reading)(void *arg, uint32_t tgid, uint64_t *ret_since_ns);
		void *arg;
	} tls; /* the caller's; NULL: nobody asks */
	const struct rs_pods *peers
		[RS_PEERS]; /* the caller's: whose address is it? In this order; NULL: no more */
	struct rs_sampler *sampler; /* the caller's; NULL: every span is kept as it is */
	/* The batch is full: send its spans. It is reset when the call returns. */
	void (*flush)(void *arg, const struct rs_batch *b);
	/* Optional: a client's connection has come to where the next request begins, at this offset. */
	void (*request_start)(void *arg, uint64_t conn, uint64_t off);
	void *arg;
	struct rs_pl_watch watch;
};

/* flush and arg are set, and l7.policy if wanted, by the caller after this. 0 or -ENOMEM. */
int rs_pipeline_init(struct rs_pipeline *pl, const struct rs_pipeline_opts *opts);
/* Also after a failed init, and harmless on a zeroed struct. */
void rs_pipeline_release(struct rs_pipeline *pl);

/*
 * A record that comes RS_PL_AHEAD records later than the next one, its length checked: what it will need is brought
 * into the cache meanwhile, in steps. A hint: changes nothing, may be left out.
 */
void rs_pipeline_ahead(struct rs_pipeline *pl, const struct rs_ev_hdr *ev);

/* One record; its length has been checked against its type (rs_record_valid). */
void rs_pipeline_event(struct rs_pipeline *pl, const struct rs_ev_hdr *ev);

/* Ends what has been silent for too long. Call a few times a second. */
void rs_pipeline_tick(struct rs_pipeline *pl, uint64_t now_ns);

/* Sweep for sockets that ended unseen: begin, name each live one, then end. */
void rs_pipeline_sweep_begin(struct rs_pipeline *pl);
void rs_pipeline_sweep_live(struct rs_pipeline *pl, uint64_t conn);
void rs_pipeline_sweep_end(struct rs_pipeline *pl);

/* Sends what is in the batch. */
void rs_pipeline_flush(struct rs_pipeline *pl);

/* The input has ended: every connection and open exchange ends (RS_XEND_STOPPED), all is flushed. */
void rs_pipeline_finish(struct rs_pipeline *pl);

/* Brings the gauges in pl->n up to date. */
void rs_pipeline_gauges(struct rs_pipeline *pl);

#endif
