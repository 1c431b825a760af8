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

/* As rs_gather to s->data[0], over as many iovecs as are needed (up to 128). The first `done` bytes are there already. */
int rs_gather_all(__u32 slot, __u32 pos, __u32 want, __u32 done);

/*
 * Where does the first blank line in the first n bytes of s->data end? 0: there is none. Looks from `from` on, a multiple of
 * BLANK_WINDOW; `nl`: the byte before was a newline. A line end followed by CR or LF counts: no header line begins so.
 */
int rs_blank_line(__u32 slot, __u32 from, __u32 n, __u32 nl);
/* The same within BLANK_WINDOW bytes from `from` on. */
int rs_blank_in(__u32 slot, __u32 from, __u32 n, __u32 nl);

/* At s->data[at], of n: a method in capitals, a blank, and what begins a target: '/', '*', a scheme or a host? */
int rs_is_request(__u32 slot, __u32 at, __u32 n);

/*
 * What is in the first n bytes of s->data? All that is asked of most segments in one call, since a call costs more than what is
 * done in it. how: RS_LOOK_*; returns RS_LOOKED_*.
 *
 * Could an HTTP message begin here? Decides only how much is copied. After a turn of direction: a letter, then nothing
 * that is binary. Elsewhere, where it is more likely a piece of some body: what looks like a first line.
 */
int rs_look(__u32 slot, __u32 n, __u32 how);
#define RS_LOOK_TURNED 0x1
#define RS_LOOK_OPEN   0x2 /* they go on with a head: nothing begins here */
#define RS_LOOK_NL     0x4 /* of an open head: the byte before them was a newline */

#define RS_LOOKED_END	 0x1fff	 /* where the head ends; 0: not here */
#define RS_LOOKED_BEGINS 0x10000 /* a message */
#define RS_LOOKED_BEHIND                                                                           \
	0x20000 /* it is a request behind a request (not after a turn): no end is looked for */
#define RS_LOOKED_ANOTHER 0x40000 /* a request, and behind its head another one */
#define RS_LOOKED_NOCHUNK                                                                          \
	0x80000 /* behind the head there is no chunk's size: how the segment ends says nothing */

/*
 * Bytes of a FastCGI request's head in the first n bytes of s->data: its BEGIN_REQUEST, its first PARAMS and the header of
 * the one that ends them. 0: no such begins here. Binary, so no blank line ends it, but its length is written; who
 * reads record by record sees that later, and has all copied that it reads before it answers.
 */
int rs_fastcgi_head(__u32 slot, __u32 n);

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
/* Fills s->frames' header from s->data at s->cursor.done on, of which there are `got` bytes. 0: there is not enough. */
int rs_frame_header(__u32 slot, __u32 got);

/*
 * All of a segment's, one after the other, RS_WHOLE_MAX bytes of it at most. Functions of their own so that the
 * verifier walks through the turns once, not once for each way that leads to them.
 */
int rs_parts(__u32 slot);
int rs_all_frames(__u32 slot);

#define RS_WHOLE_MAX                                                                               \
	0x100000 /* bytes of one segment that are copied where framing stands anywhere */

static __always_inline struct rs_scratch *rs_scratch_get(__u32 slot)
{
	return bpf_map_lookup_elem(&rs_scratch, &slot);
}

/* As rs_gather, with the common case of one buffer in place. */
static __always_inline __u32 rs_copy(struct rs_scratch *s, __u32 slot, __u32 pos, __u32 want)
{
	__u64 n = rs_bound(want);
	__u32 got;

	if (s->niov) {
		got = rs_gather(slot, pos, n, RS_AT_DATA);
		return s->cursor.more && got < n ? rs_gather_all(slot, pos, n, got) : got;
	}
	if (bpf_probe_read_user(s->data, n, (void *)(s->base + pos))) {
		rs_count(RS_N_READ_FAULT);
		return 0;
	}
	return n;
}

/* The last bytes of a segment of which not all is copied, to s->ev.tail: `end` is where in the segment it ends. */
int rs_tail(__u32 slot, __u32 end, __u32 len);

#endif
