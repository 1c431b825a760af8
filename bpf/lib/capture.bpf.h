/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 3: what becomes of a segment: how many of its bytes are copied, in how many records.
 *
 * A segment is what one read or write moved. Its first cap_bytes are copied, and its last eight when
 * that is not all. A message's head is copied further, record by record, until its blank line or
 * head_bytes, however it is split over segments; a head is open after a turn of direction, or when a
 * segment begins like an HTTP message. Bytes before the policy's skip_until are not copied.
 */
#ifndef RS_LIB_CAPTURE_H
#define RS_LIB_CAPTURE_H

#include "buffer.bpf.h"
#include "emit.bpf.h"
#include "thread_ctx.bpf.h"

/* One segment, before its bytes are looked at. */
struct rs_segment {
	__u32 len;
	__u32 seq; /* TCP sequence number of its first byte, or 0 */
	enum rs_ev_dir dir;
	enum rs_ev_source source;
	bool nodata;
	__u64 ts_ns; /* when it moved; 0: now */
};

/*
 * Takes the offsets [ret, ret + len) of one direction; two threads never get the same. Atomic operations
 * that return the old value came with 5.12 (commit 5ca419f2864a), and before it the verifier refuses
 * them even in code that is never reached: `fetch` is a constant of the program, false in the one
 * for such kernels, where two threads that write to one socket at once may share an offset.
 */
static __always_inline __u64 rs_take(__u64 *total, __u32 len, bool fetch)
{
	__u64 off;

	if (fetch)
		return __sync_fetch_and_add(total, len);
	off = *total;
	*total = off + len;
	return off;
}

static __always_inline void rs_refresh_policy(struct rs_conn *c)
{
	__u32 epoch = *(volatile __u32 *)&rs_epoch;
	struct rs_bpf_policy *p;
	__u64 key;

	if (c->epoch == epoch)
		return;
	c->epoch = epoch;
	key = c->id | (c->plain ? RS_POLICY_PLAIN : 0);
	p = bpf_map_lookup_elem(&rs_policy, &key);
	c->skip[0] = p ? p->skip_until[0] : 0;
	c->skip[1] = p ? p->skip_until[1] : 0;
	c->stop = p ? p->stop : 0;
	if (p && p->whole)
		c->whole = 1;
}

#define RS_FASTCGI     0x0101 /* version 1, BEGIN_REQUEST */
#define RS_PREFACE_LEN 24
#define RS_PREFACE                                                                                 \
	0x5448202a20495250 /* "PRI * HT": HTTP/2's connection preface (RFC 9113 3.4) begins so */

/* Bytes that moved without an event: told as a transfer of now whose bytes were not seen. */
static __noinline void rs_unseen(struct rs_conn *c, struct rs_scratch *s, __u32 len, __u32 seq,
				 __u32 dir)
{
	dir &= 1;
	rs_hdr(&s->ev.h, RS_EV_DATA, RS_EVF_NODATA, 0);
	s->ev.conn = c->id;
	s->ev.off = rs_take(&c->off[dir], len, true);
	s->ev.len = len;
	s->ev.cap = 0;
	s->ev.seq = seq;
	s->ev.dir = dir;
	s->ev.source = RS_SRC_SOCKET;
	s->ev.tail_len = 0;
	c->head[dir] = 0;
	c->frames[dir].on = 0;
	c->turn = dir + 1;
	rs_count(RS_N_UNSEEN);
	if (!c->stop)
		rs_emit_data(s);
}

/*
 * Does a direction of HTTP/2 begin with these bytes? The asking one with the preface (perhaps behind the
 * HTTP/1 request that asked for it), the answering one with a frame of SETTINGS.
 */
static __always_inline bool rs_begins_frames(const struct rs_scratch *s, __u32 cap, __u64 off)
{
	if (cap >= RS_PREFACE_LEN && *(const __u64 *)s->data == RS_PREFACE)
		return true;
	return !off && cap >= 9 && *(const __u32 *)&s->data[5] == 0 && s->data[4] == 0 &&
	       s->data[3] == 4 && s->data[2] % 6 == 0 && s->data[1] == 0 && s->data[0] == 0;
}

/* Bytes of the direction, behind those that are not copied anyway, that could not be seen (sendfile). */
static __always_inline void rs_frames_unseen(struct rs_conn *c, __u32 dir, __u32 len)
{
	struct rs_frames *f = &c->frames[dir & 1];
	__u32 n = len < f->copy ? len : f->copy;

	if (f->nheader && len)
		f->on = 0;
	f->copy -= n;
	len -= n;
	if (len > f->then)
		f->on = 0;
	else
		f->then -= len;
}

/* A segment of frames: from `pos` on len bytes. s->ev is filled but for its length. */
static __noinline void rs_capture_frames(struct rs_conn *c, struct rs_scratch *s, __u32 slot,
					 __u32 pos, __u32 len)
{
	__u32 dir = s->ev.dir & 1;

	s->frames = c->frames[dir];
	s->pos = pos;
	s->rest = len;
	s->loaded = 0;
	rs_all_frames(slot);
	s->mark = s->mark_start = 0;
	if (s->rest) { /* thousands of small frames in one segment */
		rs_count(RS_N_HEAD_CUT);
		s->frames.on = 0;
	}
	if (s->frames.until)
		s->frames.until += s->ev.off;
	c->frames[dir] = s->frames;
}

static __always_inline void rs_capture(struct rs_conn *c, struct rs_scratch *s, __u32 slot,
				       const struct rs_segment *seg, bool fetch)
{
	__u32 dir = seg->dir & 1, len = seg->len, pos = 0, cap, open, seq, binary = 0, looked = 0;
	__u64 off = rs_take(&c->off[dir], len, fetch), skip;
	bool fresh = c->turn != dir + 1;

	c->turn = dir + 1;
	rs_refresh_policy(c);
	skip = c->skip[dir];
	if (skip < c->frames[dir].until)
		skip = c->frames[dir].until;
	seq = c->tcp || c->plain ? seg->seq : (__u32)off + 1;
	if (c->stop || off + len < skip) {
		rs_count(RS_N_SKIPPED);
		return;
	}
	if (dir == RS_DIR_OUT && *(volatile __u32 *)&rs_publishers)
		rs_emit_thread_ctx(c->id, s->ev.tgid, off, len);
	rs_hdr(&s->ev.h, RS_EV_DATA, 0, 0);
	if (seg->ts_ns)
		s->ev.h.ts_ns = seg->ts_ns;
	s->ev.conn = c->id;
	s->ev.off = off;
	s->ev.seq = seq;
	s->ev.dir = dir;
	s->ev.source = seg->source;
	s->ev.tail_len = 0;
	if (seg->nodata) {
		s->ev.h.flags = RS_EVF_NODATA;
		s->ev.len = len;
		s->ev.cap = 0;
		c->head[dir] = 0;
		rs_frames_unseen(c, dir, off < skip ? (__u32)(off + len - skip) : len);
		rs_emit_data(s);
		return;
	}
	s->loaded = 0;
	if (off < skip) { /* the end of a body that is not copied; a message may follow it */
		pos = skip - off;
		len -= pos;
		s->ev.len = pos;
		s->ev.cap = 0;
		rs_tail(slot, pos, pos);
		rs_emit_data(s);
		s->ev.tail_len = 0;
		s->ev.off += pos;
		s->ev.seq += seq ? pos : 0;
		fresh = true;
		c->head[dir] = 0;
		if (!len)
			return;
	}
	if (c->frames[dir].on) {
		rs_capture_frames(c, s, slot, pos, len);
		return;
	}
	cap = len;
	if (cap > rs_cfg.cap_bytes)
		cap = rs_cfg.cap_bytes;
	cap = rs_copy(s, slot, pos, cap);
	s->ev.len = len;
	s->ev.cap = cap;
	open = fresh ? 0 : c->head[dir];
	if (!fresh)
		binary = c->nl[dir] == RS_NL_BINARY ? open : 0;
	else if (*(const __u16 *)s->data == RS_FASTCGI)
		binary = rs_fastcgi_head(slot, cap);
	if (binary)
		open = binary > cap ? binary - cap : 0;
	/* Said here, not by user space: what follows at once is framing too, in both directions. */
	if (rs_begins_frames(s, cap, off)) {
		c->whole = 1;
		c->frames[dir].on = 1;
		c->frames[dir].copy = s->data[0] ? RS_PREFACE_LEN : 0;
		rs_capture_frames(c, s, slot, pos, len);
		return;
	}
	if (!c->whole && !binary)
		looked = rs_look(slot, cap,
				 (fresh ? RS_LOOK_TURNED : 0) | (open ? RS_LOOK_OPEN : 0) |
					 (c->nl[dir] ? RS_LOOK_NL : 0));
	if (looked & RS_LOOKED_BEGINS) {
		open = rs_cfg.head_bytes;
		c->nl[dir] = 0;
	}
	/* Requests without an answer between them: answers will stand one behind the other in what is read, too. */
	if (looked & (RS_LOOKED_BEHIND | RS_LOOKED_ANOTHER))
		c->whole = 1;
	if (open && !c->whole && !binary) {
		if (looked & RS_LOOKED_END) {
			open = 0;
		} else if (cap >= open || !cap) {
			rs_count(RS_N_HEAD_CUT);
			open = 0;
		} else {
			open -= cap;
			c->nl[dir] = s->data[rs_bound(cap - 1)] == '\n';
		}
	}
	if (c->whole)
		open = rs_cfg.head_bytes;
	if (!open || cap == len) {
		c->head[dir] = open;
		if (binary)
			c->nl[dir] = RS_NL_BINARY;
		if (cap < len && !(looked & RS_LOOKED_NOCHUNK))
			rs_tail(slot, pos + len, len);
		rs_emit_data(s);
		return;
	}
	/* The head goes on beyond this record. */
	s->ev.len = cap;
	rs_emit_data(s);
	s->ev.off += cap;
	s->ev.seq += seq ? cap : 0;
	s->pos = pos + cap;
	s->rest = len - cap;
	s->head = open;
	s->nl = c->nl[dir];
	s->whole = binary ? RS_WHOLE_BINARY : c->whole;
	if (s->whole && !binary)
		s->head = RS_WHOLE_MAX;
	rs_parts(slot);
	c->head[dir] = s->head;
	c->nl[dir] = binary ? RS_NL_BINARY : s->nl;
}

#endif
