// SPDX-License-Identifier: Apache-2.0
#include "exporters.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "config/suggest.h"

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

static int unknown(const struct rs_config *cfg, struct str name, char *err, size_t size)
{
	char list[256];
	struct rs_suggest s;
	int n = 0;

	rs_suggest_init(&s, name);
	for (size_t i = 0; rs_exporter_ops_at(i) && n >= 0 && (size_t)n < sizeof(list); i++) {
		rs_suggest_add(&s, rs_exporter_ops_at(i)->name);
		n += snprintf(list + n, sizeof(list) - (size_t)n, "%s%s", n ? "|" : "",
			      rs_exporter_ops_at(i)->name);
	}
	return rs_config_wrong(cfg, cfg->exporter, err, size, "unknown exporter '%.*s'%s%s%s (%s)",
			       STR_ARG(name), s.best ? "; did you mean '" : "",
			       s.best ? s.best : "", s.best ? "'?" : "", list);
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

/* Which ones a configuration names, and where to if it says so there. */
struct plan {
	const struct rs_config *cfg;
	int n;
	struct {
		const struct rs_exporter_ops *ops;
		struct str target;
	} e[RS_EXPORTERS_MAX];
	char unknown[64]; /* in OTEL_TRACES_EXPORTER; it is ignored */
	char *err;
	size_t size;
};

static int add(struct plan *p, struct str name, struct str target)
{
	const struct rs_exporter_ops *ops = rs_exporter_find(alias(p->cfg, name));

	if (!ops)
		return unknown(p->cfg, name, p->err, p->size);
	for (int i = 0; i < p->n; i++) {
		/* They would share a spool, and a status line. */
		if (p->e[i].ops == ops)
			return rs_config_wrong(p->cfg, p->cfg->exporter, p->err, p->size,
					       "exporter %s is given twice", ops->name);
	}
	if (p->n == RS_EXPORTERS_MAX)
		return rs_config_wrong(p->cfg, p->cfg->exporter, p->err, p->size,
				       "more than %d exporters", RS_EXPORTERS_MAX);
	p->e[p->n].ops = ops;
	p->e[p->n++].target = target;
	return 0;
}

static int add_list(struct plan *p, struct str list)
{
	struct str one, name;
	int rc = 0;

	while (!rc && list.len) {
		list = str_cut(list, ',', &one);
		one = str_cut(str_trim(one), '=', &name);
		if (!name.len || str_eq(name, STR("none")))
			continue;
		if (p->cfg->source[RS_O_exporter] == RS_FROM_OTEL &&
		    !rs_exporter_find(alias(p->cfg, name)))
			snprintf(p->unknown, sizeof(p->unknown), "%.*s", STR_ARG(name));
		else
			rc = add(p, name, one);
	}
	return rc;
}

static int add_from_environment(struct plan *p)
{
	const struct rs_config *cfg = p->cfg;
	bool datadog = cfg->dd_url || cfg->dd_host;
	bool otlp = cfg->endpoint || cfg->otlp_endpoint || cfg->otlp_traces_endpoint ||
		    !(datadog || cfg->sentry_dsn);
	int rc = 0;

	if (cfg->file)
		return add(p, STR("file"), STR_NONE);
	if (otlp)
		rc = add(p, STR("otlp"), STR_NONE);
	if (!rc && datadog)
		rc = add(p, STR("datadog"), STR_NONE);
	if (!rc && cfg->sentry_dsn)
		rc = add(p, STR("sentry"), STR_NONE);
	return rc;
}

static int make_plan(struct plan *p, const struct rs_config *cfg, char *err, size_t size)
{
	int rc = 0;

	*p = (struct plan){ .cfg = cfg, .err = err, .size = size };
	if (cfg->exporter)
		rc = add_list(p, str_c(cfg->exporter));
	/* Where no name is known it is as if there was no list. */
	if (rc || (cfg->exporter && (p->n || !*p->unknown)))
		return rc;
	return add_from_environment(p);
}

static int check_files(const struct plan *p)
{
	const struct rs_config *cfg = p->cfg;
	bool http = false;

	for (int i = 0; i < p->n; i++)
		http |= !p->e[i].ops->write;
	if (!http)
		return 0;
	if (rs_http_check_pem(cfg, cfg->tls_ca, p->err, p->size) ||
	    rs_http_check_pem(cfg, cfg->tls_cert, p->err, p->size))
		return -EINVAL;
	return rs_http_check_pem(cfg, cfg->tls_key, p->err, p->size);
}

int rs_exporters_check(const struct rs_config *cfg, char *err, size_t size)
{
	struct plan p;
	int rc = make_plan(&p, cfg, err, size);

	if (!rc)
		rc = check_files(&p);
	for (int i = 0; !rc && i < p.n; i++)
		rc = rs_exporter_check(p.e[i].ops, p.e[i].target, cfg, err, size);
	return rc;
}

bool rs_exporters_movable(const struct rs_config *a, const struct rs_config *b)
{
	char err[256];
	struct plan x, y;
	bool any = false;

	if (make_plan(&x, a, err, sizeof(err)) || make_plan(&y, b, err, sizeof(err)) || x.n != y.n)
		return false;
	for (int i = 0; i < x.n; i++) {
		if (x.e[i].ops != y.e[i].ops || !str_eq(x.e[i].target, y.e[i].target))
			return false;
		any |= !x.e[i].ops->write;
	}
	return any;
}

/* -- life -- */

static int open_one(struct rs_exporters *x, const struct rs_config *cfg,
		    const struct rs_exporter_ops *ops, struct str target, char *err, size_t size)
{
	struct rs_exporter *e = &x->e[x->n];
	char *to = NULL;
	int rc;

	if (target.len) {
		to = rs_arena_alloc(&x->mem, target.len + 1);
		if (!to)
			return -ENOMEM;
		memcpy(to, target.ptr, target.len);
		to[target.len] = 0;
	}
	rc = rs_exporter_open(e, ops, to, cfg, &x->http, x->loop, err, size);
	e->on_rate = x->on_rate;
	e->rate_arg = x->rate_arg;
	return rc;
}

int rs_exporters_open(struct rs_exporters *x, struct rs_loop *loop, const struct rs_config *cfg,
		      char *err, size_t size)
{
	struct plan p;
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
	rc = make_plan(&p, cfg, err, size) ? -EINVAL : check_files(&p);
	memcpy(x->unknown, p.unknown, sizeof(x->unknown));
	for (int i = 0; !rc && i < p.n; i++) {
		rc = open_one(x, cfg, p.e[i].ops, p.e[i].target, err, size);
		x->n++;
	}
	return rc;
}

int rs_exporters_move(struct rs_exporters *x, const struct rs_config *cfg, char *err, size_t size)
{
	const struct rs_config *before[RS_EXPORTERS_MAX];
	char ignored[256];
	int rc = 0, i;

	for (i = 0; !rc && i < x->n; i++) {
		before[i] = x->e[i].cfg;
		rc = rs_exporter_move(&x->e[i], cfg, err, size);
	}
	/* All or none: the one that refused is as it was. */
	for (i = rc ? i - 2 : -1; i >= 0; i--)
		(void)rs_exporter_move(&x->e[i], before[i], ignored, sizeof(ignored));
	return rc;
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
