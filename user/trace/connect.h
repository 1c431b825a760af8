/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect — connections that were opened and on which nothing was asked yet: for which request, and how
 * long it took. Their first request is for the one they were opened for, whatever else the thread did
 * meanwhile. Bounded: the oldest is forgotten. Not thread-safe.
 */
#ifndef RS_TRACE_CONNECT_H
#define RS_TRACE_CONNECT_H

#include "base/map.h"
#include "base/pool.h"
#include "trace/thread.h"

#define RS_CONNECTS 4096

struct rs_connect {
	uint64_t conn;
	struct rs_open *opener;	  /* NULL: not known for certain, or ended */
	struct rs_list of_opener; /* in opener->opened */
	struct rs_list lru;
	uint8_t sure;	  /* enum rs_sure: about the opener */
	uint64_t done_ns; /* 0: it was not told when */
	uint32_t took_us;
	uint64_t caller; /* the task that is about to ask (RS_TASK_CALLS); 0: not known */
};

struct rs_connects {
	struct rs_map by_conn;
	struct rs_pool pool;
	struct rs_list lru; /* oldest first */
};

void rs_connects_init(struct rs_connects *cs);
void rs_connects_release(struct rs_connects *cs);
/* opener: the request it is opened for, or NULL. Only the first call for a connection counts. */
void rs_connect_begin(struct rs_connects *cs, uint64_t conn, struct rs_open *opener, uint8_t sure);
void rs_connect_done(struct rs_connects *cs, uint64_t conn, uint32_t took_us, uint64_t ts_ns);
/* NULL when nothing is known of it. */
struct rs_connect *rs_connect_find(const struct rs_connects *cs, uint64_t conn);
/* Asked, or gone. k may be NULL. */
void rs_connect_forget(struct rs_connects *cs, struct rs_connect *k);
/* The opener calls on a connection that is there: others that stand ready are not for its next call, but for a pool, so
 * for whoever calls then. */
void rs_connect_opener_calls(struct rs_open *opener);
/* The opener ends. */
void rs_connect_opener_ends(struct rs_open *opener);

#endif
