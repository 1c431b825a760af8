// SPDX-License-Identifier: Apache-2.0
/* The snapshot in Prometheus' text format. */
#include <stdio.h>
#include <stdlib.h>

#include "page.h"

static void head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A label's value: what may not stand in it is escaped. */
static void label(FILE *f, const char *s)
{
	fputc('"', f);
	for (; s && *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		if ((unsigned char)*s >= ' ')
			fputc(*s, f);
	}
	fputc('"', f);
}

static void ledger_row(FILE *f, const struct rs_counter_info *c, uint64_t value)
{
	fprintf(f, "ringspan_ledger_total{stage=\"%s\",name=\"%s\",kind=\"%s\"} %llu\n", c->stage,
		c->name, rs_counter_kind_name[c->kind], (unsigned long long)value);
}

static void ledger(FILE *f, const struct rs_status *s)
{
	head(f, "ringspan_ledger_total", "counter",
	     "What each stage took in, passed on and lost; see `ringspan status`.");
	for (int i = 0; i < RS_BPFC_COUNT; i++)
		ledger_row(f, &rs_bpf_counter_info[i], s->kernel_counters[i]);
	for (int i = 0; i < RS_C_COUNT; i++) {
		if (rs_counter_info[i].kind != RS_CK_HELD)
			ledger_row(f, &rs_counter_info[i], s->user.v[i]);
	}
	head(f, "ringspan_held", "gauge", "What is in a stage now.");
	for (int i = 0; i < RS_C_COUNT; i++) {
		const struct rs_counter_info *c = &rs_counter_info[i];

		if (c->kind == RS_CK_HELD)
			fprintf(f, "ringspan_held{stage=\"%s\",name=\"%s\"} %llu\n", c->stage,
				c->name, (unsigned long long)s->user.v[i]);
	}
}

/* One number of every exporter. */
#define EXPORTER(f, s, metric, type, help, member)                                                 \
	do {                                                                                       \
		head(f, metric, type, help);                                                       \
		for (const struct rs_status_exporter *e = (s)->exporters; e; e = e->next) {        \
			fprintf(f, metric "{exporter=");                                           \
			label(f, e->name);                                                         \
			fprintf(f, "} %llu\n", (unsigned long long)(e->member));                   \
		}                                                                                  \
	} while (0)

static void exporters(FILE *f, const struct rs_status *s)
{
	EXPORTER(f, s, "ringspan_exporter_up", "gauge", "0 when the last attempt failed.",
		 state != RS_EXPORT_FAILING);
	EXPORTER(f, s, "ringspan_exporter_sent_spans_total", "counter", "Spans the backend took.",
		 sent);
	EXPORTER(f, s, "ringspan_exporter_retried_spans_total", "counter", "Spans sent again.",
		 retried);
	EXPORTER(f, s, "ringspan_exporter_uncertain_spans_total", "counter",
		 "Spans sent again after no answer came: the backend may have them twice.",
		 uncertain);
	EXPORTER(f, s, "ringspan_exporter_requests_total", "counter", "Requests made.", requests);
	EXPORTER(f, s, "ringspan_exporter_queue_spans", "gauge", "Spans waiting or on their way.",
		 queued);
	EXPORTER(f, s, "ringspan_exporter_queue_bytes", "gauge", "Memory of what waits.",
		 queue_bytes);
	EXPORTER(f, s, "ringspan_exporter_spool_bytes", "gauge", "Disk of what waits.",
		 spool_bytes);
	EXPORTER(f, s, "ringspan_exporter_buffer_bytes", "gauge",
		 "Memory of encoders' buffers that are in use.", buffer_bytes);
	EXPORTER(f, s, "ringspan_exporter_buffer_bytes_high", "gauge",
		 "The most of them that were ever in use.", buffer_bytes_high);
	head(f, "ringspan_exporter_lost_spans_total", "counter", "Spans lost, by cause.");
	for (const struct rs_status_exporter *e = s->exporters; e; e = e->next) {
		for (int i = 0; i < RS_STATUS_LOSSES && e->lost[i].name; i++) {
			fprintf(f, "ringspan_exporter_lost_spans_total{exporter=");
			label(f, e->name);
			fprintf(f, ",cause=\"%s\"} %llu\n", e->lost[i].name,
				(unsigned long long)e->lost[i].spans);
		}
	}
	head(f, "ringspan_exporter_last_success_age_seconds", "gauge",
	     "Time since the backend last took something.");
	for (const struct rs_status_exporter *e = s->exporters; e; e = e->next) {
		if (e->last_success_age_ns == RS_STATUS_NEVER)
			continue;
		fprintf(f, "ringspan_exporter_last_success_age_seconds{exporter=");
		label(f, e->name);
		fprintf(f, "} %.3f\n", (double)e->last_success_age_ns / 1e9);
	}
}

static void process(FILE *f, const struct rs_status *s)
{
	head(f, "ringspan_info", "gauge", "Always 1.");
	fprintf(f, "ringspan_info{version=");
	label(f, s->version);
	fprintf(f, ",kernel=");
	label(f, s->kernel);
	fprintf(f, ",backend=");
	label(f, s->backend);
	fprintf(f, "} 1\n");
	head(f, "ringspan_uptime_seconds", "gauge", "Time since the start.");
	fprintf(f, "ringspan_uptime_seconds %.3f\n", (double)s->uptime_ns / 1e9);
	head(f, "ringspan_connections", "gauge", "Connections followed now.");
	fprintf(f, "ringspan_connections %llu\n", (unsigned long long)s->connections);
	head(f, "process_cpu_seconds_total", "counter", "CPU time in user and kernel mode.");
	fprintf(f, "process_cpu_seconds_total %.3f\n",
		(double)(s->cpu_user_ns + s->cpu_system_ns) / 1e9);
	head(f, "process_resident_memory_bytes", "gauge", "Resident memory.");
	fprintf(f, "process_resident_memory_bytes %llu\n", (unsigned long long)s->rss_bytes);
}

char *rs_status_prometheus(const struct rs_status *s, size_t *ret_len)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);

	if (!f)
		return NULL;
	process(f, s);
	ledger(f, s);
	exporters(f, s);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}
