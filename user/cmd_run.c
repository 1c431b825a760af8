// SPDX-License-Identifier: Apache-2.0
#include "agent.h"
#include "base/log.h"
#include "cmd.h"

int rs_cmd_run(struct rs_config *cfg)
{
	if (rs_cmd_no_args(cfg))
		return RS_EXIT_USAGE;
	return cfg->check_config ? rs_cmd_check_config(cfg) : rs_agent_capture(cfg);
}
