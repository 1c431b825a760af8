// SPDX-License-Identifier: Apache-2.0
#include "agent_parts.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

/* Of what a reload can change: what the pipeline is told. rs_settings_check has passed it. */
static void set_pipeline(struct rs_agent *a, const struct rs_config *cfg)
{
	struct str unknown = rs_trace_configure(&a->pl.trace, cfg);

	if (unknown.len)
		rs_warn("propagators: '%.*s' is not known, the others are used", STR_ARG(unknown));
	a->pl.skip_probes = !cfg->trace_probes;
	rs_agent_set_rules(a, cfg);
	if (cfg->command == RS_CMD_run) {
		if (!rs_sampler_configure(&a->sampler, cfg))
			rs_warn("--sampler-arg %s: not a number from 0 to 1; taken for 1",
				cfg->sampler_arg);
		a->pl.procs.extra = str_c(cfg->resource_attributes);
	}
	(void)rs_trace_redact(&a->pl.trace, cfg);
}

/* What may change while the agent runs. cfg stays until the next call. */
static void apply(void *arg, const struct rs_config *cfg)
{
	struct rs_agent *a = arg;

	rs_sampler_release(&a->sampler);
	for (int i = 0; i < cfg->nwarnings; i++)
		rs_warn("%s", cfg->warnings[i]);
	set_pipeline(a, cfg);
	rs_log_set_level((enum rs_log_level)cfg->log_level);
	a->pl.o.request_timeout_ns = cfg->request_timeout;
	rs_agent_tell_ports(a);
	if (a->reload.napplied)
		rs_kernel_adopt(a->kernel, 0);
	rs_kernel_forget_verdicts(a->kernel);
	rs_procs_relearn(&a->pl.procs);
}

static int move(void *arg, const struct rs_config *cfg, char *err, size_t size)
{
	struct rs_agent *a = arg;

	return rs_exporters_move(&a->exporters, cfg, err, size);
}

void rs_agent_first_settings(struct rs_agent *a)
{
	set_pipeline(a, a->cfg);
	a->reload = (struct rs_reload){ .start = a->cfg, .apply = apply, .arg = a };
	if (a->cfg->command == RS_CMD_run)
		a->reload.move = move;
}

void rs_agent_reload(struct rs_agent *a)
{
	struct rs_reload *r = &a->reload;

	/* Nothing is captured any more, and no batch that is begun now would be sent. */
	if (a->stopping) {
		r->napplied = r->nrestart = 0;
		snprintf(r->err, sizeof(r->err), "the agent is ending");
		rs_error("reload: %s", r->err);
		return;
	}
	/* What has happened until now is seen by the old settings. */
	rs_agent_read_ring(a);
	if (rs_reload_run(r, rs_clock_mono()))
		rs_error("reload: %s; going on as before", r->err);
	else
		rs_info("reloaded%s%s: %d settings applied, %d need a restart%s%s",
			r->start->config ? " " : "", r->start->config ? r->start->config : "",
			r->napplied, r->nrestart, r->nrestart ? ", such as --" : "",
			r->nrestart ? r->restart[0] : "");
}
