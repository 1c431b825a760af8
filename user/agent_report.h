/* SPDX-License-Identifier: Apache-2.0 */
/* agent_report — what `ringspan bugreport` asks a running agent beside its status. */
#ifndef RS_AGENT_REPORT_H
#define RS_AGENT_REPORT_H

#include "config/config.h"
#include "status/control.h"

/* line: "config": the options that are set, without secrets; "log": the last lines. 0, or -ENOENT. */
int rs_report_request(const struct rs_config *cfg, struct rs_control_client *cl, struct str line);

#endif
