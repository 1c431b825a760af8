/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 1: reads struct sock. Works on trusted and on walked pointers alike; used where a connection
 * is seen for the first time, not on every transfer.
 */
#ifndef RS_LIB_SOCK_H
#define RS_LIB_SOCK_H

#include "config.bpf.h"

enum rs_sock_kind {
	RS_SOCK_OTHER, /* not a stream we understand */
	RS_SOCK_TCP,
	RS_SOCK_UNIX,
};

/* sk: a trusted pointer. */
static __always_inline enum rs_sock_kind rs_sock_kind(const struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family;

	if ((family == AF_INET || family == AF_INET6) && sk->sk_protocol == IPPROTO_TCP)
		return RS_SOCK_TCP;
	if (family == AF_UNIX && sk->sk_type == SOCK_STREAM)
		return RS_SOCK_UNIX;
	return RS_SOCK_OTHER;
}

static __always_inline bool rs_port_wanted(struct sock *sk, enum rs_sock_kind kind)
{
	__u16 lport, rport;

	if (kind != RS_SOCK_TCP)
		return false;
	lport = BPF_CORE_READ(sk, __sk_common.skc_num);
	rport = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
#pragma unroll
	for (int i = 0; i < RS_FILTER_PORTS; i++) {
		if (i >= rs_cfg.filter_port)
			break;
		if (rs_cfg.port[i] == lport || rs_cfg.port[i] == rport)
			return true;
	}
	return false;
}

/*
 * Which end of a TCP connection is this? The kernel does not say in so many words, but a socket made
 * for an incoming connection remembers the interface its first packet came by (inet_sock.mc_index,
 * ipv6_pinfo.mcast_oif: tcp_v4_syn_recv_sock, tcp_v6_syn_recv_sock, in all kernels since 2.6), and
 * one that connected has none. Only IP_MULTICAST_IF on a TCP socket could deceive it.
 */
static __always_inline enum rs_ev_role rs_tcp_role(struct sock *sk, __u16 family)
{
	struct inet_sock *inet = (struct inet_sock *)sk;
	struct ipv6_pinfo *pinet6;

	if (BPF_CORE_READ(inet, mc_index))
		return RS_ROLE_SERVER;
	if (family == AF_INET6) {
		pinet6 = BPF_CORE_READ(inet, pinet6);
		if (pinet6 && BPF_CORE_READ(pinet6, mcast_oif))
			return RS_ROLE_SERVER;
	}
	return RS_ROLE_CLIENT;
}

/* ::ffff:a.b.c.d, an IPv4 connection of a socket that takes both. The kernel keeps the IPv4 addresses too. */
static __always_inline bool rs_v4_mapped(const __u8 addr[16])
{
	return *(const __u64 *)addr == 0 && *(const __u32 *)&addr[8] == bpf_htonl(0xffff);
}

static __always_inline void rs_describe_tcp(struct rs_ev_open *o, struct sock *sk)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	o->l4 = RS_L4_TCP;
	o->lport = BPF_CORE_READ(sk, __sk_common.skc_num);
	o->rport = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	o->role = rs_tcp_role(sk, family);
	o->oseq = o->role == RS_ROLE_CLIENT ? BPF_CORE_READ((struct tcp_sock *)sk, copied_seq)
					    : BPF_CORE_READ((struct tcp_sock *)sk, write_seq);
	o->family = RS_FAMILY_INET;
	if (family == AF_INET6) {
		BPF_CORE_READ_INTO((__u8(*)[16])o->laddr, sk,
				   __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
		BPF_CORE_READ_INTO((__u8(*)[16])o->raddr, sk,
				   __sk_common.skc_v6_daddr.in6_u.u6_addr8);
		if (!rs_v4_mapped(o->raddr)) {
			o->family = RS_FAMILY_INET6;
			return;
		}
		__builtin_memset(o->laddr, 0, sizeof(o->laddr));
		__builtin_memset(o->raddr, 0, sizeof(o->raddr));
	}
	*(__u32 *)o->laddr = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	*(__u32 *)o->raddr = BPF_CORE_READ(sk, __sk_common.skc_daddr);
}

/* The path of a Unix socket's address, '@' for the zero byte that begins an abstract one. */
static __always_inline bool rs_unix_path(struct rs_ev_open *o, struct unix_sock *u)
{
	struct unix_address *addr = BPF_CORE_READ(u, addr);
	__u64 len;

	if (!addr)
		return false;
	len = BPF_CORE_READ(addr, len);
	if (len <= sizeof(__u16)) /* sun_family alone: autobind not done, no name */
		return false;
	len = rs_clamp(len - sizeof(__u16), RS_UNIX_PATH);
	bpf_probe_read_kernel(o->path, len,
			      __builtin_preserve_access_index(&addr->name[0].sun_path));
	if (o->path[0] == 0)
		o->path[0] = '@';
	return true;
}

/* An accepted Unix socket shares its listener's address; the one that connected seldom has any. */
static __always_inline void rs_describe_unix(struct rs_ev_open *o, struct sock *sk)
{
	struct unix_sock *u = (struct unix_sock *)sk;
	struct unix_sock *peer = (struct unix_sock *)BPF_CORE_READ(u, peer);
	struct pid *pid = BPF_CORE_READ(sk, sk_peer_pid);

	o->family = RS_FAMILY_UNIX;
	if (rs_unix_path(o, u))
		o->role = RS_ROLE_SERVER;
	else if (peer && rs_unix_path(o, peer))
		o->role = RS_ROLE_CLIENT;
	if (peer)
		o->peer_conn = BPF_CORE_READ(peer, sk.__sk_common.skc_cookie.counter);
	if (pid)
		o->peer_tgid = BPF_CORE_READ(pid, numbers[0].nr);
}

#endif
