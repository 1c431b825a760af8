/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 3: rustls (0.23): text is read where records are decrypted and encrypted, which are called through tables of functions, so that no
 * compiler can have put them elsewhere (user/tls/rustls.c). Its objects are not laid out as anybody promises: what is read of
 * them is believed only if it agrees with the bytes of the protocol, and with what the kernel moved.
 *
 *  - decrypted: the text lies where the record was received, behind the record's header, whose length it must have; and the
 *    record must have come with what this thread received last, on that connection.
 *  - encrypted: by an object that is a connection's as long as its keys are. Which one's, the handshake shows: its
 *    last flight, encrypted, is what the thread sends next, with a record of that length (or: a Finished that is encrypted
 *    right after a record of the handshake was decrypted is the same connection's); and the encrypter that is made behind
 *    it is for what follows.
 */
#ifndef RS_LIB_RUSTLS_H
#define RS_LIB_RUSTLS_H

#include "tls.bpf.h"

#define TEXT_MAX 16384 /* bytes of a record's text (RFC 8446, 5.1) */

/* rustls's own numbers of what a record is, in the order of the specification's. */
#define TYPE_HANDSHAKE 2
#define TYPE_DATA      3
#define TYPE_MAX       5

#define FINISHED 20 /* the message that ends a handshake */

/*
 * Is a record with n bytes of text, which are at `text`, at `at`? Where it ends, or 0; *ret_type: what it is. In TLS 1.3 that
 * stands behind the text, then zeroes as padding; a record of 1.2 with AES-GCM is as long as one with seven of them.
 */
static __always_inline __u64 record_at(__u64 at, __u64 text, __u64 n, __u8 *ret_type)
{
	__u64 behind = 0;
	__u8 h[5] = {};
	__u32 len;

	if (bpf_probe_read_user(h, sizeof(h), (void *)at) || !rs_tls_record(h))
		return 0;
	len = h[3] << 8 | h[4];
	if (n + 16 > len)
		return 0;
	*ret_type = h[0];
	bpf_probe_read_user(&behind, sizeof(behind), (void *)(text + n));
	if (n + 16 == len || (n + 24 == len && behind > 0xff))
		return at + 5 + len;
	*ret_type = (__u8)behind;
	return h[0] == RS_TLS_APP ? at + 5 + len : 0;
}

/*
 * Did the record come with what this thread received last? Its end did; or one before it did, and it lies behind that one or,
 * since rustls moves what is left to the front of its buffer, in its place.
 */
static __always_inline bool came_with(const struct rs_tls_thread *t, __u64 at, __u64 end)
{
	if (!t->last_buf)
		return false;
	if (t->record && (at == t->record || at == t->record_end))
		return true;
	return end > t->last_buf && end <= t->last_buf + t->last_len;
}

/* MessageDecrypter::decrypt returns where its result is: Ok(type, version, text), or an error. */
static __noinline void rustls_opened(struct pt_regs *ctx, struct rs_tls_text *x)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), w[3] = {}, at, end, seq = 0;
	struct rs_tls_thread *t;
	struct rs_tls *s;
	__u8 type = 0;

	if (!rs_tls_wanted(pid_tgid >> 32))
		return;
	t = rs_tls_thread((__u32)pid_tgid);
	if (!t || !t->conn[RS_DIR_IN] || bpf_probe_read_user(w, sizeof(w), (void *)PT_REGS_RC(ctx)))
		return;
	if (!w[2] || w[2] > TEXT_MAX)
		return;
	at = w[1] - 5;
	end = record_at(at, w[1], w[2], &type);
	if (!end) {
		at = w[1] - 13;
		end = record_at(at, w[1], w[2], &type);
	}
	if (!end || (type != RS_TLS_APP && type != RS_TLS_HANDSHAKE)) /* or not decrypted */
		return;
	if (!came_with(t, at, end)) {
		if (type == RS_TLS_APP)
			rs_tls_unplaced(pid_tgid >> 32, t);
		return;
	}
	t->record = at;
	t->record_end = end;
	if (type == RS_TLS_HANDSHAKE) {
		t->sealed.kind = RS_SEALED_NOTHING;
		t->opened = t->conn[RS_DIR_IN];
		return;
	}
	if (t->n[RS_DIR_IN] != t->taken)
		seq = t->seq[RS_DIR_IN];
	t->taken = t->mark[RS_DIR_IN] = t->n[RS_DIR_IN];
	s = rs_tls_of_conn(pid_tgid >> 32, t->conn[RS_DIR_IN]);
	/* Both directions begin together, or what is read would be taken for an answer to something else. */
	if (!s || !s->direct) {
		rs_tls_unplaced(pid_tgid >> 32, t);
		return;
	}
	x->t = s;
	x->seg.dir = RS_DIR_IN;
	x->seg.seq = seq;
	x->seg.len = w[2];
	x->buf = w[1];
}

/*
 * OutboundPlainMessage: the text, in one piece (0, where, length) or in several (where the array of them is, their number,
 * first and last position); then type and version, in some order.
 */
struct message {
	__u64 w[4];
	__u8 tail[6];
};

/* The type; TYPE_MAX: none that is known. */
static __always_inline __u32 type_of(const struct message *m)
{
	__u32 a = m->tail[0] | m->tail[1] << 8, b = m->tail[2] | m->tail[3] << 8;

	if (m->tail[0] < TYPE_MAX && (b == 4 || b == 5) && m->tail[0] != 4)
		return m->tail[0];
	if ((a == 4 || a == 5) && m->tail[4] < TYPE_MAX && m->tail[4] != 4)
		return m->tail[4];
	return TYPE_MAX;
}

/* Of the text; 0: it has none that can be read. */
static __always_inline __u8 first_byte(const struct message *m)
{
	__u64 at = m->w[1];
	__u8 byte = 0;

	if (m->w[0] && bpf_probe_read_user(&at, sizeof(at), (void *)m->w[0]))
		return 0;
	bpf_probe_read_user(&byte, 1, (void *)at);
	return byte;
}

/* MessageEncrypter::encrypt(where its result goes, encrypter, message, number) */
static __noinline void rustls_seals(struct pt_regs *ctx, struct rs_tls_text *x)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct rs_tls_key key = { .tgid = pid_tgid >> 32, .obj = PT_REGS_PARM2(ctx) };
	struct rs_tls_sealer *sealer, fresh = {};
	struct rs_tls_thread *t;
	struct message m = {};
	__u32 type, len;
	struct rs_tls *s;
	__u64 opened;

	if (!rs_tls_wanted(key.tgid))
		return;
	t = rs_tls_thread((__u32)pid_tgid);
	if (!t)
		return;
	t->sealed.kind = RS_SEALED_NOTHING;
	opened = t->opened;
	t->opened = 0;
	if (bpf_probe_read_user(&m, sizeof(m), (void *)PT_REGS_PARM3(ctx)))
		return;
	type = type_of(&m);
	len = m.w[0] ? m.w[3] - m.w[2] : m.w[2];
	if (type == TYPE_MAX || !len || len > TEXT_MAX || (m.w[0] && (!m.w[1] || m.w[3] < m.w[2])))
		return;
	if (opened && type == TYPE_HANDSHAKE && first_byte(&m) == FINISHED) {
		fresh.conn = opened;
		fresh.sure = 1;
		bpf_map_update_elem(&rs_tls_sealers, &key, &fresh, BPF_ANY);
		s = rs_tls_of_conn(key.tgid, opened);
		if (s)
			s->direct = 1;
	}
	sealer = bpf_map_lookup_elem(&rs_tls_sealers, &key);
	if (type == TYPE_DATA && sealer && sealer->sure) {
		x->t = rs_tls_of_conn(key.tgid, sealer->conn);
		if (x->t)
			x->t->direct = 1; /* it may be made anew: there is only so much room */
		x->seg.dir = RS_DIR_OUT;
		x->seg.len = len;
		x->buf = m.w[0] ? m.w[0] : m.w[1];
		x->pieces = m.w[0] ? m.w[1] : 0;
		x->skip = m.w[0] ? m.w[2] : 0;
		return;
	}
	t->sealed.obj = key.obj;
	t->sealed.next = 0;
	t->sealed.len = len;
	if (type == TYPE_HANDSHAKE) {
		t->sealed.kind = RS_SEALED_HANDSHAKE;
	} else if (type == TYPE_DATA) {
		t->sealed.kind = RS_SEALED_DATA;
		fresh.lost = len;
		if (sealer)
			sealer->lost += len;
		else
			bpf_map_update_elem(&rs_tls_sealers, &key, &fresh, BPF_NOEXIST);
		rs_tls_unplaced(key.tgid, t);
	}
}

/* Tls13AeadAlgorithm::encrypter, and of 1.2, returns a new one: its address may have been another's. */
static __always_inline int rustls_made(struct pt_regs *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct rs_tls_key key = { .tgid = pid_tgid >> 32 };
	struct rs_tls_sealer *before = NULL;
	struct rs_tls_thread *t;

	t = rs_tls_thread((__u32)pid_tgid);
	if (t && t->sealed.kind == RS_SEALED_HANDSHAKE && !t->sealed.next) {
		t->sealed.next = PT_REGS_RC(ctx);
		key.obj = t->sealed.obj;
		before = bpf_map_lookup_elem(&rs_tls_sealers, &key);
	}
	key.obj = PT_REGS_RC(ctx);
	if (before && before->sure)
		bpf_map_update_elem(&rs_tls_sealers, &key, before, BPF_ANY);
	else
		bpf_map_delete_elem(&rs_tls_sealers, &key);
	return 0;
}

#endif
