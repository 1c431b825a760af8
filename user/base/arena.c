// SPDX-License-Identifier: Apache-2.0
#include "arena.h"

#include <stdlib.h>

struct rs_arena_chunk {
	struct rs_arena_chunk *next;
	size_t size; /* of data[], RS_ARENA_PAD behind it included */
	char data[];
};

void rs_arena_init(struct rs_arena *a, size_t chunk_size, size_t limit)
{
	*a = (struct rs_arena){ .chunk_size = chunk_size, .limit = limit ? limit : SIZE_MAX };
}

void rs_arena_release(struct rs_arena *a)
{
	struct rs_arena_chunk *c = a->first;

	while (c) {
		struct rs_arena_chunk *next = c->next;

		free(c);
		c = next;
	}
	rs_arena_init(a, a->chunk_size, a->limit);
}

static void use_chunk(struct rs_arena *a, struct rs_arena_chunk *c)
{
	a->cur = c;
	a->pos = c->data;
	a->end = c->data + c->size - RS_ARENA_PAD;
}

void rs_arena_reset(struct rs_arena *a)
{
	struct rs_arena_chunk **link = &a->first;

	/* Oversized chunks served one unusual object: give them back. */
	while (*link) {
		struct rs_arena_chunk *c = *link;

		if (c->size > a->chunk_size + RS_ARENA_PAD) {
			*link = c->next;
			a->held -= c->size;
			free(c);
		} else {
			link = &c->next;
		}
	}
	if (a->first)
		use_chunk(a, a->first);
	else
		a->cur = NULL, a->pos = a->end = NULL;
}

void *rs_arena_alloc_slow(struct rs_arena *a, size_t size)
{
	struct rs_arena_chunk *c, *prev = a->cur;
	size_t want = size > a->chunk_size ? size : a->chunk_size;
	char *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	/* After a reset, chunks that follow are free. */
	while (prev && prev->next) {
		c = prev->next;
		if (size <= c->size - RS_ARENA_PAD)
			goto found;
		prev = c;
	}
	if (want + RS_ARENA_PAD > a->limit - a->held)
		return NULL;
	c = malloc(sizeof(*c) + want + RS_ARENA_PAD);
	if (!c)
		return NULL;
	c->size = want + RS_ARENA_PAD;
	c->next = NULL;
	/* The pad behind the last string is read by vector loads: give it a value once. */
	memset(c->data + want, 0, RS_ARENA_PAD);
	a->held += c->size;
	if (prev)
		prev->next = c;
	else
		a->first = c;
found:
	use_chunk(a, c);
	p = a->pos;
	a->pos += size;
	return p;
}
