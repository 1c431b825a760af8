/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace — which trace a request belongs to, and the span it becomes.
 *
 * Parents, in this order: the context that the message itself carries (W3C traceparent); else, for a
 * request that is sent, the context of the last message its thread received: the request that thread is
 * handling, or, after a response, the request for which that call was made. A finished request is
 * nobody's parent. Without either: a root. How it was found is attribute ringspan.parent.source.
 *
 * If the program sends a traceparent of its own, the client span takes the span id the program put
 * there, so that the next hop's parent exists; unless the program merely forwards the header it got.
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
#include "trace/ids.h"
#include "trace/propagate.h"
#include "trace/span.h"

struct rs_trace {
	struct rs_ids ids;
	struct rs_propagators propagators; /* all, in their order; may be replaced */
	struct rs_map threads; /* tid -> context */
	struct rs_pool pool;
	struct rs_list lru; /* longest unused first */
	struct rs_pair *pair;
	struct rs_counters *n;
	int64_t wall_offset; /* added to CLOCK_MONOTONIC times */
};

/* seed 0: random ids. max_threads: contexts kept. */
void rs_trace_init(struct rs_trace *t, uint64_t seed, uint32_t max_threads, struct rs_pair *pair,
		   struct rs_counters *n);
void rs_trace_release(struct rs_trace *t);
/* What the user asked for. Returns the first propagator that is not known, or nothing. */
struct str rs_trace_configure(struct rs_trace *t, const struct rs_config *cfg);

/* A message of an exchange has passed: sets the exchange's context, remembers the thread's. */
void rs_trace_message(struct rs_trace *t, struct rs_open *o, const struct rs_msg *m);

/* The exchange leaves: nothing refers to it any more. */
void rs_trace_forget(struct rs_trace *t, struct rs_open *o);

/* A finished exchange as a span of proc's resource in the batch. 0, or -ENOMEM when the batch is full:
 * send it, reset it, and call again. */
int rs_trace_assemble(struct rs_trace *t, const struct rs_open *o, struct rs_proc *proc, struct rs_batch *b);

#endif
