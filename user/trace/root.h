/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root — a trace's identity, shared by all exchanges of it that are open on this node.
 *
 * Exchanges hold a reference instead of an id, so that what is learnt late (the client's record that
 * comes after the server's, the context a program starts by itself) changes the trace of all of them at
 * once, as long as no span of it has gone out. Merged roots lead to the one they were merged into.
 * Not thread-safe.
 */
#ifndef RS_TRACE_ROOT_H
#define RS_TRACE_ROOT_H

#include "base/pool.h"
#include "trace/propagate.h"

struct rs_root {
	uint8_t trace_id[16];
	uint8_t flags;	 /* W3C trace flags */
	bool fixed;	 /* the id came from the wire */
	bool emitted;	 /* a span with this id has gone out */
	bool quiet;	 /* nobody wants its spans: a health probe's */
	bool waiting;	 /* may yet be merged: spans are held until until_ns */
	uint16_t nstate; /* bytes of tracestate */
	uint32_t refs;
	uint64_t until_ns;
	struct rs_root *into; /* merged into this one (a reference), or NULL */
	char state[RS_TRACE_STATE_MAX];
};

/* With one reference; only id and flags are to be filled in. NULL without memory. */
struct rs_root *rs_root_new(struct rs_pool *pool);
struct rs_root *rs_root_ref(struct rs_root *r);
/* Gives a reference back; r may be NULL. */
void rs_root_put(struct rs_pool *pool, struct rs_root *r);
/* The root that r has become. */
struct rs_root *rs_root_of(struct rs_root *r);
/* From now on `from` is `to`. False: it can not be, its spans have gone out or its id is fixed. */
bool rs_root_merge(struct rs_root *from, struct rs_root *to);

#endif
