// SPDX-License-Identifier: Apache-2.0
#include "agent_status.h"

#include <stdio.h>

#include "export/spool.h"

static uint64_t age(uint64_t now, uint64_t then)
{
	if (!then)
		return RS_STATUS_NEVER;
	return now > then ? now - then : 0;
}

static void add_probes(struct rs_status *s, struct rs_kernel *k)
{
	const struct rs_probe_state *p;
	size_t n = rs_kernel_probes(k, &p);

	for (size_t i = 0; i < n; i++) {
		struct rs_status_probe *to = rs_status_add_probe(s);

		if (!to)
			return;
		to->name = rs_status_str(s, str_c(p[i].name));
		to->purpose = rs_status_str(s, str_c(p[i].purpose));
		to->reason = rs_status_str(s, str_c(p[i].reason));
		to->state = p[i].attached ? RS_PROBE_ATTACHED
			    : p[i].wanted ? RS_PROBE_FAILED
					  : RS_PROBE_OFF;
	}
}

static const char *const tls_states[] = {
	[RS_TLS_HOOKED] = "hooked",
	[RS_TLS_DECLINED] = "declined",
	[RS_TLS_FAILED] = "failed",
};

/* What of a Go program is followed. */
static size_t go_of(const struct rs_gos *gos, uint32_t tgid, char *text, size_t len)
{
	struct rs_gos_info go;

	if (!rs_gos_process(gos, tgid, &go))
		return 0;
	if (!go.followed)
		return (size_t)snprintf(text, len, "crypto/tls (%s): failed: %s", go.version,
					"this release of Go is not known yet");
	return (size_t)snprintf(text, len, "crypto/tls (%s): %s", go.version,
				go.tls ? "hooked: at calls in Read and Write"
				       : "goroutines are followed, plain text is not seen");
}

/* Why nothing is read of a process that has no library we know. */
static const char *no_library(const struct rs_proc *p)
{
	return strncmp(p->comm, "java", sizeof(p->comm)) == 0
		       ? "Java's own is compiled while it runs, there is no place for a probe; only handshakes are seen"
		       : "by a library that is not known, or that has no symbols; only handshakes are seen";
}

/* "openssl (/usr/lib/libssl.so.3): hooked: how; …", or "". */
static const char *tls_of(struct rs_status *s, const struct rs_proc *p,
			  const struct rs_agent_view *v)
{
	struct rs_tls_info info[RS_TLS_PER_PROC];
	char text[1024] = "";
	bool excluded;
	size_t n = rs_tls_process(v->tls, p->tgid, info, &excluded), at;

	if (excluded)
		return "left alone, as --tls-exclude says";
	at = go_of(v->gos, p->tgid, text, sizeof(text));
	for (size_t i = 0; i < n && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s (%s): %s: %s",
				       at ? "; " : "", info[i].library, info[i].path,
				       tls_states[info[i].state], info[i].why);
	if (p->tls_unknown && at < sizeof(text))
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u connections: %s",
				       at ? "; " : "", p->tls_unknown, no_library(p));
	if (p->tls_missed && at < sizeof(text))
		snprintf(text + at, sizeof(text) - at,
			 "%s%u connections were not read, or not from their beginning",
			 at ? "; " : "", p->tls_missed);
	return rs_status_str(s, str_c(text));
}

/* Why the plain text of its TLS is not seen. */
static const char *why_opaque(struct rs_status *s, const struct rs_proc *p,
			      const struct rs_agent_view *v, const struct rs_conn *c)
{
	const struct rs_tls_facts *f = rs_conn_facts(&c->info);
	const struct rs_tls_watch *w = v->tls;
	struct rs_tls_info info[RS_TLS_PER_PROC];
	struct rs_gos_info go;
	char text[512];
	uint64_t since = 0;
	bool excluded;
	size_t n = rs_tls_process(w, p->tgid, info, &excluded);

	if (w->mode == RS_TLS_NEVER)
		return "TLS, which --tls never leaves alone";
	if (!w->kernel)
		return "TLS, but probes in programs are not possible here; see `ringspan check`";
	if (excluded)
		return "TLS, which --tls-exclude leaves alone";
	if (rs_gos_process(v->gos, p->tgid, &go) && !go.followed)
		return "TLS of Go, of a release that is not known yet: plain text is not seen";
	/* Something was said, and what is there has not read it: the program has another library. */
	if (c->tls_asked && rs_tls_reading(w, p->tgid, &since) == RS_TLS_READ &&
	    since <= f->done_ns)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		if (info[i].state == RS_TLS_HOOKED)
			return "TLS: its plain text is seen from the next read or write on";
	}
	if (n)
		snprintf(text, sizeof(text), "TLS, %s: %s", info[0].library, info[0].why);
	else
		snprintf(text, sizeof(text), "TLS %.*s%s%s: %s",
			 STR_ARG(rs_tls_version_name(f->version)), f->server_name[0] ? " to " : "",
			 f->server_name, no_library(p));
	return rs_status_str(s, str_c(text));
}

/* Why there are no spans of a process that has connections. */
static const char *why_not(struct rs_status *s, const struct rs_proc *p,
			   const struct rs_agent_view *v)
{
	const struct rs_conn *opaque = NULL;
	uint32_t known = 0, undecided = 0;
	struct rs_list *pos;
	char text[256];

	if (!rs_decision_traced(&p->decision))
		return rs_status_str(s, str_c(rs_decision_text(&p->decision, text, sizeof(text))));
	if (p->decision.rule && p->decision.rule->depth == RS_DEPTH_NONE)
		return "its rule says depth: none";
	if (p->requests || !p->nconns)
		return "";
	rs_list_for_each (pos, &p->conns) {
		const struct rs_conn *c = rs_list_entry(pos, struct rs_conn, of_proc);

		if (c->info.tls && !c->plain)
			opaque = c;
		known += rs_l7_proto(&c->l7) != NULL;
		undecided += c->l7.phase == RS_L7_DETECT;
	}
	if (opaque)
		return why_opaque(s, p, v, opaque);
	if (known)
		return "connections were open before; their next request will be seen";
	return undecided ? "too few bytes yet to know the protocol"
			 : "speaks no protocol that is known";
}

/* "NAMESPACE/NAME" of the pod that the process's resource names, or "". */
static const char *pod_of(struct rs_status *s, const struct rs_proc *p)
{
	struct str ns = STR_NONE, name = STR_NONE;
	char both[512];

	for (uint32_t i = 0; i < p->resource.attrs.n; i++) {
		const struct rs_attr *a = &p->resource.attrs.a[i];

		if (a->val.type != RS_VAL_STR)
			continue;
		if (str_eq(a->key->name, STR("k8s.namespace.name")))
			ns = str_of(a->val.str, a->val.len);
		else if (str_eq(a->key->name, STR("k8s.pod.name")))
			name = str_of(a->val.str, a->val.len);
	}
	if (!name.len)
		return "";
	snprintf(both, sizeof(both), "%.*s/%.*s", STR_ARG(ns), STR_ARG(name));
	return rs_status_str(s, str_c(both));
}

static void add_services(struct rs_status *s, const struct rs_services *from)
{
	const struct rs_service *row;
	struct rs_status_service *to;
	uint32_t pos = 0;

	while ((row = rs_services_next(from, &pos)) && (to = rs_status_add_service(s)))
		to->row = row;
}

static void add_processes(struct rs_status *s, const struct rs_agent_view *v)
{
	struct rs_list *pos;

	rs_list_for_each (pos, &v->pl->procs.lru) {
		const struct rs_proc *p = rs_list_entry(pos, struct rs_proc, lru);
		struct rs_status_process *to;

		if (p->exited)
			continue;
		to = rs_status_add_process(s);
		if (!to)
			continue; /* counted there */
		to->pid = p->tgid;
		to->comm = rs_status_str(s, str_of(p->comm, strnlen(p->comm, sizeof(p->comm))));
		to->service = rs_status_str(s, p->service);
		to->connections = p->nconns;
		to->requests = p->requests;
		to->spans = p->spans;
		to->errors = p->errors;
		to->why_not = why_not(s, p, v);
		to->tls = tls_of(s, p, v);
		to->plain_bytes = p->plain_bytes;
		to->rule = p->decision.rule ? rs_status_str(s, str_c(p->decision.rule->where)) : "";
		to->traced = rs_decision_traced(&p->decision);
		to->pod = pod_of(s, p);
	}
}

static void add_protocols(struct rs_status *s, const struct rs_pipeline *pl)
{
	uint64_t conns[RS_PROTO_COUNT] = { 0 };
	struct rs_list *pos;

	rs_list_for_each (pos, &pl->conns.lru) {
		const struct rs_conn *c = rs_list_entry(pos, struct rs_conn, lru);

		if (rs_l7_proto(&c->l7))
			conns[c->l7.proto]++;
	}
	for (int i = 0; i < RS_PROTO_COUNT; i++) {
		struct rs_status_protocol *to = rs_status_add_protocol(s);

		if (!to)
			return;
		to->name = rs_protos[i]->name;
		to->connections = conns[i];
		to->requests = pl->proto[i].requests;
		to->spans = pl->proto[i].spans;
		to->errors = pl->proto[i].errors;
	}
}

static void add_exporters(struct rs_status *s, const struct rs_agent_view *v)
{
	for (int i = 0; i < v->exporters->n; i++) {
		const struct rs_exporter *e = &v->exporters->e[i];
		struct rs_status_exporter *to = rs_status_add_exporter(s);

		if (!to)
			return;
		to->name = e->ops->name;
		to->target = rs_status_str(s, str_c(e->target));
		to->protocol = rs_status_str(s, str_c(e->protocol));
		to->state = !e->last_ok_ns && !e->last_err_ns ? RS_EXPORT_IDLE
			    : e->last_err_ns > e->last_ok_ns  ? RS_EXPORT_FAILING
							      : RS_EXPORT_OK;
		to->sent = e->sent;
		to->queued = rs_exporter_held(e) + v->pl->batch.nspans;
		to->queue_bytes = e->q.bytes;
		to->queue_max_bytes = e->q.max_bytes;
		to->retried = e->retried;
		to->uncertain = e->uncertain;
		to->spool_bytes = rs_spool_bytes(e->spool);
		to->buffer_bytes = e->pool.in_use;
		to->buffer_bytes_high = e->pool.high;
		to->requests = e->requests;
		for (int k = 0; k < RS_LOSS_COUNT; k++) {
			to->failed += e->lost[k];
			to->lost[k].name = rs_loss_name((enum rs_loss)k);
			to->lost[k].spans = e->lost[k];
		}
		to->last_success_age_ns = age(v->now_ns, e->last_ok_ns);
		to->last_error_age_ns = age(v->now_ns, e->last_err_ns);
		to->last_error = rs_status_str(s, str_c(e->last_error));
	}
}

static void add_exporter(struct rs_status *s, const struct rs_agent_view *v)
{
	const struct rs_out *o = v->out;
	struct rs_status_exporter *to = rs_status_add_exporter(s);

	if (!to)
		return;
	to->name = v->exporter;
	to->target = v->target;
	to->state = !o->last_ok_ns && !o->last_err_ns ? RS_EXPORT_IDLE
		    : o->last_err_ns > o->last_ok_ns  ? RS_EXPORT_FAILING
						      : RS_EXPORT_OK;
	to->sent = o->sent;
	to->failed = o->failed;
	to->queued = v->pl->batch.nspans;
	to->buffer_bytes = o->pool.in_use;
	to->buffer_bytes_high = o->pool.high;
	to->last_success_age_ns = age(v->now_ns, o->last_ok_ns);
	to->last_error_age_ns = age(v->now_ns, o->last_err_ns);
	to->last_error = o->err ? strerror(-o->err) : "";
}

static void add_kubernetes(struct rs_status *s, const struct rs_agent_view *v)
{
	static const char *const source[] = { "", "api", "kubelet", "" };
	const struct rs_k8s_feed *f = &v->k8s->feed[0], *bad = f;
	const struct rs_watch *w;

	/* Of several the one in trouble is shown; ages and pods are this node's. */
	for (int i = 0; i < v->k8s->nfeeds; i++) {
		if (!bad->watch.failures)
			bad = &v->k8s->feed[i];
		s->k8s_peers += i ? v->k8s->feed[i].pods.nlive : 0;
	}
	w = &f->watch;
	s->k8s_source = source[v->k8s->source];
	s->k8s_target = rs_status_str(s, str_c(v->k8s->base));
	s->k8s_node = rs_status_str(s, str_c(v->k8s->node));
	s->k8s_synced = w->synced;
	s->k8s_failing = bad->watch.failures > 0;
	s->k8s_pods = f->pods.nlive;
	s->k8s_deleted = f->pods.ndeleted;
	s->k8s_last_ok_age_ns = age(v->now_ns, w->last_ok_ns);
	s->k8s_last_error_age_ns = age(v->now_ns, bad->watch.last_err_ns);
	s->k8s_last_error = rs_status_str(s, str_c(bad->watch.last_error));
}

void rs_agent_status(struct rs_status *s, const struct rs_agent_view *v)
{
	struct rs_kernel_usage u;
	char names[256];

	s->state = v->stopping ? RS_STATE_STOPPING : RS_STATE_CAPTURING;
	s->reason = v->stopping ? "the agent ends once exporters have sent what is queued" : "";
	s->backend = rs_kernel_backend(v->kernel);
	s->uptime_ns = v->now_ns - v->started_ns;
	s->last_record_age_ns = age(v->now_ns, v->last_record_ns);
	s->last_span_age_ns = age(v->now_ns, v->pl->last_span_ns);
	s->connections = v->pl->conns.pool.in_use;
	add_probes(s, v->kernel);
	add_processes(s, v);
	add_services(s, &v->pl->services);
	add_protocols(s, v->pl);
	rs_pipeline_gauges(v->pl);
	if (v->exporters) {
		add_exporters(s, v);
		rs_exporters_ledger(v->exporters, v->pl->batch.nspans, &v->pl->n);
	} else {
		add_exporter(s, v);
	}
	if (v->k8s->source == RS_K8S_API || v->k8s->source == RS_K8S_KUBELET)
		add_kubernetes(s, v);
	s->user = v->pl->n;
	rs_kernel_counters(v->kernel, s->kernel_counters);
	s->capabilities =
		rs_status_str(s, str_c(rs_sandbox_names(v->rights->caps, names, sizeof(names))));
	s->no_new_privs = v->rights->no_new_privs;
	s->seccomp = v->rights->seccomp;
	s->refused_calls = rs_sandbox_refused();
	rs_kernel_usage(v->kernel, &u);
	s->map_bytes = u.map_bytes;
	s->bpf_run_ns = u.run_ns;
	s->bpf_runs = u.runs;
	s->bpf_stats = u.stats_on;
}
