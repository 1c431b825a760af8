/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Layer 2: connections' state, wherever the backend keeps it. */
#ifndef RS_LIB_CONN_H
#define RS_LIB_CONN_H

#include "emit.bpf.h"

/* sk: a trusted pointer (an argument of a tp_btf program). NULL: nothing was seen on it. */
static __always_inline struct rs_conn *rs_conn_find(const struct sock *sk)
{
	__u64 key = (__u64)sk;

	if (rs_by_syscall)
		return bpf_map_lookup_elem(&rs_conns, &key);
	return bpf_sk_storage_get(&rs_sk, (struct sock *)sk, NULL, 0);
}

/* Connections named in rs_live, or more than it has room for. Set to 0 by user space before each run. */
__u32 rs_nlive = 0;

/* An iterator found the connection. */
static __always_inline void rs_conn_lives(const struct rs_conn *c)
{
	__u32 i = rs_nlive++;
	__u64 *to = bpf_map_lookup_elem(&rs_live, &i);

	if (to)
		*to = c->id;
}

/*
 * No event tells of a Unix socket's end. But who reads the end of the stream finds the other end
 * there still, dead: that is told for it, so that what it had open ends in time.
 */
static __always_inline void rs_unix_peer_gone(struct sock *sk)
{
	struct sock *peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
	__u64 key = (__u64)peer, id;
	struct rs_conn *c;

	if (!peer || !(BPF_CORE_READ(peer, __sk_common.skc_flags) & 1UL << SOCK_DEAD))
		return;
	if (rs_by_syscall) {
		c = bpf_map_lookup_elem(&rs_conns, &key);
		if (c && c->id)
			rs_emit_close(c, 0, RS_CLOSE_ALL);
		return;
	}
	id = BPF_CORE_READ(peer, __sk_common.skc_cookie.counter);
	if (id)
		rs_emit_closed(id, 0, RS_CLOSE_ALL);
}

/* The end of the stream was read. */
static __always_inline void rs_end_of_stream(struct rs_conn *c, struct sock *sk, __u32 tgid)
{
	if (rs_emit_close(c, tgid, RS_CLOSE_IN) && !c->tcp)
		rs_unix_peer_gone(sk);
}

#endif
