// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the TCP stack knows of connections that were seen: their end, and their troubles. */
#include "lib/conn.bpf.h"

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(rs_tcp_state, const struct sock *sk, int from, int to)
{
	struct rs_conn *c;

	if (sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (to != TCP_FIN_WAIT1 && to != TCP_LAST_ACK && to != TCP_CLOSE)
		return 0;
	c = rs_conn_find(sk);
	if (!c)
		return 0;
	if (to == TCP_CLOSE) /* by a timer, a packet, or a process: which, is not known here */
		rs_emit_close(c, 0, RS_CLOSE_ALL);
	else
		rs_emit_close(c, bpf_get_current_pid_tgid() >> 32, RS_CLOSE_OUT);
	return 0;
}

/* Only for rs_conns: socket storage goes with the socket. */
SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(rs_tcp_destroy, struct sock *sk)
{
	__u64 key = (__u64)sk;

	bpf_map_delete_elem(&rs_conns, &key);
	return 0;
}

/* The timer ran out: tcp_enter_loss comes before the first segment is sent again. */
static __always_inline bool rs_in_loss(const struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD_PROBED((struct inet_connection_sock *)sk, icsk_ca_state) ==
	       TCP_CA_Loss;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(rs_tcp_retransmit, const struct sock *sk, const struct sk_buff *skb)
{
	struct rs_conn *c = rs_conn_find(sk);

	if (c)
		rs_emit_fact(c, rs_in_loss(sk) ? RS_FACT_RTO : RS_FACT_RETRANSMIT,
			     BPF_CORE_READ(skb, len));
	return 0;
}

SEC("tp_btf/tcp_receive_reset")
int BPF_PROG(rs_tcp_reset_in, struct sock *sk)
{
	struct rs_conn *c = rs_conn_find(sk);

	if (c)
		rs_emit_fact(c, RS_FACT_RESET_IN, 0);
	return 0;
}

SEC("tp_btf/tcp_send_reset")
int BPF_PROG(rs_tcp_reset_out, const struct sock *sk)
{
	struct rs_conn *c;

	if (!sk) /* in answer to a packet that belongs to no socket */
		return 0;
	c = rs_conn_find(sk);
	if (c)
		rs_emit_fact(c, RS_FACT_RESET_OUT, 0);
	return 0;
}

/* A segment with this header says that its sender has no room to receive. */
static __always_inline void no_window(const struct sock *sk, const struct tcphdr *th)
{
	struct rs_conn *c;

	/* A reset has none either. */
	if (sk->__sk_common.skc_state != TCP_ESTABLISHED || BPF_CORE_READ_BITFIELD_PROBED(th, rst))
		return;
	c = rs_conn_find(sk);
	if (c)
		rs_emit_fact(c, RS_FACT_ZERO_WINDOW, 0);
}

/*
 * A segment arrived: has the peer no room to receive? skb->data is at its TCP header. Per segment, after receive
 * offload: nothing is called but for those that say so.
 */
SEC("tp_btf/tcp_probe")
int BPF_PROG(rs_tcp_window, struct sock *sk, const struct sk_buff *skb)
{
	if (!rs_cast(const struct tcphdr, skb->data)->window)
		no_window(sk, (const struct tcphdr *)skb->data);
	return 0;
}

/* For kernels before 6.2: see rs_cast. */
SEC("tp_btf/tcp_probe")
int BPF_PROG(rs_tcp_window_old, struct sock *sk, const struct sk_buff *skb)
{
	const struct tcphdr *th = (const struct tcphdr *)skb->data;
	__u16 window;

	if (!bpf_probe_read_kernel(&window, sizeof(window), &th->window) && !window)
		no_window(sk, th);
	return 0;
}
