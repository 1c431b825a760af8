/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Layer 2: is a transfer of this process on this socket to be captured? */
#ifndef RS_LIB_WANTED_H
#define RS_LIB_WANTED_H

#include "sock.bpf.h"
#include "task.bpf.h"

static __always_inline bool rs_port_of_rules(__u16 port)
{
	__u32 at = port / 64;
	__u64 *bits = bpf_map_lookup_elem(&rs_ports, &at);

	return bits && *bits & 1ULL << (port % 64);
}

/* The process listens on this port: if rules name it, that is noted, and what was decided of it is forgotten. */
static __always_inline void rs_listens(__u32 tgid, __u16 port)
{
	struct rs_bpf_listening first = {}, *have;

	if (!rs_cfg.discover || !rs_port_of_rules(port))
		return;
	have = bpf_map_lookup_elem(&rs_listening, &tgid);
	if (!have) {
		first.port[0] = port;
		bpf_map_update_elem(&rs_listening, &tgid, &first, BPF_ANY);
	}
#pragma unroll
	for (int i = 0; have && i < RS_LISTENING; i++) {
		if (have->port[i] == port)
			break;
		if (!have->port[i]) {
			have->port[i] = port;
			break;
		}
	}
	bpf_map_delete_elem(&rs_verdicts, &tgid);
}

/* Has user space said that nothing of this is wanted? sk: any pointer; kind: of it. */
static __always_inline bool rs_excluded(__u32 tgid, struct sock *sk, enum rs_sock_kind kind)
{
	__u32 *v;

	if (!rs_cfg.discover)
		return false;
	v = bpf_map_lookup_elem(&rs_verdicts, &tgid);
	if (!v)
		return false;
	if (*v == RS_BPF_TELL) {
		*v = RS_BPF_SKIP;
		return false;
	}
	if (*v != RS_BPF_PORTS || kind != RS_SOCK_TCP)
		return true;
	return !rs_port_of_rules(BPF_CORE_READ(sk, __sk_common.skc_num)) &&
	       !rs_port_of_rules(bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport)));
}

/*
 * All filters together. c: the connection's state or NULL; what it says of its last user spares that one the
 * lookup.
 */
static __always_inline bool rs_wanted(struct rs_conn *c, __u32 tgid, struct sock *sk,
				      enum rs_sock_kind kind)
{
	__u32 epoch = *(volatile __u32 *)&rs_verdict_epoch + 1;

	if (!rs_task_wanted(tgid) || (rs_cfg.filter_port && !rs_port_wanted(sk, kind)))
		return false;
	if (c && c->tgid == tgid && c->verdict_epoch == epoch)
		return true;
	if (rs_excluded(tgid, sk, kind))
		return false;
	if (c)
		c->verdict_epoch = c->tgid == tgid ? epoch : 0;
	return true;
}

#endif
