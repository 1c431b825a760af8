// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>

#include "view_parts.h"

#define DOT " \xc2\xb7 "

void rs_view_begin(struct rs_view_line *f, FILE *out, const struct rs_view *v, const char *title)
{
	*f = (struct rs_view_line){ .out = out, .v = v, .at = VIEW_INDENT, .first = true };
	fprintf(out, "  %s%-9s%s ", v->style.bold, title, v->style.reset);
}

void rs_view_fact(struct rs_view_line *f, const char *color, const char *fmt, ...)
{
	char buf[1024];
	va_list ap;
	int w;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	w = rs_utf8_width(str_c(buf));
	if (!f->first && f->v->width && f->at + 3 + w > f->v->width) {
		fprintf(f->out, "\n%*s", VIEW_INDENT, "");
		f->at = VIEW_INDENT;
	} else if (!f->first) {
		fputs(DOT, f->out);
		f->at += 3;
	}
	fprintf(f->out, "%s%s%s", color, buf, *color ? f->v->style.reset : "");
	f->at += w;
	f->first = false;
}

/* "last record 0.2s ago", when it has happened. */
static void fact_age(struct rs_view_line *f, const json_t *o, const char *key, const char *what)
{
	if (json_object_get(o, key))
		rs_view_fact(f, "", "%s %s ago", what, DURATION(view_num(o, key)));
	else
		rs_view_fact(f, "", "%s never", what);
}

void rs_view_prose(FILE *out, const struct rs_view *v, const char *color, int indent,
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
	bool good = view_is(o, "state", "capturing");
	size_t i, on = 0, failed = 0;
	struct rs_view_line f;

	json_array_foreach(probes, i, p)
	{
		on += view_is(p, "state", "attached");
		failed += view_is(p, "state", "failed");
	}
	rs_view_begin(&f, out, v, "Capture");
	rs_view_fact(&f, good ? v->style.green : v->style.red, "%s", TEXT(o, "state", 20));
	if (*TEXT(o, "reason", 0))
		rs_view_fact(&f, v->style.red, "%s", TEXT(o, "reason", 0));
	rs_view_fact(&f, "", "%s backend", TEXT(c, "backend", 20));
	rs_view_fact(&f, "", "%zu probes", on);
	if (failed)
		rs_view_fact(&f, v->style.yellow, "%zu missing", failed);
	fact_age(&f, c, "last_record_age_ns", "last record");
	fputc('\n', out);
}

/* Change per second of a sum since the snapshot before; negative when there is none. */
static double rate(const struct rs_view *v, const json_t *o, const char *key)
{
	uint64_t now, then, from, to;

	if (!v->last)
		return -1;
	to = view_num(o, "uptime_ns");
	from = view_num(v->last, "uptime_ns");
	now = view_sum(json_object_get(o, "protocols"), key);
	then = view_sum(json_object_get(v->last, "protocols"), key);
	if (to <= from || now < then || view_num(o, "pid") != view_num(v->last, "pid"))
		return -1;
	return (double)(now - then) * 1e9 / (double)(to - from);
}

static void fact_sum(struct rs_view_line *f, const json_t *o, const char *key)
{
	double per_s = rate(f->v, o, key);
	uint64_t n = view_sum(json_object_get(o, "protocols"), key);

	if (per_s >= 0)
		rs_view_fact(f, "", "%s %s (%s/s)", COUNT(n), key, COUNT((uint64_t)(per_s + 0.5)));
	else
		rs_view_fact(f, "", "%s %s", COUNT(n), key);
}

static void put_traffic(FILE *out, const struct rs_view *v, const json_t *o)
{
	struct rs_view_line f;

	rs_view_begin(&f, out, v, "Traffic");
	rs_view_fact(&f, "", "%s connections",
		     COUNT(view_num(json_object_get(o, "capture"), "connections")));
	fact_sum(&f, o, "requests");
	fact_sum(&f, o, "spans");
	fact_age(&f, o, "last_span_age_ns", "last span");
	fputc('\n', out);
}

/* Only when something of it is not as its writer thinks. */
static void put_config(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *config = json_object_get(o, "config");
	char error[600], restart[600];
	struct rs_view_line f;

	view_text(config, "error", error, sizeof(error), 0);
	view_text(config, "restart", restart, sizeof(restart), 0);
	if (!*error && !*restart)
		return;
	rs_view_begin(&f, out, v, "Config");
	if (*error)
		rs_view_fact(&f, v->style.red, "not reloaded: %s", error);
	if (*restart)
		rs_view_fact(&f, v->style.yellow, "needs a restart: %s", restart);
	fputc('\n', out);
}

/* "12 queue_full": each cause by its name; without causes what there is. */
static void put_causes(struct rs_view_line *f, const struct rs_view *v, const json_t *e)
{
	const json_t *lost = json_object_get(e, "lost");
	const char *cause;
	const json_t *n;
	bool any = false;

	json_object_foreach((json_t *)lost, cause, n)
	{
		if (json_integer_value(n) <= 0)
			continue;
		rs_view_fact(f, v->style.red, "%s %s", COUNT(view_num(lost, cause)), cause);
		any = true;
	}
	if (!any && view_num(e, "failed"))
		rs_view_fact(f, v->style.red, "%s failed", COUNT(view_num(e, "failed")));
}

static void put_exports(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *e;
	size_t i;

	json_array_foreach(json_object_get(o, "exporters"), i, e)
	{
		bool failing = view_is(e, "state", "failing");
		struct rs_view_line f;

		rs_view_begin(&f, out, v, i ? "" : "Export");
		rs_view_fact(&f, failing ? v->style.red : v->style.green, "%s",
			     TEXT(e, "state", 20));
		rs_view_fact(&f, "", "%s%s%s", TEXT(e, "name", 20),
			     *TEXT(e, "target", 60) ? " to " : "", TEXT(e, "target", 60));
		rs_view_fact(&f, "", "%s sent", COUNT(view_num(e, "sent")));
		if (*TEXT(e, "protocol", 30))
			rs_view_fact(&f, "", "%s", TEXT(e, "protocol", 30));
		put_causes(&f, v, e);
		if (view_num(e, "queued"))
			rs_view_fact(&f, "", "%s queued", COUNT(view_num(e, "queued")));
		fact_age(&f, e, "last_success_age_ns", "last success");
		fputc('\n', out);
		if (*TEXT(e, "last_error", 0)) {
			char line[2048];

			snprintf(line, sizeof(line), VIEW_ARROW "%s ago: %s",
				 DURATION(view_num(e, "last_error_age_ns")),
				 TEXT(e, "last_error", 0));
			fprintf(out, "%*s", VIEW_INDENT, "");
			rs_view_prose(out, v, failing ? v->style.red : v->style.dim, VIEW_INDENT,
				      line);
		}
	}
}

static void put_cost(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *u = json_object_get(o, "usage");
	uint64_t cpu = view_num(u, "cpu_user_ns") + view_num(u, "cpu_system_ns"),
		 up = view_num(o, "uptime_ns"), all = cpu;
	struct rs_view_line f;

	if (v->last && view_num(v->last, "pid") == view_num(o, "pid") &&
	    up > view_num(v->last, "uptime_ns")) {
		const json_t *before = json_object_get(v->last, "usage");
		uint64_t was = view_num(before, "cpu_user_ns") + view_num(before, "cpu_system_ns");

		cpu = cpu > was ? cpu - was : 0;
		up -= view_num(v->last, "uptime_ns");
	}
	rs_view_begin(&f, out, v, "Cost");
	rs_view_fact(&f, "", "CPU %s (%.1f%%)", DURATION(all),
		     up ? 100.0 * (double)cpu / (double)up : 0.0);
	rs_view_fact(&f, "", "%s memory", BYTES(view_num(u, "rss_bytes")));
	rs_view_fact(&f, "", "%s BPF maps", BYTES(view_num(u, "map_bytes")));
	if (json_is_true(json_object_get(u, "bpf_stats")) && view_num(u, "bpf_runs"))
		rs_view_fact(&f, "", "BPF %s, %s a run", DURATION(view_num(u, "bpf_run_ns")),
			     DURATION(view_num(u, "bpf_run_ns") / view_num(u, "bpf_runs")));
	fputc('\n', out);
}

static void put_kubernetes(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *k = json_object_get(o, "kubernetes");
	bool failing = json_is_true(json_object_get(k, "failing"));
	bool synced = json_is_true(json_object_get(k, "synced"));
	char line[2048];
	struct rs_view_line f;

	if (!k)
		return;
	rs_view_begin(&f, out, v, "Pods");
	rs_view_fact(&f, "", "%s of %s", COUNT(view_num(k, "pods")), TEXT(k, "node", 60));
	rs_view_fact(&f, synced ? "" : v->style.red, synced ? "by %s" : "none heard of yet by %s",
		     TEXT(k, "source", 0));
	if (view_num(k, "peers"))
		rs_view_fact(&f, "", "%s peers", COUNT(view_num(k, "peers")));
	if (json_object_get(k, "last_success_age_ns"))
		rs_view_fact(&f, "", "heard of %s ago",
			     DURATION(view_num(k, "last_success_age_ns")));
	fputc('\n', out);
	if (!failing)
		return;
	snprintf(line, sizeof(line), "%s: %s", TEXT(k, "target", 200), TEXT(k, "last_error", 0));
	fprintf(out, "    ");
	rs_view_prose(out, v, v->style.red, 4, line);
}

static void put_rights(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *r = json_object_get(o, "rights");
	struct rs_view_line f;

	if (!r)
		return;
	rs_view_begin(&f, out, v, "Rights");
	rs_view_fact(&f, "", "%s", TEXT(r, "capabilities", 0));
	rs_view_fact(&f, "", "%s",
		     json_is_true(json_object_get(r, "seccomp")) ? "system calls filtered"
								 : "no system call filter");
	if (view_num(r, "refused_calls"))
		rs_view_fact(&f, v->style.red, "%s refused: report it",
			     COUNT(view_num(r, "refused_calls")));
	fputc('\n', out);
}

static void put_failed_probes(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *p, *list = json_object_get(json_object_get(o, "capture"), "probes");
	char line[2048];
	size_t i, n = 0;

	json_array_foreach(list, i, p)
	{
		if (!view_is(p, "state", "failed"))
			continue;
		if (!n++)
			fprintf(out, "\n  %sMISSING PROBES%s\n", v->style.bold, v->style.reset);
		snprintf(line, sizeof(line), "%s (%s): %s", TEXT(p, "name", 40),
			 TEXT(p, "purpose", 60), TEXT(p, "reason", 0));
		fputs("  ", out);
		rs_view_prose(out, v, v->style.yellow, 2, line);
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
		(unsigned long long)view_num(o, "pid"), DURATION(view_num(o, "uptime_ns")),
		TEXT(o, "kernel", 60));
	put_capture(out, v, o);
	put_traffic(out, v, o);
	put_config(out, v, o);
	rs_view_losses(out, v, o);
	put_exports(out, v, o);
	put_cost(out, v, o);
	put_kubernetes(out, v, o);
	put_rights(out, v, o);
	put_failed_probes(out, v, o);
	rs_view_services(out, v, o);
	rs_view_processes(out, v, o);
	if (!json_is_true(json_object_get(o, "filtered"))) {
		rs_view_protocols(out, v, o);
		rs_view_ledger(out, v, o);
	}
	json_decref(v->last);
	v->last = o;
	return 0;
}

bool rs_view_error(struct str json, char *buf, size_t size)
{
	json_t *o = json_loadb(json.ptr, json.len, 0, NULL);
	bool has = json_is_string(json_object_get(o, "error"));

	if (has)
		view_text(o, "error", buf, size, 0);
	json_decref(o);
	return has;
}
