/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 1: bytes of a segment, out of the process's memory into scratch.
 *
 * These are global functions: verified once, by themselves, and called with numbers
 * only (the floor, 5.10, knows no pointers as their arguments). They live in bpf/probes/buffer.bpf.c.
 */
#ifndef RS_LIB_BUFFER_H
#define RS_LIB_BUFFER_H

#include "maps.bpf.h"

#define RS_AT_DATA 0		    /* to s->data[0] */
#define RS_AT_TAIL (RS_CAP_MAX + 8) /* to s->data[RS_AT_TAIL] */

/*
 * Copies `want` (<= RS_CAP_MAX) bytes from position `pos` of the segment to s->data[at]. Returns how
 * many came: fewer when there are many iovecs (the next call goes on from there), none when memory
 * cannot be read.
 */
int rs_gather(__u32 slot, __u32 pos, __u32 want, __u32 at);

/* As rs_gather to s->data[0], over as many iovecs as are needed (up to 128). */
int rs_gather_all(__u32 slot, __u32 pos, __u32 want);

/*
 * Where does the first blank line in the first n bytes of s->data end? 0: there is none. `nl`: the byte
 * before them was a newline. A line end followed by CR or LF counts: no header line begins so.
 */
int rs_blank_line(__u32 slot, __u32 n, __u32 nl);

/*
 * Emits the next record of a segment whose head is still open: s->rest bytes from s->pos on. Returns
 * 1 as long as there is more to do.
 */
int rs_part(__u32 slot);

/*
 * Likewise, of HTTP/2's frames: the next bytes of a segment that are copied, and what follows them that is
 * not. s->frames is where the direction stands; its `until` becomes how many bytes behind the segment are not
 * to be copied. What makes no frames ends it: s->frames.on is 0, and all is copied.
 */
int rs_frame(__u32 slot);

static __always_inline struct rs_scratch *rs_scratch_get(__u32 slot)
{
	return bpf_map_lookup_elem(&rs_scratch, &slot);
}

/* As rs_gather, with the common case of one buffer in place. */
static __always_inline __u32 rs_copy(struct rs_scratch *s, __u32 slot, __u32 pos, __u32 want)
{
	__u64 n = rs_bound(want);

	if (s->niov)
		return rs_gather_all(slot, pos, n);
	if (bpf_probe_read_user(s->data, n, (void *)(s->base + pos))) {
		rs_count(RS_N_READ_FAULT);
		return 0;
	}
	return n;
}

/* The last bytes of a segment of which not all is copied: s->pos + s->rest is its end. */
static __always_inline void rs_tail(struct rs_scratch *s, __u32 slot, __u32 end, __u32 len)
{
	__u32 n = len < RS_TAIL_LEN ? len : RS_TAIL_LEN;

	if (n <
	    RS_TAIL_LEN) /* shorter than the field: the copy must not reach before the segment */
		n = 0;
	if (n && !s->niov) {
		if (bpf_probe_read_user(s->ev.tail, RS_TAIL_LEN,
					(void *)(s->base + end - RS_TAIL_LEN)))
			n = 0;
	} else if (n) {
		if (rs_gather(slot, end - RS_TAIL_LEN, RS_TAIL_LEN, RS_AT_TAIL) == RS_TAIL_LEN)
			*(__u64 *)s->ev.tail = *(__u64 *)&s->data[RS_AT_TAIL];
		else
			n = 0;
	}
	s->ev.tail_len = n;
}

#endif
