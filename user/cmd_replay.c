// SPDX-License-Identifier: Apache-2.0
/* replay — a recording or an event script through the real pipeline. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd.h"
#include "export/out.h"
#include "pipeline.h"
#include "source/script.h"
#include "source/tev.h"

struct replay {
	struct rs_pipeline pl;
	struct rs_out out;
	int err; /* of the output, negative errno */
};

static void on_flush(void *arg, const struct rs_batch *b)
{
	struct replay *r = arg;
	int rc = r->err ? 0 : rs_out_batch(&r->out, b);

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
	static const char *const kind[] = { "in", "out", "dropped", "held", "info" };
	FILE *f = fopen(path, "we");

	rs_pipeline_gauges(pl);
	for (int i = 0; f && i < RS_C_COUNT; i++) {
		const struct rs_counter_info *c = &rs_counter_info[i];

		fprintf(f, "%s\t%s\t%s\t%llu\n", c->stage, kind[c->kind], c->name, (unsigned long long)pl->n.v[i]);
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

	if (c != EOF)
		ungetc(c, f);
	if (c == 'R')
		rc = rs_tev_read(f, &r->pl.trace.wall_offset, on_record, r, err, sizeof(err));
	else
		rc = rs_script_read(f, on_record, r, err, sizeof(err));
	if (!rc || rc == -ECANCELED)
		return RS_EXIT_OK;
	rs_error("%s: %s", name, err);
	return RS_EXIT_FAILED;
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
	char err[256];
	int rc;

	rc = rs_pipeline_init(&r->pl, &opts);
	if (rc) {
		rs_error("cannot set up the pipeline: %s", strerror(-rc));
		return RS_EXIT_FAILED;
	}
	unknown = rs_trace_configure(&r->pl.trace, cfg);
	if (unknown.len)
		rs_warn("propagators: '%.*s' is not known, the others are used", STR_ARG(unknown));
	r->pl.flush = on_flush;
	r->pl.arg = r;
	rc = rs_out_open(&r->out, cfg->encoder ? cfg->encoder : cfg->format, cfg->output, false, (enum rs_color)cfg->color, &r->pl.n, err,
			 sizeof(err));
	if (rc) {
		rs_error("%s", err);
		return rc == -ENOENT ? RS_EXIT_USAGE : RS_EXIT_FAILED;
	}
	rc = read_file(r, f, cfg->args[0]);
	/* What came before a bad line is kept. */
	rs_pipeline_finish(&r->pl);
	if (r->err && r->err != -EPIPE) {
		rs_error("cannot write spans: %s", strerror(-r->err));
		rc = RS_EXIT_FAILED;
	}
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
	if (f != stdin)
		fclose(f);
	free(r);
	return rc;
}
