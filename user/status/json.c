// SPDX-License-Identifier: Apache-2.0
/* The snapshot as JSON. */
#include "status.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "services.h"

static void set_str(json_t *o, const char *key, const char *value)
{
	char clean[1024];

	/* Command and service names are whatever a program chose. */
	rs_utf8_clean(clean, sizeof(clean), str_c(value ? value : ""), 0);
	json_object_set_new(o, key, json_string(clean));
}

static void set_num(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key,
			    json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value));
}

static void set_age(json_t *o, const char *key, uint64_t age)
{
	if (age != RS_STATUS_NEVER)
		set_num(o, key, age);
}

static json_t *probes(const struct rs_status *s)
{
	static const char *const state[] = { "attached", "off", "failed" };
	json_t *list = json_array();

	for (const struct rs_status_probe *p = s->probes; p; p = p->next) {
		json_t *o = json_object();

		set_str(o, "name", p->name);
		set_str(o, "purpose", p->purpose);
		set_str(o, "state", state[p->state]);
		set_str(o, "reason", p->reason);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *processes(const struct rs_status *s)
{
	json_t *list = json_array();

	for (const struct rs_status_process *p = s->processes; p; p = p->next) {
		json_t *o = json_object();

		set_num(o, "pid", p->pid);
		set_str(o, "comm", p->comm);
		set_str(o, "service", p->service);
		set_num(o, "connections", p->connections);
		set_num(o, "requests", p->requests);
		set_num(o, "spans", p->spans);
		set_num(o, "errors", p->errors);
		json_object_set_new(o, "traced", json_boolean(p->traced));
		set_str(o, "rule", p->rule);
		set_str(o, "why_not", p->why_not);
		set_str(o, "pod", p->pod);
		set_str(o, "tls", p->tls);
		set_num(o, "tls_plain_bytes", p->plain_bytes);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *protocols(const struct rs_status *s)
{
	json_t *list = json_array();

	for (const struct rs_status_protocol *p = s->protocols; p; p = p->next) {
		json_t *o = json_object();

		set_str(o, "name", p->name);
		set_num(o, "connections", p->connections);
		set_num(o, "requests", p->requests);
		set_num(o, "spans", p->spans);
		set_num(o, "errors", p->errors);
		json_array_append_new(list, o);
	}
	return list;
}

/* The upper end of the bucket in which this share of the spans is reached. */
static uint64_t quantile(const struct rs_service *row, double share)
{
	uint64_t want = (uint64_t)((double)row->spans * share), seen = 0;

	for (unsigned i = 0; i < RS_LATENCY_BUCKETS; i++) {
		seen += row->bucket[i];
		if (seen > want)
			return rs_latency_end(i);
	}
	return 0;
}

static json_t *latency(const struct rs_service *row)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < RS_LATENCY_BUCKETS; i++) {
		uint64_t end = rs_latency_end(i);
		json_t *pair;

		if (!row->bucket[i])
			continue;
		pair = json_array();
		json_array_append_new(pair,
				      json_integer(end > INT64_MAX ? INT64_MAX : (json_int_t)end));
		json_array_append_new(pair, json_integer(row->bucket[i]));
		json_array_append_new(list, pair);
	}
	return list;
}

static json_t *services(const struct rs_status *s)
{
	json_t *list = json_array();

	for (const struct rs_status_service *p = s->services; p; p = p->next) {
		char name[RS_SERVICE_NAME + 1];
		json_t *o = json_object();

		snprintf(name, sizeof(name), "%.*s", (int)p->row->nname, p->row->name);
		set_str(o, "service", name);
		set_str(o, "kind", p->row->client ? "client" : "server");
		set_num(o, "spans", p->row->spans);
		set_num(o, "errors", p->row->errors);
		set_num(o, "p50_ns", quantile(p->row, 0.50));
		set_num(o, "p99_ns", quantile(p->row, 0.99));
		json_object_set_new(o, "latency", latency(p->row));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *ledger_row(const struct rs_counter_info *c, uint64_t value)
{
	json_t *o = json_object();

	set_str(o, "stage", c->stage);
	set_str(o, "name", c->name);
	set_str(o, "kind", rs_counter_kind_name[c->kind]);
	set_num(o, "value", value);
	set_str(o, "help", c->help);
	set_str(o, "remedy", c->remedy);
	return o;
}

static json_t *ledger(const struct rs_status *s)
{
	json_t *list = json_array();

	for (int i = 0; i < RS_BPFC_COUNT; i++)
		json_array_append_new(list,
				      ledger_row(&rs_bpf_counter_info[i], s->kernel_counters[i]));
	for (int i = 0; i < RS_C_COUNT; i++)
		json_array_append_new(list, ledger_row(&rs_counter_info[i], s->user.v[i]));
	return list;
}

static json_t *losses(const struct rs_status_exporter *e)
{
	json_t *o = json_object();

	for (int i = 0; i < RS_STATUS_LOSSES && e->lost[i].name; i++)
		set_num(o, e->lost[i].name, e->lost[i].spans);
	return o;
}

static json_t *exporters(const struct rs_status *s)
{
	static const char *const state[] = { "idle", "ok", "failing" };
	json_t *list = json_array();

	for (const struct rs_status_exporter *e = s->exporters; e; e = e->next) {
		json_t *o = json_object();

		set_str(o, "name", e->name);
		set_str(o, "target", e->target);
		set_str(o, "state", state[e->state]);
		set_num(o, "sent", e->sent);
		set_num(o, "failed", e->failed);
		set_num(o, "queued", e->queued);
		set_str(o, "protocol", e->protocol);
		set_num(o, "queue_bytes", e->queue_bytes);
		set_num(o, "queue_max_bytes", e->queue_max_bytes);
		set_num(o, "spool_bytes", e->spool_bytes);
		set_num(o, "buffer_bytes", e->buffer_bytes);
		set_num(o, "buffer_bytes_high", e->buffer_bytes_high);
		set_num(o, "retried", e->retried);
		set_num(o, "uncertain", e->uncertain);
		set_num(o, "requests", e->requests);
		json_object_set_new(o, "lost", losses(e));
		set_age(o, "last_success_age_ns", e->last_success_age_ns);
		set_str(o, "last_error", e->last_error);
		set_age(o, "last_error_age_ns", e->last_error_age_ns);
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *capture(const struct rs_status *s)
{
	json_t *o = json_object();

	set_str(o, "backend", s->backend);
	set_num(o, "connections", s->connections);
	set_age(o, "last_record_age_ns", s->last_record_age_ns);
	json_object_set_new(o, "probes", probes(s));
	return o;
}

static json_t *rights(const struct rs_status *s)
{
	json_t *o = json_object();

	set_str(o, "capabilities", s->capabilities);
	json_object_set_new(o, "no_new_privs", json_boolean(s->no_new_privs));
	json_object_set_new(o, "seccomp", json_boolean(s->seccomp));
	set_num(o, "refused_calls", s->refused_calls);
	return o;
}

static json_t *config(const struct rs_status *s)
{
	json_t *o = json_object();

	set_str(o, "file", s->config_file);
	set_str(o, "error", s->config_error);
	set_str(o, "restart", s->config_restart);
	set_age(o, "reload_age_ns", s->reload_age_ns);
	return o;
}

static json_t *usage(const struct rs_status *s)
{
	json_t *o = json_object();

	set_num(o, "cpu_user_ns", s->cpu_user_ns);
	set_num(o, "cpu_system_ns", s->cpu_system_ns);
	set_num(o, "rss_bytes", s->rss_bytes);
	set_num(o, "map_bytes", s->map_bytes);
	json_object_set_new(o, "bpf_stats", json_boolean(s->bpf_stats));
	set_num(o, "bpf_run_ns", s->bpf_run_ns);
	set_num(o, "bpf_runs", s->bpf_runs);
	return o;
}

static json_t *kubernetes(const struct rs_status *s)
{
	json_t *o = json_object();

	set_str(o, "source", s->k8s_source);
	set_str(o, "target", s->k8s_target);
	set_str(o, "node", s->k8s_node);
	json_object_set_new(o, "synced", json_boolean(s->k8s_synced));
	json_object_set_new(o, "failing", json_boolean(s->k8s_failing));
	set_num(o, "pods", s->k8s_pods);
	set_num(o, "deleted_pods", s->k8s_deleted);
	set_num(o, "peers", s->k8s_peers);
	set_age(o, "last_success_age_ns", s->k8s_last_ok_age_ns);
	set_str(o, "last_error", s->k8s_last_error);
	set_age(o, "last_error_age_ns", s->k8s_last_error_age_ns);
	return o;
}

char *rs_status_json(const struct rs_status *s, size_t *ret_len)
{
	static const char *const state[] = { "capturing", "stopping" };
	json_t *o = json_object();
	size_t len;
	char *text;

	set_str(o, "version", s->version);
	set_str(o, "command", s->command);
	set_num(o, "pid", s->pid);
	set_num(o, "uptime_ns", s->uptime_ns);
	set_str(o, "kernel", s->kernel);
	set_str(o, "state", state[s->state]);
	set_str(o, "reason", s->reason);
	json_object_set_new(o, "config", config(s));
	json_object_set_new(o, "capture", capture(s));
	set_age(o, "last_span_age_ns", s->last_span_age_ns);
	json_object_set_new(o, "processes", processes(s));
	set_num(o, "processes_left_out", s->processes_left_out);
	json_object_set_new(o, "services", services(s));
	json_object_set_new(o, "protocols", protocols(s));
	json_object_set_new(o, "ledger", ledger(s));
	json_object_set_new(o, "exporters", exporters(s));
	if (s->k8s_source)
		json_object_set_new(o, "kubernetes", kubernetes(s));
	json_object_set_new(o, "rights", rights(s));
	json_object_set_new(o, "usage", usage(s));
	/* jansson's functions accept NULL, so one missing piece of memory shows only here. */
	len = json_dumpb(o, NULL, 0, JSON_COMPACT);
	text = len ? malloc(len + 2) : NULL;
	if (text && json_dumpb(o, text, len, JSON_COMPACT) == len) {
		text[len] = '\n';
		text[len + 1] = 0;
		*ret_len = len + 1;
	} else {
		free(text);
		text = NULL;
	}
	json_decref(o);
	return text;
}
