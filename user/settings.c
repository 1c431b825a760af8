// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "config/option.h"
#include "export/exporters.h"
#include "k8s/k8s.h"
#include "status/page.h"
#include "trace/trace.h"

static const bool live[RS_O_COUNT] = {
	/* discovery */
	[RS_O_include] = true,
	[RS_O_exclude] = true,
	[RS_O_others] = true,
	[RS_O_trace_agents] = true,
	[RS_O_trace_probes] = true,
	/* traces */
	[RS_O_request_timeout] = true,
	[RS_O_propagators] = true,
	[RS_O_join] = true,
	[RS_O_events] = true,
	[RS_O_sdk] = true,
	[RS_O_max_attributes] = true,
	[RS_O_max_events] = true,
	[RS_O_max_links] = true,
	[RS_O_max_event_attributes] = true,
	[RS_O_max_link_attributes] = true,
	[RS_O_max_value_length] = true,
	/* spans */
	[RS_O_redact_query] = true,
	[RS_O_drop_attribute] = true,
	[RS_O_capture_request_header] = true,
	[RS_O_capture_response_header] = true,
	[RS_O_resource_attributes] = true,
	/* sampling */
	[RS_O_sampler] = true,
	[RS_O_sampler_arg] = true,
	[RS_O_keep_errors] = true,
	[RS_O_keep_slow] = true,
	[RS_O_max_span_rate] = true,
	[RS_O_log_level] = true,
};

/* Of exporters, as long as they are the same ones and some of them can go by others. */
static const bool moves[RS_O_COUNT] = {
	[RS_O_endpoint] = true,
	[RS_O_otlp_endpoint] = true,
	[RS_O_otlp_traces_endpoint] = true,
	[RS_O_otlp_headers] = true,
	[RS_O_insecure] = true,
	[RS_O_compression] = true,
	[RS_O_tls_ca] = true,
	[RS_O_tls_cert] = true,
	[RS_O_tls_key] = true,
	[RS_O_zipkin_endpoint] = true,
	[RS_O_dd_url] = true,
	[RS_O_dd_host] = true,
	[RS_O_dd_port] = true,
	[RS_O_dd_protocol] = true,
	[RS_O_sentry_dsn] = true,
	[RS_O_sentry_format] = true,
	[RS_O_export_timeout] = true,
	[RS_O_retry_for] = true,
};

static int check_redaction(const struct rs_config *cfg, char *err, size_t size)
{
	const struct rs_redact_lists lists = {
		.query = cfg->redact_query,
		.drop = cfg->drop_attribute,
		.request = cfg->capture_request_header,
		.response = cfg->capture_response_header,
	};
	const char *const all[] = { lists.query, lists.drop, lists.request, lists.response };
	const char *of = NULL;
	struct rs_redact redact;
	struct str wrong = rs_redact_init(&redact, &lists);

	if (!wrong.len)
		return 0;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i] && wrong.ptr >= all[i] && wrong.ptr < all[i] + strlen(all[i]))
			of = all[i];
	}
	return rs_config_wrong(cfg, of, err, size, RS_REDACT_REFUSED, STR_ARG(wrong));
}

/* KEY=VALUE,… The values may be secret. */
static int check_pairs(const struct rs_config *cfg, enum rs_option_id id, const char *list,
		       char *err, size_t size)
{
	struct str rest = str_c(list), one, key;

	while (rest.len && cfg->source[id] != RS_FROM_OTEL) {
		rest = str_cut(rest, ',', &one);
		one = str_trim(one);
		str_cut(one, '=', &key);
		if (one.len && (key.len == one.len || !str_trim(key).len))
			return rs_config_wrong(cfg, list, err, size,
					       "it is written KEY=VALUE, with commas between");
	}
	return 0;
}

static int check_propagators(const struct rs_config *cfg, char *err, size_t size)
{
	struct rs_propagators p;
	struct str unknown;

	if (cfg->source[RS_O_propagators] == RS_FROM_OTEL ||
	    rs_propagators_parse(str_c(cfg->propagators), &p, &unknown))
		return 0;
	return rs_config_wrong(cfg, cfg->propagators, err, size,
			       "'%.*s' is no propagator; there are: %s,baggage,none",
			       STR_ARG(unknown), rs_options[RS_O_propagators].def);
}

int rs_settings_check(const struct rs_config *cfg, char *err, size_t size)
{
	char why[256];

	if (check_redaction(cfg, err, size) || check_propagators(cfg, err, size) ||
	    check_pairs(cfg, RS_O_otlp_headers, cfg->otlp_headers, err, size) ||
	    check_pairs(cfg, RS_O_resource_attributes, cfg->resource_attributes, err, size) ||
	    rs_k8s_check(cfg, err, size))
		return -EINVAL;
	if (cfg->listen && rs_page_check(cfg->listen, why, sizeof(why)))
		return rs_config_wrong(cfg, cfg->listen, err, size, "%s", why);
	return cfg->command == RS_CMD_run ? rs_exporters_check(cfg, err, size) : 0;
}

/* -- what has changed -- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_values(const struct rs_rule_value *a, const struct rs_rule_value *b)
{
	for (; a && b; a = a->next, b = b->next) {
		if (!same_text(a->glob, b->glob) || !same_text(a->key, b->key) ||
		    a->first != b->first || a->last != b->last)
			return false;
	}
	return a == b;
}

static bool same_rules(const struct rs_rules *x, const struct rs_rules *y)
{
	const struct rs_rule *a = x->first, *b = y->first;

	for (; a && b; a = a->next, b = b->next) {
		if (a->given != b->given || !same_values(a->exe, b->exe) ||
		    !same_values(a->comm, b->comm) || !same_values(a->port, b->port) ||
		    !same_values(a->user, b->user) || !same_values(a->cgroup, b->cgroup) ||
		    !same_values(a->container, b->container) || !same_values(a->pod, b->pod) ||
		    !same_values(a->k8s_namespace, b->k8s_namespace) ||
		    !same_values(a->label, b->label) || !same_text(a->service, b->service) ||
		    a->protocols != b->protocols || a->sample != b->sample ||
		    a->depth != b->depth || a->tls != b->tls)
			return false;
	}
	return a == b;
}

static bool same(enum rs_option_id id, const struct rs_config *x, const struct rs_config *y)
{
	const struct rs_option *o = &rs_options[id];
	const void *a = (const char *)x + o->offset, *b = (const char *)y + o->offset;

	switch ((enum rs_option_type)o->type) {
	case RS_OT_BOOL:
		return *(const bool *)a == *(const bool *)b;
	case RS_OT_ENUM:
		return *(const int *)a == *(const int *)b;
	case RS_OT_STR:
	case RS_OT_RATIO:
		return same_text(*(const char *const *)a, *(const char *const *)b);
	case RS_OT_UINT:
	case RS_OT_BYTES:
	case RS_OT_DURATION:
		return *(const uint64_t *)a == *(const uint64_t *)b;
	case RS_OT_PIDS:
		return memcmp(a, b, sizeof(struct rs_config_pids)) == 0;
	case RS_OT_PORTS:
		return memcmp(a, b, sizeof(struct rs_config_ports)) == 0;
	case RS_OT_COMMS:
		return memcmp(a, b, sizeof(struct rs_config_comms)) == 0;
	case RS_OT_RULES:
		return same_rules(a, b);
	}
	return true;
}

/* The settings that run now. */
static const struct rs_config *running(const struct rs_reload *r)
{
	return r->live ? r->live : r->start;
}

static const struct rs_config *exporting(const struct rs_reload *r)
{
	return r->exporting ? r->exporting : r->start;
}

/* Do exporters have to be told of it? */
static bool moved(const struct rs_reload *r, const struct rs_config *fresh)
{
	if (!r->move || !rs_exporters_movable(r->start, fresh))
		return false;
	for (int id = 0; id < RS_O_COUNT; id++) {
		if (moves[id] && !same((enum rs_option_id)id, exporting(r), fresh))
			return true;
	}
	return false;
}

static void compare(struct rs_reload *r, const struct rs_config *fresh, bool move)
{
	for (int id = 0; id < RS_O_COUNT; id++) {
		enum rs_option_id o = (enum rs_option_id)id;
		const struct rs_config *now = live[id]	  ? running(r)
					      : moves[id] ? exporting(r)
							  : r->start;

		if (!(rs_options[id].commands & 1u << fresh->command) || same(o, now, fresh))
			continue;
		if (live[id] || (moves[id] && move))
			r->applied[r->napplied++] = rs_options[id].name;
		else
			r->restart[r->nrestart++] = rs_options[id].name;
	}
}

static void drop(struct rs_config *cfg)
{
	if (cfg)
		rs_config_release(cfg);
	free(cfg);
}

/* `fresh` is the live one. Those before go, unless exporters go on with one. */
static void replace(struct rs_reload *r, struct rs_config *fresh, bool move)
{
	struct rs_config *live_before = r->live, *exporting_before = r->exporting;

	r->live = fresh;
	if (move)
		r->exporting = fresh;
	if (live_before != r->exporting)
		drop(live_before);
	if (exporting_before != r->exporting && exporting_before != live_before)
		drop(exporting_before);
}

int rs_reload_run(struct rs_reload *r, uint64_t now_ns)
{
	struct rs_config *fresh = malloc(sizeof(*fresh));
	bool move;
	int err;

	r->done_ns = now_ns;
	r->napplied = r->nrestart = 0;
	r->err[0] = 0;
	if (!fresh) {
		snprintf(r->err, sizeof(r->err), "out of memory");
		return -ENOMEM;
	}
	rs_config_init(fresh, r->start->command);
	err = rs_config_load(fresh, r->start->argc, r->start->argv);
	if (err)
		memcpy(r->err, fresh->err, sizeof(r->err));
	else
		err = rs_settings_check(fresh, r->err, sizeof(r->err));
	move = !err && moved(r, fresh);
	if (move)
		err = r->move(r->arg, fresh, r->err, sizeof(r->err));
	if (err) {
		drop(fresh);
		return err;
	}
	compare(r, fresh, move);
	r->apply(r->arg, fresh);
	replace(r, fresh, move);
	return 0;
}

void rs_reload_release(struct rs_reload *r)
{
	if (r->exporting != r->live)
		drop(r->exporting);
	drop(r->live);
	r->live = r->exporting = NULL;
}

static json_t *names(const char *const *list, int n)
{
	json_t *a = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(a, json_string(list[i]));
	return a;
}

char *rs_reload_json(const struct rs_reload *r, size_t *ret_len)
{
	json_t *o = json_object();
	char *text, *line = NULL;

	json_object_set_new(o, "file", json_string(r->start->config ? r->start->config : ""));
	json_object_set_new(o, "error", json_string(r->err));
	json_object_set_new(o, "applied", names(r->applied, r->napplied));
	json_object_set_new(o, "restart", names(r->restart, r->nrestart));
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (text)
		line = malloc(strlen(text) + 2);
	if (line) {
		*ret_len = strlen(text) + 1;
		memcpy(line, text, *ret_len - 1);
		line[*ret_len - 1] = '\n';
		line[*ret_len] = 0;
	}
	free(text);
	return line;
}
