// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The global functions of lib/buffer.bpf.h. */
#include "lib/buffer.bpf.h"
#include "lib/emit.bpf.h"
#include "lib/thread_ctx.bpf.h"

#define IOV_STEPS                                                                                  \
	8 /* iovecs looked at by one call, more than a window; the next call begins at the last window */

static __always_inline int load_window(struct rs_scratch *s, __u32 index, __u32 start)
{
	__u32 left = s->niov - index;
	__u64 n = (left < RS_IOV_WIN ? left : RS_IOV_WIN) * sizeof(s->iov[0]);

	s->loaded = 0;
	n = rs_clamp(n, sizeof(s->iov));
	if (bpf_probe_read_user(s->iov, n, (void *)(s->base + index * sizeof(s->iov[0]))))
		return -1;
	s->first = index;
	s->start = start;
	s->loaded = 1;
	return 0;
}

__noinline int rs_gather(__u32 slot, __u32 pos, __u32 want, __u32 at)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	volatile struct rs_cursor *at_iov;

	if (!s)
		return 0;
	want = rs_bound(want);
	at = rs_bound(at);
	if (!s->niov) {
		if (!bpf_probe_read_user(&s->data[at], want, (void *)(s->base + pos)))
			return want;
		rs_count(RS_N_READ_FAULT);
		return 0;
	}
	/*
	 * The loop's variables live in memory, where the verifier forgets their ranges: in registers,
	 * each turn's two outcomes would be two states, 2^IOV_STEPS in all.
	 */
	at_iov = &s->cursor;
	at_iov->done = 0;
	at_iov->more = 0;
	if (!s->loaded || (__s32)(pos - s->start) < 0) {
		at_iov->index = s->mark;
		at_iov->start = s->mark_start;
	} else {
		at_iov->index = s->first;
		at_iov->start = s->start;
	}
	for (int step = 0; step < IOV_STEPS; step++) {
		__u32 index = at_iov->index, start = at_iov->start, done = at_iov->done, k;
		__u64 len, skip, n, to;

		if (index >= s->niov || done >= want)
			break;
		k = index - s->first;
		if (!s->loaded || k >= RS_IOV_WIN) {
			if (load_window(s, index, start))
				break;
			k = 0;
		}
		k &= RS_IOV_WIN - 1;
		len = s->iov[k].len;
		if (len > 0x7fffffff) /* more than a transfer can have moved */
			len = 0x7fffffff;
		skip = pos + done - start;
		if (skip < len) {
			n = len - skip;
			if (n > want - done)
				n = want - done;
			n = rs_bound(n);
			to = rs_bound(at + done);
			if (bpf_probe_read_user(&s->data[to], n, (void *)(s->iov[k].base + skip))) {
				rs_count(RS_N_READ_FAULT);
				break;
			}
			at_iov->done = done + n;
		}
		at_iov->start = start + len;
		at_iov->index = index + 1;
		at_iov->more = step == IOV_STEPS - 1;
	}
	return at_iov->done;
}

__noinline int rs_gather_all(__u32 slot, __u32 pos, __u32 want, __u32 done)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	volatile struct rs_cursor *cur;

	if (!s)
		return 0;
	want = rs_bound(want);
	cur = &s->cursor; /* for the reason rs_gather has */
	cur->all = done;
	for (int i = 0; i < 128 / IOV_STEPS; i++) {
		__u32 have = cur->all;

		if (have >= want)
			break;
		cur->all = have + rs_gather(slot, pos + have, want - have, have);
		if (!cur->more)
			break;
	}
	return rs_bound(cur->all);
}

#define EACH_BYTE(c) ((c)*0x0101010101010101ULL)

/* 0x80 in each byte of w that is zero; a byte of 1 above a zero one may be marked too. */
static __always_inline __u64 zero_bytes(__u64 w)
{
	return (w - EACH_BYTE(1)) & ~w & EACH_BYTE(0x80);
}

#define BLANK_WINDOW 512 /* bytes looked at by one call; a power of two */

__noinline int rs_blank_in(__u32 slot, __u32 from, __u32 n, __u32 nl)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	__u64 carry = (nl & 1) << 7;
	const __u64 *w;

	if (!s)
		return 0;
	from &= RS_CAP_MAX - BLANK_WINDOW;
	w = (const __u64 *)&s->data[from];
	for (__u32 i = 0; i < BLANK_WINDOW / 8; i++) {
		__u64 lf, end;

		if (from + i * 8 >= n)
			break;
		lf = zero_bytes(w[i] ^ EACH_BYTE('\n'));
		end = lf | zero_bytes(w[i] ^ EACH_BYTE('\r'));
		end &= (lf << 8) | carry;
		if (end) { /* in its lowest marked byte; clang 14 has no __builtin_ctzll for BPF */
			end = ((end & -end) - 1) >> 7 & EACH_BYTE(1);
			i = from + i * 8 + (end * EACH_BYTE(1) >> 56);
			return i + (s->data[rs_bound(i)] == '\r' ? 2 : 1);
		}
		carry = lf >> 56;
	}
	return 0;
}

__noinline int rs_blank_line(__u32 slot, __u32 from, __u32 n, __u32 nl)
{
	struct rs_scratch *s = rs_scratch_get(slot);

	if (!s)
		return 0;
	n = rs_bound(n);
	*(__u64 *)&s->data[n] = 0; /* what follows is of an earlier record */
	for (__u32 i = 0; i < RS_CAP_MAX / BLANK_WINDOW; i++) {
		int end;

		if (from >= n)
			break;
		end = rs_blank_in(slot, from, n, nl);
		if (end)
			return end;
		from += BLANK_WINDOW;
		nl = s->data[rs_bound(from - 1)] == '\n';
	}
	return 0;
}

__noinline int rs_tail(__u32 slot, __u32 end, __u32 len)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	__u32 n = len < RS_TAIL_LEN ? len : RS_TAIL_LEN;

	if (!s)
		return 0;
	if (n <
	    RS_TAIL_LEN) /* shorter than the field: the copy must not reach before the segment */
		n = 0;
	if (n && !s->niov) {
		if (bpf_probe_read_user(s->ev.tail, RS_TAIL_LEN,
					(void *)(s->base + end - RS_TAIL_LEN)))
			n = 0;
	} else if (n) {
		__u32 got = rs_gather(slot, end - RS_TAIL_LEN, RS_TAIL_LEN, RS_AT_TAIL);

		if (s->cursor.more && got < RS_TAIL_LEN) /* it is many iovecs on */
			got = rs_gather_all(slot, end - RS_TAIL_LEN - RS_AT_TAIL,
					    RS_AT_TAIL + RS_TAIL_LEN, RS_AT_TAIL + got) -
			      RS_AT_TAIL;
		if (got == RS_TAIL_LEN)
			*(__u64 *)s->ev.tail = *(__u64 *)&s->data[RS_AT_TAIL];
		else
			n = 0;
	}
	s->ev.tail_len = n;
	return 0;
}

/* The record that is made up is sent, and the next one begins behind it. Is there anything left? */
static __always_inline int emit_and_go_on(struct rs_scratch *s)
{
	rs_emit_data(s);
	s->pos += s->ev.len;
	s->rest -= s->ev.len;
	s->ev.off += s->ev.len;
	if (s->ev.seq)
		s->ev.seq += s->ev.len;
	return s->rest != 0;
}

__noinline int rs_part(__u32 slot)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	__u32 want, got, found;

	if (!s)
		return 0;
	want = s->rest;
	if (want > s->head)
		want = s->head;
	want = rs_clamp(want, RS_CAP_MAX);
	got = rs_bound(rs_gather_all(slot, s->pos, want, 0));
	found = s->whole ? 0 : rs_blank_line(slot, 0, got, s->nl);
	s->ev.cap = got;
	s->ev.tail_len = 0;
	if (!found && (!got || got >= s->head)) {
		if (s->whole != RS_WHOLE_BINARY)
			rs_count(RS_N_HEAD_CUT);
		found = 1;
	}
	s->head = found ? 0 : s->head - got;
	s->ev.len = got;
	if (found) { /* the last one: what follows is not copied */
		s->ev.len = s->rest;
		if (got < s->rest)
			rs_tail(slot, s->pos + s->rest, s->rest);
	}
	s->nl = got && s->data[rs_bound(got - 1)] == '\n';
	return emit_and_go_on(s);
}

#define FRAME_WINDOW 2048 /* bytes looked at, and copied, by one call */
#define FRAME_STEPS  16	  /* frames in them; the next call goes on */
#define DATA_KEPT                                                                                  \
	2048 /* content of DATA frames up to so long is copied: gRPC's messages are counted in it */
#define DATA_BEGIN 16	     /* of a longer one, so much */
#define FRAME_MAX  (1 << 20) /* longer ones are no frames, more likely */

__noinline int rs_frame_header(__u32 slot, __u32 got)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	volatile struct rs_frames *f;
	volatile struct rs_cursor *cur;

	if (!s)
		return 0;
	f = &s->frames;
	cur = &s->cursor;
	for (int i = 0; i < 9; i++) {
		__u32 at = cur->done, n = f->nheader;

		if (at >= got || n >= 9)
			break;
		f->header[n & 15] = s->data[rs_bound(at)];
		f->nheader = n + 1;
		cur->done = at + 1;
	}
	return f->nheader >= 9;
}

/* The frame whose header is complete. */
static __always_inline void frame_begin(struct rs_scratch *s)
{
	volatile struct rs_frames *f = &s->frames;
	__u32 len = f->header[0] << 16 | f->header[1] << 8 | f->header[2];

	f->nheader = 0;
	/* Types of RFC 9113 and its extensions; the bit before the stream's number is 0. */
	if (len > FRAME_MAX || f->header[3] > 0x20 || f->header[5] & 0x80) {
		f->on = 0;
		return;
	}
	if (f->header[3] == 0 && len > DATA_KEPT) {
		f->copy = DATA_BEGIN;
		f->then = len - DATA_BEGIN;
	} else {
		f->copy = len;
	}
}

__noinline int rs_frame(__u32 slot)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	volatile struct rs_cursor *cur;
	volatile struct rs_frames *f;
	__u32 got, run, skip = 0;

	if (!s)
		return 0;
	cur = &s->cursor;
	f = &s->frames;
	if (s->loaded &&
	    (__s32)(s->pos - s->start) >= 0) { /* what is looked at may be looked at again */
		s->mark = s->first;
		s->mark_start = s->start;
	}
	got = rs_clamp(s->rest, FRAME_WINDOW);
	got = rs_bound(rs_gather_all(slot, s->pos, got, 0));
	f->until = 0;
	if (!got) {
		rs_count(RS_N_HEAD_CUT);
		f->on = 0;
	}
	cur->done = 0; /* after the gathering, whose variable it is too */
	for (int i = 0; i < FRAME_STEPS; i++) {
		__u32 at = cur->done, n = f->copy;

		if (!f->on)
			break;
		if (n > got - at)
			n = got - at;
		cur->done = at + n;
		f->copy -= n;
		if (f->copy)
			break;
		if (f->then) {
			skip = f->then;
			f->then = 0;
			break;
		}
		if (!rs_frame_header(slot, got))
			break;
		frame_begin(s);
	}
	run = f->on ? rs_bound(cur->done) : got;
	if (run > got)
		run = got;
	s->ev.cap = run;
	s->ev.tail_len = 0;
	s->ev.len = run;
	if (!got) {
		s->ev.len = s->rest;
	} else if (skip > s->rest - run) {
		s->ev.len = s->rest;
		f->until = skip - (s->rest - run);
	} else {
		s->ev.len = run + skip;
	}
	return emit_and_go_on(s);
}

#define RS_HTTP 0x50545448 /* "HTTP", as a little-endian number: a response begins so */

__noinline int rs_is_request(__u32 slot, __u32 from, __u32 n)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	__u64 at = rs_bound(from);
	__u32 w;

	if (!s)
		return 0;
	w = *(const __u32 *)&s->data[at];
	if (at + 16 > n || w == RS_HTTP)
		return 0;
	if ((w & 0x00e0e0e0) != 0x00404040) /* three capitals: bits 0xe0 are 0x40 */
		return 0;
	for (int i = 3; i < 12; i++) {
		__u8 c = s->data[at + i];

		if (c == ' ') {
			c = s->data[at + i + 1];
			return c == '/' || c == '*' || (c | 0x20) >= 'a';
		}
		if ((c & 0xe0) != 0x40)
			return 0;
	}
	return 0;
}

static __always_inline bool begins(const struct rs_scratch *s, __u32 slot, __u32 n, bool turned)
{
	__u32 w = *(const __u32 *)s->data;
	__u8 letter = s->data[0] | 0x20;

	if (n < 4)
		return n && turned;
	if (!turned)
		return w == RS_HTTP || rs_is_request(slot, 0, n);
	return letter >= 'a' && letter <= 'z' && ((w - 0x20202000) & 0x80808000) == 0 &&
	       (w & 0x80808000) == 0;
}

/* What stands behind a head that ends at `end`. */
static __always_inline __u32 behind(const struct rs_scratch *s, __u32 slot, __u32 n, __u32 end)
{
	const __u8 *at = &s->data[rs_bound(end)];
	__u64 w, v;

	if (end >= n)
		return 0;
	if (*(const __u32 *)s->data != RS_HTTP)
		return rs_is_request(slot, 0, n) && rs_is_request(slot, end, n) ? RS_LOOKED_ANOTHER
										: 0;
	/*
	 * The first line of chunked content is short, its spaces and zeros included (16 digits are the most that somebody pads
	 * to), or has extensions behind a semicolon; that of another head is not always.
	 */
	if (end + 17 > n || *(const __u32 *)at == RS_HTTP || at[16] == '\r' || at[16] == ';')
		return 0;
	w = *(const __u64 *)at;
	v = *(const __u64 *)(at + 8);
	if (zero_bytes(w ^ EACH_BYTE('\r')) | zero_bytes(v ^ EACH_BYTE('\r')) |
	    zero_bytes(w ^ EACH_BYTE(';')) | zero_bytes(v ^ EACH_BYTE(';')))
		return 0;
	return RS_LOOKED_NOCHUNK;
}

__noinline int rs_look(__u32 slot, __u32 n, __u32 how)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	__u32 found = 0, end, nl = 0;

	if (!s)
		return 0;
	n = rs_bound(n);
	if (how & RS_LOOK_OPEN) {
		nl = how & RS_LOOK_NL ? 1 : 0;
	} else {
		if (!begins(s, slot, n, how & RS_LOOK_TURNED))
			return 0;
		found = RS_LOOKED_BEGINS;
		if (!(how & RS_LOOK_TURNED) && *(const __u32 *)s->data != RS_HTTP)
			return found | RS_LOOKED_BEHIND;
	}
	*(__u64 *)&s->data[n] = 0; /* what follows is of an earlier record */
	end = rs_blank_in(slot, 0, n, nl);
	if (!end && n > BLANK_WINDOW)
		end = rs_blank_line(slot, BLANK_WINDOW, n, s->data[BLANK_WINDOW - 1] == '\n');
	end &= RS_LOOKED_END;
	return end ? found | end | behind(s, slot, n, end) : found;
}

__noinline int rs_fastcgi_head(__u32 slot, __u32 n)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	__u32 all = RS_HEAD_MAX;

	if (!s || n < 8 || *(const __u16 *)s->data != 0x0101 ||
	    *(const __u16 *)&s->data[4] != 0x0800 || s->data[6])
		return 0;
	if (n >= 24) {
		if (*(const __u16 *)&s->data[16] != 0x0401)
			return 0;
		all = 24 + (s->data[20] << 8 | s->data[21]) + s->data[22] + 8;
	}
	return all < rs_cfg.head_bytes ? all : rs_cfg.head_bytes;
}

__noinline int rs_emit_thread_ctx(__u64 conn, __u32 tgid, __u64 off, __u32 len)
{
	struct rs_thread_record rec;
	struct rs_ev_context *r;

	if (!rs_thread_record(tgid, &rec))
		return 0;
	r = RS_RESERVE(struct rs_ev_context, RS_EV_CONTEXT);
	if (!r)
		return 0;
	r->conn = conn;
	r->off = off;
	r->len = len;
	r->tid = (__u32)bpf_get_current_pid_tgid();
	__builtin_memcpy(r->trace_id, rec.trace_id, sizeof(r->trace_id));
	__builtin_memcpy(r->span_id, rec.span_id, sizeof(r->span_id));
	r->kind = RS_CONTEXT_SDK;
	r->flags = rec.flags;
	rs_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

__noinline int rs_parts(__u32 slot)
{
	for (int i = 0; i < RS_WHOLE_MAX / RS_CAP_MAX + 2; i++) {
		if (!rs_part(slot))
			break;
	}
	return 0;
}

__noinline int rs_all_frames(__u32 slot)
{
	for (int i = 0; i < RS_WHOLE_MAX / RS_CAP_MAX; i++) {
		if (!rs_frame(slot))
			break;
	}
	return 0;
}
