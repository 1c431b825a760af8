/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent — what `trace`, `run` and `record` do, put together from the parts: kernel, pipeline, output,
 * status socket, loop. Logs its errors.
 */
#ifndef RS_AGENT_H
#define RS_AGENT_H

#include "config/config.h"

/* Captures until a signal, --duration, --count or the end of the traced command. Returns the exit code
 * (enum rs_exit), or the traced command's own (128 + the signal that ended it, as shells do). */
int rs_agent_capture(struct rs_config *cfg);

#endif
