// SPDX-License-Identifier: Apache-2.0
#include "sink.h"

#include <assert.h>
#include <errno.h>

/* No buffer of ours is smaller: it holds the largest need. */
#define MIN_BYTES (RS_BUF_SCRATCH - sizeof(struct rs_buf))

_Static_assert(RS_SINK_NEED_MAX + RS_SINK_SLACK <= MIN_BYTES,
	       "the scratch buffer holds the largest need");

static void use(struct rs_sink *s, struct rs_buf *b)
{
	s->buf = b;
	s->base = b->data;
	s->end = b->data + b->cap - RS_SINK_SLACK;
}

char *rs_sink_open(struct rs_sink *s, struct rs_bufpool *pool, size_t max)
{
	/* A quarter above the average: most payloads never grow. */
	size_t want = s->expected + s->expected / 4 + RS_SINK_SLACK;
	struct rs_buf *b;

	s->pool = pool;
	s->max = max;
	s->err = rs_bufpool_get(pool, want > MIN_BYTES ? want : MIN_BYTES, &b);
	if (s->err)
		s->err = rs_bufpool_get(pool, MIN_BYTES, &b);
	if (s->err)
		return NULL;
	use(s, b);
	return s->base;
}

char *rs_sink_fail(struct rs_sink *s, int err)
{
	struct rs_buf *scratch = s->pool->scratch;

	if (!s->err)
		s->err = err;
	s->end = scratch->data + scratch->cap - RS_SINK_SLACK;
	return scratch->data;
}

char *rs_sink_grow(struct rs_sink *s, char *p, size_t n)
{
	struct rs_buf *b;
	size_t used;
	int err;

	assert(n <= RS_SINK_NEED_MAX);
	if (s->err)
		return rs_sink_fail(s, s->err);
	used = rs_sink_pos(s, p);
	if (used + n > s->max + RS_SINK_NEED_MAX)
		err = -EFBIG;
	else
		err = rs_bufpool_get(s->pool, used + n + RS_SINK_SLACK, &b);
	if (err)
		return rs_sink_fail(s, err);
	memcpy(b->data, s->base, used);
	rs_bufpool_put(s->pool, s->buf);
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
		rs_bufpool_put(s->pool, s->buf);
	s->buf = NULL;
	s->base = s->end = NULL;
}
