/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink — where encoders write: one growing buffer from a pool of power-of-two sizes.
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
 *
 * Pool: buffers are kept for reuse; nothing is allocated in steady state. Bounded by `limit`.
 * rs_bufpool_trim(), called once per quiet period, frees what was not needed since the last call.
 * A payload owns its buffers until rs_payload_release(): no buffer is reused under a running send.
 * Not thread-safe.
 */
#ifndef RS_ENC_SINK_H
#define RS_ENC_SINK_H

#include <sys/uio.h>

#include "base/str.h"

#define RS_BUF_MIN_SHIFT 16 /* 64 KiB: the smallest buffer, more than RS_SINK_NEED_MAX */
#define RS_BUF_CLASSES   11 /* … to 64 MiB */
#define RS_SINK_SLACK    320
#define RS_SINK_FIXED    256 /* bytes between two needs */
#define RS_SINK_NEED_MAX (60 * 1024)

struct rs_buf {
	struct rs_buf *next; /* in its class's free list */
	uint32_t cls;
	size_t cap; /* bytes of data[] without the slack */
	_Alignas(64) char data[];
};

struct rs_bufpool {
	struct rs_buf *free[RS_BUF_CLASSES];
	uint32_t nfree[RS_BUF_CLASSES];
	uint32_t low[RS_BUF_CLASSES]; /* least free since the last trim */
	struct rs_buf *scratch;       /* written to after an error, never read */
	size_t limit;                 /* bytes of all buffers at most */
	size_t held;                  /* bytes of all buffers, free ones included */
	size_t in_use, high;          /* bytes handed out now, and most ever */
	uint64_t grown;               /* buffers that were outgrown by a payload */
	uint64_t refused;             /* wishes refused at the limit */
};

/* limit: bytes at most (0: none). 0 or -ENOMEM. */
int rs_bufpool_init(struct rs_bufpool *p, size_t limit);
/* All payloads have been released. */
void rs_bufpool_release(struct rs_bufpool *p);
void rs_bufpool_trim(struct rs_bufpool *p);

#define RS_PAYLOAD_BUFS 4

/* One message's bytes, as iovecs to send in order. Owns its buffers. */
struct rs_payload {
	struct rs_bufpool *pool;
	struct rs_buf *buf[RS_PAYLOAD_BUFS];
	struct iovec iov[RS_PAYLOAD_BUFS];
	int niov;   /* 0: empty */
	size_t len; /* bytes of all iovecs */
};

/* Gives the buffers back; the payload is empty afterwards. Fine on an empty one. */
void rs_payload_release(struct rs_payload *pl);

struct rs_sink {
	char *base; /* first byte */
	char *end;  /* need() looks at this */
	struct rs_buf *buf;
	struct rs_bufpool *pool;
	size_t max;      /* bytes at most */
	size_t expected; /* moving average of sizes; survives close, so that growth is rare */
	int err;         /* 0, -EFBIG (max), -ENOBUFS (pool's limit), -ENOMEM */
};

/* s is zeroed before its first use and kept between payloads. Returns the cursor; NULL: see s->err. */
char *rs_sink_open(struct rs_sink *s, struct rs_bufpool *pool, size_t max);
/* Moves the bytes before p to the end of pl. */
void rs_sink_close(struct rs_sink *s, char *p, struct rs_payload *pl);
/* Gives the buffer back; nothing is left. */
void rs_sink_abort(struct rs_sink *s);
/* Forgets an error and everything behind offset `mark`; returns the cursor. */
char *rs_sink_rollback(struct rs_sink *s, size_t mark);

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
