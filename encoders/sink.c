// SPDX-License-Identifier: Apache-2.0
#include "sink.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

_Static_assert(RS_SINK_NEED_MAX + RS_SINK_SLACK + sizeof(struct rs_buf) <= 1u << RS_BUF_MIN_SHIFT,
	       "the smallest buffer holds the largest need");

static size_t class_bytes(uint32_t cls)
{
	return (size_t)1 << (RS_BUF_MIN_SHIFT + cls);
}

/* The smallest class with room for `bytes`; RS_BUF_CLASSES when there is none. */
static uint32_t class_for(size_t bytes)
{
	uint32_t cls = 0;

	while (cls < RS_BUF_CLASSES &&
	       class_bytes(cls) - sizeof(struct rs_buf) - RS_SINK_SLACK < bytes)
		cls++;
	return cls;
}

static struct rs_buf *make(uint32_t cls)
{
	struct rs_buf *b = aligned_alloc(64, class_bytes(cls));

	if (!b)
		return NULL;
	b->next = NULL;
	b->cls = cls;
	b->cap = class_bytes(cls) - sizeof(*b) - RS_SINK_SLACK;
	return b;
}

static void free_one(struct rs_bufpool *p, uint32_t cls)
{
	struct rs_buf *b = p->free[cls];

	p->free[cls] = b->next;
	p->nfree[cls]--;
	p->held -= class_bytes(cls);
	free(b);
}

static struct rs_buf *get(struct rs_bufpool *p, uint32_t cls, int *err)
{
	struct rs_buf *b = p->free[cls];

	if (b) {
		p->free[cls] = b->next;
		if (--p->nfree[cls] < p->low[cls])
			p->low[cls] = p->nfree[cls];
	} else {
		size_t bytes = class_bytes(cls);

		/* At the limit, free buffers of other sizes make room. */
		for (uint32_t i = 0; i < RS_BUF_CLASSES; i++) {
			while (p->held + bytes > p->limit && p->free[i])
				free_one(p, i);
		}
		if (p->held + bytes > p->limit) {
			p->refused++;
			*err = -ENOBUFS;
			return NULL;
		}
		b = make(cls);
		if (!b) {
			*err = -ENOMEM;
			return NULL;
		}
		p->held += bytes;
	}
	p->in_use += class_bytes(cls);
	if (p->in_use > p->high)
		p->high = p->in_use;
	return b;
}

static void put(struct rs_bufpool *p, struct rs_buf *b)
{
	p->in_use -= class_bytes(b->cls);
	b->next = p->free[b->cls];
	p->free[b->cls] = b;
	p->nfree[b->cls]++;
}

int rs_bufpool_init(struct rs_bufpool *p, size_t limit)
{
	*p = (struct rs_bufpool){ .limit = limit ? limit : SIZE_MAX / 2 };
	p->scratch = make(0);
	return p->scratch ? 0 : -ENOMEM;
}

void rs_bufpool_release(struct rs_bufpool *p)
{
	for (uint32_t i = 0; i < RS_BUF_CLASSES; i++) {
		while (p->free[i])
			free_one(p, i);
	}
	free(p->scratch);
	p->scratch = NULL;
}

void rs_bufpool_trim(struct rs_bufpool *p)
{
	for (uint32_t i = 0; i < RS_BUF_CLASSES; i++) {
		for (uint32_t n = p->low[i]; n && p->free[i]; n--)
			free_one(p, i);
		p->low[i] = p->nfree[i];
	}
}

void rs_payload_release(struct rs_payload *pl)
{
	for (int i = 0; i < pl->niov; i++)
		put(pl->pool, pl->buf[i]);
	*pl = (struct rs_payload){ 0 };
}

static void use(struct rs_sink *s, struct rs_buf *b)
{
	s->buf = b;
	s->base = b->data;
	s->end = b->data + b->cap;
}

char *rs_sink_open(struct rs_sink *s, struct rs_bufpool *pool, size_t max)
{
	/* A quarter above the average: most payloads never grow. */
	size_t want = s->expected + s->expected / 4;
	uint32_t cls = class_for(want < max ? want : max);
	struct rs_buf *b;

	if (cls >= RS_BUF_CLASSES)
		cls = RS_BUF_CLASSES - 1;
	s->pool = pool;
	s->max = max;
	s->err = 0;
	b = get(pool, cls, &s->err);
	if (!b && cls) {
		s->err = 0;
		b = get(pool, 0, &s->err);
	}
	if (!b)
		return NULL;
	use(s, b);
	return s->base;
}

char *rs_sink_grow(struct rs_sink *s, char *p, size_t n)
{
	size_t used;
	struct rs_buf *b;
	uint32_t cls;

	assert(n <= RS_SINK_NEED_MAX);
	if (s->err)
		return s->pool->scratch->data;
	used = rs_sink_pos(s, p);
	cls = class_for(used + n);
	if (used + n > s->max + RS_SINK_NEED_MAX || cls >= RS_BUF_CLASSES)
		s->err = -EFBIG;
	b = s->err ? NULL : get(s->pool, cls, &s->err);
	if (!b) {
		s->end = s->pool->scratch->data + s->pool->scratch->cap;
		return s->pool->scratch->data;
	}
	memcpy(b->data, s->base, used);
	put(s->pool, s->buf);
	s->pool->grown++;
	use(s, b);
	return s->base + used;
}

char *rs_sink_rollback(struct rs_sink *s, size_t mark)
{
	s->err = 0;
	use(s, s->buf);
	return s->base + mark;
}

void rs_sink_close(struct rs_sink *s, char *p, struct rs_payload *pl)
{
	size_t len = rs_sink_pos(s, p);

	assert(!s->err && pl->niov < RS_PAYLOAD_BUFS);
	pl->pool = s->pool;
	pl->buf[pl->niov] = s->buf;
	pl->iov[pl->niov] = (struct iovec){ s->base, len };
	pl->niov++;
	pl->len += len;
	/* Rises at once, falls slowly. */
	s->expected = len > s->expected ? len : s->expected - (s->expected - len) / 8;
	s->buf = NULL;
	s->base = s->end = NULL;
}

void rs_sink_abort(struct rs_sink *s)
{
	if (s->buf)
		put(s->pool, s->buf);
	s->buf = NULL;
	s->base = s->end = NULL;
}
