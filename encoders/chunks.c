// SPDX-License-Identifier: Apache-2.0
#include "chunks.h"

#include <errno.h>
#include <stdlib.h>

#define WINDOW	   1024 /* spans of the first message */
#define WINDOW_MAX 65536

bool rs_grow(void *array, uint32_t *cap, uint32_t want, size_t size)
{
	void **a = array, *p;
	uint32_t n = *cap ? *cap : 64;

	if (want <= *cap)
		return true;
	while (n < want)
		n *= 2;
	p = realloc(*a, n * size);
	if (!p)
		return false;
	*a = p;
	*cap = n;
	return true;
}

int rs_chunks_init(struct rs_chunks *c, size_t max_payload)
{
	c->window = max_payload > RS_ENC_MAX_PAYLOAD ? UINT32_MAX : WINDOW;
	c->group_cap = 128;
	c->group = calloc(c->group_cap, sizeof(*c->group));
	return c->group ? 0 : -ENOMEM;
}

void rs_chunks_release(struct rs_chunks *c)
{
	free(c->item);
	free(c->chunk);
	free(c->group);
}

/* The first span at or behind the cursor's place; false: none. */
static bool settle(struct rs_cursor *c)
{
	while (!c->span) {
		if (c->ss && c->ss->next) {
			c->ss = c->ss->next;
		} else {
			c->rs = c->ss || !c->rs->first ? c->rs->next : c->rs;
			if (!c->rs)
				return false;
			c->ss = c->rs->first;
			if (!c->ss)
				continue;
		}
		c->span = c->ss->first;
	}
	return true;
}

static uint32_t *group_slot(struct rs_chunks *c, const struct rs_resource_spans *rs,
			    const uint8_t *trace_id)
{
	uint64_t a, b, h;

	memcpy(&a, trace_id, 8);
	memcpy(&b, trace_id + 8, 8);
	h = (a ^ b) * 0x9e3779b97f4a7c15u;
	for (uint32_t i = (uint32_t)(h >> 32);; i++) {
		uint32_t at = i & (c->group_cap - 1);
		const struct rs_item *it;

		if (c->group[at].epoch != c->epoch) {
			c->group[at].epoch = c->epoch;
			c->group[at].chunk = RS_CHUNK_END;
			return &c->group[at].chunk;
		}
		it = &c->item[c->chunk[c->group[at].chunk].first];
		if ((!c->by_resource || it->rs == rs) && !memcmp(it->s->trace_id, trace_id, 16))
			return &c->group[at].chunk;
	}
}

static bool memory(struct rs_chunks *c, uint32_t spans)
{
	uint32_t cap = c->cap, want = spans < 64 ? 64 : spans;

	if (want <= cap)
		return true;
	if (!rs_grow(&c->item, &cap, want, sizeof(*c->item)))
		return false;
	cap = c->cap;
	if (!rs_grow(&c->chunk, &cap, want, sizeof(*c->chunk)))
		return false;
	c->cap = cap;
	cap = c->group_cap;
	if (cap < 2 * c->cap) {
		void *p = calloc(2 * c->cap, sizeof(*c->group));

		if (!p)
			return false;
		free(c->group);
		c->group = p;
		c->group_cap = 2 * c->cap;
		c->epoch = 0;
	}
	return true;
}

static bool same_trace(const struct rs_span *a, const struct rs_span *b)
{
	uint64_t x[2], y[2];

	memcpy(x, a->trace_id, 16);
	memcpy(y, b->trace_id, 16);
	return x[0] == y[0] && x[1] == y[1];
}

/* Puts an item into its trace's chunk. *chunk: the last item's, if there was one. */
static void chain(struct rs_chunks *c, uint32_t i, uint32_t *chunk)
{
	struct rs_item *it = &c->item[i];

	if (!i || (c->by_resource && it[-1].rs != it->rs) || !same_trace(it[-1].s, it->s)) {
		uint32_t *slot = group_slot(c, it->rs, it->s->trace_id);

		if (*slot == RS_CHUNK_END) {
			c->chunk[c->nchunk] = (struct rs_chunk){ .first = i, .last = i };
			*slot = c->nchunk++;
		}
		*chunk = *slot;
	}
	c->item[c->chunk[*chunk].last].next = i;
	it->next = RS_CHUNK_END;
	c->chunk[*chunk].last = i;
	c->chunk[*chunk].n++;
}

int rs_chunks_collect(struct rs_chunks *c, const struct rs_encode *run)
{
	struct rs_cursor at = run->at;
	uint32_t chunk = 0;
	bool more;

	if (!memory(c, c->window < run->batch->nspans ? c->window : run->batch->nspans))
		return -ENOMEM;
	if (!++c->epoch) {
		memset(c->group, 0, c->group_cap * sizeof(*c->group));
		c->epoch = 1;
	}
	c->nitem = c->nchunk = 0;
	memset(c->skipped, 0, sizeof(c->skipped));
	if (!at.rs)
		at.rs = run->batch->first;
	more = at.rs && settle(&at);
	while (more && c->nitem < c->window && c->nitem < c->cap) {
		const struct rs_span *s = at.span;
		enum rs_skip why = rs_span_check(s);

		if (__builtin_expect(c->low_half && rs_id_is_zero(s->trace_id + 8, 8), 0))
			why = RS_SKIP_NO_TRACE_ID;
		if (__builtin_expect(why != RS_SKIP_NONE, 0)) {
			c->skipped[why]++;
		} else {
			c->item[c->nitem].rs = at.rs;
			c->item[c->nitem].ss = at.ss;
			c->item[c->nitem].s = s;
			chain(c, c->nitem++, &chunk);
		}
		at.span = s->next;
		if (!at.span)
			more = settle(&at);
	}
	c->next = at;
	c->next_done = !more;
	return 0;
}

void rs_chunks_leave(struct rs_chunks *c, struct rs_encode *run)
{
	run->at = c->next;
	run->done = c->next_done;
	for (int i = 0; i < RS_SKIP_COUNT; i++)
		run->skipped[i] += c->skipped[i];
}

bool rs_chunks_less(struct rs_chunks *c, struct rs_encode *run)
{
	if (c->nitem > 1) {
		c->window = c->nitem / 2;
		return true;
	}
	c->skipped[RS_SKIP_TOO_BIG]++;
	rs_chunks_leave(c, run);
	return false;
}

void rs_chunks_taken(struct rs_chunks *c, struct rs_encode *run, size_t bytes, size_t max)
{
	run->spans += c->nitem;
	rs_chunks_leave(c, run);
	if (bytes < max / 2 && c->nitem == c->window && c->window < WINDOW_MAX)
		c->window *= 2;
}
