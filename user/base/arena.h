/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena — memory that goes all at once: bump allocation from a chain of chunks.
 *
 * Lifetime: everything handed out dies at rs_arena_reset() or rs_arena_release(). Reset keeps the
 * chunks, so a warm arena does not call malloc. Bounded: `limit` bytes of chunks; beyond it
 * rs_arena_alloc() returns NULL (the caller counts the loss).
 * Strings made here can be read RS_ARENA_PAD bytes beyond their end (vector loads in encoders).
 * Not thread-safe.
 */
#ifndef RS_BASE_ARENA_H
#define RS_BASE_ARENA_H

#include "str.h"

#define RS_ARENA_PAD 64 /* readable bytes behind every string */

struct rs_arena_chunk;

struct rs_arena {
	struct rs_arena_chunk *first, *cur;
	struct rs_arena_chunk *big; /* of one object each; freed at reset */
	char *pos, *end;	    /* free part of cur; end leaves RS_ARENA_PAD behind it */
	size_t chunk_size;	    /* of a normal chunk */
	size_t limit;		    /* bytes of all chunks together */
	size_t held;		    /* bytes of all chunks now */
};

/* Allocates nothing yet. chunk_size: of a normal chunk, limit: of all together (0: none). */
void rs_arena_init(struct rs_arena *a, size_t chunk_size, size_t limit);
/* Frees all chunks; the arena may be used again. */
void rs_arena_release(struct rs_arena *a);
/* Forgets contents, keeps normal-sized chunks. */
void rs_arena_reset(struct rs_arena *a);

/* Cold part of rs_arena_alloc: the current chunk is full. */
void *rs_arena_alloc_slow(struct rs_arena *a, size_t size);

/* `size` bytes aligned to 8, not zeroed; NULL at the limit or without memory. */
static inline void *rs_arena_alloc(struct rs_arena *a, size_t size)
{
	size_t rounded = (size + 7) & ~(size_t)7;

	/* rounded < size: it wrapped */
	if (rounded >= size && rounded <= (size_t)(a->end - a->pos)) {
		void *p = a->pos;

		a->pos += rounded;
		return p;
	}
	return rs_arena_alloc_slow(a, size);
}

/* A copy of s with RS_ARENA_PAD readable bytes behind it; ptr NULL and len 0 when there is no room. */
static inline struct str rs_arena_str(struct rs_arena *a, struct str s)
{
	char *p = rs_arena_alloc(a, s.len);

	if (!p)
		return STR_NONE;
	if (s.len)
		memcpy(p, s.ptr, s.len);
	return (struct str){ p, s.len };
}

#endif
