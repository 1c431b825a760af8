/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool — messages on disk until the backend has taken them; they survive a crash and a restart.
 *
 * Files DIR/NAME-<number>.seg ("segments") of records, each with its own checksum:
 *
 *	"RSSPOOL1"
 *	record { u32 magic, u8 type (1 data, 2 taken), u8 form, u16 0, u32 spans, u32 len, u64 id, u32 crc of
 *		 the data, u32 crc of what stands before }, data
 *
 * A message's id is its place: segment number in the upper half, offset in the lower. "Taken" records
 * follow in the same segment. A segment whose messages are all taken is removed. Numbers are in the
 * machine's byte order. What a crash left half written at a segment's end is cut off.
 *
 * Written with write(), not synced: it survives the agent's death (kill -9), not the machine's.
 * Bounded: when a message does not fit the oldest segment goes, and `dropped` is told what was in it.
 */
#ifndef RS_EXPORT_SPOOL_H
#define RS_EXPORT_SPOOL_H

#include "base/bufpool.h"

struct rs_spool;

struct rs_spool_opts {
	const char *dir;  /* made if it is not there */
	const char *name; /* of the exporter */
	uint64_t max_bytes;
	/* A message of an earlier run, oldest first; called by rs_spool_open(). */
	void (*found)(void *arg, uint64_t id, uint8_t form, uint32_t spans);
	/* A message had to make room; not called for one that was taken. */
	void (*dropped)(void *arg, uint64_t id);
	void *arg;
};

/* 0, or -errno with a line in err; -EBUSY: another agent uses it. */
int rs_spool_open(const struct rs_spool_opts *o, struct rs_spool **ret, char *err, size_t size);
/* What was not taken stays for the next run. NULL is fine. */
void rs_spool_close(struct rs_spool *s);

/* 0 and the id, or -errno (-EFBIG: bigger than the spool); nothing is left behind then. */
int rs_spool_add(struct rs_spool *s, uint8_t form, uint32_t spans, const struct rs_payload *data,
		 uint64_t *ret_id);
/* The message into buffers of `pool`. 0, -EBADMSG (damaged), -ENOENT, or what reading or the pool says. */
int rs_spool_read(struct rs_spool *s, uint64_t id, struct rs_bufpool *pool, struct rs_payload *ret);
/* The message is over with. */
void rs_spool_ack(struct rs_spool *s, uint64_t id);
/* Bytes of all segments. NULL: 0. */
uint64_t rs_spool_bytes(const struct rs_spool *s);

#endif
