// SPDX-License-Identifier: Apache-2.0
/* Tables of services, processes and protocols. */
#include <stdlib.h>

#include "view_parts.h"

#define IN	 "\xe2\x86\x90" /* ←: received */
#define OUT	 "\xe2\x86\x92" /* →: sent */
#define MAX_ROWS 20		/* of a table */

static void put_left_out(FILE *out, const struct rs_view *v, size_t n)
{
	if (n)
		fprintf(out, "  %s… and %zu more; --json or --dump shows them%s\n", v->style.dim, n,
			v->style.reset);
}

/* Most spans first, then most connections; what has neither but a reason comes last. */
static int by_weight(const void *a, const void *b)
{
	static const char *const keys[] = { "spans", "requests", "connections" };
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;

	for (size_t i = 0; i < 3; i++) {
		uint64_t m = view_num(x, keys[i]), n = view_num(y, keys[i]);

		if (m != n)
			return m > n ? -1 : 1;
	}
	return view_num(x, "pid") < view_num(y, "pid") ? -1 : 1;
}

static void put_process(FILE *out, const struct rs_view *v, const json_t *p)
{
	uint64_t errors = view_num(p, "errors");
	/* What stands before the last column is 63 columns wide. */
	int left = v->width > 63 ? v->width - 63 : 0;
	char comm[80], note[512], service[1024], pod[512], rule[256];
	int pad;

	view_text(p, "comm", comm, sizeof(comm), 16);
	pad = 16 - rs_utf8_width(str_c(comm));
	fprintf(out, "  %s%*s %7llu %7s %9s %9s %s%6s%s", comm, pad > 0 ? pad : 0, "",
		(unsigned long long)view_num(p, "pid"), COUNT(view_num(p, "connections")),
		COUNT(view_num(p, "requests")), COUNT(view_num(p, "spans")),
		errors ? v->style.red : "", errors ? COUNT(errors) : "-",
		errors ? v->style.reset : "");
	view_text(p, "service", service, sizeof(service), left);
	view_text(p, "pod", pod, sizeof(pod), 0);
	if (*pod && rs_utf8_width(str_c(service)) + 2 + rs_utf8_width(str_c(pod)) <= left)
		snprintf(service + strlen(service), sizeof(service) - strlen(service), "  %s", pod);
	view_text(p, "why_not", note, sizeof(note), 0);
	if (*service)
		fprintf(out, "  %s", service);
	/* What is traced for a rule's sake says so, if there is room. */
	view_text(p, "rule", rule, sizeof(rule), 0);
	if (*rule && !*note &&
	    rs_utf8_width(str_c(service)) + rs_utf8_width(str_c(rule)) + 2 <= left)
		fprintf(out, "  %s%s%s", v->style.dim, rule, v->style.reset);
	if (*note && v->width &&
	    left < rs_utf8_width(str_c(service)) + rs_utf8_width(str_c(note)) + 2) {
		/* A reason that does not fit beside the rest gets its own lines. */
		fprintf(out, "\n    " VIEW_ARROW);
		rs_view_prose(out, v, v->style.yellow, 6, note);
		return;
	}
	if (*note)
		fprintf(out, "  %s%s%s", v->style.yellow, note, v->style.reset);
	fputc('\n', out);
}

/* Rules leave it alone, as is wanted: worth a line only to who asks for it. */
static bool is_left_alone(const json_t *p)
{
	return json_is_false(json_object_get(p, "traced")) && !view_num(p, "spans") &&
	       !view_num(p, "requests");
}

void rs_view_processes(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *list = json_object_get(o, "processes"), *one;
	bool filtered = json_is_true(json_object_get(o, "filtered"));
	size_t n = json_array_size(list), shown = 0, alone = 0, i;
	json_t **row = n ? malloc(n * sizeof(*row)) : NULL;

	if (!n && filtered)
		fprintf(out, "\n  %sno process that is known matches%s\n", v->style.yellow,
			v->style.reset);
	if (!row)
		return;
	n = 0;
	json_array_foreach(list, i, one)
	{
		if (!filtered && is_left_alone(one))
			alone++;
		else
			row[n++] = json_array_get(list, i);
	}
	qsort(row, n, sizeof(*row), by_weight);
	fprintf(out, "\n  %s%-16s %7s %7s %9s %9s %6s  %s%s\n", v->style.bold, "PROCESS", "PID",
		"CONNS", "REQUESTS", "SPANS", "ERRORS", "SERVICE, WHY NOT", v->style.reset);
	for (; shown < n && shown < MAX_ROWS; shown++)
		put_process(out, v, row[shown]);
	n += view_num(o, "processes_left_out");
	put_left_out(out, v, n - shown);
	if (alone)
		fprintf(out,
			"  %s… and %zu that are not traced; --pid, --comm or --dump says why%s\n",
			v->style.dim, alone, v->style.reset);
	free(row);
}

#define MAX_SERVICES 1026

struct service {
	const json_t *o, *before; /* before: NULL: since the start */
	uint64_t spans, errors, p50, p99;
};

/* Of the snapshot before. */
static const json_t *same_service(const json_t *list, const json_t *one)
{
	const char *name = json_string_value(json_object_get(one, "service"));
	const char *kind = json_string_value(json_object_get(one, "kind"));
	const json_t *o;
	size_t i;

	json_array_foreach(list, i, o)
	{
		if (name && kind && view_is(o, "service", name) && view_is(o, "kind", kind))
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
	s->spans = view_num(o, "spans");
	s->errors = view_num(o, "errors");
	if (before && view_num(before, "spans") <= s->spans &&
	    view_num(before, "errors") <= s->errors) {
		s->spans -= view_num(before, "spans");
		s->errors -= view_num(before, "errors");
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
	const char *name = TEXT(s->o, "service", 29);
	bool client = view_is(s->o, "kind", "client");
	char rate_text[32] = "";
	int pad;

	if (!*name)
		name = "(all others)";
	pad = 29 - rs_utf8_width(str_c(name));
	if (seconds > 0)
		snprintf(rate_text, sizeof(rate_text), "%.1f", (double)s->spans / seconds);
	fprintf(out, "  %s %s%*s %9s %9s %s%8s%s", client ? OUT : IN, name, pad > 0 ? pad : 0, "",
		COUNT(view_num(s->o, "spans")), rate_text, s->errors ? v->style.red : "",
		s->errors ? COUNT(s->errors) : "-", s->errors ? v->style.reset : "");
	put_time(out, s->spans, s->p50);
	put_time(out, s->spans, s->p99);
	fputc('\n', out);
}

void rs_view_services(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *list = json_object_get(o, "services"), *last = NULL;
	size_t n = json_array_size(list), shown = 0;
	uint64_t up = view_num(o, "uptime_ns"), from = 0;
	enum rs_view_sort sort = v->sort;
	struct service *row;

	if (n > MAX_SERVICES)
		n = MAX_SERVICES;
	row = n ? malloc(n * sizeof(*row)) : NULL;
	if (!row)
		return;
	if (v->last && view_num(v->last, "pid") == view_num(o, "pid") &&
	    view_num(v->last, "uptime_ns") < up) {
		last = json_object_get(v->last, "services");
		from = view_num(v->last, "uptime_ns");
	}
	for (size_t i = 0; i < n; i++) {
		const json_t *one = json_array_get(list, i);

		measure(&row[i], one, last ? same_service(last, one) : NULL);
	}
	qsort_r(row, n, sizeof(*row), by_choice, &sort);
	fprintf(out, "\n  %s%-31s %9s %9s %8s %8s %8s%s\n", v->style.bold, "SERVICE", "SPANS",
		"SPANS/S", "ERRORS", "P50", "P99", v->style.reset);
	for (; shown < n && shown < MAX_ROWS; shown++)
		put_service(out, v, &row[shown], (double)(up - from) / 1e9);
	put_left_out(out, v, n - shown);
	free(row);
}

void rs_view_protocols(FILE *out, const struct rs_view *v, const json_t *o)
{
	const json_t *p, *list = json_object_get(o, "protocols");
	size_t i, n = 0;

	json_array_foreach(list, i, p)
	{
		uint64_t errors = view_num(p, "errors");

		if (!view_num(p, "connections") && !view_num(p, "requests") &&
		    !view_num(p, "spans"))
			continue;
		if (!n++)
			fprintf(out, "\n  %s%-16s %7s %9s %9s %6s%s\n", v->style.bold, "PROTOCOL",
				"CONNS", "REQUESTS", "SPANS", "ERRORS", v->style.reset);
		fprintf(out, "  %-16s %7s %9s %9s %s%6s%s\n", TEXT(p, "name", 16),
			COUNT(view_num(p, "connections")), COUNT(view_num(p, "requests")),
			COUNT(view_num(p, "spans")), errors ? v->style.red : "",
			errors ? COUNT(errors) : "-", errors ? v->style.reset : "");
	}
}
