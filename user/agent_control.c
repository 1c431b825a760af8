// SPDX-License-Identifier: Apache-2.0
#include "agent_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent_report.h"
#include "agent_status.h"
#include "base/clock.h"
#include "base/log.h"

static void config_status(struct rs_status *s, const struct rs_agent *a)
{
	const struct rs_reload *r = &a->reload;
	char list[2048] = "";
	size_t n = 0;

	for (int i = 0; i < r->nrestart && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? " " : "",
				      r->restart[i]);
	s->config_file = a->cfg->config ? rs_status_str(s, str_c(a->cfg->config)) : "";
	s->config_error = rs_status_str(s, str_c(r->err));
	s->config_restart = rs_status_str(s, str_c(list));
	if (r->done_ns)
		s->reload_age_ns = rs_clock_mono() - r->done_ns;
}

static void on_status(void *arg, struct rs_status *s)
{
	struct rs_agent *a = arg;
	const struct rs_config *cfg = a->cfg;
	const struct rs_agent_view v = {
		.pl = &a->pl,
		.kernel = a->kernel,
		.out = &a->out,
		.exporters = cfg->command == RS_CMD_run ? &a->exporters : NULL,
		.exporter = cfg->format,
		.target = cfg->output ? cfg->output : "-",
		.now_ns = rs_clock_mono(),
		.started_ns = a->started_ns,
		.last_record_ns = a->last_record_ns,
		.stopping = a->stopping,
		.rights = &a->rights,
		.k8s = &a->k8s,
		.tls = &a->tls,
		.gos = &a->gos,
	};

	s->command = rs_command_info[cfg->command].name;
	config_status(s, a);
	rs_agent_status(s, &v);
}

/* "reload": answered at once. */
static int reload_request(struct rs_agent *a, struct rs_control_client *cl)
{
	size_t len = 0;
	char *text;

	rs_agent_reload(a);
	text = rs_reload_json(&a->reload, &len);
	if (text)
		rs_control_say(cl, text, len);
	free(text);
	rs_control_end(cl);
	return 0;
}

static int on_request(void *arg, struct rs_control_client *cl, struct str line)
{
	struct rs_agent *a = arg;
	int rc;

	if (a->cfg->command == RS_CMD_run && str_eq(line, STR("reload")))
		return reload_request(a, cl);
	rc = a->record ? -ENOENT : rs_dump_request(&a->dump, &a->pl, &a->loop, cl, line);
	return rc == -ENOENT ? rs_report_request(a->cfg, cl, line) : rc;
}

static void on_gone(void *arg, struct rs_control_client *cl)
{
	struct rs_agent *a = arg;

	rs_dump_gone(&a->dump, cl);
}

/* The agent answers always, the others when they are asked to. */
int rs_agent_open_control(struct rs_agent *a)
{
	char err[256];
	int rc;

	rc = a->cfg->listen ? rs_page_open(&a->page, &a->loop, a->cfg->listen, on_status, a, err,
					   sizeof(err))
			    : 0;
	if (rc) {
		rs_error("%s", err);
		return rc == -EINVAL ? RS_EXIT_USAGE : RS_EXIT_FAILED;
	}
	if (a->cfg->command != RS_CMD_run && a->cfg->source[RS_O_socket] == RS_FROM_DEFAULT)
		return RS_EXIT_OK;
	rc = rs_control_open(&a->control, &a->loop, a->cfg->socket, on_status, a, err, sizeof(err));
	a->control.request = on_request;
	a->control.gone = on_gone;
	if (!rc)
		return RS_EXIT_OK;
	if (rc == -EACCES || rc == -EPERM) {
		rs_error("%s, or run as root", err);
		return RS_EXIT_UNSUPPORTED;
	}
	rs_error("%s", err);
	return RS_EXIT_FAILED;
}
