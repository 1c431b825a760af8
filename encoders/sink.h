/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink — where encoders write: one growing buffer from the pool.
 *
 * Use: p = rs_sink_open(); p = rs_sink_need(s, p, worst_case); write at p without checks; …;
 * rs_sink_close(). The cursor p lives in the encoder (a register); positions that must survive a
 * need() are offsets from s->base, because the buffer may move.
 *
 * Slack: after need(s, p, n) the n bytes and RS_SINK_SLACK more may be overwritten. Encoders use it for
 * vector stores without exact tails (64 bytes) and for the fixed parts between two texts
 * (RS_SINK_FIXED bytes), so that only texts and loops ask for room.
 * n <= RS_SINK_NEED_MAX: longer things are written in pieces.
 *
 * Errors stick: when the buffer cannot grow, s->err is set and writes go to a scratch buffer until
 * rs_sink_rollback(), so encoders check once per span. What was written before stays intact.
 * Not thread-safe.
 */
#ifndef RS_ENC_SINK_H
#define RS_ENC_SINK_H

#include "base/bufpool.h"
#include "base/str.h"

#define RS_SINK_SLACK	 320
#define RS_SINK_FIXED	 256 /* bytes between two needs */
#define RS_SINK_NEED_MAX (60 * 1024)

struct rs_sink {
	char *base; /* first byte */
	char *end;  /* need() looks at this */
	struct rs_buf *buf;
	struct rs_bufpool *pool;
	size_t max;	 /* bytes at most */
	size_t expected; /* moving average of sizes; survives close, so that growth is rare */
	int err;	 /* 0, -EFBIG (max), -ENOBUFS (pool's limit), -ENOMEM */
};

/* s is zeroed before its first use and kept between payloads. Returns the cursor; NULL: see s->err. */
char *rs_sink_open(struct rs_sink *s, struct rs_bufpool *pool, size_t max);
/* Moves the bytes before p to the end of pl. */
void rs_sink_close(struct rs_sink *s, char *p, struct rs_payload *pl);
/* Gives the buffer back; nothing is left. */
void rs_sink_abort(struct rs_sink *s);
/* Forgets an error and everything behind offset `mark`; returns the cursor. */
char *rs_sink_rollback(struct rs_sink *s, size_t mark);

/* As if the buffer could not grow, for what fails elsewhere; an error that is there stays. Returns the cursor. */
char *rs_sink_fail(struct rs_sink *s, int err);

/* Cold half of rs_sink_need. */
char *rs_sink_grow(struct rs_sink *s, char *p, size_t n);

static inline char *rs_sink_need(struct rs_sink *s, char *p, size_t n)
{
	/* Signed: p may stand in the slack. */
	if (__builtin_expect(s->end - p < (ptrdiff_t)n, 0))
		return rs_sink_grow(s, p, n);
	return p;
}

static inline size_t rs_sink_pos(const struct rs_sink *s, const char *p)
{
	return (size_t)(p - s->base);
}

#endif
