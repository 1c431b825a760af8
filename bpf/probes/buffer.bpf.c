// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The global functions of lib/buffer.bpf.h. */
#include "lib/buffer.bpf.h"
#include "lib/emit.bpf.h"

#define IOV_STEPS 64 /* iovecs looked at by one call: heads are in the first few */

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

int rs_gather(__u32 slot, __u32 pos, __u32 want, __u32 at)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	__u32 i = 0, start = 0;
	__u64 done = 0;

	if (!s)
		return 0;
	want = rs_clamp(want, RS_CAP_MAX);
	at = rs_clamp(at, RS_AT_TAIL - RS_CAP_MAX + RS_CAP_MAX);
	if (!s->niov) {
		__u64 n = rs_clamp(want, RS_CAP_MAX);

		if (!bpf_probe_read_user(&s->data[at], n, (void *)(s->base + pos)))
			return n;
		rs_count(RS_N_READ_FAULT);
		return 0;
	}
	if (s->loaded && pos >= s->start) {
		i = s->first;
		start = s->start;
	}
	for (int step = 0; step < IOV_STEPS; step++) {
		__u64 base, len, skip, n, to;
		__u32 k;

		if (i >= s->niov || done >= want)
			break;
		k = i - s->first;
		if (!s->loaded || k >= RS_IOV_WIN) {
			if (load_window(s, i, start))
				break;
			k = 0;
		}
		k &= RS_IOV_WIN - 1;
		base = s->iov[k].base;
		len = s->iov[k].len;
		if (len > 0x7fffffff)
			len = 0x7fffffff;
		skip = pos + done - start;
		if (skip < len) {
			n = len - skip;
			if (n > want - done)
				n = want - done;
			n = rs_clamp(n, RS_CAP_MAX);
			to = rs_clamp(at + done, RS_AT_TAIL);
			if (bpf_probe_read_user(&s->data[to], n, (void *)(base + skip)))
				break;
			done += n;
		}
		start += len;
		i++;
	}
	if (done < want)
		rs_count(RS_N_READ_FAULT);
	return done;
}

#define EACH_BYTE(c) ((c) * 0x0101010101010101ULL)

/* 0x80 in each byte of w that is zero; a byte of 1 above a zero one may be marked too. */
static __always_inline __u64 zero_bytes(__u64 w)
{
	return (w - EACH_BYTE(1)) & ~w & EACH_BYTE(0x80);
}

int rs_blank_line(__u32 slot, __u32 n, __u32 nl)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	__u64 carry = nl ? 0x80 : 0;
	const __u64 *w;

	if (!s)
		return 0;
	n = rs_clamp(n, RS_CAP_MAX);
	*(__u64 *)&s->data[n] = 0; /* what follows is of an earlier record */
	w = (const __u64 *)s->data;
	for (__u32 i = 0; i < RS_CAP_MAX / 8; i++) {
		__u64 lf, end;

		if (i * 8 >= n)
			break;
		lf = zero_bytes(w[i] ^ EACH_BYTE('\n'));
		end = lf | zero_bytes(w[i] ^ EACH_BYTE('\r'));
		if (((lf << 8) | carry) & end)
			return 1;
		carry = lf >> 56;
	}
	return 0;
}

int rs_part(__u32 slot)
{
	struct rs_scratch *s = rs_scratch_get(slot);
	__u32 want, got, found;

	if (!s)
		return 0;
	want = s->rest;
	if (want > s->head)
		want = s->head;
	want = rs_clamp(want, RS_CAP_MAX);
	got = rs_clamp(rs_gather(slot, s->pos, want, RS_AT_DATA), RS_CAP_MAX);
	found = rs_blank_line(slot, got, s->nl);
	s->ev.cap = got;
	s->ev.tail_len = 0;
	if (found || got < want || got >= s->head || got == s->rest) { /* the last one */
		s->ev.len = s->rest;
		if (got < s->rest)
			rs_tail(s, slot, s->pos + s->rest, s->rest);
		if (found)
			s->head = 0;
		else if (got >= s->head || got < want) {
			s->head = 0;
			rs_count(RS_N_HEAD_CUT);
		} else {
			s->head -= got;
		}
	} else {
		s->ev.len = got;
		s->head -= got;
	}
	s->nl = got && s->data[rs_clamp(got - 1, RS_CAP_MAX)] == '\n';
	rs_emit_data(s);
	s->pos += s->ev.len;
	s->rest -= s->ev.len;
	s->ev.off += s->ev.len;
	if (s->ev.seq)
		s->ev.seq += s->ev.len;
	return s->rest != 0;
}
