// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The socket backend: reads and writes of stream sockets (6.3+, commit 6e6eda44b939). Both fire inside
 * the system call, on the caller's thread, when it is done: the buffer is found through the
 * arguments that the thread entered the kernel with.
 */
#include "lib/runq.bpf.h"
#include "lib/conn.bpf.h"
#include "lib/dns.bpf.h"
#include "lib/go.bpf.h"
#include "lib/locate.bpf.h"
#include "lib/standin.bpf.h"
#include "lib/tls.bpf.h"
#include "lib/wanted.bpf.h"

/*
 * Has the task used io_uring? To read a pointer through a trusted one, the verifier looks through the names of all of the
 * kernel's types, several times on each way that leads here: a quarter of a start.
 */
static __always_inline bool has_uring(struct task_struct *task)
{
	return rs_cast(struct task_struct, task)->io_uring;
}

/* Finds the bytes. False: they cannot be known (counted). */
static __always_inline bool locate(struct rs_scratch *s, struct sock *sk, struct task_struct *task,
				   struct pt_regs *regs)
{
	enum rs_sys_kind kind;
	struct file *file;

	if (rs_task_compat(task)) {
		rs_count(RS_N_NODATA_COMPAT);
		return false;
	}
	if (task->flags & PF_IO_WORKER) {
		rs_count(RS_N_NODATA_URING);
		return false;
	}
	kind = rs_sys_kind(rs_sys_nr(regs));
	/*
	 * A receive that io_uring armed completes at the end of whatever system call the thread is in:
	 * the arguments are then another transfer's.
	 */
	if (has_uring(task)) {
		file = kind == RS_SYS_NONE ? NULL : rs_fd_socket(task, rs_sys_arg0(regs));
		if (!file || rs_file_sock(file) != sk) {
			rs_count(RS_N_NODATA_URING);
			return false;
		}
	}
	if (kind == RS_SYS_MMSG &&
	    rs_sys_arg2(regs) != 1) /* which of the messages this is, nobody says */
		kind = RS_SYS_NONE;
	return rs_locate(s, regs, kind);
}

/*
 * Sequence number after the last byte that was read. The end of the stream has one of its own, which a
 * read that reaches it takes with the last bytes.
 */
static __always_inline __u32 seq_read(const struct sock *sk, const struct tcp_sock *tp)
{
	__u32 seq = tp->copied_seq;

	if (sk->__sk_common.skc_flags & 1UL << SOCK_DONE && seq == tp->rcv_nxt)
		seq--;
	return seq;
}

/*
 * Splicing from a socket has no event, and its bytes would be missing in the offsets. They show in the
 * sequence number; but only to the thread that is the only one to read, since another's read may be
 * done already and its event still to come.
 */
static __always_inline void catch_up(struct rs_conn *c, struct rs_scratch *s, __u32 from, __u32 tid)
{
	__u32 gap = from - c->seq_in;

	if (c->reader == tid && !c->readers && gap && gap < 1U << 31) {
		rs_unseen(c, s, gap, c->seq_in, RS_DIR_IN);
		c->seq_in = from;
	}
}

static __always_inline void sequence(struct rs_conn *c, struct rs_scratch *s, struct sock *sk,
				     struct rs_segment *seg, __u32 tid)
{
	struct tcp_sock *tp = rs_cast(struct tcp_sock, sk);
	__u32 read;

	read = seq_read(sk, tp);
	if (seg->dir == RS_DIR_OUT) {
		seg->seq = tp->write_seq - seg->len;
		catch_up(c, s, read, tid);
		return;
	}
	seg->seq = read - seg->len;
	catch_up(c, s, seg->seq, tid);
	c->seq_in = read;
	if (!c->reader)
		c->reader = tid;
	else if (c->reader != tid)
		c->readers = 1;
}

static __always_inline void datagram(struct sock *sk, __u32 slot, int len)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	enum rs_sys_kind kind = rs_sys_kind(rs_sys_nr(regs));

	if (rs_task_compat(task) || has_uring(task) || task->flags & PF_IO_WORKER)
		return;
	if (kind == RS_SYS_MMSG && rs_sys_arg2(regs) != 1)
		return;
	rs_dns_answer(sk, slot, regs, kind, len);
}

static __always_inline void transfer(struct sock *sk, __u32 slot, enum rs_ev_dir dir, int ret,
				     int flags)
{
	enum rs_sock_kind kind = rs_sock_kind(sk);
	struct rs_segment seg = { .len = ret, .dir = dir };
	struct task_struct *task;
	struct rs_scratch *s;
	struct pt_regs *regs;
	__u32 tgid, tid;
	struct rs_conn *c;

	if (!*(volatile __u32 *)&rs_active)
		return;
	if (kind == RS_SOCK_OTHER) {
		if (dir == RS_DIR_IN && ret > 0 && rs_dns_socket(sk))
			datagram(sk, slot, ret);
		return;
	}
	c = bpf_sk_storage_get(&rs_sk, sk, NULL, 0);
	task = bpf_get_current_task_btf();
	tgid = task->tgid;
	tid = task->pid;
	if (ret <= 0) {
		if (c && ret == 0 && dir == RS_DIR_IN)
			rs_end_of_stream(c, sk, tgid);
		else if (c && ret == -EPIPE &&
			 !c->tcp) /* nobody else tells that the other end is gone */
			rs_emit_close(c, tgid, RS_CLOSE_OUT);
		return;
	}
	if (!rs_wanted(c, tgid, sk, kind)) {
		if (c) /* another process's connection too: its offsets go on */
			rs_take(&c->off[dir], ret, true);
		rs_tls_elsewhere(tid);
		return;
	}
	rs_count(RS_N_SEGMENTS);
	s = rs_scratch_get(slot);
	if (!s)
		return;
	if (!c) {
		if (task->flags & PF_KTHREAD)
			return;
		c = bpf_sk_storage_get(&rs_sk, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (!c) {
			rs_count(RS_N_CONN_FULL);
			return;
		}
	}
	s->wake = BPF_RB_NO_WAKEUP;
	if (c->tgid != tgid) {
		s->wake = rs_task_seen(tgid);
		c->tgid = tgid;
	}
	if (!c->opened) {
		c->id = bpf_get_socket_cookie(sk);
		c->tcp = kind == RS_SOCK_TCP;
		c->opened = 1;
		rs_emit_open(c, sk, s->wake);
		s->wake = BPF_RB_NO_WAKEUP;
	}
	rs_run_queue(c, dir, task);
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	s->ev.tgid = tgid;
	s->ev.tid = tid;
	s->ev.slept = task->nvcsw;
	s->ev.task = rs_go_current(tgid, regs);
	if (s->ev.task && dir == RS_DIR_IN)
		rs_go_mark(tgid, s->ev.task);
	if (c->tcp)
		sequence(c, s, sk, &seg, tid);
	seg.nodata = (flags & MSG_TRUNC && dir == RS_DIR_IN) || !locate(s, sk, task, regs);
	if (rs_tls_segment(c, s, slot, &seg)) {
		rs_tls_cipher(c, s, slot, &seg);
		return;
	}
	rs_tls_elsewhere(tid);
	rs_capture(c, s, slot, &seg, true);
}

/* Not, or not yet, taken from the stream. */
#define NOT_TAKEN (MSG_PEEK | MSG_ERRQUEUE | MSG_OOB)

SEC("tp_btf/sock_send_length")
int BPF_PROG(rs_sock_send, struct sock *sk, int ret, int flags)
{
	rs_busy_set(RS_SLOT_SEND, 1);
	transfer(sk, RS_SLOT_SEND, RS_DIR_OUT, ret, 0);
	rs_busy_set(RS_SLOT_SEND, 0);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(rs_sock_recv, struct sock *sk, int ret, int flags)
{
	rs_busy_set(RS_SLOT_RECV, 1);
	if (!(flags & NOT_TAKEN))
		transfer(sk, RS_SLOT_RECV, RS_DIR_IN, ret, flags);
	rs_busy_set(RS_SLOT_RECV, 0);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(rs_sock_send_in, struct sock *sk, int ret, int flags)
{
	if (rs_stand_in(RS_SLOT_SEND))
		transfer(sk, RS_SLOT_IN + RS_SLOT_SEND, RS_DIR_OUT, ret, 0);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(rs_sock_recv_in, struct sock *sk, int ret, int flags)
{
	if (rs_stand_in(RS_SLOT_RECV) && !(flags & NOT_TAKEN))
		transfer(sk, RS_SLOT_IN + RS_SLOT_RECV, RS_DIR_IN, ret, flags);
	return 0;
}
