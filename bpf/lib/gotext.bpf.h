/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 3: Go programs: connections in their memory, plain text of crypto/tls. Every place is a call instruction (user/go), so
 * arguments are in the registers of Go's ABIInternal, in order: see GO_ARG. Nothing here is at a function's
 * return: goroutines' stacks move, a return address that is not theirs would crash them.
 */
#ifndef RS_LIB_GOTEXT_H
#define RS_LIB_GOTEXT_H

#include "go.bpf.h"
#include "locate.bpf.h"
#include "tls.bpf.h"

#if defined(__TARGET_ARCH_x86)
#define GO_ARG0(ctx)	    ((ctx)->ax)
#define GO_ARG1(ctx)	    ((ctx)->bx)
#define GO_ARG2(ctx)	    ((ctx)->cx)
#define GO_ARG3(ctx)	    ((ctx)->di)
/* Where the caller's first argument is kept while it makes calls: above its return address. */
#define GO_SPILL0(ctx, ret) bpf_probe_read_user(ret, 8, (void *)((ctx)->bp + 16))
#else
#define GO_ARG0(ctx)	    (((struct user_pt_regs *)(ctx))->regs[0])
#define GO_ARG1(ctx)	    (((struct user_pt_regs *)(ctx))->regs[1])
#define GO_ARG2(ctx)	    (((struct user_pt_regs *)(ctx))->regs[2])
#define GO_ARG3(ctx)	    (((struct user_pt_regs *)(ctx))->regs[3])
/* The frame pointer is 8 below the stack's end, and points to the caller's. */
static __always_inline long go_spill0(__u64 fp, __u64 *ret)
{
	if (bpf_probe_read_user(&fp, sizeof(fp), (void *)fp))
		return -1;
	return bpf_probe_read_user(ret, sizeof(*ret), (void *)(fp + 16));
}
#define GO_SPILL0(ctx, ret) go_spill0(((struct user_pt_regs *)(ctx))->regs[29], ret)
#endif

#define NET_FD_SYSFD                                                                               \
	2 /* words: net.netFD begins with a poll.FD, whose third word is the descriptor */
#define FD_MAX	(1 << 20)
#define WRAPPED 3 /* connections inside connections that are looked through */

static __always_inline __u64 go_word(__u64 at)
{
	__u64 v = 0;

	bpf_probe_read_user(&v, sizeof(v), (void *)at);
	return v;
}

/*
 * The connection behind a net.Conn whose data is at `data`. A *net.TCPConn's first word points to its netFD. What
 * wraps another one (tls.Conn, and what programs embed a net.Conn in) has an interface there instead, that
 * is, a pointer to its type's methods, whose third word is a hash and no descriptor; then the data. 0: none
 * (counted), or one that is not followed: a filter or a rule wants others of this process.
 */
static __always_inline __u64 go_conn(__u64 data, struct sock **ret_sk)
{
	struct task_struct *task = rs_task();

#pragma unroll
	for (int i = 0; i < WRAPPED; i++) {
		__u64 w[2] = {}, fd;
		struct file *file;
		struct sock *sk;

		if (!data || bpf_probe_read_user(w, sizeof(w), (void *)data))
			break;
		/* A type's methods may be in a page that nobody has touched yet: then they cannot be read. */
		if (!bpf_probe_read_user(&fd, sizeof(fd), (void *)(w[0] + NET_FD_SYSFD * 8)) &&
		    fd < FD_MAX) {
			file = rs_fd_socket(task, fd);
			sk = file ? rs_file_sock(file) : NULL;
			if (!sk)
				break;
			*ret_sk = sk;
			return BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
		}
		data = w[1];
	}
	rs_count(RS_N_GO_UNPLACED);
	return 0;
}

/* How the process is laid out; NULL: it is not to be traced. */
static __always_inline struct rs_bpf_go *go_begin(__u32 tgid, __u64 cookie)
{
	struct rs_bpf_go *go, told = RS_GO_COOKIE_LAYOUT(cookie);

	if (!*(volatile __u32 *)&rs_active || !rs_task_traced(tgid))
		return NULL;
	go = rs_go_of(tgid);
	if (go)
		return go;
	bpf_map_update_elem(&rs_go, &tgid, &told, BPF_NOEXIST);
	return rs_go_of(tgid);
}

/* TCP sequence number of what is written next, or 0: a record begins there. */
static __always_inline __u32 next_written(struct sock *sk)
{
	if (!sk || BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return 0;
	return BPF_CORE_READ((struct tcp_sock *)sk, write_seq);
}

#define RECORD_MIN (5 + 16) /* what a record has beside its text: header and tag, at least */

/*
 * TCP sequence number of the record of which the program gets n bytes; 0: not known. It is where the thread's last
 * receive began, if that brought all of them, else the first one since the last read; of a record that is read
 * in pieces the first has it. Where that was the end of a handshake, it is wrong: the two ends do not meet then.
 */
static __always_inline __u32 first_read(__u64 conn, __u64 n)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), seq = 0;
	struct rs_tls_thread *t = bpf_map_lookup_elem(&rs_tls_threads, &tid);

	if (!t)
		return 0;
	if (t->conn[RS_DIR_IN] == conn && t->n[RS_DIR_IN] != t->mark[RS_DIR_IN])
		seq = t->last_len >= n + RECORD_MIN ? t->last_seq : t->seq[RS_DIR_IN];
	t->mark[RS_DIR_IN] = t->n[RS_DIR_IN];
	return seq;
}

/* At one of the calls of crypto/tls. */
static __noinline void go_text(struct pt_regs *ctx, __u64 cookie, struct rs_tls_text *x)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	__u64 a0 = GO_ARG0(ctx), a1 = GO_ARG1(ctx), a2 = GO_ARG2(ctx), a3 = GO_ARG3(ctx);
	__u64 obj = 0, buf, len, conn;
	struct rs_bpf_go *go = go_begin(tgid, cookie);
	struct sock *sk = NULL;
	struct rs_tls *t;

	if (!go)
		return;
	/* All are read before it is decided which: the compiler would choose among addresses, which the
	 * verifier does not want to see. */
	rs_opaque(a0);
	rs_opaque(a1);
	rs_opaque(a2);
	rs_opaque(a3);
	if (RS_GO_COOKIE_KIND(cookie) == RS_GO_READ) { /* memmove(to, from, n), in c.Read() */
		GO_SPILL0(ctx, &obj);
		buf = a1;
		len = a2;
		x->seg.dir = RS_DIR_IN;
	} else { /* c.writeRecordLocked(type, data, len) */
		obj = a0;
		buf = a2;
		len = a3;
		x->seg.dir = RS_DIR_OUT;
	}
	if (!len || len > 0x7fffffff)
		return;
	conn = go_conn(go_word(obj + 8), &sk);
	if (!conn)
		return;
	t = rs_tls_get(tgid, obj);
	if (!t) {
		rs_count(RS_N_GO_UNPLACED);
		return;
	}
	rs_tls_place(t, conn);
	x->seg.len = len;
	x->seg.seq = x->seg.dir == RS_DIR_OUT ? next_written(sk) : first_read(conn, len);
	x->buf = buf;
	x->task = rs_go_field(rs_go_g(ctx), rs_go_sp(ctx), go->goid);
	x->t = t;
}

#endif
