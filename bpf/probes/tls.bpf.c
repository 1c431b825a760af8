// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Plain text, wherever it comes from: one program, since it is all the same to the verifier, whose time is most of a start.
 * Here, TLS libraries whose reads and writes are f(session, buffer, length[, where to put the count]): OpenSSL and its
 * kin, GnuTLS. Where the probes sit is user space's choice (user/tls): anywhere in the function as long as
 * the arguments, or the result, are in their registers; the cookie says what differs.
 */
#include "lib/gotext.bpf.h"
#include "lib/rustls.bpf.h"

/* Cookie, above its kind: how far below its value at the function's first instruction the stack pointer is. */
#define COOKIE_SP(c) ((__s64)(__s16)((c) >> 4))
#define COOKIE_OUT   (1 << 20) /* it is a write */
#define COOKIE_COUNTP                                                                              \
	(1 << 21) /* the result only says whether; the count is where the fourth argument points */
#define COOKIE_COUNT5 (1 << 22)		/* with COUNTP: where the fifth points */
#define COOKIE_REG(c) ((c) >> 24 & 0xf) /* number of the register that has the result; 0: its own */

#if defined(__TARGET_ARCH_x86)
/* As asm: the compiler would choose among addresses and load once, which the verifier refuses of a context. */
#define CTX_REG(ctx, reg)                                                                          \
	({                                                                                         \
		__u64 v_;                                                                          \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                              \
			     : "=r"(v_)                                                            \
			     : "r"(ctx), "i"(__builtin_offsetof(struct pt_regs, reg)));            \
		(int)v_;                                                                           \
	})
#endif

static __always_inline int result(struct pt_regs *ctx, __u32 reg)
{
#if defined(__TARGET_ARCH_x86)
	switch (reg) { /* those that calls leave as they are */
	case 3:
		return CTX_REG(ctx, bx);
	case 5:
		return CTX_REG(ctx, bp);
	case 12:
		return CTX_REG(ctx, r12);
	case 13:
		return CTX_REG(ctx, r13);
	case 14:
		return CTX_REG(ctx, r14);
	case 15:
		return CTX_REG(ctx, r15);
	}
	return CTX_REG(ctx, ax);
#else
	return (int)PT_REGS_RC(ctx);
#endif
}

__noinline int rs_tls_capture(struct rs_conn *c, __u32 slot)
{
	struct rs_segment seg = { .source = RS_SRC_TLS };
	struct rs_scratch *s = rs_scratch_get(slot);

	if (!c || !s)
		return 0;
	seg.dir = s->ev.dir & 1;
	seg.seq = s->ev.seq;
	seg.len = s->ev.len;
	seg.ts_ns = s->ev.h.ts_ns;
	rs_capture(c, s, slot, &seg, true);
	return 0;
}

SEC("uprobe")
int rs_tls_enter(struct pt_regs *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), cookie = bpf_get_attach_cookie(ctx);
	struct rs_tls_call_key key = { .tgid = pid_tgid >> 32,
				       .sp = PT_REGS_SP(ctx) + COOKIE_SP(cookie) };
	struct rs_tls_call *call;
	__u64 fourth, fifth;
	struct rs_tls_thread *t;
	__u32 dir = cookie & COOKIE_OUT ? RS_DIR_OUT : RS_DIR_IN;

	if (!rs_tls_wanted(key.tgid))
		return 0;
	t = rs_tls_thread((__u32)pid_tgid);
	call = bpf_map_lookup_elem(&rs_tls_calls, &key);
	if (!call) {
		bpf_map_update_elem(&rs_tls_calls, &key, &rs_zero, BPF_NOEXIST);
		call = bpf_map_lookup_elem(&rs_tls_calls, &key);
	}
	if (!t || !call)
		return 0;
	if (call->open)
		rs_count(RS_N_TLS_NO_RETURN);
	call->obj = PT_REGS_PARM1(ctx);
	call->buf = PT_REGS_PARM2(ctx);
	/* Both are read before it is chosen: see CTX_REG. */
	fourth = PT_REGS_PARM4(ctx);
	fifth = PT_REGS_PARM5(ctx);
	rs_opaque(fourth);
	rs_opaque(fifth);
	call->lenp = cookie & COOKIE_COUNT5 ? fifth : fourth;
	call->n = t->n[dir];
	call->open = 1;
	t->mark[dir] = t->n[dir];
	return 0;
}

/* Which connection is the session on? True: what this call moved went over it since the last one. */
static __always_inline bool place(struct rs_tls *s, struct rs_tls_thread *t,
				  const struct rs_tls_call *call, __u32 dir)
{
	bool nested = t->n[dir] != call->n, fresh = nested;

	if (nested) {
		rs_tls_place(s, t->conn[dir]);
		s->direct = 1;
	} else if (dir == RS_DIR_IN) {
		fresh = call->n != t->taken && !s->direct;
		if (fresh)
			rs_tls_place(s, t->conn[dir]);
	} else if (!s->c.id) { /* it writes first: on what the handshake came by */
		rs_tls_place(s, t->conn[RS_DIR_IN]);
	}
	if (dir == RS_DIR_IN)
		t->taken = t->n[RS_DIR_IN];
	return fresh;
}

static __noinline void leave(struct pt_regs *ctx, __u64 cookie, struct rs_tls_text *x)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), n;
	struct rs_tls_call_key key = { .tgid = pid_tgid >> 32,
				       .sp = PT_REGS_SP(ctx) + COOKIE_SP(cookie) };
	__u32 dir = cookie & COOKIE_OUT ? RS_DIR_OUT : RS_DIR_IN;
	int ret = result(ctx, COOKIE_REG(cookie));
	bool fresh;
	struct rs_tls_thread *t;
	struct rs_tls_call *call;
	struct rs_tls *s;

	if (!rs_tls_wanted(key.tgid))
		return;
	call = bpf_map_lookup_elem(&rs_tls_calls, &key);
	if (!call || !call->open)
		return;
	call->open = 0;
	t = rs_tls_thread((__u32)pid_tgid);
	s = rs_tls_get(key.tgid, call->obj);
	if (!t || !s)
		return;
	fresh = place(s, t, call, dir);
	if (ret <= 0)
		return;
	n = ret;
	if (cookie & COOKIE_COUNTP && bpf_probe_read_user(&n, sizeof(n), (void *)call->lenp)) {
		rs_count(RS_N_READ_FAULT);
		return;
	}
	if (!n || n > 0x7fffffff)
		return;
	if (!s->c.id) {
		if (t->n[0] || t->n[1]) /* else its connections are none of ours */
			rs_tls_unplaced(key.tgid, t);
		return;
	}
	x->seg.dir = dir;
	x->seg.len = n;
	if (fresh) {
		x->seg.seq = t->seq[dir];
		if (dir == RS_DIR_OUT)
			x->seg.ts_ns = t->out_ns;
	}
	t->mark[dir] = t->n[dir];
	x->buf = call->buf;
	x->t = s;
}

SEC("uprobe")
int rs_text(struct pt_regs *ctx)
{
	struct rs_tls_text x = { .seg.source = RS_SRC_TLS };
	__u64 cookie = bpf_get_attach_cookie(ctx);

	switch (cookie & RS_TEXT_KIND) {
	case RS_GO_READ:
	case RS_GO_WRITE:
		go_text(ctx, cookie, &x);
		break;
	case RS_TEXT_LEAVE:
		leave(ctx, cookie, &x);
		break;
	case RS_TEXT_OPENED:
		rustls_opened(ctx, &x);
		break;
	case RS_TEXT_SEALS:
		rustls_seals(ctx, &x);
		break;
	}
	if (x.t)
		rs_tls_emit(&x);
	return 0;
}

/* The session's object is freed: its address can be another's next. Or that just happened. */
SEC("uprobe")
int rs_tls_forget(struct pt_regs *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	if (!rs_tls_wanted(tgid))
		return 0;
	if (bpf_get_attach_cookie(ctx) == RS_TEXT_MADE)
		return rustls_made(ctx);
	rs_tls_forget_obj(tgid, PT_REGS_PARM1(ctx));
	return 0;
}
