/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Layer 0: every map. Sizes marked "set by user space" are placeholders. Nothing is pinned. */
#ifndef RS_LIB_MAPS_H
#define RS_LIB_MAPS_H

#include "base.bpf.h"

#define RS_IOV_WIN 4 /* iovecs read from user memory at a time; power of two */

/*
 * HTTP/2's frames in one direction, from its first byte on. Of a large DATA frame the content is not copied, but
 * for its beginning.
 */
struct rs_frames {
	__u64 until;	 /* offset up to which nothing is copied */
	__u32 copy;	 /* bytes to copy before the next header, or before `then` */
	__u32 then;	 /* bytes that are not copied behind them */
	__u8 on;	 /* frames are followed */
	__u8 nheader;	 /* bytes of the next header that have been seen */
	__u8 header[16]; /* nine of them are used; a power of two bounds the index */
	__u8 pad_[6];
};

/* What is known of one connection. Zeroed when made. */
struct rs_conn {
	__u64 id;      /* socket cookie; must stay first: read by the iterator for user space */
	__u64 gen;     /* rs_conns only: inode of the socket, tells a reused address */
	__u64 off[2];  /* bytes seen, per direction */
	__u64 skip[2]; /* copy of rs_policy */
	__u64 runq_ns; /* its last thread's run-queue wait, at the last turn */
	__u32 stop;
	__u32 epoch;   /* of that copy */
	__u32 head[2]; /* bytes of an open message head that may still be copied; 0: none is open */
	__u32 tgid;    /* last user */
	__u32 runq_tid;
	__u32 seq_in; /* TCP, socket backend: sequence number of the next byte to be read */
	__u32 reader; /* thread that reads; 0: none yet */
	__u8 nl[2];   /* of an open head: the last byte was a newline; or RS_NL_BINARY */
	__u8 turn;    /* direction of the last segment + 1 */
	__u8 opened;  /* OPEN was emitted */
	__u8 closed;  /* 1 << enum rs_ev_how, emitted */
	__u8 present; /* older than the agent */
	__u8 tcp;
	__u8 whole; /* pipelined requests, or HTTP/2: heads stand anywhere, segments are copied whole */
	__u8 readers; /* more than one thread reads */
	__u8 plain;   /* of struct rs_tls: offsets and policy are those of the plain text */
	__u8 tls;     /* the socket carries TLS records */
	__u8 tls_app; /* directions (1 << enum rs_ev_dir) in which a segment began with application data */
	__u8 tunnel; /* it began with CONNECT: TLS may begin in the middle */
	__u8 tls_looks; /* segments looked at for the beginning of TLS, on a connection that was given up */
	__u8 hello[2]; /* segments of TLS records told of, per direction */
	struct rs_frames frames[2];
	__u32 verdict_epoch; /* rs_verdict_epoch + 1 when tgid was last found not to be excluded */
	__u8 role;	     /* enum rs_ev_role, as its open record says */
	__u8 pad2_[3];
};

#define RS_WHOLE_BINARY 2
#define RS_NL_BINARY	2

/*
 * Zeroes to make map values of: larger than any of them. Not on the stack, of which all functions called together have
 * 512 bytes.
 */
static const struct {
	__u8 bytes[sizeof(struct rs_conn) + 64];
} rs_zero;

/* One record under construction, and where its bytes are in user memory. */
struct rs_scratch {
	struct rs_ev_data ev; /* its data[] is the next member */
	/*
	 * Of this, only the first RS_CAP_MAX bytes are ever sent, and eight at RS_AT_TAIL. The rest is
	 * for the verifier, which cannot relate where a copy starts to how long it is.
	 */
	__u8 data[2 * RS_BOUND];
	__u64 base;	  /* the buffer, or the user's array of iovecs */
	__u32 niov;	  /* iovecs in the array; 0: base is the buffer */
	__u32 first;	  /* index of iov[0] in the array */
	__u32 start;	  /* position in the segment where iov[0] begins; minus what is before it */
	__u32 loaded;	  /* iov[] holds something */
	__u32 mark;	  /* index of an iovec at or before all that will be asked for, */
	__u32 mark_start; /* and its position; 0 but while frames are followed, or text is in pieces */
	struct {
		__u64 base, len;
	} iov[RS_IOV_WIN];
	struct rs_cursor {
		__u32 index, start, done;
		__u32 all;  /* rs_gather_all's */
		__u32 more; /* it ended since it had made its number of steps */
		__u32 pad_;
	} cursor;		 /* rs_gather's loop variables */
	struct rs_frames frames; /* of the connection and direction: see rs_frame */
	/* what is left to do of the segment: see rs_part */
	__u32 pos;
	__u32 rest;
	__u32 head;
	__u32 nl;
	__u32 whole; /* of the connection, or RS_WHOLE_BINARY: head bytes are to come, no blank line ends them */
	__u64 wake; /* flags for the next record */
};

/* Programs that build data records: each has its own scratch, so that one preempted is not overwritten. */
enum rs_slot {
	RS_SLOT_SEND,
	RS_SLOT_RECV,
	RS_SLOT_SYSCALL,
	RS_SLOT_OWN,		   /* number of the slots above */
	RS_SLOT_TLS = RS_SLOT_OWN, /* RS_TLS_SLOTS, taken in turn: see tls.bpf.h */
	RS_SLOT_IN =
		RS_SLOT_TLS + RS_TLS_SLOTS, /* the stand-ins', in the order of the first ones */
	RS_SLOTS = RS_SLOT_IN + RS_SLOT_OWN,
};

/* Records to user space. Size set by user space. Full: the record is lost and counted. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} rs_ring SEC(".maps");

/* Connections, kept in the socket itself: made at its first transfer, freed with it by the kernel. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct rs_conn);
} rs_sk SEC(".maps");

/*
 * What an iterator found: the cookies of connections that still exist. Not written to its output: what that cannot hold at once
 * is found again by counting, and an element that went meanwhile makes the kernel pass over a living one. Size set by
 * user space, which maps it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} rs_live SEC(".maps");

/*
 * Connections of the system call backend: address of struct sock -> state. A socket reached through
 * the file table is no trusted pointer, so it cannot have storage. Deleted when a TCP socket is
 * destroyed; a Unix socket's entry ages out, or is replaced when the address is used again (gen).
 * Size set by user space.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct rs_conn);
} rs_conns SEC(".maps");

/* Record under construction. Key: enum rs_slot. Size set by user space: stand-ins are rarely needed. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RS_SLOT_OWN);
	__type(key, __u32);
	__type(value, struct rs_scratch);
} rs_scratch SEC(".maps");

/* Which of the programs with a slot are being run on this CPU: RS_SLOT_* -> 1. For the stand-ins. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, RS_SLOT_OWN);
	__type(key, __u32);
	__type(value, __u32);
} rs_busy SEC(".maps");

/* Copy policies: connection -> what user space wants. Written and deleted by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct rs_bpf_policy);
} rs_policy SEC(".maps");

/* Processes that had a transfer: tgid -> RS_SEEN_*. Deleted at exit. Losing one costs a wakeup. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u32);
} rs_seen SEC(".maps");
#define RS_SEEN_SIGNAL 0x1 /* its fatal signal was reported */

/* With cfg.filter_pid: processes to trace. Put in by user space and at fork; deleted at exit. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u32);
} rs_pids SEC(".maps");

/* Processes that run Go. Put in by user space; deleted at exit and exec. Full: their goroutines are not told. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct rs_bpf_go);
} rs_go SEC(".maps");

/* With cfg.discover: processes that are not, or not all, traced: tgid -> enum rs_bpf_verdict. Written by user
 * space; deleted at exec and exit, and when such a process listens on a port of rs_ports. Losing one costs records. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u32);
} rs_verdicts SEC(".maps");

/* Processes that listen on a port of rs_ports: filled when they begin to, and by the iterator. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct rs_bpf_listening);
} rs_listening SEC(".maps");

/* Ports that rules name: bit port % 64 of element port / 64. Written by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u64);
} rs_ports SEC(".maps");

/* Processes that publish their threads' active span: tgid -> where. Put in by user space; deleted at exec and exit. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct rs_bpf_tlsvar);
} rs_tlsvar SEC(".maps");

/* counters.def, per CPU. One element, so that one lookup serves several counters. */
enum rs_counter_id {
#define RS_BPF_COUNTER(id, kind, name, help, remedy) RS_N_##id,
#include "shared/counters.def"
#undef RS_BPF_COUNTER
	RS_N_COUNT,
};

struct rs_counts {
	__u64 v[RS_N_COUNT];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rs_counts);
} rs_counts SEC(".maps");

static __always_inline void rs_count(enum rs_counter_id id)
{
	__u32 zero = 0;
	struct rs_counts *n = bpf_map_lookup_elem(&rs_counts, &zero);

	if (n)
		n->v[id]++;
}

#endif
