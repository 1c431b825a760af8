// SPDX-License-Identifier: Apache-2.0
/* config — is a config file right, and what may stand in one? */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cmd.h"
#include "docs.h"
#include "settings.h"

int rs_cmd_check_config(const struct rs_config *cfg)
{
	char err[512];

	if (rs_settings_check(cfg, err, sizeof(err))) {
		rs_error("%s", err);
		return RS_EXIT_USAGE;
	}
	printf("%s: ok\n", cfg->config ? cfg->config : "flags and environment");
	return RS_EXIT_OK;
}

/* As `run` would read it, but the file alone. */
static int check(const char *file)
{
	char *argv[] = { NULL };
	struct rs_config cfg;
	int rc;

	rs_config_init(&cfg, RS_CMD_run);
	cfg.config = file;
	cfg.source[RS_O_config] = RS_FROM_FLAG;
	if (rs_config_load(&cfg, 0, argv)) {
		rs_error("%s", cfg.err);
		rc = RS_EXIT_USAGE;
	} else {
		for (int i = 0; i < cfg.nwarnings; i++)
			rs_warn("%s", cfg.warnings[i]);
		rc = rs_cmd_check_config(&cfg);
	}
	rs_config_release(&cfg);
	return rc;
}

int rs_cmd_config(struct rs_config *cfg)
{
	if (cfg->sample && !cfg->nargs) {
		rs_docs_sample(stdout);
		return RS_EXIT_OK;
	}
	if (!cfg->sample && cfg->nargs == 2 && !strcmp(cfg->args[0], "check"))
		return check(cfg->args[1]);
	rs_error("config: what? `ringspan config check FILE`, or `ringspan config --sample`");
	return RS_EXIT_USAGE;
}
