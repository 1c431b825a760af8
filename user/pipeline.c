// SPDX-License-Identifier: Apache-2.0
#include "pipeline_parts.h"

#include "proto/http1.h"
#include "proto/http2.h"

/*
 * The flow, top to bottom:
 *
 *   record -> connection -> bytes to messages (l7) -> request and response (pair)
 *          -> trace context (trace) -> span (assemble) -> batch -> flush
 */

/*
 * Bytes of the responses' direction were passed over before this one. What was open by then may have had
 * its response among them: that is all that is known. With pipelining even that is not certain.
 */
static void end_missed(struct rs_pipeline *pl, struct rs_conn *c, const struct rs_msg *m)
{
	struct rs_list *pos, *tmp;

	rs_list_for_each_safe (pos, tmp, &c->open) {
		struct rs_open *o = rs_list_entry(pos, struct rs_open, of_conn);

		if (o->x.start_ns > c->missed_ns[m->dir & 1] && !c->confused)
			break;
		c->confused = c->pipelined;
		rs_pl_end_open(pl, o, RS_XEND_LOST, m->start_ns);
	}
}

/*
 * Whole messages may have gone by unseen while requests are open that were pipelined: which response
 * answers which is not known any more.
 */
static void end_confused(struct rs_pipeline *pl, struct rs_conn *c, uint64_t ts_ns)
{
	while (!rs_list_empty(&c->open)) {
		c->pipelined = c->confused = true;
		rs_pl_end_open(pl, rs_list_entry(c->open.next, struct rs_open, of_conn),
			       RS_XEND_LOST, ts_ns);
	}
}

static struct str user_agent(const struct rs_exchange *x)
{
	return x->ops == &rs_proto_http1 || x->ops == &rs_proto_http2
		       ? rs_x_req(x, RS_F_HTTP_USER_AGENT)
		       : STR_NONE;
}

/* The kubelet asks a container whether it lives. */
static bool is_probe(const struct rs_exchange *x)
{
	return x->role == RS_ROLE_SERVER && str_starts(user_agent(x), STR("kube-probe/"));
}

/* Was the framing of a message that has ended not all seen? */
static bool unseen(const struct rs_msg *m)
{
	return (m->flags & RS_MSGF_CUT) || m->body_size == RS_BODY_UNKNOWN;
}

/* How long the connection's TLS handshake took, once: its first request waited for it. */
static void tell_handshake(struct rs_conn *c, struct rs_open *o)
{
	const struct rs_tls_facts *f;

	if (c->told_handshake || !c->info.tls)
		return;
	f = rs_conn_facts(&c->info);
	c->told_handshake = true;
	if (f->done_ns > f->began_ns && f->began_ns)
		rs_pair_fact(o, RS_FACT_TLS_HANDSHAKE,
			     (uint32_t)((f->done_ns - f->began_ns) / 1000), f->done_ns);
}

/* Answered and sent whole, with nothing behind it: the next byte sent begins a request. */
static void tell_start(struct rs_pipeline *pl, struct rs_conn *c, const struct rs_open *o,
		       const struct rs_msg *m)
{
	if (pl->request_start && m->type == RS_MSG_RESPONSE_END && !unseen(m) &&
	    o->x.request_done && o->x.role == RS_ROLE_CLIENT && c->nopen == 1 && c->synced &&
	    !c->pipelined)
		pl->request_start(pl->arg, c->info.id, c->next_off[RS_DIR_OUT]);
}

void rs_pl_message(void *arg, const struct rs_msg *m)
{
	struct rs_feed *f = arg;
	struct rs_pipeline *pl = f->pl;
	bool in_order = !rs_l7_numbered(&f->c->l7);
	struct rs_open *o;

	f->messages = true;
	if (in_order && (m->type == RS_MSG_RESPONSE || m->type == RS_MSG_INTERIM) &&
	    (m->flags & RS_MSGF_RESYNC))
		end_missed(pl, f->c, m);
	if (in_order && m->type == RS_MSG_REQUEST &&
	    ((m->flags & RS_MSGF_RESYNC) || f->c->unseen_request))
		end_confused(pl, f->c, m->start_ns);
	if (m->type == RS_MSG_REQUEST || m->type == RS_MSG_REQUEST_END)
		f->c->unseen_request = m->type == RS_MSG_REQUEST_END && unseen(m);
	if (m->type == RS_MSG_REQUEST && rs_pair_full(&pl->pair)) {
		pl->n.v[RS_C_PAIR_EVICTED]++;
		rs_pl_end_open(pl, rs_pair_oldest(&pl->pair), RS_XEND_LOST, pl->now);
	}
	o = rs_pair_add(&pl->pair, f->c, m);
	if (pl->watch.tgid && m->tgid == pl->watch.tgid)
		pl->watch.message(pl->watch.arg, f->c, o, m);
	if (!o)
		return;
	if (m->type == RS_MSG_REQUEST) {
		pl->proto[f->c->l7.proto].requests++;
		if (f->c->proc)
			f->c->proc->requests++;
	}
	rs_trace_message(&pl->trace, o, m);
	if (m->type == RS_MSG_REQUEST)
		tell_handshake(f->c, o);
	if (m->type == RS_MSG_REQUEST && o->root && pl->skip_probes && is_probe(&o->x))
		rs_root_of(o->root)->quiet = true;
	if (!o->finished)
		return;
	tell_start(pl, f->c, o, m);
	rs_pl_finish(pl, o);
	rs_conn_rests(&pl->conns, f->c);
	if (in_order && m->type == RS_MSG_RESPONSE_END && unseen(m))
		end_confused(pl, f->c, m->end_ns);
}

/* Where its spans are counted. */
static struct rs_service *counted(struct rs_pipeline *pl, struct rs_proc *p, bool client)
{
	if (!p->counted[client])
		p->counted[client] = rs_services_row(&pl->services, p->service, client);
	return p->counted[client];
}

static void count_span(struct rs_pipeline *pl, const struct rs_open *o, struct rs_proc *p)
{
	const struct rs_span *s = p->batch_group->last;

	pl->n.v[RS_C_TRACE_SPANS]++;
	pl->n.v[RS_C_K8S_WITHOUT] += rs_procs_lacks_pod(&pl->procs, p);
	pl->n.v[s->kind == RS_KIND_SERVER ? RS_C_TRACE_SERVER : RS_C_TRACE_CLIENT]++;
	pl->n.v[RS_C_TRACE_ERRORS] += s->status == RS_STATUS_ERROR;
	pl->last_span_ns = pl->now;
	p->spans++;
	p->errors += s->status == RS_STATUS_ERROR;
	rs_service_count(counted(pl, p, s->kind != RS_KIND_SERVER), s->end_ns - s->start_ns,
			 s->status == RS_STATUS_ERROR);
	for (int i = 0; i < RS_PROTO_COUNT; i++) {
		if (rs_protos[i] != o->x.ops)
			continue;
		pl->proto[i].spans++;
		pl->proto[i].errors += s->status == RS_STATUS_ERROR;
	}
}

/* The exchange's span in the batch; false: there is no memory for it. */
static bool assemble(struct rs_pipeline *pl, struct rs_open *o, struct rs_proc *p)
{
	if (p && rs_trace_assemble(&pl->trace, o, p, &pl->batch) == 0)
		return true;
	rs_pipeline_flush(pl);
	if (p && rs_trace_assemble(&pl->trace, o, p, &pl->batch) == 0)
		return true;
	pl->n.v[RS_C_TRACE_NO_MEMORY]++;
	return false;
}

/* Under a sampler: the head decision saves the assembly, rules for errors and slow spans need it. */
static void emit_sampled(struct rs_pipeline *pl, struct rs_open *o, struct rs_proc *p)
{
	const struct rs_root *root = rs_root_of(o->root);
	const struct rs_rule *rule;
	struct rs_sample_trace t;
	struct rs_span *s;
	bool head;

	if (!root || !p) {
		pl->n.v[RS_C_TRACE_NO_MEMORY]++;
		return;
	}
	rule = p->decision.rule;
	t = (struct rs_sample_trace){ root->trace_id,
				      root->fixed,
				      root->flags & RS_TRACE_SAMPLED,
				      str_of(root->state, root->nstate),
				      p->service,
				      rule && rule->sample >= 0,
				      rule ? rule->sample : 0 };
	head = rs_sample_head(pl->sampler, &t);
	if (!head && !rs_sample_has_rules(pl->sampler)) {
		pl->n.v[RS_C_TRACE_SAMPLED_OUT]++;
		return;
	}
	if (!assemble(pl, o, p))
		return;
	s = p->batch_group->last;
	if (!head && !rs_sample_rule(pl->sampler, s)) {
		pl->n.v[RS_C_TRACE_SAMPLED_OUT]++;
		rs_batch_drop_last(&pl->batch, p->batch_group);
	} else if (!rs_sample_room(pl->sampler, pl->now)) {
		pl->n.v[RS_C_TRACE_RATE_LIMITED]++;
		rs_batch_drop_last(&pl->batch, p->batch_group);
	} else {
		rs_sample_mark(pl->sampler, &t, !head, s, &pl->batch.arena);
		count_span(pl, o, p);
	}
}

/* An agent's own report, as its receiver or a proxy sees it: a span of it would cause the next report. */
static bool is_report(const struct rs_exchange *x)
{
	return str_starts(user_agent(x), STR("ringspan/"));
}

/* A finished exchange becomes a span and is given back. */
void rs_pl_emit(struct rs_pipeline *pl, struct rs_open *o)
{
	struct rs_proc *p;

	if (o->has_request && !pl->done) {
		pl->emitted++;
		p = rs_pl_proc_of(o);
		if (p)
			p->used = true;
		else
			p = rs_procs_get(&pl->procs, o->x.tgid, 0, 0, STR_NONE);
		if (p) {
			rs_procs_follow(&pl->procs, p);
			rs_procs_settle(&pl->procs, p);
			rs_service_ahead(p->counted[o->x.role != RS_ROLE_SERVER],
					 o->x.end_ns - o->x.start_ns);
		}
		if (p && !rs_decision_traced(&p->decision))
			pl->n.v[RS_C_TRACE_EXCLUDED]++;
		else if (o->root && rs_root_of(o->root)->quiet)
			pl->n.v[RS_C_TRACE_PROBES]++;
		else if (p && p->sdk && pl->trace.skip_sdk)
			pl->n.v[RS_C_TRACE_SDK]++;
		else if (is_report(&o->x))
			pl->n.v[RS_C_TRACE_OWN]++;
		else if (pl->sampler)
			emit_sampled(pl, o, p);
		else if (assemble(pl, o, p))
			count_span(pl, o, p);
	}
	rs_trace_forget(&pl->trace, o);
	rs_pair_put(&pl->pair, o);
	pl->done = pl->o.max_spans && pl->n.v[RS_C_TRACE_SPANS] >= pl->o.max_spans;
	if (pl->done || pl->batch.nspans >= pl->o.batch_spans)
		rs_pipeline_flush(pl);
}

/* The pod or Service at an address. */
static struct str pod_at(const struct rs_pipeline *pl, struct str addr)
{
	const struct rs_pod *p = NULL;
	uint8_t ip[16];

	if (!pl->peers[0] || !rs_pod_ip(addr, ip))
		return STR_NONE;
	for (int i = 0; !p && i < RS_PEERS && pl->peers[i]; i++)
		p = rs_pods_by_ip(pl->peers[i], ip);
	return p ? rs_names_service(p) : STR_NONE;
}

/*
 * What a client's request went to: the service at the connection's other end when that is on this node, else the
 * pod or Service of its address, else the name that its address was asked for by. Kept in the exchange, which may outlive its connection.
 */
static void name_peer(struct rs_pipeline *pl, struct rs_open *o)
{
	const struct rs_conn *other;
	struct str name = STR_NONE;
	bool dns = false;

	if (o->x.role != RS_ROLE_CLIENT || !o->conn || o->x.peer.len)
		return;
	other = rs_conns_other_end(&pl->conns, o->conn);
	if (other && other->proc)
		name = other->proc->service;
	if (!name.len)
		name = pod_at(pl, rs_conn_addr(&o->conn->info, &o->conn->info.peer));
	if (!name.len) {
		name = rs_dns_text(o->conn->peer_name);
		dns = true;
	}
	rs_pair_peer(o, name, dns);
}

void rs_pl_finish(struct rs_pipeline *pl, struct rs_open *o)
{
	name_peer(pl, o);
	rs_trace_end(&pl->trace, o);
	if (o->has_request && !pl->done && rs_pl_hold(pl, o))
		return;
	rs_pl_emit(pl, o);
}

static struct rs_conn *get_conn(struct rs_pipeline *pl, uint64_t id, bool *ret_new)
{
	struct rs_conn *c = rs_conns_get(&pl->conns, id, ret_new);

	if (!c && rs_conns_oldest(&pl->conns)) {
		pl->n.v[RS_C_CONN_EVICTED]++;
		rs_pl_drop_conn(pl, rs_conns_oldest(&pl->conns), RS_XEND_LOST, pl->now);
		c = rs_conns_get(&pl->conns, id, ret_new);
	}
	return c;
}

/* The other end of a Unix socket: the one seen first learns of the other here. */
static void meet_peer(struct rs_pipeline *pl, struct rs_conn *c, uint64_t peer)
{
	struct rs_conn *other = rs_conns_find(&pl->conns, peer);

	c->peer = peer;
	if (other)
		other->peer = c->info.id;
}

/* What the rule that includes a process says of its connections. */
static void apply_rule(struct rs_pipeline *pl, struct rs_conn *c, const struct rs_rule *rule)
{
	if (!rule)
		return;
	c->l7.protocols = rule->protocols;
	if (rule->depth == RS_DEPTH_NONE)
		rs_l7_ignore(&c->l7, &pl->l7, c->info.id);
}

static void on_open(struct rs_pipeline *pl, const struct rs_ev_open *ev)
{
	struct str comm = str_of(ev->comm, strnlen(ev->comm, sizeof(ev->comm)));
	struct rs_proc *p = NULL;
	struct rs_conn *c;
	bool is_new;

	if (ev->tgid)
		p = rs_procs_get(&pl->procs, ev->tgid, ev->start_ns, ev->cgroup, comm);
	if (p) {
		rs_procs_port(&pl->procs, p, ev->lport, false);
		rs_procs_port(&pl->procs, p, ev->rport, true);
		if (!rs_decision_traced(&p->decision))
			return;
	}
	c = get_conn(pl, ev->conn, &is_new);
	if (!c)
		return;
	rs_conn_describe(&pl->conns, c, ev);
	c->present = ev->h.flags & RS_EVF_PRESENT;
	/* A context record may have come before it. */
	c->synced = (is_new || !c->last_ns) && !c->present;
	if (ev->peer_conn)
		meet_peer(pl, c, ev->peer_conn);
	rs_conns_touch(&pl->conns, c, ev->h.ts_ns);
	if (p) {
		rs_pl_set_proc(c, p);
		apply_rule(pl, c, p->decision.rule);
	}
	if (ev->role == RS_ROLE_CLIENT && !c->peer_name)
		c->peer_name = rs_dns_find(&pl->dns, ev->netns, ev->family, ev->raddr, ev->h.ts_ns);
	if (ev->role == RS_ROLE_CLIENT && c->synced)
		rs_trace_connect(&pl->trace, c->info.id, ev->tgid, ev->tid,
				 (struct rs_moment){ 0 });
}

/* TLS records: the handshake is looked at, the rest comes as plain text from the library, if it is known. */
static bool on_cipher(struct rs_pipeline *pl, struct rs_conn *c, const struct rs_ev_data *ev,
		      struct rs_proc *p)
{
	bool was = c->info.tls;

	if (!rs_conn_cipher(&pl->conns, c, ev))
		return false;
	rs_conns_touch(&pl->conns, c, ev->h.ts_ns);
	rs_pl_set_proc(c, p);
	pl->n.v[RS_C_CONN_PASSED]++;
	pl->n.v[RS_C_STREAM_BYTES] += ev->len;
	pl->n.v[RS_C_STREAM_CIPHER] += ev->len;
	if (!was && pl->tls.does)
		pl->tls.does(pl->tls.arg, ev->tgid, p && p->opaque);
	return true;
}

static void on_data(struct rs_pipeline *pl, const struct rs_ev_data *ev)
{
	struct rs_conn *c = rs_conns_find(&pl->conns, ev->conn);
	struct rs_proc *p = c && c->proc && c->proc->tgid == ev->tgid
				    ? c->proc
				    : rs_procs_get(&pl->procs, ev->tgid, 0, 0, STR_NONE);
	struct rs_feed f = { .pl = pl };
	unsigned dir = ev->dir & 1;
	bool is_new;

	pl->n.v[RS_C_CONN_RECORDS]++;
	/* A child that took a connection over and is gone already: it was where its parent is. */
	if (p && c && c->proc && c->proc != p && !p->exe.len)
		rs_procs_cgroup(&pl->procs, p, c->proc->cgroup);
	if (p &&
	    (!rs_decision_traced(&p->decision) || (ev->source == RS_SRC_TLS && p->decision.rule &&
						   p->decision.rule->tls == RS_RULE_TLS_NEVER))) {
		pl->n.v[RS_C_CONN_EXCLUDED]++;
		if (!rs_decision_traced(&p->decision))
			rs_procs_stray(&pl->procs, p);
		return;
	}
	if (!c)
		c = get_conn(pl, ev->conn, &is_new);
	f.c = c;
	if (!c) {
		pl->n.v[RS_C_CONN_NO_ROOM]++;
		return;
	}
	if (on_cipher(pl, c, ev, p))
		return;
	if (ev->source == RS_SRC_TLS) {
		if (!c->plain)
			c->tls_late = rs_pl_tls_late(pl, c, ev->tgid);
		rs_conn_plain(&pl->conns, c, &pl->l7);
	}
	if (ev->source == RS_SRC_TLS && p)
		p->plain_bytes += ev->len;
	if (c->confused && ev->h.ts_ns - c->last_ns >= RS_PAIR_QUIET_NS)
		c->confused = false;
	if (ev->off > c->next_off[dir]) {
		pl->n.v[RS_C_CONN_LOST]++;
		/* Inside a body of known length nothing of interest is missing. */
		if (rs_l7_numbered(&c->l7))
			c->synced = false;
		else if (ev->off - c->next_off[dir] > c->l7.s[dir].skip)
			rs_pl_end_exchanges(pl, c, rs_pair_lost(c, ev->dir), RS_XEND_LOST,
					    ev->h.ts_ns);
	}
	/* First seen in the middle of an answer: where that began, the open record did not know. */
	if (ev->source == RS_SRC_SOCKET && !c->next_off[0] && !c->next_off[1] &&
	    (dir == RS_DIR_IN) == (c->role == RS_ROLE_CLIENT))
		c->oseq = 0;
	if (ev->off + ev->len > c->next_off[dir])
		c->next_off[dir] = ev->off + ev->len;
	rs_conns_touch(&pl->conns, c, ev->h.ts_ns);
	rs_pl_set_proc(c, p);
	pl->n.v[RS_C_CONN_PASSED]++;
	rs_conn_forget_told(c, ev);
	rs_l7_data(&c->l7, &pl->l7, ev, rs_pl_message, &f);
	if (!f.messages && c->nopen == 1)
		rs_trace_body(&pl->trace, c, ev);
	if (c->l7.s[dir].out_of_step)
		c->missed_ns[dir] = ev->h.ts_ns;
	if (c->l7.s[dir].lost_ns + 1 >= ev->h.ts_ns && !pl->lost_ns)
		pl->lost_ns = ev->h.ts_ns;
}

static void on_names(struct rs_pipeline *pl, const struct rs_ev_data *ev)
{
	rs_dns_message(&pl->dns, (uint32_t)ev->conn, str_of((const char *)ev->data, ev->cap),
		       ev->h.ts_ns);
}

static void on_close(struct rs_pipeline *pl, const struct rs_ev_close *ev)
{
	struct rs_conn *c = rs_conns_find(&pl->conns, ev->conn);
	struct rs_feed f = { .pl = pl, .c = c };

	if (!c) { /* refused, or not used: it was opened for nothing */
		rs_connect_forget(&pl->trace.connects,
				  rs_connect_find(&pl->trace.connects, ev->conn));
		return;
	}
	if (ev->how == RS_CLOSE_ALL) {
		rs_pl_close_conn(pl, c, ev->h.ts_ns);
		return;
	}
	rs_l7_close(&c->l7, &pl->l7, ev->how, ev->h.ts_ns, rs_pl_message, &f);
	if (!rs_list_empty(&c->open) && rs_pl_response_impossible(c, ev->how))
		rs_pl_end_exchanges(pl, c, NULL, RS_XEND_CLOSED, ev->h.ts_ns);
}

static void on_fact(struct rs_pipeline *pl, const struct rs_ev_fact *ev)
{
	struct rs_conn *c;

	pl->n.v[RS_C_CONN_FACTS]++;
	if (ev->fact == RS_FACT_CONNECT) {
		rs_trace_connect(&pl->trace, ev->conn, ev->tgid, rs_thread_id(ev->value, ev->task),
				 (struct rs_moment){ ev->h.ts_ns, ev->slept });
		return;
	}
	if (ev->fact == RS_FACT_CONNECTED) {
		rs_connect_done(&pl->trace.connects, ev->conn, ev->value, ev->h.ts_ns);
		return;
	}
	c = rs_conns_find(&pl->conns, ev->conn);
	if (c && (ev->fact == RS_FACT_RESET_IN || ev->fact == RS_FACT_RESET_OUT))
		c->reset = true;
	if (!c || rs_list_empty(&c->open)) {
		pl->n.v[RS_C_CONN_FACTS_IDLE]++;
		return;
	}
	/* The oldest open request is the one that is being answered. */
	rs_pair_fact(rs_list_entry(c->open.next, struct rs_open, of_conn), (uint8_t)ev->fact,
		     ev->value, ev->h.ts_ns);
}

static void on_context(struct rs_pipeline *pl, const struct rs_ev_context *ev)
{
	bool is_new;
	struct rs_conn *c = get_conn(pl, ev->conn, &is_new);

	if (c)
		rs_conn_tell(&pl->conns, c, ev);
}

static void on_cgroup(struct rs_pipeline *pl, const struct rs_ev_cgroup *ev)
{
	if (pl->o.live)
		rs_containers_made(&pl->procs.containers, ev->id,
				   str_of(ev->path, strnlen(ev->path, sizeof(ev->path))));
}

static void on_proc(struct rs_pipeline *pl, const struct rs_ev_proc *ev)
{
	struct str comm = str_of(ev->comm, strnlen(ev->comm, sizeof(ev->comm)));
	struct rs_proc *p = rs_procs_find(&pl->procs, ev->tgid);
	struct rs_list *pos, *x;

	if (ev->event == RS_PROC_LOADS) {
		if (pl->tls.loads)
			pl->tls.loads(pl->tls.arg, ev);
		return;
	}
	if (ev->event == RS_PROC_EXEC)
		rs_procs_execed(&pl->procs, ev->tgid, ev->start_ns);
	if (!p)
		return;
	if (ev->event == RS_PROC_EXEC) {
		rs_procs_exec(&pl->procs, p, comm);
		return;
	}
	if (ev->event == RS_PROC_FORK)
		return;
	rs_list_for_each (pos, &p->conns) {
		struct rs_conn *c = rs_list_entry(pos, struct rs_conn, of_proc);

		rs_list_for_each (x, &c->open) {
			struct rs_open *o = rs_list_entry(x, struct rs_open, of_conn);

			rs_pair_fact(o, (uint8_t)(RS_FACT_PROC + ev->event),
				     ev->event == RS_PROC_SIGNAL ? ev->signal : ev->code,
				     ev->h.ts_ns);
			/* Its sockets close right after, unless another process shares them. */
			if (ev->event == RS_PROC_EXIT)
				o->proc_gone = true;
		}
	}
	if (ev->event == RS_PROC_EXIT)
		p->exited = true;
}

static void on_task(struct rs_pipeline *pl, const struct rs_ev_task *ev)
{
	rs_trace_task(&pl->trace, ev->conn ? rs_conns_find(&pl->conns, ev->conn) : NULL, ev);
}

static void show(struct rs_pipeline *pl, const struct rs_ev_hdr *ev)
{
	const struct rs_ev_open *open = (const void *)ev;
	const struct rs_ev_data *data = (const void *)ev;
	const struct rs_ev_close *gone = (const void *)ev;
	const struct rs_conn *c = NULL;
	uint32_t tgid = 0;

	if (ev->type == RS_EV_OPEN) {
		c = rs_conns_find(&pl->conns, open->conn);
		tgid = open->tgid;
	} else if (ev->type == RS_EV_DATA) {
		c = rs_conns_find(&pl->conns, data->conn);
		tgid = data->tgid;
	} else if (ev->type == RS_EV_CLOSE) {
		c = rs_conns_find(&pl->conns, gone->conn);
		tgid = c && c->proc ? c->proc->tgid : gone->tgid;
	}
	if (tgid == pl->watch.tgid)
		pl->watch.record(pl->watch.arg, c, ev);
}

/*
 * First the places in the tables; two records later these are there, and say where connection and thread are; one
 * later the connection is there, and says where the process is.
 */
void rs_pipeline_ahead(struct rs_pipeline *pl, const struct rs_ev_hdr *ev)
{
	const struct rs_ev_data *data = (const void *)ev;
	const struct rs_ev_fact *fact = (const void *)ev;
	unsigned n = pl->nahead++;
	typeof(pl->ahead[0]) *first = &pl->ahead[n % RS_PL_AHEAD],
			     *second = &pl->ahead[(n - 2) % RS_PL_AHEAD],
			     *third = &pl->ahead[(n - 3) % RS_PL_AHEAD];

	const struct rs_conn *c = third->conn ? rs_conns_find(&pl->conns, third->conn) : NULL;

	if (c && c->proc)
		rs_proc_ahead(c->proc);
	if (c && !rs_list_empty(&c->open))
		rs_open_ahead(rs_list_entry(c->open.next, struct rs_open, of_conn));
	if (second->conn) {
		rs_conns_ahead_more(&pl->conns, second->conn, second->dir);
		rs_threads_ahead_more(&pl->trace.threads, second->tgid, second->who);
	}
	first->conn = 0;
	if (ev->type == RS_EV_DATA) {
		first->conn = data->conn;
		first->who = rs_thread_id(data->tid, data->task);
		first->tgid = data->tgid;
		first->dir = data->dir & 1;
		rs_threads_ahead(&pl->trace.threads, data->tgid, first->who);
	} else if (ev->type == RS_EV_FACT) {
		first->conn = fact->conn;
		first->dir = -1;
	}
	if (first->conn)
		rs_conns_ahead(&pl->conns, first->conn);
}

void rs_pipeline_event(struct rs_pipeline *pl, const struct rs_ev_hdr *ev)
{
	if (pl->done)
		return;
	if (pl->watch.tgid && ev->type != RS_EV_OPEN)
		show(pl, ev);
	pl->n.v[RS_C_SOURCE_RECORDS]++;
	if (ev->ts_ns > pl->now)
		pl->now = ev->ts_ns;
	switch ((enum rs_ev_type)ev->type) {
	case RS_EV_OPEN:
		on_open(pl, (const void *)ev);
		if (pl->watch.tgid)
			show(pl, ev);
		break;
	case RS_EV_DATA:
		on_data(pl, (const void *)ev);
		break;
	case RS_EV_NAMES:
		on_names(pl, (const void *)ev);
		break;
	case RS_EV_CLOSE:
		on_close(pl, (const void *)ev);
		break;
	case RS_EV_FACT:
		on_fact(pl, (const void *)ev);
		break;
	case RS_EV_PROC:
		on_proc(pl, (const void *)ev);
		break;
	case RS_EV_CGROUP:
		on_cgroup(pl, (const void *)ev);
		break;
	case RS_EV_TASK:
		on_task(pl, (const void *)ev);
		break;
	case RS_EV_CONTEXT:
		on_context(pl, (const void *)ev);
		break;
	default:
		pl->n.v[RS_C_SOURCE_BAD]++;
		return;
	}
	pl->n.v[RS_C_SOURCE_PASSED]++;
	rs_pl_release_held(pl, false);
}

void rs_pipeline_flush(struct rs_pipeline *pl)
{
	if (pl->batch.nspans)
		pl->flush(pl->arg, &pl->batch);
	rs_batch_reset(&pl->batch);
}

static uint64_t tls_open(const struct rs_counters *n)
{
	uint64_t ended = n->v[RS_C_TLS_READ] + n->v[RS_C_TLS_SILENT] + n->v[RS_C_TLS_LATE] +
			 n->v[RS_C_TLS_LEFT_ALONE] + n->v[RS_C_TLS_NO_LIBRARY] +
			 n->v[RS_C_TLS_TOO_DEAR] + n->v[RS_C_TLS_NOT_PROBED];

	return n->v[RS_C_CONN_TLS] - ended;
}

void rs_pipeline_gauges(struct rs_pipeline *pl)
{
	struct rs_list *pos;
	uint64_t open = 0;

	rs_list_for_each (pos, &pl->pair.all)
		open += rs_list_entry(pos, struct rs_open, of_all)->has_request;
	pl->n.v[RS_C_PAIR_OPEN] = open;
	pl->n.v[RS_C_TLS_OPEN] = tls_open(&pl->n);
	pl->n.v[RS_C_TRACE_HELD] = pl->done ? 0 : pl->held_pool.in_use;
	pl->n.v[RS_C_TRACE_EXCHANGES] = pl->emitted + pl->n.v[RS_C_TRACE_HELD];
	pl->n.v[RS_C_EXPORT_HELD] = pl->batch.nspans;
	pl->n.v[RS_C_EXPORT_SPANS] = pl->n.v[RS_C_TRACE_SPANS];
}

#define DNS_MAX 8192 /* addresses whose names are kept */

#define OR_DEFAULT(x, d) ((x) ? (x) : (d))

static void on_parting(void *arg, struct rs_proc *p)
{
	struct rs_pipeline *pl = arg;

	if (rs_trace_part(&pl->batch, p))
		rs_pipeline_flush(pl);
}

int rs_pipeline_init(struct rs_pipeline *pl, const struct rs_pipeline_opts *opts)
{
	*pl = (struct rs_pipeline){ .o = *opts };
	pl->o.max_conns = OR_DEFAULT(opts->max_conns, 65536);
	pl->o.max_requests = OR_DEFAULT(opts->max_requests, 16384);
	pl->o.max_procs = OR_DEFAULT(opts->max_procs, 4096);
	pl->o.max_threads = OR_DEFAULT(opts->max_threads, 65536);
	pl->o.batch_bytes = OR_DEFAULT(opts->batch_bytes, 4 << 20);
	pl->o.batch_spans = OR_DEFAULT(opts->batch_spans, 512);
	pl->l7.counters = &pl->n;
	pl->l7.max_conns = pl->o.max_conns;
	pl->l7.redact = &pl->trace.redact;
	rs_list_init(&pl->closing);
	rs_services_init(&pl->services);
	rs_conns_init(&pl->conns, pl->o.max_conns, &pl->n);
	rs_procs_init(&pl->procs, pl->o.max_procs, pl->o.live, pl->o.host_root, &pl->n);
	pl->procs.parting = on_parting;
	pl->procs.parting_arg = pl;
	rs_dns_init(&pl->dns, DNS_MAX, DNS_MAX + pl->o.max_conns, &pl->n);
	rs_pair_init(&pl->pair, pl->o.max_requests, &pl->n);
	rs_trace_init(&pl->trace, pl->o.seed, pl->o.max_threads, pl->o.max_requests, &pl->pair,
		      &pl->n);
	rs_pool_init(&pl->held_pool, sizeof(struct rs_held), pl->o.max_requests / 4);
	rs_list_init(&pl->held);
	rs_list_init(&pl->podless);
	pl->trace.wall_offset = pl->o.wall_offset;
	rs_batch_init(&pl->batch, pl->o.batch_bytes);
	return rs_l7_env_init(&pl->l7);
}

void rs_pipeline_release(struct rs_pipeline *pl)
{
	if (!pl->conns.lru.next)
		return;
	while (rs_conns_oldest(&pl->conns)) {
		struct rs_conn *c = rs_conns_oldest(&pl->conns);

		while (!rs_list_empty(&c->open)) {
			struct rs_open *o = rs_list_entry(c->open.next, struct rs_open, of_conn);

			rs_trace_end(&pl->trace, o);
			rs_trace_forget(&pl->trace, o);
			rs_pair_put(&pl->pair, o);
		}
		rs_trace_conn_gone(&pl->trace, c);
		rs_l7_release(&c->l7, &pl->l7);
		rs_pl_set_proc(c, NULL);
		rs_dns_put(&pl->dns, c->peer_name);
		rs_conns_drop(&pl->conns, c);
	}
	rs_dns_release(&pl->dns);
	rs_pool_release(&pl->held_pool); /* what it refers to goes with the pools below */
	rs_batch_release(&pl->batch);
	rs_trace_release(&pl->trace);
	rs_pair_release(&pl->pair);
	rs_procs_release(&pl->procs);
	rs_conns_release(&pl->conns);
	rs_services_release(&pl->services);
	rs_l7_env_release(&pl->l7);
}
