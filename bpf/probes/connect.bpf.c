// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * connect(2) of TCP sockets: which thread opens a connection, and how long that takes. Two records per
 * outgoing connection; the connection itself is told of at its first transfer.
 */
#include "lib/emit.bpf.h"
#include "lib/go.bpf.h"
#include "lib/wanted.bpf.h"

/* Connects under way: address of struct sock -> when they began. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, __u64);
} rs_connects SEC(".maps");

static __always_inline void connect_fact(struct sock *sk, enum rs_ev_fact_kind fact, __u32 value)
{
	struct rs_conn c = { .id = bpf_get_socket_cookie(sk), .opened = 1 };

	rs_emit_fact(&c, fact, value);
}

/* Before 5.15 the registers of a thread in the kernel cannot be had here. */
static __always_inline __u64 goroutine(__u32 tgid)
{
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return 0;
	return rs_go_current(tgid, (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf()));
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(rs_tcp_connect, struct sock *sk, int from, int to)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), key = (__u64)sk, now, *began;

	if (sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (to == TCP_LISTEN) { /* by a process, now: rules may name the port */
		rs_listens(pid_tgid >> 32, BPF_CORE_READ(sk, __sk_common.skc_num));
		return 0;
	}
	if (to == TCP_SYN_SENT) { /* in connect(2), on its thread */
		if (!rs_wanted(NULL, pid_tgid >> 32, sk, RS_SOCK_TCP))
			return 0;
		now = bpf_ktime_get_ns();
		bpf_map_update_elem(&rs_connects, &key, &now, BPF_ANY);
		rs_emit_connect(bpf_get_socket_cookie(sk), pid_tgid, goroutine(pid_tgid >> 32));
		return 0;
	}
	if (from != TCP_SYN_SENT)
		return 0;
	began = bpf_map_lookup_elem(&rs_connects, &key);
	if (!began)
		return 0;
	if (to == TCP_ESTABLISHED) {
		connect_fact(sk, RS_FACT_CONNECTED, (bpf_ktime_get_ns() - *began) / 1000);
	} else {
		struct rs_conn c = { .id = bpf_get_socket_cookie(sk), .opened = 1 };

		rs_emit_close(&c, 0, RS_CLOSE_ALL);
	}
	bpf_map_delete_elem(&rs_connects, &key);
	return 0;
}
