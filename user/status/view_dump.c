// SPDX-License-Identifier: Apache-2.0
/* The snapshot as tab-separated lines. */
#include <errno.h>

#include "view_parts.h"

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
		       "queue_bytes", "spool_bytes", "buffer_bytes", "buffer_bytes_high"));
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
