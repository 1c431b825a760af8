/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace — which trace a request belongs to, and the span it becomes.
 *
 * A server's request:  the context it carries (propagate.h); else the client's span at the other end of
 *                      the connection, when that is on this node (join.h); else it begins a trace.
 * A client's request:  the one open request of its process that is in the trace its headers name; else
 *                      the span that its thread's SDK has active, where that is published; else the request
 *                      for which its connection was just opened; else the request its thread is at
 *                      (thread.h), or the task that is known to ask where another one writes
 *                      (RS_TASK_CALLS). When that is not certain, no parent, and a link. If the program sends a
 *                      context of its own, the span takes the span id that the program put there, so that
 *                      the next hop's parent exists; unless it only forwards the one it got. Where the
 *                      program starts a trace by itself, its request's trace becomes that one.
 * A finished request is nobody's parent. How it was found is attribute ringspan.parent.source.
 *
 * On one node the records of both ends come in either order. A server's request whose client has not been
 * seen, and is on this node, waits up to RS_TRACE_WAIT_NS after its start before its span goes out.
 *
 * Not thread-safe. Allocates from its pools and from the batch's arena.
 */
#ifndef RS_TRACE_TRACE_H
#define RS_TRACE_TRACE_H

#include "base/counters.h"
#include "base/map.h"
#include "base/pool.h"
#include "config/config.h"
#include "meta/proc.h"
#include "pair/pair.h"
#include "trace/connect.h"
#include "trace/ids.h"
#include "trace/join.h"
#include "trace/limits.h"
#include "trace/propagate.h"
#include "trace/root.h"
#include "trace/span.h"
#include "trace/thread.h"

#define RS_TRACE_WAIT_NS 50000000ull

#define RS_TRACE_GONE 1024

/* --join */
enum rs_join_mode {
	RS_JOIN_OFF,
	RS_JOIN_NODE,	 /* both ends on this node */
	RS_JOIN_CLUSTER, /* every node runs ringspan: derive what the other agent calls the parent */
};

/* --events */
enum rs_events_mode {
	RS_EVENTS_OFF,
	RS_EVENTS_SPAN,	      /* as events of the span */
	RS_EVENTS_ATTRIBUTES, /* in summary, as attributes */
};

struct rs_trace {
	struct rs_ids ids;
	struct rs_propagators propagators; /* all, in their order; may be replaced */
	enum rs_join_mode join;
	enum rs_events_mode events;
	bool skip_sdk; /* leave processes with an SDK to it */
	struct rs_limits limits;
	struct rs_redact redact;
	struct rs_threads threads;
	struct rs_connects connects;
	struct rs_joins joins;
	struct rs_map
		by_wire; /* process and trace from the wire -> its server requests (rs_open.of_wire) */
	uint64_t gone
		[RS_TRACE_GONE]; /* of by_wire: keys of requests that have ended; by their hash, the last */
	struct rs_pool roots;
	struct rs_pool messages; /* struct rs_messages */
	struct rs_pair *pair;
	struct rs_counters *n;
	int64_t wall_offset; /* added to CLOCK_MONOTONIC times */
};

/* seed 0: random ids. max_threads: contexts kept; max_requests: as of pair. */
void rs_trace_init(struct rs_trace *t, uint64_t seed, uint32_t max_threads, uint32_t max_requests,
		   struct rs_pair *pair, struct rs_counters *n);
void rs_trace_release(struct rs_trace *t);
/* What the user asked for. Returns the first propagator that is not known, or nothing. */
struct str rs_trace_configure(struct rs_trace *t, const struct rs_config *cfg);
/* What is to be in spans and what not; cfg outlives t. Returns what cannot be done (redact.h), or nothing. */
struct str rs_trace_redact(struct rs_trace *t, const struct rs_config *cfg);

/* A message of an exchange has passed: sets the exchange's context, remembers the thread's. */
void rs_trace_message(struct rs_trace *t, struct rs_open *o, const struct rs_msg *m);

/* A thread (rs_thread_id) opens a connection. Only the first call for a connection counts. */
void rs_trace_connect(struct rs_trace *t, uint64_t conn, uint32_t tgid, uint64_t who,
		      struct rs_moment now);
/* Bytes of the connection's only exchange were moved in which no message began or ended: its body's. */
void rs_trace_body(struct rs_trace *t, struct rs_conn *c, const struct rs_ev_data *ev);
/* What a program's own tasks do. c: the connection that the record names, or NULL when it is not known. */
void rs_trace_task(struct rs_trace *t, struct rs_conn *c, const struct rs_ev_task *ev);
/* A connection is about to be dropped. */
void rs_trace_conn_gone(struct rs_trace *t, struct rs_conn *c);

/* Notes a link; the ones over RS_PAIR_LINKS are counted. remote: of another process. */
void rs_trace_link(struct rs_open *o, enum rs_link_type type, const uint8_t trace_id[16],
		   const uint8_t span_id[8], bool remote);

/* The exchange has ended: it is no thread's and no request's any more. */
void rs_trace_end(struct rs_trace *t, struct rs_open *o);
/* Must its span wait for the other end's record? */
bool rs_trace_waits(const struct rs_open *o, uint64_t now_ns);
/* The exchange goes: its root too. After rs_trace_end(). */
void rs_trace_forget(struct rs_trace *t, struct rs_open *o);

/* A finished exchange as a span of proc's resource in the batch. 0, or -ENOMEM when the batch is full:
 * send it, reset it, and call again. */
int rs_trace_assemble(struct rs_trace *t, struct rs_open *o, struct rs_proc *proc,
		      struct rs_batch *b);
/* The process changes or goes: the batch, which borrows its attributes, takes a copy. 0, or -ENOMEM: send it first. */
int rs_trace_part(struct rs_batch *b, struct rs_proc *proc);

#endif
