// SPDX-License-Identifier: Apache-2.0
#include "view.h"

#include <errno.h>
#include <fnmatch.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/human.h"
#include "base/utf8.h"

#define MAX_ROWS 20 /* of a table on the screen */
#define DOT	 " \xc2\xb7 "
#define ARROW	 "\xe2\x86\xb3 "
#define IN	 "\xe2\x86\x90" /* received */
#define OUT	 "\xe2\x86\x92" /* sent */

/* -- members, whatever they are -- */

static uint64_t num(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static const char *text(const json_t *o, const char *key, char *buf, size_t size, int cols)
{
	const json_t *v = json_object_get(o, key);

	rs_utf8_clean(buf, size, str_of(json_string_value(v), json_string_length(v)), cols);
	return buf;
}

#define TEXT(o, key, cols) text(o, key, (char[512]){ 0 }, 512, cols)

static bool is(const json_t *o, const char *key, const char *value)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s && !strcmp(s, value);
}

#define COUNT(n)    rs_human_count((char[RS_HUMAN]){ 0 }, n)
#define BYTES(n)    rs_human_bytes((char[RS_HUMAN]){ 0 }, n)
#define DURATION(n) rs_human_duration((char[RS_HUMAN]){ 0 }, n)

static uint64_t sum(const json_t *list, const char *key)
{
	uint64_t total = 0;
	size_t i;
	json_t *o;

	json_array_foreach(list, i, o) total += num(o, key);
	return total;
}

/* -- the screen -- */

/* One line of facts with dots between them; what does not fit goes on under the first one. */
struct facts {
	FILE *out;
	const struct rs_view *v;
	int at;
	bool first;
};

#define INDENT 12

static void facts_begin(struct facts *f, FILE *out, const struct rs_view *v, const char *title)
{
	*f = (struct facts){ .out = out, .v = v, .at = INDENT, .first = true };
	fprintf(out, "  %s%-9s%s ", v->style.bold, title, v->style.reset);
}

__attribute__((format(printf, 3, 4))) static void fact(struct facts *f, const char *color,
						       const char *fmt, ...)
{
	char buf[1024];
	va_list ap;
	int w;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	w = rs_utf8_width(str_c(buf));
	if (!f->first && f->v->width && f->at + 3 + w > f->v->width) {
		fprintf(f->out, "\n%*s", INDENT, "");
		f->at = INDENT;
	} else if (!f->first) {
		fputs(DOT, f->out);
		f->at += 3;
	}
	fprintf(f->out, "%s%s%s", color, buf, *color ? f->v->style.reset : "");
	f->at += w;
	f->first = false;
}

/* "last record 0.2s ago", when it has happened. */
static void fact_age(struct facts *f, const json_t *o, const char *key, const char *what)
{
	if (json_object_get(o, key))
		fact(f, "", "%s %s ago", what, DURATION(num(o, key)));
	else
		fact(f, "", "%s never", what);
}

/* Words from column `indent` on, where the line is already; ends the line. */
static void prose(FILE *out, const struct rs_view *v, const char *color, int indent,
		  const char *words)
{
	struct str rest = str_c(words), word;
	int at = indent;

	fputs(color, out);
	while (rest.len) {
		int w;

		rest = str_cut(rest, ' ', &word);
		w = rs_utf8_width(word);
		if (at > indent && v->width && at + 1 + w > v->width) {
			fprintf(out, "\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", STR_ARG(word));
		at += w;
	}
	fprintf(out, "%s\n", *color ? v->style.reset : "");
}

static void put_capture(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *c = json_object_get(o, "capture"), *probes = json_object_get(c, "probes"), *p;
	bool good = is(o, "state", "capturing");
	size_t i, on = 0, failed = 0;
	struct facts f;

	json_array_foreach(probes, i, p)
	{
		on += is(p, "state", "attached");
		failed += is(p, "state", "failed");
	}
	facts_begin(&f, out, v, "Capture");
	fact(&f, good ? v->style.green : v->style.red, "%s", TEXT(o, "state", 20));
	if (*TEXT(o, "reason", 0))
		fact(&f, v->style.red, "%s", TEXT(o, "reason", 0));
	fact(&f, "", "%s backend", TEXT(c, "backend", 20));
	fact(&f, "", "%zu probes", on);
	if (failed)
		fact(&f, v->style.yellow, "%zu missing", failed);
	fact_age(&f, c, "last_record_age_ns", "last record");
	fputc('\n', out);
}

/* Change per second of a sum since the snapshot before; negative when there is none. */
static double rate(const struct rs_view *v, const json_t *o, const char *key)
{
	uint64_t now, then, from, to;

	if (!v->last)
		return -1;
	to = num(o, "uptime_ns");
	from = num(v->last, "uptime_ns");
	now = sum(json_object_get(o, "protocols"), key);
	then = sum(json_object_get(v->last, "protocols"), key);
	if (to <= from || now < then || num(o, "pid") != num(v->last, "pid"))
		return -1;
	return (double)(now - then) * 1e9 / (double)(to - from);
}

static void fact_sum(struct facts *f, const json_t *o, const char *key)
{
	double per_s = rate(f->v, o, key);
	uint64_t n = sum(json_object_get(o, "protocols"), key);

	if (per_s >= 0)
		fact(f, "", "%s %s (%s/s)", COUNT(n), key, COUNT((uint64_t)(per_s + 0.5)));
	else
		fact(f, "", "%s %s", COUNT(n), key);
}

static void put_traffic(FILE *out, const struct rs_view *v, const json_t *o)
{
	struct facts f;

	facts_begin(&f, out, v, "Traffic");
	fact(&f, "", "%s connections", COUNT(num(json_object_get(o, "capture"), "connections")));
	fact_sum(&f, o, "requests");
	fact_sum(&f, o, "spans");
	fact_age(&f, o, "last_span_age_ns", "last span");
	fputc('\n', out);
}

struct stage {
	const char *name;
	uint64_t in, out, dropped, held;
};

#define MAX_STAGES 24

static size_t stages(const json_t *ledger, struct stage st[MAX_STAGES])
{
	size_t n = 0, i, k;
	json_t *row;

	json_array_foreach(ledger, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "stage"));
		uint64_t value = num(row, "value");

		for (k = 0; name && k < n && strcmp(st[k].name, name); k++)
			;
		if (!name || (k == n && n == MAX_STAGES))
			continue;
		if (k == n)
			st[n++] = (struct stage){ .name = name };
		if (is(row, "kind", "in"))
			st[k].in += value;
		else if (is(row, "kind", "out"))
			st[k].out += value;
		else if (is(row, "kind", "dropped"))
			st[k].dropped += value;
		else if (is(row, "kind", "held"))
			st[k].held += value;
	}
	return n;
}

/* Of the stage that a row belongs to: what entered it. */
static uint64_t entered(const json_t *ledger, const json_t *row)
{
	struct stage st[MAX_STAGES];
	size_t n = stages(ledger, st);

	for (size_t i = 0; i < n; i++) {
		if (is(row, "stage", st[i].name))
			return st[i].in ? st[i].in : st[i].out + st[i].dropped;
	}
	return 0;
}

/* ledger: to say how much of all that entered the stage it was; NULL: it is no part of that. */
static void put_loss(FILE *out, const struct rs_view *v, const char *color, const json_t *ledger,
		     const json_t *row)
{
	uint64_t value = num(row, "value"), of = ledger ? entered(ledger, row) : 0;
	char share[16] = "", line[700];
	double percent = of ? 100.0 * (double)value / (double)of : 0;

	if (of && percent < 0.01)
		snprintf(share, sizeof(share), "<0.01%%");
	else if (of)
		snprintf(share, sizeof(share), "%.2f%%", percent);
	fprintf(out, "    %s%7s%s %7s  ", color, COUNT(value), v->style.reset, share);
	snprintf(line, sizeof(line), "%s.%s: %s", TEXT(row, "stage", 20), TEXT(row, "name", 30),
		 TEXT(row, "help", 0));
	prose(out, v, "", 21, line);
	if (*TEXT(row, "remedy", 0)) {
		snprintf(line, sizeof(line), ARROW "%s", TEXT(row, "remedy", 0));
		fprintf(out, "%21s", "");
		prose(out, v, v->style.yellow, 21, line);
	}
}

/* A loss has a remedy; what is passed over because it is of no interest has none. */
static bool is_loss(const json_t *row)
{
	return is(row, "kind", "dropped") && num(row, "value") &&
	       json_string_length(json_object_get(row, "remedy"));
}

/* Nothing was lost, but something was not seen, and that can be changed. */
static bool is_blind(const json_t *row)
{
	return is(row, "kind", "info") && num(row, "value") &&
	       json_string_length(json_object_get(row, "remedy"));
}

/* Only when something of it is not as its writer thinks. */
static void put_config(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *config = json_object_get(o, "config");
	char error[600], restart[600];
	struct facts f;

	text(config, "error", error, sizeof(error), 0);
	text(config, "restart", restart, sizeof(restart), 0);
	if (!*error && !*restart)
		return;
	facts_begin(&f, out, v, "Config");
	if (*error)
		fact(&f, v->style.red, "not reloaded: %s", error);
	if (*restart)
		fact(&f, v->style.yellow, "needs a restart: %s", restart);
	fputc('\n', out);
}

static void put_losses(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *ledger = json_object_get(o, "ledger"), *row;
	size_t i, kinds = 0;
	struct facts f;

	json_array_foreach(ledger, i, row) kinds += is_loss(row);
	facts_begin(&f, out, v, "Losses");
	if (kinds)
		fact(&f, v->style.red, "%zu kind%s", kinds, kinds == 1 ? "" : "s");
	else
		fact(&f, v->style.green, "none");
	fputc('\n', out);
	json_array_foreach(ledger, i, row)
	{
		if (is_loss(row))
			put_loss(out, v, v->style.red, ledger, row);
	}
	json_array_foreach(ledger, i, row)
	{
		if (is_blind(row))
			put_loss(out, v, v->style.yellow, NULL, row);
	}
}

/* "12 queue_full": each cause by its name; without causes what there is. */
static void put_causes(struct facts *f, const struct rs_view *v, const json_t *e)
{
	const json_t *lost = json_object_get(e, "lost");
	const char *cause;
	const json_t *n;
	bool any = false;

	json_object_foreach((json_t *)lost, cause, n)
	{
		if (json_integer_value(n) <= 0)
			continue;
		fact(f, v->style.red, "%s %s", COUNT(num(lost, cause)), cause);
		any = true;
	}
	if (!any && num(e, "failed"))
		fact(f, v->style.red, "%s failed", COUNT(num(e, "failed")));
}

static void put_exports(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *e;
	size_t i;

	json_array_foreach(json_object_get(o, "exporters"), i, e)
	{
		bool failing = is(e, "state", "failing");
		struct facts f;

		facts_begin(&f, out, v, i ? "" : "Export");
		fact(&f, failing ? v->style.red : v->style.green, "%s", TEXT(e, "state", 20));
		fact(&f, "", "%s%s%s", TEXT(e, "name", 20), *TEXT(e, "target", 60) ? " to " : "",
		     TEXT(e, "target", 60));
		fact(&f, "", "%s sent", COUNT(num(e, "sent")));
		if (*TEXT(e, "protocol", 30))
			fact(&f, "", "%s", TEXT(e, "protocol", 30));
		put_causes(&f, v, e);
		if (num(e, "queued"))
			fact(&f, "", "%s queued", COUNT(num(e, "queued")));
		fact_age(&f, e, "last_success_age_ns", "last success");
		fputc('\n', out);
		if (*TEXT(e, "last_error", 0)) {
			char line[600];

			snprintf(line, sizeof(line), ARROW "%s ago: %s",
				 DURATION(num(e, "last_error_age_ns")), TEXT(e, "last_error", 0));
			fprintf(out, "%*s", INDENT, "");
			prose(out, v, failing ? v->style.red : v->style.dim, INDENT, line);
		}
	}
}

static void put_cost(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *u = json_object_get(o, "usage");
	uint64_t cpu = num(u, "cpu_user_ns") + num(u, "cpu_system_ns"), up = num(o, "uptime_ns"),
		 all = cpu;
	struct facts f;

	if (v->last && num(v->last, "pid") == num(o, "pid") && up > num(v->last, "uptime_ns")) {
		const json_t *before = json_object_get(v->last, "usage");
		uint64_t was = num(before, "cpu_user_ns") + num(before, "cpu_system_ns");

		cpu = cpu > was ? cpu - was : 0;
		up -= num(v->last, "uptime_ns");
	}
	facts_begin(&f, out, v, "Cost");
	fact(&f, "", "CPU %s (%.1f%%)", DURATION(all), up ? 100.0 * (double)cpu / (double)up : 0.0);
	fact(&f, "", "%s memory", BYTES(num(u, "rss_bytes")));
	fact(&f, "", "%s BPF maps", BYTES(num(u, "map_bytes")));
	if (json_is_true(json_object_get(u, "bpf_stats")) && num(u, "bpf_runs"))
		fact(&f, "", "BPF %s, %s a run", DURATION(num(u, "bpf_run_ns")),
		     DURATION(num(u, "bpf_run_ns") / num(u, "bpf_runs")));
	fputc('\n', out);
}

static void put_kubernetes(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *k = json_object_get(o, "kubernetes");
	bool failing = json_is_true(json_object_get(k, "failing"));
	bool synced = json_is_true(json_object_get(k, "synced"));
	char line[1100];
	struct facts f;

	if (!k)
		return;
	facts_begin(&f, out, v, "Pods");
	fact(&f, "", "%s of %s", COUNT(num(k, "pods")), TEXT(k, "node", 60));
	fact(&f, synced ? "" : v->style.red, synced ? "by %s" : "none heard of yet by %s",
	     TEXT(k, "source", 0));
	if (num(k, "peers"))
		fact(&f, "", "%s peers", COUNT(num(k, "peers")));
	if (json_object_get(k, "last_success_age_ns"))
		fact(&f, "", "heard of %s ago", DURATION(num(k, "last_success_age_ns")));
	fputc('\n', out);
	if (!failing)
		return;
	snprintf(line, sizeof(line), "%s: %s", TEXT(k, "target", 200), TEXT(k, "last_error", 0));
	fprintf(out, "    ");
	prose(out, v, v->style.red, 4, line);
}

static void put_rights(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *r = json_object_get(o, "rights");
	struct facts f;

	if (!r)
		return;
	facts_begin(&f, out, v, "Rights");
	fact(&f, "", "%s", TEXT(r, "capabilities", 0));
	fact(&f, "", "%s",
	     json_is_true(json_object_get(r, "seccomp")) ? "system calls filtered"
							 : "no system call filter");
	if (num(r, "refused_calls"))
		fact(&f, v->style.red, "%s refused: report it", COUNT(num(r, "refused_calls")));
	fputc('\n', out);
}

static void put_failed_probes(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *p, *list = json_object_get(json_object_get(o, "capture"), "probes");
	char line[1100];
	size_t i, n = 0;

	json_array_foreach(list, i, p)
	{
		if (!is(p, "state", "failed"))
			continue;
		if (!n++)
			fprintf(out, "\n  %sMISSING PROBES%s\n", v->style.bold, v->style.reset);
		snprintf(line, sizeof(line), "%s (%s): %s", TEXT(p, "name", 40),
			 TEXT(p, "purpose", 60), TEXT(p, "reason", 0));
		fputs("  ", out);
		prose(out, v, v->style.yellow, 2, line);
	}
}

/* Most spans first, then most connections; what has neither but a reason comes last. */
static int by_weight(const void *a, const void *b)
{
	static const char *const keys[] = { "spans", "requests", "connections" };
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;

	for (size_t i = 0; i < 3; i++) {
		uint64_t m = num(x, keys[i]), n = num(y, keys[i]);

		if (m != n)
			return m > n ? -1 : 1;
	}
	return num(x, "pid") < num(y, "pid") ? -1 : 1;
}

static void put_process(FILE *out, const struct rs_view *v, const json_t *p)
{
	uint64_t errors = num(p, "errors");
	/* What stands before the last column is 63 columns wide. */
	int left = v->width > 63 ? v->width - 63 : 0;
	char comm[80], note[512], service[1024], pod[512], rule[256];
	int pad;

	text(p, "comm", comm, sizeof(comm), 16);
	pad = 16 - rs_utf8_width(str_c(comm));
	fprintf(out, "  %s%*s %7llu %7s %9s %9s %s%6s%s", comm, pad > 0 ? pad : 0, "",
		(unsigned long long)num(p, "pid"), COUNT(num(p, "connections")),
		COUNT(num(p, "requests")), COUNT(num(p, "spans")), errors ? v->style.red : "",
		errors ? COUNT(errors) : "-", errors ? v->style.reset : "");
	text(p, "service", service, sizeof(service), left);
	text(p, "pod", pod, sizeof(pod), 0);
	if (*pod && rs_utf8_width(str_c(service)) + 2 + rs_utf8_width(str_c(pod)) <= left)
		snprintf(service + strlen(service), sizeof(service) - strlen(service), "  %s", pod);
	text(p, "why_not", note, sizeof(note), 0);
	if (*service)
		fprintf(out, "  %s", service);
	/* What is traced for a rule's sake says so, if there is room. */
	text(p, "rule", rule, sizeof(rule), 0);
	if (*rule && !*note &&
	    rs_utf8_width(str_c(service)) + rs_utf8_width(str_c(rule)) + 2 <= left)
		fprintf(out, "  %s%s%s", v->style.dim, rule, v->style.reset);
	if (*note && v->width &&
	    left < rs_utf8_width(str_c(service)) + rs_utf8_width(str_c(note)) + 2) {
		/* A reason that does not fit beside the rest gets its own lines. */
		fprintf(out, "\n    " ARROW);
		prose(out, v, v->style.yellow, 6, note);
		return;
	}
	if (*note)
		fprintf(out, "  %s%s%s", v->style.yellow, note, v->style.reset);
	fputc('\n', out);
}

static void put_processes(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *list = json_object_get(o, "processes");
	size_t n = json_array_size(list), shown = 0;
	json_t **row = n ? malloc(n * sizeof(*row)) : NULL;

	if (!n && json_is_true(json_object_get(o, "filtered")))
		fprintf(out, "\n  %sno traced process matches%s\n", v->style.yellow,
			v->style.reset);
	if (!row)
		return;
	for (size_t i = 0; i < n; i++)
		row[i] = json_array_get(list, i);
	qsort(row, n, sizeof(*row), by_weight);
	fprintf(out, "\n  %s%-16s %7s %7s %9s %9s %6s  %s%s\n", v->style.bold, "PROCESS", "PID",
		"CONNS", "REQUESTS", "SPANS", "ERRORS", "SERVICE, WHY NOT", v->style.reset);
	for (size_t i = 0; i < n && shown < MAX_ROWS; i++, shown++)
		put_process(out, v, row[i]);
	n += num(o, "processes_left_out");
	if (n > shown)
		fprintf(out, "  %s… and %zu more; --json or --dump shows them%s\n", v->style.dim,
			n - shown, v->style.reset);
	free(row);
}

/* -- services: since the snapshot before, or since the start when there is none -- */

#define MAX_SERVICES 1026

struct service {
	const json_t *o, *before; /* before: NULL: since the start */
	uint64_t spans, errors, p50, p99;
};

static const json_t *same_service(const json_t *list, const json_t *one)
{
	const char *name = json_string_value(json_object_get(one, "service"));
	const char *kind = json_string_value(json_object_get(one, "kind"));
	const json_t *o;
	size_t i;

	json_array_foreach(list, i, o)
	{
		if (name && kind && is(o, "service", name) && is(o, "kind", kind))
			return o;
	}
	return NULL;
}

static uint64_t at(const json_t *pair, size_t i)
{
	json_int_t v = json_integer_value(json_array_get(pair, i));

	return v > 0 ? (uint64_t)v : 0;
}

/* Where `share` of what came since `before` is reached; both are in the order of their ends. */
static uint64_t quantile(const struct service *s, double share)
{
	const json_t *now = json_object_get(s->o, "latency"), *pair;
	const json_t *then = json_object_get(s->before, "latency");
	uint64_t want = (uint64_t)((double)s->spans * share), seen = 0;
	size_t i, k = 0;

	json_array_foreach(now, i, pair)
	{
		uint64_t n = at(pair, 1), was;

		while (k < json_array_size(then) && at(json_array_get(then, k), 0) < at(pair, 0))
			k++;
		was = at(json_array_get(then, k), 0) == at(pair, 0) ? at(json_array_get(then, k), 1)
								    : 0;
		seen += n > was ? n - was : 0;
		if (seen > want)
			return at(pair, 0);
	}
	return 0;
}

static void measure(struct service *s, const json_t *o, const json_t *before)
{
	*s = (struct service){ .o = o, .before = before };
	s->spans = num(o, "spans");
	s->errors = num(o, "errors");
	if (before && num(before, "spans") <= s->spans && num(before, "errors") <= s->errors) {
		s->spans -= num(before, "spans");
		s->errors -= num(before, "errors");
	} else {
		s->before = NULL;
	}
	s->p50 = quantile(s, 0.50);
	s->p99 = quantile(s, 0.99);
}

static int by_choice(const void *a, const void *b, void *arg)
{
	const struct service *x = a, *y = b;
	uint64_t m = x->spans, n = y->spans;
	int names = strcmp(TEXT(x->o, "service", 0), TEXT(y->o, "service", 0));

	switch (*(enum rs_view_sort *)arg) {
	case RS_SORT_REQUESTS:
		break;
	case RS_SORT_ERRORS:
		m = x->errors;
		n = y->errors;
		break;
	case RS_SORT_P50:
		m = x->p50;
		n = y->p50;
		break;
	case RS_SORT_P99:
		m = x->p99;
		n = y->p99;
		break;
	case RS_SORT_NAME:
		m = n;
		break;
	}
	if (m != n)
		return m > n ? -1 : 1;
	return names ? names : strcmp(TEXT(y->o, "kind", 0), TEXT(x->o, "kind", 0));
}

/* A time at the right of 9 columns: printf counts a µ as two. */
static void put_time(FILE *out, bool any, uint64_t ns)
{
	const char *words = any ? DURATION(ns) : "-";
	int pad = 9 - rs_utf8_width(str_c(words));

	fprintf(out, "%*s%s", pad > 0 ? pad : 0, "", words);
}

static void put_service(FILE *out, const struct rs_view *v, const struct service *s, double seconds)
{
	const char *name = TEXT(s->o, "service", 30);
	bool client = is(s->o, "kind", "client");
	char rate_text[32] = "";
	int pad;

	if (!*name)
		name = "(all others)";
	pad = 30 - rs_utf8_width(str_c(name));
	if (seconds > 0)
		snprintf(rate_text, sizeof(rate_text), "%.1f", (double)s->spans / seconds);
	fprintf(out, "  %s %s%*s %9s %9s %s%8s%s", client ? OUT : IN, name, pad > 0 ? pad : 0, "",
		COUNT(num(s->o, "spans")), rate_text, s->errors ? v->style.red : "",
		s->errors ? COUNT(s->errors) : "-", s->errors ? v->style.reset : "");
	put_time(out, s->spans, s->p50);
	put_time(out, s->spans, s->p99);
	fputc('\n', out);
}

static void put_services(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *list = json_object_get(o, "services"), *last = NULL;
	size_t n = json_array_size(list), shown = 0;
	uint64_t up = num(o, "uptime_ns"), from = 0;
	enum rs_view_sort sort = v->sort;
	struct service *row;

	if (n > MAX_SERVICES)
		n = MAX_SERVICES;
	row = n ? malloc(n * sizeof(*row)) : NULL;
	if (!row)
		return;
	if (v->last && num(v->last, "pid") == num(o, "pid") && num(v->last, "uptime_ns") < up) {
		last = json_object_get(v->last, "services");
		from = num(v->last, "uptime_ns");
	}
	for (size_t i = 0; i < n; i++) {
		const json_t *one = json_array_get(list, i);

		measure(&row[i], one, last ? same_service(last, one) : NULL);
	}
	qsort_r(row, n, sizeof(*row), by_choice, &sort);
	fprintf(out, "\n  %s%-32s %9s %9s %8s %8s %8s%s\n", v->style.bold, "SERVICE", "SPANS",
		"SPANS/S", "ERRORS", "P50", "P99", v->style.reset);
	for (; shown < n && shown < MAX_ROWS; shown++)
		put_service(out, v, &row[shown], (double)(up - from) / 1e9);
	if (n > shown)
		fprintf(out, "  %s… and %zu more; --json or --dump shows them%s\n", v->style.dim,
			n - shown, v->style.reset);
	free(row);
}

static void put_protocols(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *p, *list = json_object_get(o, "protocols");
	size_t i, n = 0;

	json_array_foreach(list, i, p)
	{
		uint64_t errors = num(p, "errors");

		if (!num(p, "connections") && !num(p, "requests") && !num(p, "spans"))
			continue;
		if (!n++)
			fprintf(out, "\n  %s%-16s %7s %9s %9s %6s%s\n", v->style.bold, "PROTOCOL",
				"CONNS", "REQUESTS", "SPANS", "ERRORS", v->style.reset);
		fprintf(out, "  %-16s %7s %9s %9s %s%6s%s\n", TEXT(p, "name", 16),
			COUNT(num(p, "connections")), COUNT(num(p, "requests")),
			COUNT(num(p, "spans")), errors ? v->style.red : "",
			errors ? COUNT(errors) : "-", errors ? v->style.reset : "");
	}
}

static void put_ledger(FILE *out, const struct rs_view *v, const json_t *o)
{
	struct stage st[MAX_STAGES];
	size_t n = stages(json_object_get(o, "ledger"), st);
	bool headed = false;

	for (size_t i = 0; i < n; i++) {
		struct stage *s = &st[i];
		uint64_t gone = s->out + s->dropped + s->held;
		char name[80];

		if (!s->in && !gone)
			continue;
		if (!headed)
			fprintf(out, "\n  %s%-16s %9s %9s %9s %9s%s\n", v->style.bold, "STAGE",
				"IN", "OUT", "DROPPED", "HELD", v->style.reset);
		headed = true;
		rs_utf8_clean(name, sizeof(name), str_c(s->name), 16);
		fprintf(out, "  %-16s %9s %9s %s%9s%s %9s", name, s->in ? COUNT(s->in) : "-",
			COUNT(s->out), s->dropped ? v->style.red : "",
			s->dropped ? COUNT(s->dropped) : "-", s->dropped ? v->style.reset : "",
			s->held ? COUNT(s->held) : "-");
		if (s->in && s->in != gone)
			fprintf(out, "  %s%s unaccounted for%s", v->style.red,
				COUNT(s->in > gone ? s->in - gone : gone - s->in), v->style.reset);
		fputc('\n', out);
	}
}

void rs_view_init(struct rs_view *v, bool color, int width)
{
	*v = (struct rs_view){ .width = width };
	rs_style_init(&v->style, color);
}

void rs_view_release(struct rs_view *v)
{
	json_decref(v->last);
	v->last = NULL;
}

int rs_view_text(struct rs_view *v, struct str json, FILE *out)
{
	json_t *o = json_loadb(json.ptr, json.len, 0, NULL);

	if (!json_is_object(o)) {
		json_decref(o);
		return -EBADMSG;
	}
	fprintf(out, "%sringspan %s%s  %s, pid %llu, up %s, kernel %s\n\n", v->style.bold,
		TEXT(o, "version", 20), v->style.reset, TEXT(o, "command", 12),
		(unsigned long long)num(o, "pid"), DURATION(num(o, "uptime_ns")),
		TEXT(o, "kernel", 60));
	put_capture(out, v, o);
	put_traffic(out, v, o);
	put_config(out, v, o);
	put_losses(out, v, o);
	put_exports(out, v, o);
	put_cost(out, v, o);
	put_kubernetes(out, v, o);
	put_rights(out, v, o);
	put_failed_probes(out, v, o);
	put_services(out, v, o);
	put_processes(out, v, o);
	if (!json_is_true(json_object_get(o, "filtered"))) {
		put_protocols(out, v, o);
		put_ledger(out, v, o);
	}
	json_decref(v->last);
	v->last = o;
	return 0;
}

/* -- what is wanted of it -- */

bool rs_view_filters(const struct rs_view_filter *f)
{
	return f->npids || f->ncomms || f->service || f->pod;
}

static bool matches(const json_t *o, const char *key, const char *glob)
{
	const char *value = json_string_value(json_object_get(o, key));

	return value && fnmatch(glob, value, 0) == 0;
}

/* A glob without a namespace is one of names. */
static bool pod_matches(const json_t *o, const char *glob)
{
	const char *pod = json_string_value(json_object_get(o, "pod"));
	const char *slash = pod ? strchr(pod, '/') : NULL;

	if (slash && !strchr(glob, '/'))
		pod = slash + 1;
	return pod && *pod && fnmatch(glob, pod, 0) == 0;
}

static bool wanted(const struct rs_view_filter *f, const json_t *process)
{
	bool pid = !f->npids, comm = !f->ncomms;

	for (uint32_t i = 0; i < f->npids; i++)
		pid |= num(process, "pid") == f->pids[i];
	for (uint32_t i = 0; i < f->ncomms; i++)
		comm |= is(process, "comm", f->comms[i]);
	return pid && comm && (!f->service || matches(process, "service", f->service)) &&
	       (!f->pod || pod_matches(process, f->pod));
}

/* A service is some process's; one whose processes have ended is known by its name alone. */
static bool service_wanted(const struct rs_view_filter *f, const json_t *service,
			   const json_t *processes)
{
	const char *name = json_string_value(json_object_get(service, "service"));
	const json_t *p;
	size_t i;

	if (f->service && matches(service, "service", f->service) && !f->npids && !f->ncomms &&
	    !f->pod)
		return true;
	json_array_foreach(processes, i, p)
	{
		if (name && is(p, "service", name))
			return true;
	}
	return false;
}

char *rs_view_filter(const struct rs_view_filter *f, struct str json, size_t *ret_len)
{
	json_t *o = json_loadb(json.ptr, json.len, 0, NULL), *all, *kept, *services, *one;
	char *out;
	size_t i;

	if (!json_is_object(o)) {
		json_decref(o);
		return NULL;
	}
	kept = json_array();
	services = json_array();
	all = json_object_get(o, "processes");
	json_array_foreach(all, i, one)
	{
		if (wanted(f, one))
			json_array_append(kept, one);
	}
	all = json_object_get(o, "services");
	json_array_foreach(all, i, one)
	{
		if (service_wanted(f, one, kept))
			json_array_append(services, one);
	}
	json_object_set_new(o, "processes", kept);
	json_object_set_new(o, "services", services);
	json_object_set_new(o, "filtered", json_true());
	out = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	*ret_len = out ? strlen(out) : 0;
	return out;
}

/* -- tab-separated -- */

/* One line: the kind, then the members' values; keys ends in NULL. Text has no tab: it was cleaned. */
static void dump_row(FILE *out, const char *kind, const json_t *o, const char *const *keys)
{
	fputs(kind, out);
	for (; *keys; keys++) {
		const json_t *v = json_object_get(o, *keys);

		if (json_is_integer(v))
			fprintf(out, "\t%lld", (long long)json_integer_value(v));
		else if (json_is_boolean(v))
			fprintf(out, "\t%d", json_is_true(v));
		else
			fprintf(out, "\t%s", TEXT(o, *keys, 0));
	}
	fputc('\n', out);
}

#define KEYS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void dump_list(FILE *out, const char *kind, const json_t *list, const char *const *keys)
{
	const json_t *o;
	size_t i;

	json_array_foreach(list, i, o) dump_row(out, kind, o, keys);
}

int rs_view_dump(struct str json, FILE *out)
{
	json_t *o = json_loadb(json.ptr, json.len, 0, NULL), *c;

	if (!json_is_object(o)) {
		json_decref(o);
		return -EBADMSG;
	}
	c = json_object_get(o, "capture");
	dump_row(out, "agent", o,
		 KEYS("version", "command", "pid", "uptime_ns", "kernel", "state", "reason"));
	json_object_set(c, "last_span_age_ns", json_object_get(o, "last_span_age_ns"));
	dump_row(out, "capture", c,
		 KEYS("backend", "connections", "last_record_age_ns", "last_span_age_ns"));
	dump_list(out, "probe", json_object_get(c, "probes"),
		  KEYS("name", "state", "purpose", "reason"));
	dump_list(out, "process", json_object_get(o, "processes"),
		  KEYS("pid", "comm", "service", "connections", "requests", "spans", "errors",
		       "why_not", "pod", "tls", "tls_plain_bytes", "rule"));
	dump_list(out, "protocol", json_object_get(o, "protocols"),
		  KEYS("name", "connections", "requests", "spans", "errors"));
	dump_list(out, "ledger", json_object_get(o, "ledger"),
		  KEYS("stage", "name", "kind", "value"));
	dump_list(out, "exporter", json_object_get(o, "exporters"),
		  KEYS("name", "target", "state", "sent", "failed", "queued", "last_success_age_ns",
		       "last_error", "last_error_age_ns", "protocol", "retried", "uncertain",
		       "queue_bytes", "spool_bytes"));
	dump_row(out, "usage", json_object_get(o, "usage"),
		 KEYS("cpu_user_ns", "cpu_system_ns", "rss_bytes", "map_bytes", "bpf_run_ns",
		      "bpf_runs"));
	dump_list(out, "service", json_object_get(o, "services"),
		  KEYS("service", "kind", "spans", "errors", "p50_ns", "p99_ns"));
	dump_row(out, "rights", json_object_get(o, "rights"),
		 KEYS("capabilities", "no_new_privs", "seccomp", "refused_calls"));
	dump_row(out, "kubernetes", json_object_get(o, "kubernetes"),
		 KEYS("source", "target", "node", "synced", "failing", "pods", "deleted_pods",
		      "last_success_age_ns", "last_error", "last_error_age_ns"));
	json_decref(o);
	return 0;
}

bool rs_view_error(struct str json, char *buf, size_t size)
{
	json_t *o = json_loadb(json.ptr, json.len, 0, NULL);
	bool has = json_is_string(json_object_get(o, "error"));

	if (has)
		text(o, "error", buf, size, 0);
	json_decref(o);
	return has;
}
