/* SPDX-License-Identifier: Apache-2.0 */
/* cmd — the commands of the program: one cmd_<name>.c each, listed in config/commands.def. */
#ifndef RS_CMD_H
#define RS_CMD_H

#include "config/config.h"

/* Config in, exit code out (enum rs_exit, or a traced command's own status). Logs its errors. */
#define RS_COMMAND(id, name, args, summary) int rs_cmd_##id(struct rs_config *cfg);
#include "config/commands.def"
#undef RS_COMMAND

/* For a command that takes no arguments beside options: says so and returns -EINVAL when there are some. */
int rs_cmd_no_args(const struct rs_config *cfg);

/* `run --check-config`: can the agent run with this? Says so. */
int rs_cmd_check_config(const struct rs_config *cfg);

#endif
