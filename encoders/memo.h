/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memo — what resources became, kept as bytes: on a busy node each batch has the same hundreds of them again.
 *
 * A resource is known by rs_resource.id, which is another one when its content is. The oldest bytes give way to new
 * ones. Memory: RS_MEMO_BYTES for bytes, touched as far as they are used, and the table of places, 24 KiB.
 */
#ifndef RS_ENC_MEMO_H
#define RS_ENC_MEMO_H

#include "text.h"

#define RS_MEMO_BYTES (512u * 1024)
#define RS_MEMO_SLOTS 1024
#define RS_MEMO_MAX                                                                                \
	(16u * 1024) /* bytes of one resource; what is longer is written anew each time */

struct rs_memo {
	char *bytes;   /* a ring */
	uint64_t next; /* bytes that were ever kept */
	struct rs_memo_slot {
		uint64_t id; /* 0: free */
		uint64_t at; /* as `next` counts; overwritten once that is RS_MEMO_BYTES further */
		uint32_t len;
	} slot[RS_MEMO_SLOTS];
};

/* m is zeroed. 0 or -ENOMEM. */
int rs_memo_init(struct rs_memo *m);
void rs_memo_release(struct rs_memo *m);

/* What was written from offset `from` to p is what the resource becomes. */
void rs_memo_keep(struct rs_memo *m, const struct rs_sink *s, size_t from, const char *p,
		  const struct rs_resource *r);

/* Ids are given one after the other: the living ones seldom share a place. */
static inline struct rs_memo_slot *rs_memo_slot(struct rs_memo *m, const struct rs_resource *r)
{
	return &m->slot[r->id % RS_MEMO_SLOTS];
}

/* Writes the resource as it was written before. False: it is not known (any more). */
static inline bool rs_memo_put(struct rs_memo *m, struct rs_sink *s, char **p,
			       const struct rs_resource *r)
{
	const struct rs_memo_slot *at = rs_memo_slot(m, r);

	if (!r->id || at->id != r->id || m->next - at->at > RS_MEMO_BYTES)
		return false;
	*p = rs_text_copy(rs_sink_need(s, *p, at->len), m->bytes + at->at % RS_MEMO_BYTES, at->len);
	return true;
}

#endif
