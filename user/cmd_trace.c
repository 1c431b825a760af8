// SPDX-License-Identifier: Apache-2.0
#include "agent.h"
#include "base/log.h"
#include "cmd.h"

int rs_cmd_trace(struct rs_config *cfg)
{
	if (cfg->nargs)
		rs_error(
			"unexpected argument '%s'; a command to trace comes after --: ringspan trace -- %s",
			cfg->args[0], cfg->args[0]);
	else if (cfg->cmd && !cfg->cmd[0])
		rs_error("-- is followed by no command");
	else
		return rs_agent_capture(cfg);
	return RS_EXIT_USAGE;
}
