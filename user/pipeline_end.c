// SPDX-License-Identifier: Apache-2.0
/* How connections and exchanges end: by their records, by time, by a sweep, or with the input. */
#include "pipeline_parts.h"

void rs_pl_end_open(struct rs_pipeline *pl, struct rs_open *o, enum rs_xend end, uint64_t ts_ns)
{
	rs_pair_end(&pl->pair, o, end, ts_ns);
	rs_pl_finish(pl, o);
}

/* All open exchanges of a connection end, but `keep` (NULL: none). */
void rs_pl_end_exchanges(struct rs_pipeline *pl, struct rs_conn *c, const struct rs_open *keep,
			 enum rs_xend end, uint64_t ts_ns)
{
	struct rs_list *pos, *tmp;

	rs_list_for_each_safe (pos, tmp, &c->open) {
		struct rs_open *o = rs_list_entry(pos, struct rs_open, of_conn);
		enum rs_xend why = end;

		if (o == keep)
			continue;
		if (rs_pair_doubtful(o))
			why = RS_XEND_LOST;
		/* Perhaps it was answered, in what could not be read. */
		if (!o->x.has_response &&
		    o->x.start_ns <=
			    c->missed_ns[o->x.role == RS_ROLE_CLIENT ? RS_DIR_IN : RS_DIR_OUT])
			why = RS_XEND_LOST;
		if (why == RS_XEND_CLOSED && c->reset)
			why = RS_XEND_RESET;
		if (why == RS_XEND_CLOSED && o->proc_gone)
			why = RS_XEND_PROC_GONE;
		rs_pl_end_open(pl, o, why, ts_ns);
	}
}

/* The process that uses a connection now: its exit is the connection's business. */
void rs_pl_set_proc(struct rs_conn *c, struct rs_proc *p)
{
	if (c->proc == p)
		return;
	if (c->proc) {
		rs_list_del(&c->of_proc);
		c->proc->nconns--;
	}
	c->proc = p;
	if (p) {
		rs_list_add_tail(&p->conns, &c->of_proc);
		p->nconns++;
	}
}

static enum rs_tls_reading reading(struct rs_pipeline *pl, uint32_t tgid, uint64_t *since)
{
	return pl->tls.reading ? pl->tls.reading(pl->tls.arg, tgid, since) : RS_TLS_UNKNOWN;
}

bool rs_pl_tls_late(struct rs_pipeline *pl, const struct rs_conn *c, uint32_t tgid)
{
	uint64_t since = 0;

	return rs_conn_facts(&c->info)->done_ns && reading(pl, tgid, &since) == RS_TLS_READ &&
	       since > rs_conn_facts(&c->info)->done_ns;
}

/* What became of a connection's TLS. */
static enum rs_counter tls_fate(struct rs_pipeline *pl, const struct rs_conn *c)
{
	uint64_t since = 0;

	if (c->plain)
		return c->tls_late ? RS_C_TLS_LATE : RS_C_TLS_READ;
	if (!rs_conn_facts(&c->info)->done_ns) /* broken off, or older than the agent */
		return RS_C_TLS_SILENT;
	switch (reading(pl, c->proc ? c->proc->tgid : 0, &since)) {
	case RS_TLS_READ:
		if (since > rs_conn_facts(&c->info)->done_ns)
			return RS_C_TLS_LATE;
		/* It is read, and said nothing: if something was said, then by another library. */
		return c->tls_asked ? RS_C_TLS_NO_LIBRARY : RS_C_TLS_SILENT;
	case RS_TLS_NOT_YET:
		return RS_C_TLS_LATE;
	case RS_TLS_LEFT_ALONE:
		return RS_C_TLS_LEFT_ALONE;
	case RS_TLS_TOO_DEAR:
		return RS_C_TLS_TOO_DEAR;
	case RS_TLS_REFUSED:
		return RS_C_TLS_NOT_PROBED;
	case RS_TLS_UNKNOWN:
		break;
	}
	return RS_C_TLS_NO_LIBRARY;
}

static void count_tls(struct rs_pipeline *pl, const struct rs_conn *c)
{
	enum rs_counter fate = tls_fate(pl, c);

	pl->n.v[fate]++;
	if (c->proc && fate != RS_C_TLS_READ && fate != RS_C_TLS_SILENT)
		*(fate == RS_C_TLS_NO_LIBRARY ? &c->proc->tls_unknown : &c->proc->tls_missed) += 1;
}

void rs_pl_drop_conn(struct rs_pipeline *pl, struct rs_conn *c, enum rs_xend end, uint64_t ts_ns)
{
	struct rs_feed f = { .pl = pl, .c = c };
	uint64_t id = c->info.id;
	bool told, told_plain;

	if (c->proc && c->info.tls && !c->plain && rs_conn_facts(&c->info)->done_ns)
		c->proc->opaque = true;

	if (c->info.tls)
		count_tls(pl, c);
	if (end != RS_XEND_LOST) /* else it may go on, or have gone on: nothing was broken off */
		rs_l7_close(&c->l7, &pl->l7, RS_CLOSE_ALL, ts_ns, rs_pl_message, &f);
	rs_pl_end_exchanges(pl, c, NULL, end, ts_ns);
	rs_trace_conn_gone(&pl->trace, c);
	rs_l7_release(&c->l7, &pl->l7);
	rs_pl_set_proc(c, NULL);
	rs_dns_put(&pl->dns, c->peer_name);
	told = c->plain ? c->told_policy : c->l7.told;
	told_plain = c->plain && c->l7.told;
	rs_conns_drop(&pl->conns, c);
	if (told)
		pl->l7.policy(pl->l7.policy_arg, id, NULL);
	if (told_plain)
		pl->l7.policy(pl->l7.policy_arg, id | RS_POLICY_PLAIN, NULL);
}

/* Can a response still come after this end of a direction? */
bool rs_pl_response_impossible(const struct rs_conn *c, enum rs_ev_how how)
{
	const struct rs_open *o = rs_list_entry(c->open.next, struct rs_open, of_conn);

	if (how == RS_CLOSE_ALL)
		return true;
	return o->x.role == RS_ROLE_CLIENT ? how == RS_CLOSE_IN : how == RS_CLOSE_OUT;
}

/*
 * A write and a reset that crosses it are recorded the wrong way round: the socket is closed inside the
 * system call, whose own record comes at its end. Resets we send are recorded after the close, too. So a
 * connection with an open request stays a little longer.
 */
#define CLOSE_GRACE_NS 50000000ull

void rs_pl_close_conn(struct rs_pipeline *pl, struct rs_conn *c, uint64_t ts_ns)
{
	if (c->nopen == 0) {
		rs_pl_drop_conn(pl, c, RS_XEND_CLOSED, ts_ns);
	} else if (!c->closed_ns) {
		c->closed_ns = ts_ns;
		rs_list_add_tail(&pl->closing, &c->closing);
	}
}

static void end_closing(struct rs_pipeline *pl, uint64_t grace_ns)
{
	while (!rs_list_empty(&pl->closing)) {
		struct rs_conn *c = rs_list_entry(pl->closing.next, struct rs_conn, closing);

		if (pl->now - c->closed_ns < grace_ns)
			break;
		rs_pl_drop_conn(pl, c, RS_XEND_CLOSED, c->closed_ns);
	}
}

static bool waits_for_pod(struct rs_pipeline *pl, struct rs_proc *p)
{
	return p && rs_procs_waits(&pl->procs, p, pl->now);
}

bool rs_pl_hold(struct rs_pipeline *pl, struct rs_open *o)
{
	struct rs_proc *p = rs_pl_proc_of(o);
	bool other_end = rs_trace_waits(o, pl->now);
	struct rs_held *h;

	if (!p)
		p = rs_procs_find(&pl->procs, o->x.tgid);
	if (!other_end && !waits_for_pod(pl, p))
		return false;
	h = rs_pool_get(&pl->held_pool);
	if (!h) {
		pl->n.v[RS_C_K8S_NO_HOLD] += !other_end;
		return false;
	}
	h->o = o;
	h->conn = *o->x.conn;
	if (h->conn.facts) {
		h->facts = *h->conn.facts;
		h->conn.facts = &h->facts;
	}
	h->p = p;
	if (p)
		p->nheld++;
	o->x.conn = &h->conn;
	rs_pair_detach(&pl->pair, o);
	pl->n.v[RS_C_K8S_WAITED] += !other_end;
	rs_list_add_tail(other_end ? &pl->held : &pl->podless, &h->node);
	return true;
}

static void emit_held(struct rs_pipeline *pl, struct rs_held *h)
{
	rs_pl_emit(pl, h->o);
	if (h->p)
		h->p->nheld--;
	rs_list_del(&h->node);
	rs_pool_put(&pl->held_pool, h);
}

void rs_pl_release_held(struct rs_pipeline *pl, bool all)
{
	while (!rs_list_empty(&pl->held)) {
		struct rs_held *h = rs_list_entry(pl->held.next, struct rs_held, node);

		if (!all && rs_trace_waits(h->o, pl->now))
			return;
		if (all || !waits_for_pod(pl, h->p)) {
			emit_held(pl, h);
			continue;
		}
		pl->n.v[RS_C_K8S_WAITED]++;
		rs_list_del(&h->node);
		rs_list_add_tail(&pl->podless, &h->node);
	}
}

/* A few times a second is often enough: pods' changes come in no order. */
static void release_podless(struct rs_pipeline *pl, bool all)
{
	struct rs_list *pos, *tmp;

	rs_list_for_each_safe (pos, tmp, &pl->podless) {
		struct rs_held *h = rs_list_entry(pos, struct rs_held, node);

		if (all || !waits_for_pod(pl, h->p))
			emit_held(pl, h);
	}
}

/* An exited process: its exchanges end if its sockets did not close by themselves (Unix sockets tell
 * nobody), and it is forgotten when no connection is left. */
#define PROC_GRACE_NS 200000000ull

/* An exchange that may have ended in what was lost is waited for so long. */
#define DOUBT_NS 10000000000ull

static void end_doubtful(struct rs_pipeline *pl)
{
	struct rs_list *pos, *tmp;

	if (!pl->lost_ns || pl->now - pl->lost_ns < DOUBT_NS)
		return;
	pl->lost_ns = 0;
	rs_list_for_each_safe (pos, tmp, &pl->pair.all) {
		struct rs_open *o = rs_list_entry(pos, struct rs_open, of_all);

		if (!rs_pair_doubtful(o))
			continue;
		if (pl->now - o->heard_ns >= DOUBT_NS)
			rs_pl_end_open(pl, o, RS_XEND_LOST, o->heard_ns);
		else
			pl->lost_ns = pl->now;
	}
}

void rs_pipeline_tick(struct rs_pipeline *pl, uint64_t now_ns)
{
	struct rs_list *pos, *tmp;

	if (now_ns > pl->now)
		pl->now = now_ns;
	end_closing(pl, CLOSE_GRACE_NS);
	rs_list_for_each_safe (pos, tmp, &pl->procs.lru) {
		struct rs_proc *p = rs_list_entry(pos, struct rs_proc, lru);

		if (!p->exited) {
			rs_procs_follow(&pl->procs, p);
			rs_procs_tick(&pl->procs, p);
			continue;
		}
		while (!rs_list_empty(&p->conns)) {
			struct rs_conn *c = rs_list_entry(p->conns.next, struct rs_conn, of_proc);

			if (pl->now - c->last_ns < PROC_GRACE_NS)
				break;
			rs_pl_end_exchanges(pl, c, NULL, RS_XEND_PROC_GONE, c->last_ns);
			rs_pl_set_proc(c, NULL);
		}
		tmp = p->lru.next; /* a span's process may have taken the place of the next one */
		if (p->nconns == 0 && p->nheld == 0)
			rs_procs_gone(&pl->procs, p);
	}
	while (pl->o.request_timeout_ns && rs_pair_oldest(&pl->pair)) {
		struct rs_open *o = rs_pair_oldest(&pl->pair);

		if (pl->now - o->x.start_ns < pl->o.request_timeout_ns)
			break;
		rs_pl_end_open(pl, o, RS_XEND_TIMEOUT, pl->now);
	}
	end_doubtful(pl);
	rs_pl_release_held(pl, false);
	release_podless(pl, false);
}

void rs_pipeline_sweep_begin(struct rs_pipeline *pl)
{
	pl->conns.epoch++;
}

void rs_pipeline_sweep_live(struct rs_pipeline *pl, uint64_t conn)
{
	struct rs_conn *c = rs_conns_find(&pl->conns, conn);

	if (c)
		c->epoch = pl->conns.epoch;
}

void rs_pipeline_sweep_end(struct rs_pipeline *pl)
{
	struct rs_list *pos, *tmp;

	rs_list_for_each_safe (pos, tmp, &pl->conns.lru) {
		struct rs_conn *c = rs_list_entry(pos, struct rs_conn, lru);

		if (c->epoch == pl->conns.epoch)
			continue;
		pl->n.v[RS_C_CONN_SWEPT]++;
		/* The kernel tells of a TCP connection's end: that record is lost, and what was lost beside it is not known. */
		rs_pl_drop_conn(pl, c,
				c->info.family == RS_FAMILY_UNIX ? RS_XEND_CLOSED : RS_XEND_LOST,
				c->last_ns);
	}
}

void rs_pipeline_finish(struct rs_pipeline *pl)
{
	end_closing(pl, 0);
	while (rs_conns_oldest(&pl->conns)) {
		struct rs_conn *c = rs_conns_oldest(&pl->conns);

		rs_pl_drop_conn(pl, c, RS_XEND_STOPPED, pl->now);
	}
	rs_pl_release_held(pl, true);
	release_podless(pl, true);
	rs_pipeline_flush(pl);
}
