// SPDX-License-Identifier: Apache-2.0
#include "agent.h"
#include "base/log.h"
#include "cmd.h"

int rs_cmd_run(struct rs_config *cfg)
{
	return rs_cmd_no_args(cfg) ? RS_EXIT_USAGE : rs_agent_capture(cfg);
}
