/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * config — what user space tells the BPF programs before they are loaded (read-only data: a feature
 * that is off costs nothing, the verifier removes its code).
 */
#ifndef RS_SHARED_CONFIG_H
#define RS_SHARED_CONFIG_H

#include "events.h"

struct rs_bpf_config {
	__u32 abi;	  /* RS_ABI */
	__u32 self_tgid;  /* the agent: never traced */
	__u8 filter_pid;  /* 1: only processes in the rs_pids map, and what they fork */
	__u8 filter_comm; /* number of entries of comm[]; 0: no filter */
	__u8 filter_port; /* number of entries of port[]; 0: no filter. Local or remote port */
	__u8 discover;	  /* 1: user space decides by process, see enum rs_bpf_verdict */
	__u16 port[RS_FILTER_PORTS];
	char comm[RS_FILTER_COMMS][RS_COMM_LEN];
	__u32 cap_bytes; /* bytes of a segment's start to copy, <= RS_CAP_MAX */
	__u32 runq_us;	 /* waits for a CPU that are told of, from so many µs on; 0: none */
	__u32 head_bytes; /* bytes of a message's head to copy over several records, <= RS_HEAD_MAX */
	__u8 tls; /* 1: TLS libraries' plain text is captured: connections with TLS are told apart */
	__u8 inject; /* enum rs_bpf_inject */
	__u8 dns;    /* 1: answers of name servers are captured */
	__u8 pad0_;
};

/* What is put on the wire for requests that are sent. */
enum rs_bpf_inject {
	RS_INJECT_OFF = 0,
	RS_INJECT_TRACEPARENT = 1, /* a header in plaintext HTTP/1 */
	RS_INJECT_TCP_OPTION = 2,
};

/*
 * Cookies of the probes in Go programs: RS_GO_COOKIE(kind, layout). The layout goes with it, so that a program's
 * next process is known by its first call, before user space has seen it. kind: what is called there
 * (user/go/points.def says more).
 */
#define RS_GO_COOKIE(kind, l)                                                                      \
	((__u64)(kind) | (__u64)(l)->goid << 4 | (__u64)(l)->m_curg << 16 |                        \
	 (__u64)(l)->pconn_conn << 28 | (__u64)(l)->h2_sc_conn << 36 |                             \
	 (__u64)(l)->h2_rw_rws << 44 | (__u64)(l)->h2_rws_stream << 50 |                           \
	 (__u64)(l)->h2_stream_id << 56)
#define RS_GO_COOKIE_KIND(c) ((c)&0xf)
#define RS_GO_COOKIE_LAYOUT(c)                                                                     \
	{                                                                                          \
		.goid = (c) >> 4 & 0xfff, .m_curg = (c) >> 16 & 0xfff,                             \
		.pconn_conn = (c) >> 28 & 0xff, .h2_sc_conn = (c) >> 36 & 0xff,                    \
		.h2_rw_rws = (c) >> 44 & 0x3f, .h2_rws_stream = (c) >> 50 & 0x3f,                  \
		.h2_stream_id = (c) >> 56                                                          \
	}

enum rs_bpf_go_kind {
	RS_GO_CALLS,  /* persistConn.roundTrip(conn, …) */
	RS_GO_SPAWN,  /* runqput(p, g, …) */
	RS_GO_SERVES, /* serverConn.runHandler(conn, writer, …) */
	RS_GO_ASKS,   /* controlBuffer.executeAndPut(c, f, item: its type, its data) */
	RS_GO_TAKES, /* controlBuffer.executeAndPut(c, f, item: its type, its data), in the server */
	RS_GO_SENDS, /* loopyWriter.writeHeader(l, stream, end, fields, …) */
	RS_GO_READ,  /* memmove(to, from, n), in crypto/tls.(*Conn).Read */
	RS_GO_WRITE, /* crypto/tls.(*Conn).writeRecordLocked(conn, type, data, n, …) */
	RS_GO_KINDS,
};

/* Cookies of the probes where plain text is: their kind is one of RS_GO_READ and RS_GO_WRITE, or of these. */
#define RS_TEXT_KIND 0xf
enum rs_bpf_text_kind {
	RS_TEXT_LEAVE =
		12,	/* a library's read or write returns: RS_TLS_COOKIE_* (user/tls/points.h) */
	RS_TEXT_OPENED, /* rustls: MessageDecrypter::decrypt returns */
	RS_TEXT_SEALS,	/* rustls: MessageEncrypter::encrypt begins */
	RS_TEXT_MADE,	/* rustls: a new encrypter (rs_tls_forget) */
};

/* Value of the rs_go map (key: tgid): how this process's Go runtime is laid out, in bytes. */
struct rs_bpf_go {
	__u32 goid;	     /* in runtime.g */
	__u32 m_curg;	     /* in runtime.m */
	__u32 pconn_conn;    /* in net/http.persistConn: an interface */
	__u32 h2_sc_conn;    /* in net/http.http2serverConn: an interface */
	__u32 h2_rw_rws;     /* in net/http.http2responseWriter: a pointer */
	__u32 h2_rws_stream; /* in net/http.http2responseWriterState: a pointer */
	__u32 h2_stream_id;  /* in net/http.http2stream */
	__u32 pad_;
};

/* Value of the rs_tlsvar map (key: process): where a thread-local variable of it is. */
struct rs_bpf_tlsvar {
	__s64 offset; /* module 0: from the thread pointer; else from the module's block of the thread */
	__u64 module; /* number in the dynamic thread vector (glibc); 0: the static block */
};

/* Value of the rs_verdicts map (key: tgid). A process that is not in it is captured. */
enum rs_bpf_verdict {
	RS_BPF_SKIP = 1,  /* nothing of it is wanted */
	RS_BPF_PORTS = 2, /* only connections with a port of rs_ports, from or to */
	RS_BPF_TELL = 3,  /* as SKIP, but its first transfer is captured, so that it is known of */
};

/*
 * Key of rs_policy: a connection's cookie; with this bit, the plain text that its TLS carries. (Cookies count from
 * 1, and numbers of ours have bit 62.)
 */
#define RS_POLICY_PLAIN (1ULL << 63)

/* Value of the rs_listening map (key: tgid): ports of rs_ports that it listens on, the first ones; 0: none. */
#define RS_LISTENING 4
struct rs_bpf_listening {
	__u16 port[RS_LISTENING];
};

/* Value of the rs_policy map: what user space wants of one connection. */
struct rs_bpf_policy {
	__u64 skip_until
		[2]; /* per direction: bytes before this offset are body, do not copy them */
	__u32 stop;  /* 1: nothing of this connection is of interest */
	__u32 whole; /* 1: copy segments whole: framing stands anywhere in them */
};

#endif
