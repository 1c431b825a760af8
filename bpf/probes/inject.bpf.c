// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Context put on the wire, only when asked for (cfg.inject): a traceparent header in plaintext HTTP/1 requests
 * (sk_msg), or a TCP option beside their bytes (sockops). These programs change what is sent; all others look on.
 *
 * A header is put in only where it is certain that a request begins: at the first byte of a connection, behind a
 * request whose whole framing was seen here (no body, or one of known length), or where user space, which
 * parses everything, says that the stream stands at a request's beginning. The head must be here whole, with its
 * blank line, and without a traceparent. Everything else goes by untouched.
 */
#include "lib/conn.bpf.h"
#include "lib/follow.bpf.h"
#include "lib/locate.bpf.h"
#include "lib/wanted.bpf.h"

#define HEADER_LEN 70 /* "traceparent: 00-{32}-{16}-{2}\r\n" */

/* Sockets whose sends pass rs_inject_msg, by cookie. Taken out by user space when they are not HTTP. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u32);
} rs_socks SEC(".maps");

/* Connection -> offset at which the next request begins. Written by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, __u64);
} rs_starts SEC(".maps");

/* A head that is looked at. busy: taken, since what runs here can be preempted by itself. */
struct rs_look {
	__u32 busy, pad_;
	struct rs_head head;
	__u8 out[HEADER_LEN + 2];
	__u8 data[RS_HEAD_LOOK + 32];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2); /* 0: what is sent, 1: what was received */
	__type(key, __u32);
	__type(value, struct rs_look);
} rs_looks SEC(".maps");

/* -- what is followed -- */

static __always_inline __u8 role_of(struct rs_inject *j, struct sock *sk)
{
	if (!j->role)
		j->role = rs_tcp_role(sk, sk->__sk_common.skc_family);
	return j->role;
}

/* The context that a request came with, where it is among the first bytes. */
static __always_inline void received(struct sock *sk, __u32 len, struct rs_ids *ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 slot = RS_SLOT_RECV, one = 1, n;
	struct rs_scratch *s = rs_scratch_get(slot);
	struct rs_look *l = bpf_map_lookup_elem(&rs_looks, &one);
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	enum rs_sys_kind kind = rs_sys_kind(rs_sys_nr(regs));

	if (!s || !l || rs_preemptible || task->io_uring || rs_task_compat(task) ||
	    kind == RS_SYS_NONE || kind == RS_SYS_MMSG || !rs_locate(s, regs, kind))
		return;
	n = rs_clamp(len, RS_HEAD_LOOK - 1);
	s->loaded = 0;
	n = rs_copy(s, slot, 0, n);
	if (bpf_probe_read_kernel(l->data, RS_HEAD_LOOK, s->data))
		return;
	__builtin_memset(&l->head, 0, sizeof(l->head));
	n = rs_clamp(n, RS_HEAD_LOOK - 1);
	*(__u64 *)&l->data[n] = 0;
	rs_head_scan(l->data, &l->head, n);
	if (l->head.traceparent)
		rs_traceparent_at(l->data, ret, l->head.traceparent);
}

static __always_inline void follow_in(struct sock *sk, int len)
{
	struct rs_inject *j = bpf_sk_storage_get(&rs_inject, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	struct rs_conn *c = bpf_sk_storage_get(&rs_sk, sk, NULL, 0);
	__u64 pid_tgid = bpf_get_current_pid_tgid(), conn = bpf_get_socket_cookie(sk);
	struct rs_ids in = {};

	if (!j || j->turn == RS_DIR_IN + 1)
		return;
	j->turn = RS_DIR_IN + 1;
	__builtin_memset(&j->option, 0, sizeof(j->option));
	if (role_of(j, sk) == RS_ROLE_CLIENT) {
		rs_call_answered(j, (__u32)pid_tgid);
		return;
	}
	if (rs_cfg.inject == RS_INJECT_TCP_OPTION) {
		in = j->got;
		if (in.set)
			rs_emit_ids(conn, &in, RS_CONTEXT_RECEIVED, c ? c->off[RS_DIR_IN] : 0, len);
		j->got.set = 0;
	} else {
		received(sk, len, &in);
	}
	rs_request_begins(conn, (__u32)pid_tgid, pid_tgid >> 32, &in);
}

static __always_inline void follow_out(struct sock *sk, int len)
{
	struct rs_inject *j = bpf_sk_storage_get(&rs_inject, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	struct rs_conn *c = bpf_sk_storage_get(&rs_sk, sk, NULL, 0);
	__u64 pid_tgid = bpf_get_current_pid_tgid(), conn = bpf_get_socket_cookie(sk), off;

	if (!j)
		return;
	off = c ? c->off[RS_DIR_OUT] : 0;
	if (role_of(j, sk) == RS_ROLE_SERVER) {
		if (j->turn != RS_DIR_OUT + 1)
			rs_request_ends(conn, (__u32)pid_tgid, pid_tgid >> 32);
	} else if (j->sent.set) {
		rs_emit_ids(conn, &j->sent, RS_CONTEXT_SENT, off, len);
		j->sent.set = 0;
	}
	/* User space counts as these do: where that is not the same, its word on places means nothing. */
	if (j->off && j->off != off + len)
		j->framing = RS_FRAMING_OFF;
	j->turn = RS_DIR_OUT + 1;
}

static __always_inline bool followed(struct sock *sk)
{
	struct rs_conn *c;

	if (!rs_cfg.inject || rs_sock_kind(sk) != RS_SOCK_TCP || !*(volatile __u32 *)&rs_active)
		return false;
	c = bpf_sk_storage_get(&rs_sk, sk, NULL, 0);
	return rs_wanted(c, bpf_get_current_pid_tgid() >> 32, sk, RS_SOCK_TCP);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(rs_follow_send, struct sock *sk, int ret, int flags)
{
	if (ret > 0 && followed(sk))
		follow_out(sk, ret);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(rs_follow_recv, struct sock *sk, int ret, int flags)
{
	if (ret > 0 && !(flags & (MSG_PEEK | MSG_ERRQUEUE | MSG_OOB)) && followed(sk))
		follow_in(sk, ret);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(rs_follow_state, struct sock *sk, int from, int to)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct rs_inject *j;

	if (!rs_cfg.inject || sk->sk_protocol != IPPROTO_TCP)
		return 0;
	if (to == TCP_SYN_SENT && rs_wanted(NULL, pid_tgid >> 32, sk, RS_SOCK_TCP))
		bpf_sk_storage_get(&rs_inject, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (to != TCP_CLOSE)
		return 0;
	j = bpf_sk_storage_get(&rs_inject, sk, NULL, 0);
	if (j && j->role == RS_ROLE_SERVER)
		rs_request_ends(bpf_get_socket_cookie(sk), 0, 0);
	return 0;
}

/* -- a header in HTTP/1 requests -- */

static __always_inline __u8 hex(__u8 v)
{
	return v < 10 ? '0' + v : 'a' + v - 10;
}

static __always_inline void hex_out(__u8 *to, const __u8 *from, int n)
{
	for (int i = 0; i < n; i++) {
		to[2 * i] = hex(from[i] >> 4);
		to[2 * i + 1] = hex(from[i] & 15);
	}
}

static __noinline int write_header(__u8 *to, const struct rs_ids *ids)
{
	__builtin_memcpy(to, "traceparent: 00-", 16);
	hex_out(to + 16, ids->trace_id, 16);
	to[48] = '-';
	hex_out(to + 49, ids->span_id, 8);
	to[65] = '-';
	hex_out(to + 66, &ids->flags, 1);
	to[68] = '\r';
	to[69] = '\n';
	return 0;
}

/* The first line is of an HTTP/1 request, and ends at `end`. */
static __always_inline bool is_request(const __u8 *data, __u32 end)
{
	__u32 at = (end - 11) & (RS_HEAD_LOOK - 1);
	__u64 w = *(const __u64 *)&data[at];
	__u32 v = *(const __u32 *)&data[(at + 8) & (RS_HEAD_LOOK - 1)] & 0xffffff;

	if (end < 16)
		return false;
	if (w != RS_WORD(' ', 'H', 'T', 'T', 'P', '/', '1', '.'))
		return false;
	if (v != ('1' | '\r' << 8 | '\n' << 16) && v != ('0' | '\r' << 8 | '\n' << 16))
		return false;
	for (int i = 0; i < 12; i++) { /* a method in capitals, then a target */
		if (data[i] == ' ')
			return i >= 3 && data[i + 1] > ' ';
		if ((data[i] & 0xe0) != 0x40)
			return false;
	}
	return false;
}

/* Value of Content-Length at data[p]; -1: malformed. */
static __noinline long content_length(const __u8 *data, __u32 p)
{
	__u64 v = 0;
	int digits = 0;

	for (int i = 0; i < 20; i++) {
		__u8 c = data[(p + i) & (RS_HEAD_LOOK - 1)];

		if (c >= '0' && c <= '9') {
			v = v * 10 + (c - '0');
			digits++;
		} else if (c == '\r' && digits) {
			return v;
		} else if (c != ' ' || digits) {
			return -1;
		}
		if (v >> 48)
			return -1;
	}
	return -1;
}

/* What follows the head that was looked at: the state of the framing. size: bytes of this message. */
static __always_inline void frame_next(struct rs_inject *j, const struct rs_look *l, __u32 size)
{
	const struct rs_head *h = &l->head;
	__u64 rest = size - h->end;
	long body;

	j->framing = RS_FRAMING_LOST;
	if (h->upgrade || *(const __u32 *)l->data == ('C' | 'O' << 8 | 'N' << 16 | 'N' << 24)) {
		j->framing = RS_FRAMING_OFF;
		return;
	}
	if (h->chunked || h->lengths > 1)
		return;
	body = h->lengths ? content_length(l->data, h->length) : 0;
	if (body < 0 || rest > (__u64)body) /* pipelined, or not understood */
		return;
	j->body = body - rest;
	j->framing = RS_FRAMING_START;
}

static __always_inline int put_header(struct sk_msg_md *msg, struct rs_look *l, __u32 n)
{
	__u32 at = l->head.line_end;
	__u8 *p;

	if (bpf_msg_push_data(msg, at, HEADER_LEN, 0))
		return SK_PASS;
	if (!bpf_msg_pull_data(msg, at, at + HEADER_LEN, 0)) {
		p = msg->data;
		if ((void *)(p + HEADER_LEN) <= msg->data_end) {
			__builtin_memcpy(p, l->out, HEADER_LEN);
			/* In one piece again, so that it is not sent and read in three. */
			bpf_msg_pull_data(msg, 0, n + HEADER_LEN, 0);
			return SK_PASS;
		}
	}
	/* What was made room for cannot be reached: out with it again. */
	return bpf_msg_pop_data(msg, at, HEADER_LEN, 0) ? SK_DROP : SK_PASS;
}

static __always_inline int at_start(struct sk_msg_md *msg, struct rs_inject *j, struct rs_look *l,
				    __u32 size)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct rs_ids ids = {};
	__u32 n = size;
	__u64 have;

	j->framing = RS_FRAMING_LOST;
	n = rs_clamp(n, RS_HEAD_LOOK - 1);
	have = (__u64)msg->data_end - (__u64)msg->data;
	if (have < n) {
		if (bpf_msg_pull_data(msg, 0, n, 0))
			return SK_PASS;
		have = (__u64)msg->data_end - (__u64)msg->data;
		if (have < n)
			return SK_PASS;
	}
	n = rs_clamp(n, RS_HEAD_LOOK - 1);
	if (bpf_probe_read_kernel(l->data, n, msg->data))
		return SK_PASS;
	*(__u64 *)&l->data[n] = 0;
	__builtin_memset(&l->head, 0, sizeof(l->head));
	rs_head_scan(l->data, &l->head, n);
	if (!l->head.line_end) { /* a request line that is split, or none at all */
		if ((l->data[0] & 0xe0) != 0x40)
			j->framing = RS_FRAMING_OFF;
		return SK_PASS;
	}
	if (!is_request(l->data, l->head.line_end)) {
		j->framing = RS_FRAMING_OFF;
		return SK_PASS;
	}
	if (!l->head.end)
		return SK_PASS;
	frame_next(j, l, size);
	if (!rs_call_begins(j, (__u32)pid_tgid, pid_tgid >> 32, &ids) || l->head.traceparent)
		return SK_PASS;
	j->sent = ids;
	write_header(l->out, &j->sent);
	rs_count(RS_N_INJECTED);
	return put_header(msg, l, n);
}

SEC("sk_msg")
int rs_inject_msg(struct sk_msg_md *msg)
{
	struct bpf_sock *sk = msg->sk;
	__u32 size = msg->size, zero = 0;
	struct rs_inject *j;
	struct rs_look *l;
	__u64 at, *start;
	int verdict;

	if (!sk)
		return SK_PASS;
	j = bpf_sk_storage_get(&rs_inject, sk, NULL, 0);
	if (!j || j->framing == RS_FRAMING_OFF)
		return SK_PASS;
	at = j->off;
	j->off = at + size;
	if (j->body) {
		if (size > j->body)
			j->framing = RS_FRAMING_LOST;
		j->body = size > j->body ? 0 : j->body - size;
		return SK_PASS;
	}
	if (j->framing == RS_FRAMING_LOST) {
		start = bpf_map_lookup_elem(&rs_starts, &j->conn);
		if (!start || *start != at)
			return SK_PASS;
	}
	l = bpf_map_lookup_elem(&rs_looks, &zero);
	if (!l || __sync_lock_test_and_set(&l->busy, 1)) {
		j->framing = RS_FRAMING_LOST;
		return SK_PASS;
	}
	verdict = at_start(msg, j, l, size);
	*(volatile __u32 *)&l->busy = 0;
	return verdict;
}

/* -- a TCP option beside the bytes -- */

/* RFC 6994: an experimental option, its identifier, and what fits into 28 bytes beside timestamps. */
struct option {
	__u8 kind, len;
	__be16 id;
	__u8 trace_id[16], span_id[8];
};
#define OPTION_KIND 254
#define OPTION_ID   0x7273 /* "rs" */

static __always_inline struct rs_inject *inject_of(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;

	return sk ? bpf_sk_storage_get(&rs_inject, sk, NULL, 0) : NULL;
}

/*
 * The first packet of a message. In the sending system call the socket belongs to the thread; where it is
 * sent later, by whom does not say for whom.
 */
static __always_inline void option_begins(struct bpf_sock_ops *ops, struct rs_inject *j)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct bpf_sock *sk = ops->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	bool mine = tp && tp->inet_conn.icsk_inet.sk.sk_lock.owned;

	if (!rs_call_begins(j, mine ? task->pid : 0, mine ? task->tgid : 0, &j->option))
		return;
	j->seq = ops->snd_nxt;
	j->sent = j->option;
	rs_count(RS_N_INJECTED);
}

static __always_inline void option_reserve(struct bpf_sock_ops *ops)
{
	struct rs_inject *j = inject_of(ops);

	if (!j || j->role == RS_ROLE_SERVER)
		return;
	/* Room in all packets of the request: the first may have to be sent again. */
	if (ops->args[0] != BPF_WRITE_HDR_TCP_CURRENT_MSS && ops->skb_len) {
		if (j->turn != RS_DIR_OUT + 1 && !j->option.set)
			option_begins(ops, j);
	}
	if (j->option.set || ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS)
		bpf_reserve_hdr_opt(ops, sizeof(struct option), 0);
}

static __always_inline __u32 seq_of(struct bpf_sock_ops *ops)
{
	struct tcphdr *th = ops->skb_data;

	if ((void *)(th + 1) > ops->skb_data_end)
		return 0;
	return bpf_ntohl(th->seq);
}

static __always_inline void option_write(struct bpf_sock_ops *ops)
{
	struct option o = { .kind = OPTION_KIND, .len = sizeof(o), .id = bpf_htons(OPTION_ID) };
	struct rs_inject *j = inject_of(ops);

	if (!j || !j->option.set || seq_of(ops) != j->seq)
		return;
	__builtin_memcpy(o.trace_id, j->option.trace_id, sizeof(o.trace_id));
	__builtin_memcpy(o.span_id, j->option.span_id, sizeof(o.span_id));
	bpf_store_hdr_opt(ops, &o, sizeof(o), 0);
}

static __always_inline void option_read(struct bpf_sock_ops *ops)
{
	struct option o = { .kind = OPTION_KIND, .len = 4, .id = bpf_htons(OPTION_ID) };
	struct bpf_sock *sk = ops->sk;
	struct rs_inject *j;

	if (!sk || bpf_load_hdr_opt(ops, &o, sizeof(o), 0) != sizeof(o))
		return;
	j = bpf_sk_storage_get(&rs_inject, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!j)
		return;
	__builtin_memcpy(j->got.trace_id, o.trace_id, sizeof(o.trace_id));
	__builtin_memcpy(j->got.span_id, o.span_id, sizeof(o.span_id));
	j->got.flags = 0x03;
	j->got.set = 1;
}

static __always_inline void established(struct bpf_sock_ops *ops, bool active)
{
	struct rs_inject *j = active ? inject_of(ops) : NULL;
	__u64 conn;

	if (rs_cfg.inject == RS_INJECT_TRACEPARENT) {
		if (!j)
			return;
		j->conn = conn = bpf_get_socket_cookie(ops);
		bpf_sock_hash_update(ops, &rs_socks, &conn, BPF_NOEXIST);
		return;
	}
	if (!active)
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags |
						       BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG);
	else if (j)
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags |
						       BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

SEC("sockops")
int rs_inject_ops(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		established(ops, true);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		established(ops, false);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		if (rs_cfg.inject == RS_INJECT_TCP_OPTION)
			option_reserve(ops);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		if (rs_cfg.inject == RS_INJECT_TCP_OPTION)
			option_write(ops);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		if (rs_cfg.inject == RS_INJECT_TCP_OPTION)
			option_read(ops);
		break;
	}
	return 1;
}
