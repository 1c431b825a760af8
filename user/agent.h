/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent — what `trace`, `run`, `record` and `replay` do, put together from the parts: kernel or file,
 * pipeline, output, status socket, loop. Logs its errors. Each returns the process's exit code (enum
 * rs_exit, or the traced command's own).
 */
#ifndef RS_AGENT_H
#define RS_AGENT_H

#include "config/config.h"

/* trace, run, record: captures until a signal, --duration, --count or the end of the command. */
int rs_agent_capture(struct rs_config *cfg);

/* replay: a file through the pipeline. */
int rs_agent_replay(struct rs_config *cfg);

#endif
