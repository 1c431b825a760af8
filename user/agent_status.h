/* SPDX-License-Identifier: Apache-2.0 */
/* agent_status — the agent's parts as one status snapshot. */
#ifndef RS_AGENT_STATUS_H
#define RS_AGENT_STATUS_H

#include "export/exporters.h"
#include "export/out.h"
#include "k8s/k8s.h"
#include "kernel/kernel.h"
#include "pipeline.h"
#include "sandbox/sandbox.h"
#include "status/status.h"
#include "go/gos.h"
#include "tls/tls.h"

struct rs_agent_view {
	struct rs_pipeline *pl;
	struct rs_kernel *kernel;
	const struct rs_out *out;
	const struct rs_exporters *exporters; /* of `run`; NULL: out */
	const char *exporter, *target;	      /* target: file, or "-" */
	uint64_t now_ns, started_ns;	      /* CLOCK_MONOTONIC */
	uint64_t last_record_ns;	      /* 0: none yet */
	bool stopping;
	const struct rs_sandbox *rights;
	const struct rs_k8s *k8s;
	const struct rs_tls_watch *tls;
	const struct rs_gos *gos;
};

/* s comes from rs_status_init(). */
void rs_agent_status(struct rs_status *s, const struct rs_agent_view *v);

#endif
