// SPDX-License-Identifier: Apache-2.0
#include "exporters.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"

#define TICK_NS	   50000000ull
#define DRAIN_TURN 20 /* ms */

static void on_tick(void *arg)
{
	struct rs_exporters *x = arg;
	uint64_t now = rs_clock_mono();

	for (int i = 0; i < x->n; i++)
		rs_exporter_tick(&x->e[i], now);
}

/* -- which ones -- */

static int unknown(const char *name, char *err, size_t size)
{
	int n = snprintf(err, size, "unknown exporter '%s'; there are:", name);

	for (size_t i = 0; rs_exporter_ops_at(i) && n > 0 && (size_t)n < size; i++)
		n += snprintf(err + n, size - (size_t)n, " %s", rs_exporter_ops_at(i)->name);
	return -EINVAL;
}

static struct str otlp_by_protocol(const struct rs_config *cfg)
{
	static const char *const name[] = { "otlp-http", "otlp-grpc", "otlp-http-json" };

	return str_c(name[cfg->otlp_protocol]);
}

/* OTEL_TRACES_EXPORTER's words for ours. */
static struct str alias(const struct rs_config *cfg, struct str name)
{
	if (str_eq(name, STR("otlp")))
		return otlp_by_protocol(cfg);
	if (str_eq(name, STR("console")))
		return STR("stdout");
	return name;
}

static int add(struct rs_exporters *x, const struct rs_config *cfg, struct str name,
	       struct str target, char *err, size_t size)
{
	const struct rs_exporter_ops *ops = rs_exporter_find(alias(cfg, name));
	const char *to = NULL;
	char text[64];
	int rc;

	snprintf(text, sizeof(text), "%.*s", STR_ARG(name));
	if (!ops)
		return unknown(text, err, size);
	for (int i = 0; i < x->n; i++) {
		/* They would share a spool, and a status line. */
		if (x->e[i].ops == ops) {
			snprintf(err, size, "exporter %s is given twice", ops->name);
			return -EINVAL;
		}
	}
	if (x->n == RS_EXPORTERS_MAX) {
		snprintf(err, size, "more than %d exporters", RS_EXPORTERS_MAX);
		return -EINVAL;
	}
	if (target.len) {
		char *p = rs_arena_alloc(&x->mem, target.len + 1);

		if (!p)
			return -ENOMEM;
		memcpy(p, target.ptr, target.len);
		p[target.len] = 0;
		to = p;
	}
	rc = rs_exporter_open(&x->e[x->n], ops, to, cfg, &x->http, x->loop, err, size);
	x->e[x->n].on_rate = x->on_rate;
	x->e[x->n].rate_arg = x->rate_arg;
	x->n++;
	return rc;
}

static int add_list(struct rs_exporters *x, const struct rs_config *cfg, struct str list, char *err,
		    size_t size)
{
	struct str one, name;
	int rc = 0;

	while (!rc && list.len) {
		list = str_cut(list, ',', &one);
		one = str_cut(str_trim(one), '=', &name);
		if (!name.len || str_eq(name, STR("none")))
			continue;
		if (cfg->source[RS_O_exporter] == RS_FROM_OTEL &&
		    !rs_exporter_find(alias(cfg, name)))
			snprintf(x->unknown, sizeof(x->unknown), "%.*s", STR_ARG(name));
		else
			rc = add(x, cfg, name, one, err, size);
	}
	return rc;
}

static int add_from_environment(struct rs_exporters *x, const struct rs_config *cfg, char *err,
				size_t size)
{
	bool datadog = cfg->dd_url || cfg->dd_host;
	bool otlp = cfg->endpoint || cfg->otlp_endpoint || cfg->otlp_traces_endpoint ||
		    !(datadog || cfg->sentry_dsn);
	int rc = 0;

	if (cfg->file)
		return add(x, cfg, STR("file"), STR_NONE, err, size);
	if (otlp)
		rc = add(x, cfg, STR("otlp"), STR_NONE, err, size);
	if (!rc && datadog)
		rc = add(x, cfg, STR("datadog"), STR_NONE, err, size);
	if (!rc && cfg->sentry_dsn)
		rc = add(x, cfg, STR("sentry"), STR_NONE, err, size);
	return rc;
}

/* -- life -- */

int rs_exporters_open(struct rs_exporters *x, struct rs_loop *loop, const struct rs_config *cfg,
		      char *err, size_t size)
{
	int rc;

	x->loop = loop;
	x->tick.w.fd = -1;
	rs_arena_init(&x->mem, 4096, 0);
	rc = rs_http_init(&x->http, loop);
	if (!rc)
		rc = rs_loop_timer_start(loop, &x->tick, TICK_NS, TICK_NS, on_tick, x);
	if (rc) {
		snprintf(err, size, "cannot set up exporting: %s", strerror(-rc));
		return rc;
	}
	if (cfg->exporter)
		rc = add_list(x, cfg, str_c(cfg->exporter), err, size);
	/* Where no name is known it is as if there was no list. */
	if (rc || (cfg->exporter && (x->n || !*x->unknown)))
		return rc;
	return add_from_environment(x, cfg, err, size);
}

int rs_exporters_check(const struct rs_config *cfg, char *err, size_t size)
{
	struct str rest = str_c(cfg->exporter), one, name;
	char text[64];

	if (cfg->source[RS_O_exporter] == RS_FROM_OTEL)
		return 0; /* what is unknown there is ignored */
	while (rest.len) {
		rest = str_cut(rest, ',', &one);
		str_cut(str_trim(one), '=', &name);
		snprintf(text, sizeof(text), "%.*s", STR_ARG(name));
		if (name.len && !str_eq(name, STR("none")) && !rs_exporter_find(alias(cfg, name)))
			return unknown(text, err, size);
	}
	return 0;
}

void rs_exporters_batch(struct rs_exporters *x, const struct rs_batch *b)
{
	for (int i = 0; i < x->n; i++)
		rs_exporter_batch(&x->e[i], b);
}

uint64_t rs_exporters_held(const struct rs_exporters *x)
{
	uint64_t n = 0;

	for (int i = 0; i < x->n; i++)
		n += rs_exporter_held(&x->e[i]);
	return n;
}

void rs_exporters_drain(struct rs_exporters *x, uint64_t timeout_ns)
{
	uint64_t end = rs_clock_mono() + timeout_ns;

	x->loop->stop = false;
	for (int i = 0; i < x->n; i++)
		rs_exporter_hurry(&x->e[i]);
	while (rs_exporters_held(x) && rs_clock_mono() < end && !x->loop->stop) {
		if (rs_loop_turn(x->loop, DRAIN_TURN) < 0)
			break;
	}
}

void rs_exporters_end(struct rs_exporters *x)
{
	for (int i = 0; i < x->n; i++)
		rs_exporter_end(&x->e[i]);
}

void rs_exporters_close(struct rs_exporters *x)
{
	if (!x->loop)
		return;
	for (int i = 0; i < x->n; i++)
		rs_exporter_release(&x->e[i]);
	rs_http_release(&x->http);
	rs_loop_timer_stop(x->loop, &x->tick);
	rs_arena_release(&x->mem);
	x->loop = NULL;
}

/* Of each loss, its counter. */
static const enum rs_counter loss_counter[RS_LOSS_COUNT] = {
#define RS_LOSS(id, name) [RS_LOSS_##id] = RS_C_EXPORT_##id,
	RS_LOSSES
#undef RS_LOSS
};

void rs_exporters_ledger(const struct rs_exporters *x, uint64_t in_batch, struct rs_counters *n)
{
	uint64_t in = 0, sent = 0, retried = 0, uncertain = 0, lost[RS_LOSS_COUNT] = { 0 };

	for (int i = 0; i < x->n; i++) {
		const struct rs_exporter *e = &x->e[i];

		in += e->spans_in;
		sent += e->sent;
		retried += e->retried;
		uncertain += e->uncertain;
		for (int k = 0; k < RS_LOSS_COUNT; k++)
			lost[k] += e->lost[k];
	}
	in_batch *= (uint64_t)x->n;
	n->v[RS_C_EXPORT_SPANS] = in + in_batch;
	n->v[RS_C_EXPORT_SENT] = sent;
	n->v[RS_C_EXPORT_HELD] = rs_exporters_held(x) + in_batch;
	n->v[RS_C_EXPORT_RETRIED] = retried;
	n->v[RS_C_EXPORT_UNCERTAIN] = uncertain;
	for (int k = 0; k < RS_LOSS_COUNT; k++)
		n->v[loss_counter[k]] = lost[k];
}
