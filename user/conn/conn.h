/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn — the table of connections, by socket cookie.
 *
 * A connection is made at its open record, or at the first record that names it (then its addresses
 * are not known). It ends by a close record, when a sweep does not find its socket any more, or when
 * the table is full: one idle for about the longest gives way (counted).
 * Not thread-safe. Pointers are valid until the connection is dropped.
 */
#ifndef RS_CONN_CONN_H
#define RS_CONN_CONN_H

#include "base/counters.h"
#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"
#include "conn/l7.h"
#include "proto/exchange.h"

struct rs_proc;
struct rs_dns_name;

/* A context record: it counts for requests whose head ends in this stretch of its direction. */
struct rs_told {
	uint8_t flags; /* W3C trace flags */
	uint8_t trace_id[16], span_id[8];
	uint32_t len;
	uint64_t off;
};

/*
 * Ten thousand connections are in no cache: what every record needs comes first and is in a few lines that lie
 * together. Line by line: the connection and its l7, a stream per direction, the protocol's state (two), what a
 * request and its span need; the rest is for connections that are special in some way, or for their ends.
 */
struct rs_conn {
	struct rs_proc *proc; /* process that used it last, or NULL */
	uint64_t last_ns;     /* last record */
	uint64_t next_off[2]; /* per direction: where the next record is expected to start */
	uint8_t role;	      /* enum rs_ev_role as the kernel knows it */
	uint8_t peer_local; /* is the other end on this node? 0: not looked at, 1: yes, 2: not known */
	uint8_t told_set; /* bit per enum rs_ev_context_kind: told[] is filled */
	bool used;	  /* since the table last looked for one to give up */
	bool synced : 1; /* every request since some moment of rest was seen, and nothing lost since */
	bool pipelined : 1; /* a request was sent before the one ahead of it was answered */
	bool confused : 1;  /* pair: see rs_pair_lost() */
	bool unseen_request : 1; /* not all of the last request's framing was seen: others may stand behind it */
	bool reset : 1;	  /* a reset was seen */
	bool present : 1; /* older than the agent: its offsets need not be those of the other end */
	bool plain : 1;	  /* with info.tls: some plain text was seen */
	bool tls_asked : 1;	 /* with info.tls: the client sent something behind its handshake */
	bool tls_late : 1;	 /* with plain: some of it may have been missed at the beginning */
	bool told_handshake : 1; /* its time was told, with the first request */
	bool asked : 1;		 /* a request was sent on it */
	bool has_opener : 1;	 /* opener_* are filled */
	bool has_caller : 1;	 /* caller is filled */
	bool told_policy : 1;	 /* with plain: l7.told of before */
	bool rested : 1;	 /* with present: rest_off is filled */
	struct rs_l7 l7;	 /* with info.tls: of the plain text */

	struct rs_list open; /* rs_open.of_conn: exchanges in the order of their requests */
	uint32_t nopen;
	uint32_t epoch; /* sweep that saw it last */
	struct rs_conn_info info;

	struct rs_tls_handshake *handshake; /* while it lasts; NULL: none */
	struct rs_list of_proc;		    /* in proc->conns */
	struct rs_list lru;
	struct rs_list closing; /* pipeline: closed, and waiting for what may still come */
	uint64_t closed_ns;	/* 0: not closed */
	uint64_t missed_ns
		[2]; /* per direction: last record with bytes that could not be understood */

	/* The request for which this end opened it: trace's own. */
	uint32_t oseq;	 /* sequence number of the answers' first byte (offset 0); 0: not known */
	uint32_t netns;	 /* inode of the network namespace; 0: not known */
	uint64_t caller; /* the task whose request comes next (RS_TASK_CALLS) */
	uint8_t opener_trace[16], opener_span[8];
	/* TCP: its two ends, seen from here and from there; 0: not known. */
	uint64_t ends, ends_there;
	struct rs_dns_name *
		peer_name; /* what the other end's address was called when it was opened: a reference */

	uint64_t peer; /* Unix: the other end's number; 0: not known */
	uint64_t rest_off
		[2]; /* Unix, present: next_off when both ends were last at rest: the same place at both */
	struct rs_told *told; /* by enum rs_ev_context_kind; NULL: nothing was ever told */
};
_Static_assert(offsetof(struct rs_conn, l7.s) == 64 && offsetof(struct rs_conn, l7.own) == 192 &&
		       offsetof(struct rs_conn, open) == 320,
	       "as said above");

struct rs_conns {
	struct rs_map by_id, by_ends;
	struct rs_pool pool;
	struct rs_pool handshakes, facts, told; /* of those connections that have them */
	struct rs_list lru; /* nearly in the order of their last use: see rs_conns_oldest() */
	uint32_t epoch;
	struct rs_counters *n;
};

void rs_conns_init(struct rs_conns *cs, uint32_t max, struct rs_counters *n);
/* All connections have been dropped. */
void rs_conns_release(struct rs_conns *cs);

/* A record of the connection comes soon: its memory comes nearer, in two steps with time between them. dir: of data
 * (enum rs_ev_dir); -1: another record. */
void rs_conns_ahead(const struct rs_conns *cs, uint64_t id);
void rs_conns_ahead_more(const struct rs_conns *cs, uint64_t id, int dir);

/* NULL: not known. */
struct rs_conn *rs_conns_find(const struct rs_conns *cs, uint64_t id);
/* The connection, new when it is not there. NULL when the table is full: rs_conns_oldest() is to be
 * dropped first. *ret_new: it was made now. */
struct rs_conn *rs_conns_get(struct rs_conns *cs, uint64_t id, bool *ret_new);
/* The connection's other end, when that is on this node and was seen; NULL: not. */
struct rs_conn *rs_conns_other_end(const struct rs_conns *cs, const struct rs_conn *c);
/* One that was idle for about the longest: the first in turn that was not used since its last turn. NULL: none. */
struct rs_conn *rs_conns_oldest(struct rs_conns *cs);
/* It is used now. */
void rs_conns_touch(struct rs_conns *cs, struct rs_conn *c, uint64_t ts_ns);
/* Fills in what the open record says. */
void rs_conn_describe(struct rs_conns *cs, struct rs_conn *c, const struct rs_ev_open *ev);
/* Is this end's address a loopback one? */
bool rs_conn_loopback(const struct rs_conn_info *i, const struct rs_endpoint *e);
/* A Unix socket older than the agent has no open request: if its other end has none either, their streams stand at the same
 * place, whatever each had seen before. */
void rs_conn_rests(struct rs_conns *cs, struct rs_conn *c);
/* Notes what a context record says. */
void rs_conn_tell(struct rs_conns *cs, struct rs_conn *c, const struct rs_ev_context *ev);
/* Before data is parsed: what was told of its direction for other bytes than these is over. */
void rs_conn_forget_told(struct rs_conn *c, const struct rs_ev_data *ev);
/*
 * Is this record of the socket's bytes one of TLS records? Then the connection is a TLS one, from its first such
 * record on (info.tls), and what its handshake shows is noted in info.facts.
 */
bool rs_conn_cipher(struct rs_conns *cs, struct rs_conn *c, const struct rs_ev_data *ev);
/* Plain text of TLS comes: l7 is to be fed with nothing else from now on. */
void rs_conn_plain(struct rs_conns *cs, struct rs_conn *c, struct rs_l7_env *env);

/* Forgets it; the caller has ended its exchanges, released its l7 and taken it from its process. */
void rs_conns_drop(struct rs_conns *cs, struct rs_conn *c);

#endif
