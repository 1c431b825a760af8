// SPDX-License-Identifier: Apache-2.0
#include "status.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/human.h"
#include "base/utf8.h"
#include "services.h"

#define CHUNK (64 * 1024)

static const struct {
	const char *name, *help, *remedy;
	enum rs_counter_kind kind;
} kernel_info[RS_STATUS_K_COUNT] = {
#define RS_BPF_COUNTER(id, k, n, h, r) [RS_STATUS_K_##id] = { n, h, r, RS_CK_##k },
#include "shared/counters.def"
#undef RS_BPF_COUNTER
};

static uint64_t tv_ns(struct timeval tv)
{
	return (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u;
}

/* Resident set size in bytes, 0 when it cannot be known. */
static uint64_t own_rss(void)
{
	unsigned long long size, resident;
	FILE *f = fopen("/proc/self/statm", "re");
	int n;

	if (!f)
		return 0;
	n = fscanf(f, "%llu %llu", &size, &resident);
	fclose(f);
	return n == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

void rs_status_init(struct rs_status *s)
{
	struct utsname uts;
	struct rusage ru;

	memset(s, 0, sizeof(*s));
	rs_arena_init(&s->arena, CHUNK, RS_STATUS_ARENA);
	s->probes_end = &s->probes;
	s->processes_end = &s->processes;
	s->protocols_end = &s->protocols;
	s->services_end = &s->services;
	s->exporters_end = &s->exporters;
	s->last_record_age_ns = s->last_span_age_ns = s->reload_age_ns = RS_STATUS_NEVER;
	s->version = RS_VERSION;
	s->pid = (uint32_t)getpid();
	if (!uname(&uts))
		s->kernel = rs_status_str(s, str_c(uts.release));
	if (!getrusage(RUSAGE_SELF, &ru)) {
		s->cpu_user_ns = tv_ns(ru.ru_utime);
		s->cpu_system_ns = tv_ns(ru.ru_stime);
	}
	s->rss_bytes = own_rss();
}

void rs_status_release(struct rs_status *s)
{
	rs_arena_release(&s->arena);
}

#define ADD(s, list, type)                                                                         \
	({                                                                                         \
		struct type *e_ = rs_arena_alloc(&(s)->arena, sizeof(*e_));                        \
		if (e_) {                                                                          \
			memset(e_, 0, sizeof(*e_));                                                \
			*(s)->list##_end = e_;                                                     \
			(s)->list##_end = &e_->next;                                               \
		}                                                                                  \
		e_;                                                                                \
	})

struct rs_status_probe *rs_status_add_probe(struct rs_status *s)
{
	return ADD(s, probes, rs_status_probe);
}

struct rs_status_process *rs_status_add_process(struct rs_status *s)
{
	struct rs_status_process *p = ADD(s, processes, rs_status_process);

	if (!p)
		s->processes_left_out++;
	return p;
}

struct rs_status_protocol *rs_status_add_protocol(struct rs_status *s)
{
	return ADD(s, protocols, rs_status_protocol);
}

struct rs_status_service *rs_status_add_service(struct rs_status *s)
{
	return ADD(s, services, rs_status_service);
}

struct rs_status_exporter *rs_status_add_exporter(struct rs_status *s)
{
	struct rs_status_exporter *e = ADD(s, exporters, rs_status_exporter);

	if (e)
		e->last_success_age_ns = e->last_error_age_ns = RS_STATUS_NEVER;
	return e;
}

const char *rs_status_str(struct rs_status *s, struct str text)
{
	char *p = rs_arena_alloc(&s->arena, text.len + 1);

	if (!p)
		return "";
	if (text.len)
		memcpy(p, text.ptr, text.len);
	p[text.len] = 0;
	return p;
}

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

static void ledger_row(json_t *list, const char *stage, const char *name, const char *kind,
		       uint64_t value, const char *help, const char *remedy)
{
	json_t *o = json_object();

	set_str(o, "stage", stage);
	set_str(o, "name", name);
	set_str(o, "kind", kind);
	set_num(o, "value", value);
	set_str(o, "help", help);
	set_str(o, "remedy", remedy);
	json_array_append_new(list, o);
}

static json_t *ledger(const struct rs_status *s)
{
	static const char *const kind[] = { "in", "out", "dropped", "held", "info" };
	json_t *list = json_array();

	for (int i = 0; i < RS_STATUS_K_COUNT; i++) {
		ledger_row(list, "kernel", kernel_info[i].name, kind[kernel_info[i].kind],
			   s->kernel_counters[i], kernel_info[i].help, kernel_info[i].remedy);
	}
	for (int i = 0; i < RS_C_COUNT; i++) {
		const struct rs_counter_info *c = &rs_counter_info[i];

		ledger_row(list, c->stage, c->name, kind[c->kind], s->user.v[i], c->help,
			   c->remedy);
	}
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
	static const char *const state[] = { "starting", "capturing", "stopping", "failed" };
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

struct line {
	char *buf;
	size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void line_add(struct line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->buf + l->len, l->size - l->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		l->len += (size_t)n < l->size - l->len ? (size_t)n : l->size - l->len - 1;
}

/* "lost: 12 kernel.ring_full (raise --ring-size)": what has no remedy was not of interest. */
static void add_loss(struct line *l, const char *stage, const char *name, const char *remedy,
		     uint64_t n)
{
	char count[RS_HUMAN];

	if (n && *remedy)
		line_add(l, "%s%s %s.%s (%s)", l->len ? ", " : "lost: ", rs_human_count(count, n),
			 stage, name, remedy);
}

const char *rs_status_losses(char *buf, size_t size, const struct rs_counters *user,
			     const uint64_t *kernel)
{
	struct line l = { buf, size, 0 };

	for (int i = 0; kernel && i < RS_STATUS_K_COUNT; i++) {
		if (kernel_info[i].kind == RS_CK_DROPPED)
			add_loss(&l, "kernel", kernel_info[i].name, kernel_info[i].remedy,
				 kernel[i]);
	}
	for (int i = 0; i < RS_C_COUNT; i++) {
		const struct rs_counter_info *c = &rs_counter_info[i];

		if (c->kind == RS_CK_DROPPED)
			add_loss(&l, c->stage, c->name, c->remedy, user->v[i]);
	}
	if (!l.len)
		line_add(&l, "nothing lost");
	return buf;
}

const char *rs_status_summary(char *buf, size_t size, const struct rs_counters *user,
			      const uint64_t *kernel, uint64_t elapsed_ns)
{
	uint64_t in = user->v[RS_C_TRACE_SERVER], out = user->v[RS_C_TRACE_CLIENT];
	uint64_t spans = user->v[RS_C_TRACE_SPANS], errors = user->v[RS_C_TRACE_ERRORS];
	double seconds = (double)elapsed_ns / 1e9;
	struct line l = { buf, size, 0 };
	char a[RS_HUMAN], b[RS_HUMAN], c[RS_HUMAN];

	line_add(&l, "%s span%s (%s received, %s sent)", rs_human_count(a, spans),
		 spans == 1 ? "" : "s", rs_human_count(b, in), rs_human_count(c, out));
	/* Where both ends are traced a request has two spans. */
	if (elapsed_ns)
		line_add(&l, " in %s, %.1f requests/s", rs_human_duration(a, elapsed_ns),
			 (double)(in > out ? in : out) / seconds);
	if (errors)
		line_add(&l, ", %s with an error", rs_human_count(a, errors));
	line_add(&l, "; ");
	rs_status_losses(buf + l.len, size - l.len, user, kernel);
	return buf;
}
