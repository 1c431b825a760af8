/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 2, only with cfg.inject: which request a thread is at, as far as that is certain at the moment it sends,
 * so that what is put on the wire is of the right trace. The rules are those of user/trace/thread.h, which come too
 * late for this, and stricter: a request is dark unless a call made for it is under way.
 */
#ifndef RS_LIB_FOLLOW_H
#define RS_LIB_FOLLOW_H

#include "emit.bpf.h"
#include "thread_ctx.bpf.h"

struct rs_ids {
	__u8 trace_id[16], span_id[8];
	__u8 flags; /* W3C trace flags */
	__u8 set;
	__u8 pad_[6];
} __attribute__((aligned(8)));

/* Of a TCP socket. Zeroed when made. */
struct rs_inject {
	__u64 off;  /* bytes that the program has sent, as sk_msg saw them */
	__u64 body; /* of the request being sent, bytes of its body still to come */
	__u64 conn; /* cookie, set where the connection is made: not to be had in sk_msg */
	__u64 owner; /* the request that the call under way is for: its connection; 0: none, or not known */
	__u8 framing; /* enum rs_framing */
	__u8 turn;    /* direction of the last segment + 1 */
	__u8 role;    /* enum rs_ev_role; 0: not looked at */
	__u8 pad_;
	__u32 seq;	      /* of the first byte of the message that `sent` is for */
	struct rs_ids sent;   /* put on the wire for the request being sent, not yet told */
	struct rs_ids option; /* as TCP option, of the message being sent */
	struct rs_ids got;    /* received as TCP option, not yet told */
};

enum rs_framing {
	RS_FRAMING_START, /* the next byte sent is a request's first */
	RS_FRAMING_LOST,  /* that is not known; until user space names such a place */
	RS_FRAMING_OFF,	  /* not HTTP, or not any more */
};

/* An open request of a server, by its connection. */
struct rs_request {
	struct rs_ids in; /* its trace, if it is known or was made up */
	__u32 tid, gen;
	__u32 calls; /* under way for it */
	__u32 tgid;
};

struct rs_follow_thread {
	__u64 at;   /* connection of the request it is at, or 0 */
	__u32 dark; /* open requests of it with no call under way */
	__u32 gen;  /* of this entry: an evicted one's requests are not counted on */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct rs_inject);
} rs_inject SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct rs_request);
} rs_requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct rs_follow_thread);
} rs_threads SEC(".maps");

/* Processes whose requests are answered by other threads than read them: tgid -> within how many answers. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} rs_wanders SEC(".maps");
#define RS_WANDERS 1000

/* Requests that a process has open. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} rs_serving SEC(".maps");

static __always_inline void rs_serves(__u32 tgid, int more)
{
	__u32 *n = bpf_map_lookup_elem(&rs_serving, &tgid), first = 1;

	if (!n && more > 0)
		bpf_map_update_elem(&rs_serving, &tgid, &first, BPF_NOEXIST);
	else if (n && (more > 0 || *n))
		__sync_fetch_and_add(n, more);
}

static __always_inline struct rs_follow_thread *rs_follow_thread(__u32 tid)
{
	struct rs_follow_thread *t = bpf_map_lookup_elem(&rs_threads, &tid), fresh = {};

	if (t)
		return t;
	fresh.gen = bpf_get_prandom_u32() | 1;
	bpf_map_update_elem(&rs_threads, &tid, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&rs_threads, &tid);
}

/* The thread's entry, if it is the one that counts this request. */
static __always_inline struct rs_follow_thread *rs_thread_of(const struct rs_request *r)
{
	__u32 tid = r->tid;
	struct rs_follow_thread *t = bpf_map_lookup_elem(&rs_threads, &tid);

	return t && t->gen == r->gen ? t : NULL;
}

static __always_inline void rs_random(__u8 *to, int words)
{
	for (int i = 0; i < words; i++)
		((__u32 *)to)[i] = bpf_get_prandom_u32();
	to[words * 4 - 1] |= 1; /* not zero */
}

/* The request on this connection is answered, or will never be. tid 0: by nobody. */
static __always_inline void rs_request_ends(__u64 conn, __u32 tid, __u32 tgid)
{
	struct rs_request *r = bpf_map_lookup_elem(&rs_requests, &conn);
	__u32 *wanders, many = RS_WANDERS;
	struct rs_follow_thread *t;

	if (!r)
		return;
	t = rs_thread_of(r);
	if (t) {
		if (!r->calls)
			__sync_fetch_and_add(&t->dark, -1);
		if (t->at == conn)
			t->at = 0;
	}
	wanders = tid ? bpf_map_lookup_elem(&rs_wanders, &tgid) : NULL;
	if (tid && tid != r->tid)
		bpf_map_update_elem(&rs_wanders, &tgid, &many, BPF_ANY);
	else if (wanders && *wanders)
		*wanders -= 1;
	rs_serves(r->tgid, -1);
	bpf_map_delete_elem(&rs_requests, &conn);
}

/* A request was received. in: the context it came with. */
static __always_inline void rs_request_begins(__u64 conn, __u32 tid, __u32 tgid,
					      const struct rs_ids *in)
{
	struct rs_follow_thread *t = rs_follow_thread(tid);
	struct rs_request r = { .tid = tid, .tgid = tgid };

	rs_request_ends(conn, 0, tgid);
	if (!t)
		return;
	r.gen = t->gen;
	r.in = *in;
	if (bpf_map_update_elem(&rs_requests, &conn, &r, BPF_ANY))
		return;
	__sync_fetch_and_add(&t->dark, 1);
	rs_serves(tgid, 1);
	t->at = conn;
}

/* The request that the thread's next call is for, if that is certain. */
static __always_inline struct rs_request *rs_request_at(__u32 tid, __u32 tgid, __u64 *ret_conn)
{
	struct rs_follow_thread *t = bpf_map_lookup_elem(&rs_threads, &tid);
	__u32 *wanders = bpf_map_lookup_elem(&rs_wanders, &tgid);
	struct rs_request *r;
	__u64 at;

	if (!t || !t->at || (wanders && *wanders) || bpf_map_lookup_elem(&rs_go, &tgid))
		return NULL; /* goroutines change threads */
	at = t->at;
	r = bpf_map_lookup_elem(&rs_requests, &at);
	if (!r || r->tid != tid || r->gen != t->gen)
		return NULL;
	if (t->dark != (r->calls ? 0 : 1)) /* another one waits for something unseen */
		return NULL;
	*ret_conn = at;
	return r;
}

/*
 * A call begins on a client's socket: the ids of its span. False: it is doubtful which request it is for; the agent
 * may yet find out, and a trace of its own would tear it off.
 */
static __always_inline bool rs_call_begins(struct rs_inject *j, __u32 tid, __u32 tgid,
					   struct rs_ids *ret)
{
	struct rs_thread_record rec;
	struct rs_follow_thread *t;
	struct rs_request *r;
	__u64 conn = 0;
	__u32 *open;

	j->owner = 0;
	if (!tid)
		return false;
	rs_random(ret->span_id, 2);
	ret->flags = 0x03; /* sampled, random */
	if (rs_thread_record(tgid, &rec)) {
		__builtin_memcpy(ret->trace_id, rec.trace_id, sizeof(ret->trace_id));
		ret->flags = rec.flags;
		ret->set = 1;
		return true;
	}
	r = rs_request_at(tid, tgid, &conn);
	if (!r) {
		open = bpf_map_lookup_elem(&rs_serving, &tgid);
		if (open && *open)
			return false;
		rs_random(ret->trace_id, 4);
		ret->set = 1;
		return true;
	}
	if (!r->in.set) {
		rs_random(r->in.trace_id, 4);
		r->in.flags = ret->flags;
		r->in.set = 1;
	}
	__builtin_memcpy(ret->trace_id, r->in.trace_id, sizeof(ret->trace_id));
	ret->flags = r->in.flags;
	t = rs_thread_of(r);
	if (t && r->calls++ == 0)
		__sync_fetch_and_add(&t->dark, -1);
	j->owner = conn;
	ret->set = 1;
	return true;
}

/* Its answer is read: the thread goes on with what the call was for. */
static __always_inline void rs_call_answered(struct rs_inject *j, __u32 tid)
{
	__u64 conn = j->owner;
	struct rs_request *r = conn ? bpf_map_lookup_elem(&rs_requests, &conn) : NULL;
	struct rs_follow_thread *t;

	j->owner = 0;
	if (!r)
		return;
	t = rs_thread_of(r);
	if (!t)
		return;
	if (r->calls && --r->calls == 0)
		__sync_fetch_and_add(&t->dark, 1);
	if (r->tid == tid) {
		t->at = conn;
		return;
	}
	t = bpf_map_lookup_elem(&rs_threads, &tid);
	if (t)
		t->at = 0;
}

/* Tells user space, before the data records of the segment. */
static __always_inline void rs_emit_ids(__u64 conn, const struct rs_ids *ids,
					enum rs_ev_context_kind kind, __u64 off, __u32 len)
{
	struct rs_ev_context *r = RS_RESERVE(struct rs_ev_context, RS_EV_CONTEXT);

	if (!r)
		return;
	r->conn = conn;
	r->off = off;
	r->len = len;
	r->tid = (__u32)bpf_get_current_pid_tgid();
	__builtin_memcpy(r->trace_id, ids->trace_id, sizeof(r->trace_id));
	__builtin_memcpy(r->span_id, ids->span_id, sizeof(r->span_id));
	r->kind = kind;
	r->flags = ids->flags;
	rs_submit(r, BPF_RB_NO_WAKEUP);
}

/* What of a message's head matters here. Positions are after the name, or 0. */
struct rs_head {
	__u32 line_end; /* of the first line: where the second begins */
	__u32 end;	/* where the body begins; 0: not all of it is here */
	__u32 traceparent, length;
	__u8 lengths, chunked, upgrade, pad_;
};

#define RS_HEAD_LOOK 2048 /* bytes of a head that are looked at */

#define RS_LOWER 0x2020202020202020ULL
#define RS_WORD(a, b, c, d, e, f, g, h)                                                            \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 |   \
	 (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)

/* The line that begins at p. True: it is the blank one. data has 32 bytes behind RS_HEAD_LOOK. */
static __noinline int rs_head_line(const __u8 *data, struct rs_head *h, __u32 p)
{
	__u64 w, v;

	p &= RS_HEAD_LOOK - 1;
	if (!h->line_end)
		h->line_end = p;
	if (data[p] == '\r' && data[p + 1] == '\n') {
		h->end = p + 2;
		return 1;
	}
	w = *(const __u64 *)&data[p] | RS_LOWER;
	v = *(const __u64 *)&data[p + 8] | RS_LOWER;
	if (w == RS_WORD('t', 'r', 'a', 'c', 'e', 'p', 'a', 'r') &&
	    (__u32)v == (__u32)RS_WORD('e', 'n', 't', ':', 0, 0, 0, 0)) {
		h->traceparent = p + 12;
	} else if (w == RS_WORD('c', 'o', 'n', 't', 'e', 'n', 't', '-') &&
		   v << 8 == RS_WORD('l', 'e', 'n', 'g', 't', 'h', ':', 0) << 8) {
		h->length = p + 15;
		h->lengths++;
	} else if (w == RS_WORD('t', 'r', 'a', 'n', 's', 'f', 'e', 'r')) {
		h->chunked = 1;
	} else if (w == RS_WORD('u', 'p', 'g', 'r', 'a', 'd', 'e', ':')) {
		h->upgrade = 1;
	}
	return 0;
}

struct rs_head_walk {
	const __u8 *data;
	struct rs_head *h;
	__u32 n;
};

static long rs_head_byte(__u32 i, struct rs_head_walk *w)
{
	if (i >= w->n)
		return 1;
	return w->data[i & (RS_HEAD_LOOK - 1)] == '\n' && rs_head_line(w->data, w->h, i + 1);
}

/*
 * Looks through the first n (<= RS_HEAD_LOOK - 1) bytes of data; h is zeroed. By bpf_loop (5.17): --inject needs
 * the socket backend (6.5), and a loop of so many turns is too much for the verifier.
 */
static __always_inline void rs_head_scan(const __u8 *data, struct rs_head *h, __u32 n)
{
	struct rs_head_walk w = { data, h, n };

	bpf_loop(RS_HEAD_LOOK - 1, rs_head_byte, &w, 0);
}

static __always_inline int rs_unhex(__u8 c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "00-{32}-{16}-{2}" behind blanks, at data[p]. Level 1 or 2 of version 00 only: what else may be valid is left alone. */
static __noinline int rs_traceparent_at(const __u8 *data, struct rs_ids *ret, __u32 p)
{
	__u32 all = 0;

	p &= RS_HEAD_LOOK - 1;
	if (data[p] == ' ')
		p++;
	if (data[p] != '0' || data[p + 1] != '0' || data[p + 2] != '-')
		return 0;
	p += 3;
	for (int i = 0; i < 25; i++) {
		__u32 at = p + 2 * i + (i > 15) + (i > 23);
		int hi, lo;

		hi = rs_unhex(data[at & (RS_HEAD_LOOK - 1)]);
		lo = rs_unhex(data[(at + 1) & (RS_HEAD_LOOK - 1)]);
		if (hi < 0 || lo < 0)
			return 0;
		if (i < 16)
			ret->trace_id[i & 15] = hi << 4 | lo;
		else if (i < 24)
			ret->span_id[(i - 16) & 7] = hi << 4 | lo;
		else
			ret->flags = hi << 4 | lo;
		if (i < 16)
			all |= hi | lo;
	}
	ret->set = all != 0;
	return ret->set;
}

#endif
