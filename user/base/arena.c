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

static void free_chain(struct rs_arena_chunk *c)
{
	while (c) {
		struct rs_arena_chunk *next = c->next;

		free(c);
		c = next;
	}
}

void rs_arena_release(struct rs_arena *a)
{
	free_chain(a->first);
	free_chain(a->big);
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
	for (struct rs_arena_chunk *c = a->big; c; c = c->next)
		a->held -= c->size;
	free_chain(a->big);
	a->big = NULL;
	if (a->first)
		use_chunk(a, a->first);
}

/* NULL at the limit. */
static struct rs_arena_chunk *new_chunk(struct rs_arena *a, size_t size)
{
	struct rs_arena_chunk *c;

	if (size + RS_ARENA_PAD > a->limit - a->held)
		return NULL;
	c = malloc(sizeof(*c) + size + RS_ARENA_PAD);
	if (!c)
		return NULL;
	c->size = size + RS_ARENA_PAD;
	c->next = NULL;
	/* The pad behind the last string is read by vector loads: give it a value once. */
	memset(c->data + size, 0, RS_ARENA_PAD);
	a->held += c->size;
	return c;
}

void *rs_arena_alloc_slow(struct rs_arena *a, size_t size)
{
	struct rs_arena_chunk *c;
	char *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + 7) & ~(size_t)7;
	/* What a normal chunk cannot hold gets one of its own, and the current chunk serves on. */
	if (size > a->chunk_size) {
		c = new_chunk(a, size);
		if (!c)
			return NULL;
		c->next = a->big;
		a->big = c;
		return c->data;
	}
	/* After a reset, the chunks that follow are free. */
	c = a->cur ? a->cur->next : NULL;
	if (!c) {
		c = new_chunk(a, a->chunk_size);
		if (!c)
			return NULL;
		if (a->cur)
			a->cur->next = c;
		else
			a->first = c;
	}
	use_chunk(a, c);
	p = a->pos;
	a->pos += size;
	return p;
}
