// SPDX-License-Identifier: Apache-2.0
#include "agent_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "source/tev.h"

static void on_flush(void *arg, const struct rs_batch *b)
{
	struct rs_agent *a = arg;
	int rc;

	a->last_flush_ns = rs_clock_mono();
	if (a->cfg->command == RS_CMD_run) {
		rs_exporters_batch(&a->exporters, b);
		return;
	}
	if (a->out.err)
		return; /* told already; the loop is about to end */
	rc = rs_out_batch(&a->out, b);
	if (rc == -EPIPE) {
		rs_agent_stop(a, RS_EXIT_OK); /* `ringspan trace | head`: enough was seen */
	} else if (rc) {
		rs_error("cannot write spans: %s", strerror(-rc));
		rs_agent_stop(a, RS_EXIT_FAILED);
	}
}

static void on_rate(void *arg, struct str service, struct str env, double rate)
{
	rs_sampler_rate(arg, service, env, rate);
}

static int open_recording(struct rs_agent *a)
{
	const char *path = a->cfg->output;
	int fd;

	if (!path) {
		rs_error("record: where to? give -o FILE");
		return RS_EXIT_USAGE;
	}
	fd = rs_out_path(path, O_TRUNC, 0644);
	errno = fd < 0 ? -fd : 0;
	a->record = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!a->record || rs_tev_write_header(a->record, rs_clock_wall_offset())) {
		rs_error("cannot write %s: %s", path, strerror(errno));
		return RS_EXIT_FAILED;
	}
	return RS_EXIT_OK;
}

static int open_exporters(struct rs_agent *a)
{
	char err[512];
	int rc;

	a->pl.sampler = &a->sampler;
	a->exporters.on_rate = on_rate;
	a->exporters.rate_arg = &a->sampler;
	rc = rs_exporters_open(&a->exporters, &a->loop, a->cfg, err, sizeof(err));
	if (*a->exporters.unknown)
		rs_warn("OTEL_TRACES_EXPORTER: unknown exporter '%s'; it is ignored",
			a->exporters.unknown);
	if (rc)
		rs_error("%s", err);
	return rc == -EINVAL ? RS_EXIT_USAGE : rc ? RS_EXIT_FAILED : RS_EXIT_OK;
}

int rs_agent_open_output(struct rs_agent *a)
{
	const struct rs_config *cfg = a->cfg;
	char err[512];
	int rc;

	a->pl.flush = on_flush;
	if (cfg->command == RS_CMD_record)
		return open_recording(a);
	if (cfg->command == RS_CMD_run)
		return open_exporters(a);
	rc = rs_out_open(&a->out, cfg->format, cfg->output, false, (enum rs_color)cfg->color,
			 &a->pl.n, err, sizeof(err));
	if (rc)
		rs_error("%s", err);
	return rc == -ENOENT ? RS_EXIT_USAGE : rc ? RS_EXIT_FAILED : RS_EXIT_OK;
}

void rs_agent_drain_exporters(struct rs_agent *a)
{
	if (!a->exporters.n)
		return;
	a->stopping = true;
	rs_loop_timer_stop(&a->loop, &a->drain);
	rs_loop_timer_stop(&a->loop, &a->tick);
	rs_loop_timer_stop(&a->loop, &a->end);
	rs_loop_del(&a->loop, &a->ring);
	rs_exporters_drain(&a->exporters, a->cfg->drain_time);
	rs_exporters_end(&a->exporters);
	rs_exporters_ledger(&a->exporters, 0, &a->pl.n);
}
