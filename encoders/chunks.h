/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunks — spans taken from a batch and grouped by trace, for protocols that send trace by trace.
 *
 * A window is the next spans of the batch that can be sent, at most `window` of them; its chunks are the
 * traces in it (of one resource each, if by_resource), in the order of their first spans, as are the spans in
 * them. A message that came out too big is encoded again with a smaller window, so encoders need no rollback.
 *
 * Memory grows to the largest window and stays; nothing is allocated in steady state.
 */
#ifndef RS_ENC_CHUNKS_H
#define RS_ENC_CHUNKS_H

#include "encoder.h"

struct rs_item {
	const struct rs_resource_spans *rs;
	const struct rs_scope_spans *ss;
	const struct rs_span *s;
	uint32_t next; /* in its chunk, or RS_CHUNK_END */
};

#define RS_CHUNK_END UINT32_MAX

struct rs_chunk {
	uint32_t first, last, n; /* items */
};

struct rs_chunks {
	bool by_resource;
	bool low_half; /* trace ids need a lower half that is not 0 */

	struct rs_item *item;
	struct rs_chunk *chunk;
	uint32_t nitem, nchunk;

	uint32_t cap; /* of item[] and chunk[] */
	struct {
		uint32_t epoch, chunk;
	} * group; /* trace id to chunk */
	uint32_t group_cap, epoch;
	uint32_t window;
	struct rs_cursor next; /* behind the window */
	bool next_done;
	uint32_t skipped[RS_SKIP_COUNT];
};

/*
 * c is zeroed. Whoever takes messages above the usual size wants all in one if it fits: the first window is
 * the whole batch then. 0 or -ENOMEM.
 */
int rs_chunks_init(struct rs_chunks *c, size_t max_payload);
void rs_chunks_release(struct rs_chunks *c);

/* The window at run->at; nitem is 0 when no span is left. 0 or -ENOMEM. */
int rs_chunks_collect(struct rs_chunks *c, const struct rs_encode *run);
/*
 * The window is too big for a message. True: collect again. False: it was one span alone; it is counted as too
 * big, and run has moved behind it.
 */
bool rs_chunks_less(struct rs_chunks *c, struct rs_encode *run);
/* The window's spans are encoded, in `bytes` of `max`: moves run behind it. */
void rs_chunks_taken(struct rs_chunks *c, struct rs_encode *run, size_t bytes, size_t max);

/* Moves run behind the window, whose spans its encoder has counted itself. */
void rs_chunks_leave(struct rs_chunks *c, struct rs_encode *run);

/* *array has room for `want` elements of `size`; *cap is what it had. False: no memory, nothing changed. */
bool rs_grow(void *array, uint32_t *cap, uint32_t want, size_t size);

#endif
