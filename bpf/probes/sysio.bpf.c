// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The system call backend, for kernels without sock_send_length (before 6.3): the same transfers, seen
 * when the system call ends. At that point everything is known: the arguments are still in the
 * registers that were saved at entry, so sys_enter is not needed and its cost is saved. The price is
 * a look at every system call of the machine; its number decides first.
 */
#include "lib/conn.bpf.h"
#include "lib/dns.bpf.h"
#include "lib/go.bpf.h"
#include "lib/locate.bpf.h"
#include "lib/standin.bpf.h"
#include "lib/tls.bpf.h"
#include "lib/wanted.bpf.h"

static __always_inline enum rs_sock_kind walked_kind(struct sock *sk)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	if ((family == AF_INET || family == AF_INET6) &&
	    BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP)
		return RS_SOCK_TCP;
	if (family == AF_UNIX && BPF_CORE_READ(sk, sk_type) == SOCK_STREAM)
		return RS_SOCK_UNIX;
	return RS_SOCK_OTHER;
}

/*
 * A socket without a cookie gets a number of ours: bit 62, which no cookie reaches, and what no other
 * socket can have, the time (in 16 ns) and the CPU. Positive as a signed number too, for JSON.
 */
static __always_inline __u64 new_id(struct sock *sk)
{
	__u64 cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);

	if (cookie)
		return cookie;
	return 1ULL << 62 | bpf_ktime_get_ns() >> 4 << 8 | (bpf_get_smp_processor_id() & 0xff);
}

/* The state of the connection; `make`: made when there is none. gen: inode of the socket. */
static __noinline struct rs_conn *get(struct sock *sk, __u64 gen, __u32 tcp, __u32 present,
				      __u32 make)
{
	__u64 key = (__u64)sk;
	struct rs_conn *c = bpf_map_lookup_elem(&rs_conns, &key);

	if (c && c->gen == gen)
		return c;
	if (c) /* another socket was at this address, and nobody told of its end */
		rs_emit_close(c, 0, RS_CLOSE_ALL);
	if (!make)
		return NULL;
	if (bpf_map_update_elem(&rs_conns, &key, &rs_zero, BPF_ANY)) {
		rs_count(RS_N_CONN_FULL);
		return NULL;
	}
	c = bpf_map_lookup_elem(&rs_conns, &key);
	if (!c)
		return NULL;
	c->id = new_id(sk);
	c->gen = gen;
	c->tcp = tcp;
	c->present = present;
	return c;
}

/* Bytes that recvmmsg or sendmmsg moved in `n` messages. */
static __always_inline __u32 mmsg_bytes(struct pt_regs *regs, __u32 n)
{
	__u64 at = rs_sys_arg1(regs) + __builtin_offsetof(struct mmsghdr, msg_len);
	__u32 sum = 0, len;

	for (__u32 i = 0; i < 8; i++) {
		if (i >= n)
			break;
		if (bpf_probe_read_user(&len, sizeof(len),
					(void *)(at + i * sizeof(struct mmsghdr))))
			break;
		sum += len;
	}
	return sum;
}

static __always_inline __u32 recv_flags(struct pt_regs *regs, __u32 nr)
{
	switch (nr) {
	case RS_NR_recvfrom:
	case RS_NR_recvmmsg:
		return rs_sys_arg3(regs);
	case RS_NR_recvmsg:
		return rs_sys_arg2(regs);
	}
	return 0;
}

static __always_inline void sys_exit(struct pt_regs *regs, long ret, enum rs_sys_kind kind,
				     __u32 slot, bool fetch)
{
	__u32 nr = rs_sys_nr(regs), flags, tgid, tid;
	struct rs_segment seg = {};
	struct task_struct *task;
	struct inode *inode;
	enum rs_sock_kind sort;
	struct rs_scratch *s;
	struct rs_conn *c;
	struct file *file;
	struct sock *sk;
	__u64 ino;

	seg.dir = rs_sys_dir(nr);
	if (ret == 0 && seg.dir == RS_DIR_OUT && kind != RS_SYS_SPLICE)
		return;
	flags = recv_flags(regs, nr);
	if (flags &
	    (MSG_PEEK | MSG_ERRQUEUE | MSG_OOB)) /* not, or not yet, taken from the stream */
		return;
	if (!*(volatile __u32 *)&rs_active)
		return;
	if (fetch) { /* 5.12, so it has what 5.11 has */
		task = bpf_get_current_task_btf();
		tgid = task->tgid;
		tid = task->pid;
	} else {
		task = rs_task();
		tgid = bpf_get_current_pid_tgid() >> 32;
		tid = (__u32)bpf_get_current_pid_tgid();
	}
	if (tgid == rs_cfg.self_tgid)
		return;
	file = rs_fd_socket_here(
		task, kind == RS_SYS_SPLICE ? rs_sys_arg2(regs) : rs_sys_arg0(regs), &inode, fetch);
	if (!file && kind == RS_SYS_SPLICE) {
		file = rs_fd_socket_here(task, rs_sys_arg0(regs), &inode, fetch);
		seg.dir = RS_DIR_IN;
	}
	if (!file)
		return;
	if (fetch ? rs_task_compat(task) : rs_task_compat_any(task)) {
		rs_count(RS_N_NODATA_COMPAT);
		return;
	}
	sk = rs_file_sock(file);
	if (!sk)
		return;
	sort = walked_kind(sk);
	if (sort == RS_SOCK_OTHER) {
		if (seg.dir == RS_DIR_IN && rs_dns_socket(sk) && (kind != RS_SYS_MMSG || ret == 1))
			rs_dns_answer(sk, slot, regs, kind,
				      kind == RS_SYS_MMSG ? mmsg_bytes(regs, 1) : ret);
		return;
	}
	seg.len = ret;
	if (kind == RS_SYS_MMSG)
		seg.len = mmsg_bytes(regs, ret);
	ino = BPF_CORE_READ(inode, i_ino);
	c = get(sk, ino, 0, 0, 0);
	if (!rs_wanted(c, tgid, sk, sort)) {
		if (c)
			rs_take(&c->off[seg.dir & 1], seg.len, fetch);
		rs_tls_elsewhere(tid);
		return;
	}
	if (!c && seg.len)
		c = get(sk, ino, sort == RS_SOCK_TCP, 0, 1);
	if (!c)
		return;
	if (!seg.len) {
		if (seg.dir == RS_DIR_IN && BPF_CORE_READ(sk, __sk_common.skc_state) != TCP_LISTEN)
			rs_end_of_stream(c, sk, tgid);
		return;
	}
	rs_count(RS_N_SEGMENTS);
	s = rs_scratch_get(slot);
	if (!s)
		return;
	s->wake = BPF_RB_NO_WAKEUP;
	if (c->tgid != tgid) {
		s->wake = rs_task_seen(tgid);
		c->tgid = tgid;
	}
	if (sort == RS_SOCK_TCP) {
		if (seg.dir == RS_DIR_OUT)
			seg.seq = BPF_CORE_READ((struct tcp_sock *)sk, write_seq) - seg.len;
		else
			seg.seq = BPF_CORE_READ((struct tcp_sock *)sk, copied_seq) - seg.len;
	}
	if (!c->opened) {
		c->opened = 1;
		rs_emit_open(c, sk, s->wake);
		s->wake = BPF_RB_NO_WAKEUP;
	}
	s->ev.tgid = tgid;
	s->ev.tid = tid;
	s->ev.slept = fetch ? task->nvcsw : rs_slept();
	s->ev.task = rs_go_current(tgid, regs);
	if (s->ev.task && seg.dir == RS_DIR_IN)
		rs_go_mark(tgid, s->ev.task);
	if (kind == RS_SYS_MMSG && ret > 1)
		kind = RS_SYS_NONE;
	seg.nodata = (flags & MSG_TRUNC) || !rs_locate(s, regs, kind);
	if (rs_tls_segment(c, s, slot, &seg)) {
		rs_tls_cipher(c, s, slot, &seg);
		return;
	}
	rs_tls_elsewhere(tid);
	rs_capture(c, s, slot, &seg, fetch);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(rs_sys_exit, struct pt_regs *regs, long ret)
{
	enum rs_sys_kind kind = rs_sys_kind(rs_sys_nr(regs));

	rs_busy_set(RS_SLOT_SYSCALL, 1);
	if (kind != RS_SYS_NONE && ret >= 0)
		sys_exit(regs, ret, kind, RS_SLOT_SYSCALL, true);
	rs_busy_set(RS_SLOT_SYSCALL, 0);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(rs_sys_exit_in, struct pt_regs *regs, long ret)
{
	enum rs_sys_kind kind = rs_sys_kind(rs_sys_nr(regs));

	if (rs_stand_in(RS_SLOT_SYSCALL) && kind != RS_SYS_NONE && ret >= 0)
		sys_exit(regs, ret, kind, RS_SLOT_IN + RS_SLOT_SYSCALL, true);
	return 0;
}

/* For kernels before 5.12: see rs_take. */
SEC("tp_btf/sys_exit")
int BPF_PROG(rs_sys_exit_old, struct pt_regs *regs, long ret)
{
	enum rs_sys_kind kind = rs_sys_kind(rs_sys_nr(regs));

	if (kind != RS_SYS_NONE && ret >= 0)
		sys_exit(regs, ret, kind, RS_SLOT_SYSCALL, false);
	return 0;
}

/* 1 during the run after the attach: connections found are older than the agent. */
__u32 rs_marking = 0;

/*
 * All sockets that have a descriptor: names those whose state is kept; while rs_marking, makes the state of those
 * that have none.
 */
SEC("iter/task_file")
int rs_iter_walk(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct rs_conn *c;
	enum rs_sock_kind sort;
	struct sock *sk;
	__u8 state;

	if (!file || !task || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	sk = rs_file_sock(file);
	if (!sk)
		return 0;
	sort = walked_kind(sk);
	state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (sort == RS_SOCK_TCP && state == TCP_LISTEN)
		rs_listens(task->tgid, BPF_CORE_READ(sk, __sk_common.skc_num));
	if (sort == RS_SOCK_OTHER || state == TCP_LISTEN || state == TCP_CLOSE)
		return 0;
	c = get(sk, BPF_CORE_READ(file, f_inode, i_ino), sort == RS_SOCK_TCP, 1, rs_marking);
	if (c && c->opened)
		rs_conn_lives(c);
	return 0;
}
