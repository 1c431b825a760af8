/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 3: plain text of TLS libraries, and the TLS records that carry it.
 *
 * The socket hooks tell TLS from the first bytes of a connection, copy the handshake's records and none after
 * it, and note per thread which connection it last moved TLS records on. A probe where a library's read or write
 * begins notes the arguments, one where it returns emits the plain text, on the connection that is
 * found so:
 *  - a transfer of TLS records came between the two, on this thread: that connection, and for good (most
 *    programs: the library does the I/O);
 *  - else, for a read, what the thread received since its last read: the bytes were put into the library by
 *    the program (Node, asyncio). Renewed at each read: objects' addresses are used again;
 *  - else what the object was found to be on before.
 *
 * Programs of uprobes can be preempted, so per-CPU scratch has to be taken and given back; a CPU's own, since
 * they do not migrate. All of this needs 5.15 (cookies of uprobes); on older kernels cfg.tls is 0.
 */
#ifndef RS_LIB_TLS_H
#define RS_LIB_TLS_H

#include "capture.bpf.h"

/* Record types (RFC 8446, 5.1) */
#define RS_TLS_FIRST	 20 /* change_cipher_spec */
#define RS_TLS_HANDSHAKE 22
#define RS_TLS_APP	 23

#define RS_CONNECT 0x4e4e4f43 /* "CONN", as a little-endian number */

#define RS_TLS_LOOKS  8	 /* segments of a given-up connection in which TLS is looked for */
#define RS_TLS_HELLOS 32 /* segments per direction that are told of at most */

/* A session: the library's object, in one process. */
struct rs_tls_key {
	__u32 tgid;
	__u32 pad_;
	__u64 obj;
};

/* c.id: the connection it is on, 0: not known yet. The rest of c is of the plain text. */
struct rs_tls {
	struct rs_conn c;
	__u32 direct; /* the library does the I/O, inside its calls; rustls: its encrypter is known */
	__u32 pad_;
};

/* What rustls has just encrypted on a thread, and is about to send: see rustls.bpf.h. */
enum rs_tls_sealed_kind {
	RS_SEALED_NOTHING,
	RS_SEALED_HANDSHAKE,
	RS_SEALED_DATA,
};
struct rs_tls_sealed {
	__u64 obj;  /* the encrypter */
	__u64 next; /* the one made for what is sent afterwards, or 0 */
	__u32 len;  /* of the text */
	__u32 kind;
};

/* What a thread did last with TLS records, by enum rs_ev_dir. */
struct rs_tls_thread {
	__u64 conn[2]; /* 0: none, or one that is not followed */
	__u64 out_ns;  /* time of the first send of the call under way */
	__u32 seq[2];  /* TCP sequence number of the first transfer since the mark, or 0 */
	__u32 n[2];    /* transfers so far */
	__u32 mark[2]; /* n when the call under way began */
	__u32 taken;   /* n[IN] at the last return of a read */
	__u32 last_seq, last_len; /* of the last transfer IN */
	__u32 elsewhere;	  /* what it moved last were no TLS records, or none that are followed */
	__u64 last_buf; /* and where its bytes were put; 0: not known, or in several places */
	__u64 record,
		record_end; /* rustls: of what came with it, what was decrypted last, and where it ended */
	__u64 opened; /* rustls: the connection whose handshake was decrypted, and nothing since; 0: none */
	struct rs_tls_sealed sealed;
};

/* A call under way. Its place on the stack names it: that is its own, also where stacks are switched. */
struct rs_tls_call_key {
	__u32 tgid;
	__u32 pad_;
	__u64 sp;
};

struct rs_tls_call {
	__u64 obj, buf, lenp;
	__u32 n; /* rs_tls_thread.n of its direction at the start */
	__u32 open;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct rs_tls_key);
	__type(value, struct rs_tls);
} rs_tls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32); /* thread */
	__type(value, struct rs_tls_thread);
} rs_tls_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct rs_tls_call_key);
	__type(value, struct rs_tls_call);
} rs_tls_calls SEC(".maps");

/* rustls: which connection an encrypter is for. */
struct rs_tls_sealer {
	__u64 conn;
	__u32 lost; /* bytes of text that were encrypted when this was not known */
	__u32 sure;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct rs_tls_key);
	__type(value, struct rs_tls_sealer);
} rs_tls_sealers SEC(".maps");

/* Which of the scratch slots RS_SLOT_TLS + i are in use on this CPU. */
struct rs_tls_taken {
	__u32 v[RS_TLS_SLOTS];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rs_tls_taken);
} rs_tls_taken SEC(".maps");

static __always_inline struct rs_tls_thread *rs_tls_thread(__u32 tid)
{
	struct rs_tls_thread *t = bpf_map_lookup_elem(&rs_tls_threads, &tid);

	if (t)
		return t;
	bpf_map_update_elem(&rs_tls_threads, &tid, &rs_zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(&rs_tls_threads, &tid);
}

/* -- the socket's side -- */

/* Do these four bytes begin a TLS record? */
static __always_inline bool rs_tls_record(const __u8 b[4])
{
	return b[0] >= RS_TLS_FIRST && b[0] <= RS_TLS_APP && b[1] == 3 && b[2] <= 4;
}

/*
 * Is this segment TLS? Looked at where a stream begins, and on what was given up: behind a CONNECT, TLS
 * begins in the middle.
 */
static __always_inline bool rs_tls_segment(struct rs_conn *c, struct rs_scratch *s, __u32 slot,
					   const struct rs_segment *seg)
{
	if (!rs_cfg.tls || c->tls)
		return c->tls;
	if (seg->nodata || seg->len < 4)
		return false;
	if (c->stop || (c->tunnel && c->off[seg->dir & 1])) {
		if (c->tls_looks >= RS_TLS_LOOKS)
			return false;
		c->tls_looks++;
	} else if (c->off[seg->dir & 1]) {
		return false;
	}
	s->loaded = 0;
	if (rs_copy(s, slot, 0, 4) < 4)
		return false;
	if (*(__u32 *)s->data == RS_CONNECT)
		c->tunnel = 1;
	if (!rs_tls_record(s->data))
		return false;
	if ((c->stop || c->tunnel) && s->data[0] != RS_TLS_HANDSHAKE)
		return false;
	c->tls = 1;
	return true;
}

/* Records at the front of what is sent that are looked at for the one that was encrypted last. */
#define RS_TLS_RECORDS 10

/* What a record is longer than its text: a tag, with the type inside (TLS 1.3), with a nonce (AES-GCM of TLS 1.2). */
static __always_inline bool rs_tls_sealed_len(__u32 record, __u32 text)
{
	__u32 more = record - text;

	return more == 16 || more == 17 || more == 24;
}

static __noinline void rs_tls_sealed_on(__u64 conn, __u32 tgid, struct rs_tls_sealed *d);

/* The thread sends on this connection: what it encrypted last, if that is in it. */
static __noinline void rs_tls_sent(struct rs_conn *c, struct rs_scratch *s, __u32 slot, __u32 len,
				   struct rs_tls_thread *t)
{
	__u32 pos = 0, n, i;

	s->loaded = 0;
	for (i = 0; i < RS_TLS_RECORDS && pos < len && pos < RS_WHOLE_MAX; i++) {
		if (rs_copy(s, slot, pos, 5) < 5 || !rs_tls_record(s->data))
			break;
		n = s->data[3] << 8 | s->data[4];
		if (rs_tls_sealed_len(n, t->sealed.len)) {
			rs_tls_sealed_on(c->id, s->ev.tgid, &t->sealed);
			break;
		}
		pos += 5 + n;
	}
	t->sealed.kind = RS_SEALED_NOTHING;
}

/* The thread moved TLS records. */
static __noinline void rs_tls_note(struct rs_conn *c, struct rs_scratch *s, __u32 slot,
				   const struct rs_segment *seg)
{
	struct rs_tls_thread *t = rs_tls_thread(s->ev.tid);
	__u32 dir = seg->dir & 1;

	if (!t)
		return;
	t->opened = 0;
	t->elsewhere = 0;
	if (dir == RS_DIR_IN) {
		t->last_seq = seg->seq;
		t->last_len = seg->len;
		t->last_buf = seg->nodata || s->niov ? 0 : s->base;
		t->record = t->record_end = 0;
		t->sealed.kind = RS_SEALED_NOTHING;
	} else if (t->sealed.kind) {
		if (!seg->nodata)
			rs_tls_sent(c, s, slot, seg->len, t);
		t->sealed.kind = RS_SEALED_NOTHING;
	}
	t->conn[dir] = c->id;
	if (t->n[dir] == t->mark[dir]) {
		t->seq[dir] = seg->seq;
		if (dir == RS_DIR_OUT)
			t->out_ns = bpf_ktime_get_ns();
	}
	t->n[dir]++;
}

/*
 * The thread moved bytes that are no TLS records of a connection that is followed. They can be such all the same: of one that
 * is left out, or behind what was not TLS yet (PostgreSQL, SMTP). Then the plain text that comes next is that one's.
 */
static __always_inline void rs_tls_elsewhere(__u32 tid)
{
	struct rs_tls_thread *t = rs_cfg.tls ? bpf_map_lookup_elem(&rs_tls_threads, &tid) : NULL;

	if (!t)
		return;
	t->conn[RS_DIR_IN] = t->conn[RS_DIR_OUT] = 0;
	t->last_buf = t->record = t->record_end = t->opened = 0;
	t->sealed.kind = RS_SEALED_NOTHING;
	t->elsewhere = 1;
}

/*
 * A segment of TLS records: its bytes are copied while they can be the handshake's. (Offsets matter for the handshake
 * alone, which two threads do not write at once.)
 */
static __noinline void rs_tls_cipher(struct rs_conn *c, struct rs_scratch *s, __u32 slot,
				     const struct rs_segment *seg)
{
	__u32 dir = seg->dir & 1, cap = 0;
	__u64 off = rs_take(&c->off[dir], seg->len, false);

	rs_tls_note(c, s, slot, seg);
	c->turn = dir + 1;
	if (c->tls_app == 3 || c->hello[dir] >= RS_TLS_HELLOS) {
		rs_count(RS_N_TLS_CIPHER);
		return;
	}
	c->hello[dir]++;
	rs_hdr(&s->ev.h, RS_EV_DATA, 0, 0);
	if (seg->nodata) {
		s->ev.h.flags = RS_EVF_NODATA;
	} else {
		s->loaded = 0;
		cap = rs_copy(s, slot, 0, seg->len > RS_CAP_MAX ? RS_CAP_MAX : seg->len);
		if (cap >= 5 && s->data[0] == RS_TLS_APP) {
			c->tls_app |= 1 << dir;
			cap = 5;
		}
	}
	s->ev.conn = c->id;
	s->ev.off = off;
	s->ev.len = seg->len;
	s->ev.cap = cap;
	s->ev.seq = seg->seq;
	s->ev.dir = dir;
	s->ev.source = RS_SRC_SOCKET;
	s->ev.tail_len = 0;
	rs_emit_data(s);
}

/* -- the library's side -- */

/* Takes a scratch slot of this CPU; RS_SLOT_IN: all are taken. */
static __always_inline __u32 rs_tls_slot_take(void)
{
	__u32 zero = 0, i;
	struct rs_tls_taken *taken = bpf_map_lookup_elem(&rs_tls_taken, &zero);

	if (!taken)
		return RS_SLOT_IN;
	for (i = 0; i < RS_TLS_SLOTS; i++) {
		if (!__sync_lock_test_and_set(&taken->v[i], 1))
			break;
	}
	return i < RS_TLS_SLOTS ? RS_SLOT_TLS + i : RS_SLOT_IN;
}

static __always_inline void rs_tls_slot_give(__u32 slot)
{
	__u32 zero = 0;
	struct rs_tls_taken *taken = bpf_map_lookup_elem(&rs_tls_taken, &zero);

	slot -= RS_SLOT_TLS;
	rs_opaque(slot);
	if (taken && slot < RS_TLS_SLOTS)
		*(volatile __u32 *)&taken->v[slot] = 0;
}

static __always_inline bool rs_tls_wanted(__u32 tgid)
{
	return *(volatile __u32 *)&rs_active && rs_task_traced(tgid);
}

/* The session; made when there is none. NULL: no room. */
static __always_inline struct rs_tls *rs_tls_get(__u32 tgid, __u64 obj)
{
	struct rs_tls_key key = { .tgid = tgid, .obj = obj };
	struct rs_tls *t = bpf_map_lookup_elem(&rs_tls, &key);

	if (t)
		return t;
	bpf_map_update_elem(&rs_tls, &key, &rs_zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(&rs_tls, &key);
}

static __always_inline void rs_tls_forget_obj(__u32 tgid, __u64 obj)
{
	struct rs_tls_key key = { .tgid = tgid, .obj = obj };

	bpf_map_delete_elem(&rs_tls, &key);
}

/* The session is on this connection. If it was on another, its streams begin anew. */
static __always_inline void rs_tls_place(struct rs_tls *t, __u64 conn)
{
	if (!conn || t->c.id == conn)
		return;
	__builtin_memset(t, 0, sizeof(*t));
	t->c.id = conn;
	t->c.plain = 1;
	t->c.opened = 1;
}

/*
 * Plain text of rustls belongs to no object of a connection's own: those of its two directions are kept under its
 * number, which no address can be.
 */
static __always_inline struct rs_tls *rs_tls_of_conn(__u32 tgid, __u64 conn)
{
	struct rs_tls *t = rs_tls_get(tgid, conn | 1ull << 63);

	if (t)
		rs_tls_place(t, conn);
	return t;
}

/*
 * What was encrypted goes over this connection. Of the handshake's that is certain: a thread's own flight. What comes
 * later has to be seen so twice, since another connection's record of that length may have waited.
 */
static __noinline void rs_tls_sealed_on(__u64 conn, __u32 tgid, struct rs_tls_sealed *d)
{
	struct rs_tls_key key = { .tgid = tgid, .obj = d->obj };
	struct rs_tls_sealer v = { .conn = conn, .sure = 1 }, *known;
	struct rs_tls *t;

	if (d->kind == RS_SEALED_DATA) {
		known = bpf_map_lookup_elem(&rs_tls_sealers, &key);
		if (!known)
			return;
		if (known->conn != conn) {
			known->conn = conn;
			return;
		}
		known->sure = 1;
		v.lost = known->lost;
	} else {
		bpf_map_update_elem(&rs_tls_sealers, &key, &v, BPF_ANY);
		key.obj = d->next;
		if (key.obj)
			bpf_map_update_elem(&rs_tls_sealers, &key, &v, BPF_ANY);
	}
	t = rs_tls_of_conn(tgid, conn);
	if (!t)
		return;
	if (t->direct) /* it was known, and forgotten since */
		rs_take(&t->c.off[RS_DIR_OUT], v.lost, false);
	t->direct = 1;
}

/*
 * Is every connection of this process followed, and from its beginning? Of one that is older than the agent nobody can
 * tell.
 */
static __always_inline bool rs_tls_all_followed(__u32 tgid)
{
	if (rs_cfg.filter_port)
		return false;
	if (rs_cfg.discover && bpf_map_lookup_elem(&rs_verdicts, &tgid))
		return false;
	return rs_task_start(rs_task()) > rs_started_ns;
}

/* Plain text whose connection is not known. */
static __always_inline void rs_tls_unplaced(__u32 tgid, const struct rs_tls_thread *t)
{
	if (!t->elsewhere && rs_tls_all_followed(tgid))
		rs_count(RS_N_TLS_UNPLACED);
	else
		rs_count(RS_N_TLS_ELSEWHERE);
}

/*
 * rs_capture of what s->base and s->ev (dir, seq, len, h.ts_ns) of a slot say. A global function (in probes/tls.bpf.c):
 * verified by itself, and not once for each way that leads to it. (Pointers as its arguments: 5.12.)
 */
int rs_tls_capture(struct rs_conn *c, __u32 slot);

/* Plain text as a probe finds it, which was read or written just now. */
struct rs_tls_text {
	struct rs_tls *t; /* its session, whose t->c.id is known; NULL: there is none */
	struct rs_segment seg;
	__u64 buf;    /* where it is, or where the array of its pieces is: struct iovec */
	__u64 task;   /* as in struct rs_ev_data */
	__u32 pieces; /* how many; 0: buf is the text */
	__u32 skip;   /* bytes of the pieces that come before it */
};

/* Call from programs of uprobes. */
static __always_inline void rs_tls_emit(const struct rs_tls_text *x)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 slot = rs_tls_slot_take();
	struct rs_scratch *s;

	rs_count(RS_N_TLS_PLAIN);
	s = slot < RS_SLOT_IN ? rs_scratch_get(slot) : NULL;
	if (!s) {
		rs_count(RS_N_TLS_BUSY);
		rs_take(&x->t->c.off[x->seg.dir & 1], x->seg.len, true);
		return;
	}
	s->wake = BPF_RB_NO_WAKEUP;
	s->base = x->buf;
	s->niov = x->pieces;
	s->mark_start = -x->skip;
	s->ev.tgid = pid_tgid >> 32;
	s->ev.tid = (__u32)pid_tgid;
	s->ev.slept = rs_slept();
	s->ev.task = x->task;
	s->ev.dir = x->seg.dir;
	s->ev.seq = x->seg.seq;
	s->ev.len = x->seg.len;
	s->ev.h.ts_ns = x->seg.ts_ns;
	rs_tls_capture(&x->t->c, slot);
	s->mark_start = 0;
	rs_tls_slot_give(slot);
}

#endif
