/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 3: answers of name servers, as a process receives them over UDP: whole, for user space to read. From port 53
 * when the socket is connected (glibc, Go, c-ares); when it is not (musl), whatever begins like an answer.
 */
#ifndef RS_LIB_DNS_H
#define RS_LIB_DNS_H

#include "buffer.bpf.h"
#include "emit.bpf.h"
#include "locate.bpf.h"

#define IPPROTO_UDP 17
#define RS_DNS_MIN  32 /* bytes of the shortest answer that names an address */
#define RS_DNS_PORT bpf_htons(53)

/* sk: any pointer. */
static __always_inline bool rs_dns_socket(struct sock *sk)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family), port;

	if (!rs_cfg.dns || (family != AF_INET && family != AF_INET6))
		return false;
	port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	if (port && port != RS_DNS_PORT)
		return false;
	if (!port && BPF_CORE_READ(sk, __sk_common.skc_num) < 1024) /* a server's */
		return false;
	return BPF_CORE_READ(sk, sk_protocol) == IPPROTO_UDP;
}

/* A response without error, to one question, with answers; rs_dns_parse looks closer. */
static __always_inline bool rs_dns_begins(const struct rs_scratch *s)
{
	return (s->data[2] & 0xf8) == 0x80 && !(s->data[3] & 0x0f) && !s->data[4] &&
	       s->data[5] == 1 && !s->data[6] && s->data[7];
}

/* A datagram of len bytes was read; kind, regs: by which system call. */
static __always_inline void rs_dns_answer(struct sock *sk, __u32 slot, struct pt_regs *regs,
					  enum rs_sys_kind kind, __u32 len)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 tgid = pid_tgid >> 32;
	struct rs_scratch *s;

	if (len < RS_DNS_MIN || len > RS_CAP_MAX || !rs_task_traced(tgid))
		return;
	if (kind != RS_SYS_BUF && kind != RS_SYS_MSG && kind != RS_SYS_IOV && kind != RS_SYS_MMSG)
		return;
	s = rs_scratch_get(slot);
	if (!s || !rs_locate(s, regs, kind))
		return;
	s->loaded = 0;
	if (rs_copy(s, slot, 0, RS_DNS_MIN) < RS_DNS_MIN || !rs_dns_begins(s))
		return;
	s->loaded = 0;
	rs_hdr(&s->ev.h, RS_EV_NAMES, 0, 0);
	s->ev.conn = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	s->ev.off = 0;
	s->ev.len = len;
	s->ev.cap = rs_copy(s, slot, 0, len);
	s->ev.tgid = tgid;
	s->ev.tid = (__u32)pid_tgid;
	s->ev.seq = 0;
	s->ev.dir = RS_DIR_IN;
	s->ev.source = RS_SRC_SOCKET;
	s->ev.tail_len = 0;
	s->ev.slept = 0;
	s->ev.task = 0;
	s->wake = BPF_RB_NO_WAKEUP;
	if (s->ev.cap == len)
		rs_emit_data(s);
}

#endif
