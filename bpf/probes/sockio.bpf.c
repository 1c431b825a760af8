// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The socket backend: reads and writes of stream sockets (6.3+, commit 6e6eda44b939). Both fire inside
 * the system call, on the caller's thread, when it is done: the buffer is found through the
 * arguments that the thread entered the kernel with.
 */
#include "lib/capture.bpf.h"
#include "lib/conn.bpf.h"
#include "lib/syscalls.bpf.h"

static __always_inline bool is_compat(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return task->thread_info.status & TS_COMPAT;
#else
	return task->thread_info.flags & (1UL << TIF_32BIT);
#endif
}

/* Does this descriptor of the task lead to this socket? */
static __always_inline bool fd_is(struct task_struct *task, __u64 fd, struct sock *sk)
{
	struct fdtable *fdt = BPF_CORE_READ(task, files, fdt);
	struct file **slot, *file = NULL;
	struct socket *sock;

	if (fd >= BPF_CORE_READ(fdt, max_fds))
		return false;
	slot = BPF_CORE_READ(fdt, fd) + fd;
	bpf_probe_read_kernel(&file, sizeof(file), slot);
	sock = BPF_CORE_READ(file, private_data);
	return (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFSOCK &&
	       BPF_CORE_READ(sock, sk) == sk;
}

/* Finds the bytes. False: they cannot be known (counted). */
static __always_inline bool locate(struct rs_scratch *s, struct sock *sk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs;
	__u64 msg[2]; /* user_msghdr.msg_iov, msg_iovlen */
	enum rs_sys_kind kind;

	if (is_compat(task)) {
		rs_count(RS_N_NODATA_COMPAT);
		return false;
	}
	if (task->flags & PF_IO_WORKER) {
		rs_count(RS_N_NODATA_URING);
		return false;
	}
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	kind = rs_sys_kind(rs_sys_nr(regs));
	/*
	 * A receive that io_uring armed completes at the end of whatever system call the thread is in:
	 * the arguments are then another transfer's.
	 */
	if (task->io_uring && (kind == RS_SYS_NONE || !fd_is(task, rs_sys_arg0(regs), sk))) {
		rs_count(RS_N_NODATA_URING);
		return false;
	}
	switch (kind) {
	case RS_SYS_BUF:
		s->base = rs_sys_arg1(regs);
		s->niov = 0;
		return true;
	case RS_SYS_IOV:
		s->base = rs_sys_arg1(regs);
		s->niov = rs_sys_arg2(regs);
		return s->niov != 0;
	case RS_SYS_MMSG:
		if (rs_sys_arg2(regs) != 1) /* which of the messages this is, nobody says */
			break;
	case RS_SYS_MSG:
		if (bpf_probe_read_user(msg, sizeof(msg),
					(void *)(rs_sys_arg1(regs) +
						 __builtin_offsetof(struct user_msghdr, msg_iov)))) {
			rs_count(RS_N_READ_FAULT);
			return false;
		}
		s->base = msg[0];
		s->niov = msg[1];
		return s->niov != 0;
	case RS_SYS_SENDFILE:
	case RS_SYS_SPLICE:
		rs_count(RS_N_NODATA_SENDFILE);
		return false;
	case RS_SYS_NONE:
		break;
	}
	rs_count(RS_N_NODATA_OTHER);
	return false;
}

static __always_inline int transfer(struct sock *sk, __u32 slot, enum rs_ev_dir dir, int ret, int flags)
{
	enum rs_sock_kind kind = rs_sock_kind(sk);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct rs_segment seg = { .len = ret, .dir = dir };
	__u32 tgid = pid_tgid >> 32;
	struct rs_scratch *s;
	struct tcp_sock *tp;
	struct rs_conn *c;

	if (kind == RS_SOCK_OTHER)
		return 0;
	c = bpf_sk_storage_get(&rs_sk, sk, NULL, 0);
	if (ret <= 0) {
		if (c && ret == 0 && dir == RS_DIR_IN)
			rs_end_of_stream(c, sk, tgid);
		return 0;
	}
	if (!rs_task_wanted(tgid) || (rs_cfg.filter_port && !rs_port_wanted(sk, kind))) {
		if (c) /* another process's connection too: its offsets go on */
			rs_take(&c->off[dir], ret);
		return 0;
	}
	rs_count(RS_N_SEGMENTS);
	s = rs_scratch_get(slot);
	if (!s)
		return 0;
	if (!c) {
		if (((struct task_struct *)bpf_get_current_task_btf())->flags & PF_KTHREAD)
			return 0;
		c = bpf_sk_storage_get(&rs_sk, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (!c) {
			rs_count(RS_N_CONN_FULL);
			return 0;
		}
	}
	s->wake = BPF_RB_NO_WAKEUP;
	if (c->tgid != tgid) {
		s->wake = rs_task_seen(tgid);
		c->tgid = tgid;
	}
	if (kind == RS_SOCK_TCP) {
		tp = bpf_skc_to_tcp_sock(sk);
		if (tp)
			seg.seq = (dir == RS_DIR_OUT ? tp->write_seq : tp->copied_seq) - ret;
	}
	if (!c->opened) {
		c->id = bpf_get_socket_cookie(sk);
		c->tcp = kind == RS_SOCK_TCP;
		c->opened = 1;
		rs_emit_open(c, sk, s->wake);
		s->wake = BPF_RB_NO_WAKEUP;
	}
	s->ev.tgid = tgid;
	s->ev.tid = (__u32)pid_tgid;
	seg.nodata = (flags & MSG_TRUNC && dir == RS_DIR_IN) || !locate(s, sk);
	rs_capture(c, s, slot, &seg);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(rs_sock_send, struct sock *sk, int ret, int flags)
{
	return transfer(sk, RS_SLOT_SEND, RS_DIR_OUT, ret, 0);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(rs_sock_recv, struct sock *sk, int ret, int flags)
{
	if (flags & (MSG_PEEK | MSG_ERRQUEUE | MSG_OOB)) /* not, or not yet, taken from the stream */
		return 0;
	return transfer(sk, RS_SLOT_RECV, RS_DIR_IN, ret, flags);
}
