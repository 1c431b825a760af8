/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bufpool — large buffers of power-of-two sizes that are kept for reuse, and messages made of them.
 *
 * Bounded by `limit`. Nothing is allocated or unmapped in steady state; rs_bufpool_tick() frees, once per
 * RS_BUFPOOL_QUIET_NS, what was free all that time.
 * A payload owns its buffers until rs_payload_release(): no buffer is reused under a running send.
 * Not thread-safe.
 */
#ifndef RS_BASE_BUFPOOL_H
#define RS_BASE_BUFPOOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define RS_BUF_MIN_SHIFT 12	    /* 4 KiB: the smallest buffer */
#define RS_BUF_CLASSES	 15	    /* … to 64 MiB */
#define RS_BUF_SCRATCH	 (1u << 16) /* bytes of the scratch buffer, its head included */

#define RS_BUFPOOL_QUIET_NS 10000000000ull

struct rs_buf {
	struct rs_buf *next; /* in its class's free list */
	uint32_t cls;
	size_t cap; /* bytes of data[] */
	_Alignas(64) char data[];
};

struct rs_bufpool {
	struct rs_buf *free[RS_BUF_CLASSES];
	uint32_t nfree[RS_BUF_CLASSES];
	uint32_t low[RS_BUF_CLASSES]; /* least free since the last trim */
	struct rs_buf *scratch;	      /* RS_BUF_SCRATCH; written to after an error, never read */
	size_t limit;		      /* bytes of all buffers at most */
	size_t held;		      /* bytes of all buffers, free ones included */
	size_t in_use, high;	      /* bytes handed out now, and most ever */
	uint64_t made;		      /* buffers allocated: stands still in steady state */
	uint64_t grown;		      /* buffers that a message outgrew */
	uint64_t refused;	      /* wishes refused at the limit */
	uint64_t trim_ns; /* when rs_bufpool_tick() trims next; 0: it was never called */
};

/* limit: bytes at most (0: none). 0 or -ENOMEM. */
int rs_bufpool_init(struct rs_bufpool *p, size_t limit);
/* All buffers have been given back. */
void rs_bufpool_release(struct rs_bufpool *p);
/* Frees as many buffers of each size as were free all the time since the last call. */
void rs_bufpool_trim(struct rs_bufpool *p);
/* Time passes (any clock that does not go back): trims when it is due. */
void rs_bufpool_tick(struct rs_bufpool *p, uint64_t now_ns);

/* A buffer with cap >= bytes. 0, -EFBIG (no class is so big), -ENOBUFS (limit) or -ENOMEM. */
int rs_bufpool_get(struct rs_bufpool *p, size_t bytes, struct rs_buf **ret);
void rs_bufpool_put(struct rs_bufpool *p, struct rs_buf *b);

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

#endif
