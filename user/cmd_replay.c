// SPDX-License-Identifier: Apache-2.0
/* replay — a recording or an event script through the real pipeline. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd.h"
#include "export/exporters.h"
#include "export/out.h"
#include "pipeline.h"
#include "source/script.h"
#include "source/tev.h"

struct replay {
	struct rs_pipeline pl;
	struct rs_out out;
	/* with --exporter: */
	struct rs_loop loop;
	struct rs_exporters exporters;
	struct rs_sampler sampler;
	uint64_t queue_spans;
	int err; /* of the output, negative errno */
};

static void on_flush(void *arg, const struct rs_batch *b)
{
	struct replay *r = arg;
	int rc;

	if (r->exporters.loop) { /* of none, too: there is no other output then */
		rs_exporters_batch(&r->exporters, b);
		/* A file can wait: nothing is dropped for being read too fast. */
		while (rs_exporters_held(&r->exporters) > r->queue_spans / 2 &&
		       rs_loop_turn(&r->loop, 100) >= 0 && !r->loop.stop)
			;
		return;
	}
	rc = r->err ? 0 : rs_out_batch(&r->out, b);
	if (rc)
		r->err = rc;
}

static int on_record(void *arg, const struct rs_ev_hdr *ev)
{
	struct replay *r = arg;

	rs_pipeline_event(&r->pl, ev);
	rs_pipeline_tick(&r->pl, ev->ts_ns);
	return r->pl.done || r->err;
}

/* A line per counter: stage, kind, name, value, with tabs between. */
static int write_ledger(struct rs_pipeline *pl, const char *path)
{
	FILE *f = fopen(path, "we");

	for (int i = 0; f && i < RS_C_COUNT; i++) {
		const struct rs_counter_info *c = &rs_counter_info[i];

		fprintf(f, "%s\t%s\t%s\t%llu\n", c->stage, rs_counter_kind_name[c->kind], c->name,
			(unsigned long long)pl->n.v[i]);
	}
	if (f && !ferror(f) && fclose(f) == 0)
		return RS_EXIT_OK;
	rs_error("cannot write %s: %s", path, strerror(errno));
	return RS_EXIT_FAILED;
}

/* A recording starts with its magic; everything else is taken for a script. */
static int read_file(struct replay *r, FILE *f, const char *name)
{
	char err[256] = "";
	int c = getc(f), rc;

	if (c == EOF && ferror(f)) {
		rs_error("cannot read %s: %s", name, strerror(errno));
		return RS_EXIT_FAILED;
	}
	if (c == EOF) {
		rs_warn("%s: empty", name);
		return RS_EXIT_OK;
	}
	ungetc(c, f);
	if (c == 'R')
		rc = rs_tev_read(f, &r->pl.trace.wall_offset, on_record, r, err, sizeof(err));
	else
		rc = rs_script_read(f, on_record, r, err, sizeof(err));
	if (!rc || rc == -ECANCELED)
		return RS_EXIT_OK;
	rs_error("%s: %s%s", name, c == 'R' ? "" : "no recording, and no event script: ", err);
	return RS_EXIT_FAILED;
}

/* Only what this command line asks for: the environment's exporters are the agent's. */
static int open_output(struct replay *r, const struct rs_config *cfg)
{
	char err[512];
	int rc;

	if (cfg->source[RS_O_sampler] == RS_FROM_FLAG) {
		if (!rs_sampler_configure(&r->sampler, cfg))
			rs_warn("--sampler-arg %s: not a number from 0 to 1; taken for 1",
				cfg->sampler_arg);
		r->pl.sampler = &r->sampler;
	}
	if (cfg->source[RS_O_exporter] == RS_FROM_FLAG) {
		rc = rs_loop_init(&r->loop);
		snprintf(err, sizeof(err), "cannot set up the event loop: %s", strerror(-rc));
		if (!rc)
			rc = rs_exporters_open(&r->exporters, &r->loop, cfg, err, sizeof(err));
		r->queue_spans = cfg->queue_spans;
	} else {
		rc = rs_out_open(&r->out, cfg->encoder ? cfg->encoder : cfg->format, cfg->output,
				 false, (enum rs_color)cfg->color, &r->pl.n, err, sizeof(err));
	}
	if (rc)
		rs_error("%s", err);
	return rc == -ENOENT || rc == -EINVAL ? RS_EXIT_USAGE : rc ? RS_EXIT_FAILED : RS_EXIT_OK;
}

/* Delivers what is queued; false: some of it could not be. */
static bool finish_exporters(struct replay *r, const struct rs_config *cfg)
{
	bool whole = true;

	if (!r->exporters.n)
		return true;
	rs_exporters_drain(&r->exporters, cfg->drain_time);
	rs_exporters_end(&r->exporters);
	rs_exporters_ledger(&r->exporters, 0, &r->pl.n);
	for (int i = 0; i < r->exporters.n; i++) {
		const struct rs_exporter *e = &r->exporters.e[i];

		if (e->sent == e->spans_in)
			continue;
		rs_error("exporter %s: %llu of %llu spans sent%s%s", e->ops->name,
			 (unsigned long long)e->sent, (unsigned long long)e->spans_in,
			 *e->last_error ? ": " : "", e->last_error);
		whole = false;
	}
	return whole;
}

static int replay(struct replay *r, const struct rs_config *cfg, FILE *f)
{
	const struct rs_pipeline_opts opts = {
		.max_conns = (uint32_t)cfg->max_connections,
		.request_timeout_ns = cfg->request_timeout,
		.max_spans = cfg->count,
		.seed = cfg->seed,
	};
	struct str unknown;
	int rc;

	rc = rs_pipeline_init(&r->pl, &opts);
	if (rc) {
		rs_error("cannot set up the pipeline: %s", strerror(-rc));
		return RS_EXIT_FAILED;
	}
	unknown = rs_trace_configure(&r->pl.trace, cfg);
	if (unknown.len)
		rs_warn("propagators: '%.*s' is not known, the others are used", STR_ARG(unknown));
	r->pl.skip_probes = !cfg->trace_probes;
	unknown = rs_trace_redact(&r->pl.trace, cfg);
	if (unknown.len) {
		rs_error(RS_REDACT_REFUSED, STR_ARG(unknown));
		return RS_EXIT_USAGE;
	}
	r->pl.flush = on_flush;
	r->pl.arg = r;
	rc = open_output(r, cfg);
	if (rc)
		return rc;
	rc = read_file(r, f, cfg->args[0]);
	/* What came before a bad line is kept. */
	rs_pipeline_finish(&r->pl);
	rs_pipeline_gauges(&r->pl);
	if (r->err && r->err != -EPIPE) {
		rs_error("cannot write spans: %s", strerror(-r->err));
		rc = RS_EXIT_FAILED;
	}
	if (!finish_exporters(r, cfg))
		rc = RS_EXIT_FAILED;
	if (cfg->ledger && write_ledger(&r->pl, cfg->ledger))
		rc = RS_EXIT_FAILED;
	return rc;
}

int rs_cmd_replay(struct rs_config *cfg)
{
	struct replay *r;
	FILE *f;
	int rc;

	if (cfg->nargs != 1) {
		rs_error("replay: one FILE is expected, or - for standard input");
		return RS_EXIT_USAGE;
	}
	f = strcmp(cfg->args[0], "-") ? fopen(cfg->args[0], "rbe") : stdin;
	r = f ? calloc(1, sizeof(*r)) : NULL;
	if (!r) {
		rs_error("cannot read %s: %s", cfg->args[0], strerror(errno));
		if (f && f != stdin)
			fclose(f);
		return RS_EXIT_FAILED;
	}
	rc = replay(r, cfg, f);
	rs_pipeline_release(&r->pl);
	rs_out_close(&r->out);
	rs_exporters_close(&r->exporters);
	rs_sampler_release(&r->sampler);
	if (r->loop.epoll_fd > 0)
		rs_loop_release(&r->loop);
	if (f != stdin)
		fclose(f);
	free(r);
	return rc;
}
