/* SPDX-License-Identifier: Apache-2.0 */
/* agent_rights — which privilege the agent still needs once it captures, and giving up the rest. */
#ifndef RS_AGENT_RIGHTS_H
#define RS_AGENT_RIGHTS_H

#include "config/config.h"
#include "export/exporters.h"
#include "kernel/kernel.h"
#include "sandbox/sandbox.h"

/*
 * Call when everything is loaded, attached and open, before the first traced byte is read. child: a
 * command is traced, signals are passed on to it. Says what it did; what cannot be done is a warning.
 */
void rs_agent_drop_rights(const struct rs_config *cfg, struct rs_kernel *k,
			  const struct rs_exporters *x, bool child, struct rs_sandbox *ret);

#endif
