// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Go programs: which goroutine works for which. (Their plain text: lib/gotext.bpf.h.) */
#include "lib/gotext.bpf.h"

static __always_inline void go_emit(__u32 tgid, enum rs_ev_task_kind kind, __u64 task, __u64 parent,
				    __u64 conn, __u32 stream)
{
	struct rs_ev_task *r = RS_RESERVE(struct rs_ev_task, RS_EV_TASK);

	if (!r)
		return;
	r->conn = conn;
	r->task = task;
	r->parent = parent;
	r->tgid = tgid;
	r->kind = kind;
	r->stream = stream;
	rs_submit(r, BPF_RB_NO_WAKEUP);
}

/*
 * Header fields that gRPC's clients have queued: where they are in memory -> who asks. They lie there until they
 * are sent. Of what is not sent, the oldest gives way.
 */
struct rs_go_fields {
	__u64 at;
	__u32 tgid;
	__u32 pad_;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct rs_go_fields);
	__type(value, __u64);
} rs_go_asks SEC(".maps");

/* What gRPC's servers have taken in and have made no goroutine for yet: reader -> stream. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct rs_go_key);
	__type(value, __u32);
} rs_go_taken SEC(".maps");

#define GRPC_FIELDS 8 /* in what is queued, after the stream's number: the slice of header fields */

#define G_M 48 /* in runtime.g: the thread's runtime.m; the same in all releases */

/*
 * go f(): newproc.func1 has made the goroutine, on the scheduler's stack (and as its goroutine, g0): the one that
 * asked is its thread's current one. Of those that may serve only.
 */
static __always_inline void go_spawn(struct rs_bpf_go *go, __u32 tgid, __u64 g0, __u64 made)
{
	struct rs_go_key key = { .tgid = tgid };
	__u64 task, parent, m;
	__u32 *taken;

	m = go_word(g0 + G_M);
	parent = go_word(go_word(m + go->m_curg) + go->goid);
	task = go_word(made + go->goid);
	if (!parent || !task || !rs_go_serves(tgid, parent))
		return;
	rs_go_mark(tgid, task);
	key.task = parent;
	taken = bpf_map_lookup_elem(&rs_go_taken, &key);
	go_emit(tgid, RS_TASK_SPAWN, task, parent, 0, taken ? *taken : 0);
	if (taken)
		bpf_map_delete_elem(&rs_go_taken, &key);
}

SEC("uprobe")
int rs_go_task(struct pt_regs *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, stream;
	__u64 cookie = bpf_get_attach_cookie(ctx), kind = RS_GO_COOKIE_KIND(cookie), task, conn, p;
	__u64 a0 = GO_ARG0(ctx), a1 = GO_ARG1(ctx), a3 = GO_ARG3(ctx);
	struct sock *sk;
	struct rs_bpf_go *go = go_begin(tgid, cookie);

	if (!go)
		return 0;
	rs_opaque(a0);
	rs_opaque(a1);
	rs_opaque(a3);
	if (kind == RS_GO_SPAWN) {
		go_spawn(go, tgid, rs_go_g(ctx), a1);
		return 0;
	}
	task = rs_go_field(rs_go_g(ctx), rs_go_sp(ctx), go->goid);
	if (!task)
		return 0;
	if (kind == RS_GO_ASKS) {
		struct rs_go_fields key = { .at = go_word(a3 + GRPC_FIELDS), .tgid = tgid };

		bpf_map_update_elem(&rs_go_asks, &key, &task, BPF_ANY);
		return 0;
	}
	if (kind == RS_GO_TAKES) {
		struct rs_go_key key = { .task = task, .tgid = tgid };

		stream = (__u32)go_word(a3);
		bpf_map_update_elem(&rs_go_taken, &key, &stream, BPF_ANY);
		return 0;
	}
	if (kind == RS_GO_SENDS) {
		struct rs_go_fields key = { .at = a3, .tgid = tgid };
		__u64 *who = bpf_map_lookup_elem(&rs_go_asks, &key);

		if (who) {
			go_emit(tgid, RS_TASK_CALLS, *who, task, 0, (__u32)a1);
			bpf_map_delete_elem(&rs_go_asks, &key);
		}
		return 0;
	}
	if (kind == RS_GO_CALLS) {
		conn = go_conn(go_word(a0 + go->pconn_conn + 8), &sk);
		if (conn)
			go_emit(tgid, RS_TASK_CALLS, task, 0, conn, 0);
		return 0;
	}
	conn = go_conn(go_word(a0 + go->h2_sc_conn + 8), &sk);
	p = go_word(a1 + go->h2_rw_rws);
	p = go_word(p + go->h2_rws_stream);
	stream = (__u32)go_word(p + go->h2_stream_id);
	if (conn && stream) {
		rs_go_mark(tgid, task);
		go_emit(tgid, RS_TASK_SERVES, task, 0, conn, stream);
	}
	return 0;
}
