/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_parts — what pipeline.c (the flow) and pipeline_end.c (how things end) need of each other. */
#ifndef RS_PIPELINE_PARTS_H
#define RS_PIPELINE_PARTS_H

#include "pipeline.h"

/* What rs_l7_data() and rs_l7_close() call back for each message of a connection; arg: struct rs_feed. */
struct rs_feed {
	struct rs_pipeline *pl;
	struct rs_conn *c;
	bool messages; /* there was one */
};
void rs_pl_message(void *arg, const struct rs_msg *m);

/* The process an exchange is of, where its connection says so: that is at hand. NULL: look it up. */
static inline struct rs_proc *rs_pl_proc_of(const struct rs_open *o)
{
	struct rs_proc *p = o->conn ? o->conn->proc : NULL;

	return p && p->tgid == o->x.tgid ? p : NULL;
}

/* A finished exchange leaves: held back if its span waits for the other end, else as a span at once. */
void rs_pl_finish(struct rs_pipeline *pl, struct rs_open *o);
/* It becomes a span and is given back. */
void rs_pl_emit(struct rs_pipeline *pl, struct rs_open *o);

/* Held back if its span must wait. Its connection may go meanwhile. False: it need not, or there is no room. */
bool rs_pl_hold(struct rs_pipeline *pl, struct rs_open *o);
/* Those that need not wait for the other end any more; `all`: whether or not. */
void rs_pl_release_held(struct rs_pipeline *pl, bool all);

/* The exchange ends with what it has. */
void rs_pl_end_open(struct rs_pipeline *pl, struct rs_open *o, enum rs_xend end, uint64_t ts_ns);
/* All open exchanges of a connection end, but `keep` (NULL: none). */
void rs_pl_end_exchanges(struct rs_pipeline *pl, struct rs_conn *c, const struct rs_open *keep,
			 enum rs_xend end, uint64_t ts_ns);
/* The process that uses a connection now (NULL: none): its exit is the connection's business. */
void rs_pl_set_proc(struct rs_conn *c, struct rs_proc *p);
/* The connection and all that is open on it end now. */
void rs_pl_drop_conn(struct rs_pipeline *pl, struct rs_conn *c, enum rs_xend end, uint64_t ts_ns);
/* Its close record came. */
void rs_pl_close_conn(struct rs_pipeline *pl, struct rs_conn *c, uint64_t ts_ns);
/* Can no response come after this end of a direction? c has an open exchange. */
bool rs_pl_response_impossible(const struct rs_conn *c, enum rs_ev_how how);

/* Was its TLS under way before the process's plain text could be read? */
bool rs_pl_tls_late(struct rs_pipeline *pl, const struct rs_conn *c, uint32_t tgid);

#endif
