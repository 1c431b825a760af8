/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * events — the records that cross from the BPF programs to user space, and the body of .tev files.
 *
 * Included by both sides. Under BPF the __uN types come from vmlinux.h; elsewhere from linux/types.h.
 * All integers are in the machine's byte order; fields named *_be are in network order.
 * Every record starts with struct rs_ev_hdr; `len` is the number of bytes that matter, header
 * included: a ring slot may be larger (size classes), a reader uses `len` and never the slot's size.
 * Records are eight-byte aligned, holes are named pad_, and at most one part is variable, at the end.
 */
#ifndef RS_SHARED_EVENTS_H
#define RS_SHARED_EVENTS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif
#include "limits.h"

enum rs_ev_type {
	RS_EV_OPEN = 1,	 /* struct rs_ev_open: a connection is seen for the first time */
	RS_EV_DATA = 2,	 /* struct rs_ev_data: bytes went through a socket */
	RS_EV_CLOSE = 3, /* struct rs_ev_close: one direction, or all of a connection, has ended */
	RS_EV_FACT = 4,	 /* struct rs_ev_fact: something the kernel knows about a connection */
	RS_EV_PROC = 5,	 /* struct rs_ev_proc: a process's life */
	RS_EV_TASK = 6,	 /* struct rs_ev_task: what a task of a process's own does */
	RS_EV_NAMES =
		8, /* struct rs_ev_data: a name server's answer, whole; conn: the network namespace's inode */
	RS_EV_CGROUP = 9,  /* struct rs_ev_cgroup: a cgroup was made */
	RS_EV_CONTEXT = 7, /* struct rs_ev_context: whose span a stretch of a stream belongs to */
};

/* Direction as the process sees it: a server's request is IN, a client's is OUT. */
enum rs_ev_dir {
	RS_DIR_IN = 0,
	RS_DIR_OUT = 1,
};

enum rs_ev_source {
	RS_SRC_SOCKET = 0, /* bytes as the socket carries them */
	RS_SRC_TLS = 1,	   /* plain text of a TLS library */
};

enum rs_ev_role {
	RS_ROLE_UNKNOWN = 0,
	RS_ROLE_CLIENT = 1, /* this end connected */
	RS_ROLE_SERVER = 2, /* this end accepted */
};

enum rs_ev_family {
	RS_FAMILY_UNKNOWN = 0,
	RS_FAMILY_INET = 1,
	RS_FAMILY_INET6 = 2,
	RS_FAMILY_UNIX = 3,
};

enum rs_ev_l4 {
	RS_L4_UNKNOWN = 0,
	RS_L4_TCP = 1,
	RS_L4_UDP = 2,
};

/* rs_ev_close.how */
enum rs_ev_how {
	RS_CLOSE_ALL = 0, /* the connection is gone in both directions */
	RS_CLOSE_IN = 1,  /* end of stream was read: no byte follows IN */
	RS_CLOSE_OUT = 2, /* this end shut its sending side down: no byte follows OUT */
};

/* rs_ev_fact.fact; the names in event scripts are these in lower case, without the prefix */
enum rs_ev_fact_kind {
	RS_FACT_RETRANSMIT = 1, /* value: bytes of the segment sent again, or 0 */
	RS_FACT_RESET_IN = 2,	/* the peer reset the connection */
	RS_FACT_RESET_OUT = 3,	/* this kernel sent a reset */
	RS_FACT_CONNECT =
		4, /* connect(2) begins; value: the thread. Comes before the connection's open */
	RS_FACT_CONNECTED = 5, /* value: µs that it took. Comes before the connection's open */
	RS_FACT_RTO =
		6, /* a segment is sent again because its timer ran out; value: as RETRANSMIT */
	RS_FACT_RUN_QUEUE = 7,	 /* value: µs its thread was ready to run and had no CPU */
	RS_FACT_ZERO_WINDOW = 8, /* the peer has told that it has no room for more */
};

/* rs_ev_proc.event */
enum rs_ev_proc_kind {
	RS_PROC_EXEC = 1,
	RS_PROC_EXIT = 2,   /* the last thread is gone; code: as wait(2) reports it */
	RS_PROC_SIGNAL = 3, /* a fatal signal is being delivered; signal: its number */
	RS_PROC_OOM = 4,    /* chosen by the out-of-memory killer */
	RS_PROC_FORK = 5,   /* tgid: the child; ppid: the parent */
	RS_PROC_LOADS = 6,  /* it maps a file that, by its name, is a TLS library: dev, ino */
};

/* rs_ev_context.kind: who said it */
enum rs_ev_context_kind {
	RS_CONTEXT_SDK = 0,	 /* OUT: the span that the sending thread's SDK has active */
	RS_CONTEXT_SENT = 1,	 /* OUT: put on the wire for the request that begins here */
	RS_CONTEXT_RECEIVED = 2, /* IN: what the other node's kernel put there, beside the bytes */
	RS_CONTEXT_KINDS = 3,
};

/* rs_ev_data.flags and rs_ev_open.flags, in the header */
#define RS_EVF_NODATA                                                                              \
	0x1 /* data: bytes were moved but could not be read (sendfile, splice, io_uring) */
#define RS_EVF_PRESENT 0x2 /* open: the connection is older than the agent */

struct rs_ev_hdr {
	__u16 type;  /* enum rs_ev_type */
	__u16 flags; /* RS_EVF_* */
	__u32 len;   /* bytes of this record that matter, this header included */
	__u64 ts_ns; /* CLOCK_MONOTONIC */
};

struct rs_ev_open {
	struct rs_ev_hdr h;
	__u64 conn; /* socket cookie: unique for the life of the machine */
	__u32 tgid; /* process that first used it */
	__u32 tid;
	__u8 family; /* enum rs_ev_family */
	__u8 l4;     /* enum rs_ev_l4; Unix stream sockets: RS_L4_UNKNOWN */
	__u8 role;   /* enum rs_ev_role */
	__u8 pad0_;
	__u16 lport; /* host order; 0: none */
	__u16 rport;
	__u32 netns;	/* inode number of the network namespace */
	__u32 oseq;	/* TCP: sequence number at which the answers' direction stands now, or 0 */
	__u64 cgroup;	/* cgroup v2 id of the thread */
	__u64 start_ns; /* process's start, CLOCK_BOOTTIME: with tgid its identity */
	__u8 laddr[16]; /* network order; IPv4 in the first four bytes */
	__u8 raddr[16];
	char comm[RS_COMM_LEN];
	char path[RS_UNIX_PATH]; /* Unix: the named end's path, or empty; '@' first: abstract */
	__u32 peer_tgid;	 /* Unix: process at the other end when it connected, or 0 */
	__u64 peer_conn; /* Unix: the other end's conn, if that was seen before this one; else 0 */
};

struct rs_ev_data {
	struct rs_ev_hdr h;
	__u64 conn;
	__u64 off; /* stream offset of the first byte, per direction, from 0 at first sight */
	__u32 len; /* bytes that went through */
	__u32 cap; /* bytes of them, from the first on, in data[] */
	__u32 tgid;
	__u32 tid;
	__u32 seq;     /* TCP sequence number of the first byte, or 0; Unix: its offset + 1 */
	__u8 dir;      /* enum rs_ev_dir */
	__u8 source;   /* enum rs_ev_source */
	__u8 tail_len; /* bytes in tail[]: the segment's last ones; 0 when cap == len */
	__u8 slept;    /* how often the thread had gone to sleep by then, modulo 256 */
	__u64 task;    /* see struct rs_ev_task; 0: the thread is all there is */
	__u8 tail[RS_TAIL_LEN];
	__u8 data[];
};

struct rs_ev_close {
	struct rs_ev_hdr h;
	__u64 conn;
	__u32 tgid; /* process that caused it, or 0 */
	__u32 how;  /* enum rs_ev_how */
};

struct rs_ev_fact {
	struct rs_ev_hdr h;
	__u64 conn;
	__u32 fact; /* enum rs_ev_fact_kind */
	__u32 value;
	__u64 task; /* CONNECT: who opens it, as in struct rs_ev_task; 0: the thread */
	__u32 tgid; /* CONNECT */
	__u8 slept; /* CONNECT: as in struct rs_ev_data */
	__u8 pad_[3];
};

struct rs_ev_proc {
	struct rs_ev_hdr h;
	__u32 tgid;
	__u32 tid;
	__u32 event; /* enum rs_ev_proc_kind */
	__u32 signal;
	union {
		__u32 code;
		__u32 dev; /* as the kernel has it: 12 bits, 20 bits */
	};
	__u32 ppid;
	union {
		__u64 start_ns; /* process's start, CLOCK_BOOTTIME */
		__u64 ino;
	};
	char comm[RS_COMM_LEN];
};

/* rs_ev_task.kind */
enum rs_ev_task_kind {
	RS_TASK_SPAWN =
		1, /* parent makes task; with a stream: to handle that request, which it was sent */
	/* The next request sent on conn is task's, whoever writes it. Without conn: the request `stream` that
	 * `parent` writes. */
	RS_TASK_CALLS = 2,
	RS_TASK_SERVES = 3, /* task handles the request `stream` that was received on conn */
};

/*
 * A task is what a program's own runtime runs on its threads: a goroutine. It has a number that is unique
 * within its process, and never 0.
 */
struct rs_ev_task {
	struct rs_ev_hdr h;
	__u64 conn; /* CALLS, SERVES: socket cookie */
	__u64 task;
	__u64 parent; /* SPAWN, CALLS */
	__u32 tgid;
	__u32 kind;   /* enum rs_ev_task_kind */
	__u32 stream; /* the protocol's own number of the request */
	__u32 pad_;
};

/* Comes before the data records of the segment it is about. */
struct rs_ev_context {
	struct rs_ev_hdr h;
	__u64 conn;
	__u64 off; /* the segment: stream offset of its first byte, */
	__u32 len; /* its bytes, */
	__u32 tid; /* and the thread that moved it */
	__u8 trace_id[16];
	__u8 span_id[8];
	__u8 kind;  /* enum rs_ev_context_kind */
	__u8 flags; /* W3C trace flags */
	__u8 pad_[6];
};

/* It comes before any record of a process in it: a container may be gone when those are read. */
struct rs_ev_cgroup {
	struct rs_ev_hdr h;
	__u64 id;		   /* as in rs_ev_open.cgroup */
	char path[RS_CGROUP_PATH]; /* below the unified hierarchy's root; cut if longer */
};

#ifndef __BPF__
#include <assert.h>
#include <stddef.h>
static_assert(sizeof(struct rs_ev_hdr) == 16, "header");
static_assert(sizeof(struct rs_ev_open) == 232, "open");
static_assert(sizeof(struct rs_ev_data) == 72 && offsetof(struct rs_ev_data, data) == 72, "data");
static_assert(sizeof(struct rs_ev_close) == 32, "close");
static_assert(sizeof(struct rs_ev_fact) == 48, "fact");
static_assert(sizeof(struct rs_ev_proc) == 64, "proc");
static_assert(sizeof(struct rs_ev_cgroup) == 24 + RS_CGROUP_PATH, "cgroup");
static_assert(sizeof(struct rs_ev_task) == 56, "task");
static_assert(sizeof(struct rs_ev_context) == 72, "context");
#endif

#endif
