/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 2: the only code that puts records into the ring. Data records are built in per-CPU scratch
 * and sent with bpf_ringbuf_output: exact length, no slack in the ring, and copies that start at a
 * variable place, for 22 ns more than building them in the ring. The others have a constant size.
 */
#ifndef RS_LIB_EMIT_H
#define RS_LIB_EMIT_H

#include "maps.bpf.h"
#include "sock.bpf.h"
#include "task.bpf.h"

static __always_inline void rs_hdr(struct rs_ev_hdr *h, __u16 type, __u16 flags, __u32 len)
{
	h->type = type;
	h->flags = flags;
	h->len = len;
	h->ts_ns = bpf_ktime_get_ns();
}

/* s->ev is filled but for the header's length; its cap bytes are in s->data. */
static __always_inline void rs_emit_data(struct rs_scratch *s)
{
	__u64 cap = rs_bound(s->ev.cap);

	s->ev.h.len = sizeof(s->ev) + cap;
	if (bpf_ringbuf_output(&rs_ring, s, sizeof(s->ev) + cap, s->wake))
		rs_count(RS_N_RING_FULL);
	else
		rs_count(RS_N_RECORDS);
	s->wake = BPF_RB_NO_WAKEUP;
}

/* Reserves a record of one of the fixed types, zeroed; NULL: the ring is full (counted). */
#define RS_RESERVE(rec_type, ev_type)                                                              \
	({                                                                                         \
		rec_type *r_ = bpf_ringbuf_reserve(&rs_ring, sizeof(rec_type), 0);                 \
		if (r_) {                                                                          \
			__builtin_memset(r_, 0, sizeof(*r_));                                      \
			rs_hdr(&r_->h, ev_type, 0, sizeof(*r_));                                   \
		} else {                                                                           \
			rs_count(RS_N_RING_FULL);                                                  \
		}                                                                                  \
		r_;                                                                                \
	})

static __always_inline void rs_submit(void *rec, __u64 flags)
{
	bpf_ringbuf_submit(rec, flags);
	rs_count(RS_N_RECORDS);
}

/* The connection, as its first user sees it. */
static __noinline void rs_emit_open(struct rs_conn *c, struct sock *sk, __u64 wake)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct task_struct *task = rs_task();
	struct rs_ev_open *o = RS_RESERVE(struct rs_ev_open, RS_EV_OPEN);

	if (!o)
		return;
	if (c->present)
		o->h.flags = RS_EVF_PRESENT;
	o->conn = c->id;
	o->tgid = pid_tgid >> 32;
	o->tid = (__u32)pid_tgid;
	o->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	o->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	o->start_ns = rs_task_start(task);
	rs_task_comm(task, o->comm);
	if (c->tcp)
		rs_describe_tcp(o, sk);
	else
		rs_describe_unix(o, sk);
	c->role = o->role;
	rs_submit(o, wake);
}

static __always_inline void rs_emit_closed(__u64 conn, __u32 tgid, enum rs_ev_how how)
{
	struct rs_ev_close *r = RS_RESERVE(struct rs_ev_close, RS_EV_CLOSE);

	if (!r)
		return;
	r->conn = conn;
	r->tgid = tgid;
	r->how = how;
	rs_submit(r, BPF_RB_NO_WAKEUP);
}

/* False: it was said already. */
static __always_inline bool rs_emit_close(struct rs_conn *c, __u32 tgid, enum rs_ev_how how)
{
	if (!c->opened || (c->closed & (1 << how | 1 << RS_CLOSE_ALL)))
		return false;
	c->closed |= 1 << how;
	rs_emit_closed(c->id, tgid, how);
	return true;
}

static __always_inline void rs_emit_fact(struct rs_conn *c, enum rs_ev_fact_kind fact, __u32 value)
{
	struct rs_ev_fact *r;

	if (!c->opened)
		return;
	r = RS_RESERVE(struct rs_ev_fact, RS_EV_FACT);
	if (!r)
		return;
	r->conn = c->id;
	r->fact = fact;
	r->value = value;
	rs_submit(r, BPF_RB_NO_WAKEUP);
}

/* connect(2) begins on this thread. */
static __always_inline void rs_emit_connect(__u64 conn, __u64 pid_tgid, __u64 task)
{
	struct rs_ev_fact *r = RS_RESERVE(struct rs_ev_fact, RS_EV_FACT);

	if (!r)
		return;
	r->conn = conn;
	r->fact = RS_FACT_CONNECT;
	r->value = (__u32)pid_tgid;
	r->tgid = pid_tgid >> 32;
	r->task = task;
	r->slept = rs_slept();
	rs_submit(r, BPF_RB_NO_WAKEUP);
}

#endif
