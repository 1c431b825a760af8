// SPDX-License-Identifier: Apache-2.0
/* Commands whose own file has not landed: each line goes when cmd_<name>.c comes. */
#include "base/log.h"
#include "cmd.h"

#define PENDING(id)                                                                                \
	int rs_cmd_##id(struct rs_config *cfg)                                                     \
	{                                                                                          \
		rs_error("this build has no `%s`", rs_command_info[cfg->command].name);            \
		return RS_EXIT_FAILED;                                                             \
	}

