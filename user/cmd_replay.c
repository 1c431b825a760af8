// SPDX-License-Identifier: Apache-2.0
#include "agent.h"
#include "cmd.h"

int rs_cmd_replay(struct rs_config *cfg)
{
	return rs_agent_replay(cfg);
}
