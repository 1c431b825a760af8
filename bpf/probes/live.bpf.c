// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Iterators: run when user space reads them, not by events. */
#include "lib/conn.bpf.h"
#include "lib/wanted.bpf.h"

/* Names every connection that has socket storage. */
SEC("iter/bpf_sk_storage_map")
int rs_iter_conns(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct rs_conn *c = ctx->value;

	if (c && ctx->sk && c->opened)
		rs_conn_lives(c);
	return 0;
}

/*
 * Connections that are older than the agent are marked so before their first transfer is seen. Run once,
 * after the hooks are attached.
 */
SEC("iter/task_file")
int rs_iter_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	enum rs_sock_kind kind;
	struct socket *sock;
	struct rs_conn *c;
	struct sock *sk;

	if (!file || !task)
		return 0;
	sock = bpf_sock_from_file(file);
	if (!sock)
		return 0;
	sk = sock->sk;
	if (!sk)
		return 0;
	kind = rs_sock_kind(sk);
	if (kind == RS_SOCK_TCP && sk->__sk_common.skc_state == TCP_LISTEN)
		rs_listens(task->tgid, sk->__sk_common.skc_num);
	if (kind == RS_SOCK_OTHER || sk->__sk_common.skc_state == TCP_LISTEN ||
	    sk->__sk_common.skc_state == TCP_CLOSE)
		return 0;
	c = bpf_sk_storage_get(&rs_sk, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (c && !c->opened)
		c->present = 1;
	return 0;
}
