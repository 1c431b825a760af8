/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue — messages that wait to be sent, oldest first. One per exporter.
 *
 * Bounded by spans and by bytes of memory (whole buffers, not only what is written in them). When it is
 * full the oldest waiting message gives way: what is new is worth more than what is old, and whoever
 * was down for long is not served a backlog first. What is being sent is not taken away.
 * A message in flight stays the queue's: it counts until rs_queue_done().
 * Not thread-safe. Items come from a pool: nothing is allocated in steady state.
 */
#ifndef RS_EXPORT_QUEUE_H
#define RS_EXPORT_QUEUE_H

#include "base/bufpool.h"
#include "base/list.h"
#include "base/pool.h"

#define RS_ITEM_CONTAINER 80 /* bytes of a container's id, and a NUL */

struct rs_item {
	struct rs_list link;
	struct rs_payload data; /* empty: on disk only (spool.h) */
	uint32_t spans;
	uint8_t form; /* which of the exporter's encoders made it */
	bool in_flight;
	bool tried;
	uint64_t queued_ns; /* CLOCK_MONOTONIC */
	size_t cost;	    /* bytes of its buffers */
	size_t at;	    /* file, stdout: bytes already written */
	uint64_t spool_id;  /* 0: not in the spool */
	char container
		[RS_ITEM_CONTAINER]; /* all spans are of this one's processes; empty: of none, or it is
					    * not asked for, or the message is from an earlier run */
};

struct rs_queue {
	struct rs_list waiting; /* oldest first */
	struct rs_list flying;
	struct rs_pool items;
	uint32_t nwaiting, nflying; /* messages */
	uint64_t spans;		    /* in all of them */
	size_t bytes;
	uint64_t max_spans;
	size_t max_bytes;
};

void rs_queue_init(struct rs_queue *q, uint64_t max_spans, size_t max_bytes);
/* Gives all buffers back. */
void rs_queue_release(struct rs_queue *q);

/* Takes the payload. NULL without memory: the payload is still the caller's. */
struct rs_item *rs_queue_push(struct rs_queue *q, struct rs_payload *data, uint32_t spans,
			      uint8_t form, uint64_t now_ns);
/* Puts a part of `of` (which is in flight) in front of what waits. */
struct rs_item *rs_queue_push_part(struct rs_queue *q, const struct rs_item *of,
				   struct rs_payload *data, uint32_t spans);
/* Is it over a bound? Drop rs_queue_oldest() until it is not, or until that is NULL. */
bool rs_queue_over(const struct rs_queue *q);
/* The waiting message to send, or to give up, next; NULL: none. */
struct rs_item *rs_queue_oldest(const struct rs_queue *q);

/* waiting -> in flight */
void rs_queue_take(struct rs_queue *q, struct rs_item *it);
/* in flight -> in front of what waits */
void rs_queue_back(struct rs_queue *q, struct rs_item *it);
/* It is over with: buffers and item are given back. From either state. */
void rs_queue_done(struct rs_queue *q, struct rs_item *it);

/* Memory alone: the bytes are elsewhere and come back later. */
void rs_queue_unload(struct rs_queue *q, struct rs_item *it);
void rs_queue_load(struct rs_queue *q, struct rs_item *it, struct rs_payload *data);

#endif
