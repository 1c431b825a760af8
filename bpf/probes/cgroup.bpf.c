// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Cgroups as they are made: a container's name is in the path, and may be gone before its records are read. */
#include "lib/emit.bpf.h"

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(rs_cgroup_mkdir, struct cgroup *cgrp, const char *path)
{
	struct rs_ev_cgroup *r;

	/* 0 is the unified one; the others have no ids here. */
	if (BPF_CORE_READ(cgrp, root, hierarchy_id))
		return 0;
	r = RS_RESERVE(struct rs_ev_cgroup, RS_EV_CGROUP);
	if (!r)
		return 0;
	r->id = BPF_CORE_READ(cgrp, kn, id);
	bpf_probe_read_kernel_str(r->path, sizeof(r->path), path);
	rs_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}
