/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Layer 1: the current task: identity, which one is filtered out, which one is new. */
#ifndef RS_LIB_TASK_H
#define RS_LIB_TASK_H

#include "config.bpf.h"
#include "maps.bpf.h"

static __always_inline struct task_struct *rs_task(void)
{
	return (struct task_struct *)bpf_get_current_task();
}

/* How often the thread has gone to sleep, modulo 256. */
static __always_inline __u8 rs_slept(void)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)) /* 5.11 */
		return ((struct task_struct *)bpf_get_current_task_btf())->nvcsw;
	return BPF_CORE_READ(rs_task(), nvcsw);
}

static __always_inline __u64 rs_task_start(struct task_struct *task)
{
	return BPF_CORE_READ(task, group_leader, start_boottime);
}

/*
 * A process's name is its leader's: threads may have their own. comm is zeroed; what stands behind the
 * name's end is an earlier, longer name's (before 5.17), and not read.
 */
static __always_inline void rs_task_comm(struct task_struct *task, char comm[RS_COMM_LEN])
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	bpf_core_read_str(comm, RS_COMM_LEN, &leader->comm);
}

static __always_inline bool rs_comm_wanted(void)
{
	union {
		char comm[RS_COMM_LEN];
		__u32 w[RS_COMM_LEN / 4];
	} have = {};

	rs_task_comm(rs_task(), have.comm);
#pragma unroll
	for (int i = 0; i < RS_FILTER_COMMS; i++) {
		const volatile __u32 *want = (const volatile __u32 *)rs_cfg.comm[i];

		if (i >= rs_cfg.filter_comm)
			break;
		if (want[0] == have.w[0] && want[1] == have.w[1] && want[2] == have.w[2] &&
		    want[3] == have.w[3])
			return true;
	}
	return false;
}

/* Is this process to be traced, as far as the process decides? */
static __always_inline bool rs_task_wanted(__u32 tgid)
{
	if (tgid == rs_cfg.self_tgid)
		return false;
	if (rs_cfg.filter_pid && !bpf_map_lookup_elem(&rs_pids, &tgid))
		return false;
	if (rs_cfg.filter_comm && !rs_comm_wanted())
		return false;
	return true;
}

/* The same, and user space has not said that nothing of it is wanted: for programs that see no socket. */
static __always_inline bool rs_task_traced(__u32 tgid)
{
	__u32 *v;

	if (!rs_task_wanted(tgid))
		return false;
	v = rs_cfg.discover ? bpf_map_lookup_elem(&rs_verdicts, &tgid) : NULL;
	return !v || *v != RS_BPF_SKIP;
}

/* Notes the process; returns the flags of the record that tells of it: user space must look at once. */
static __always_inline __u64 rs_task_seen(__u32 tgid)
{
	__u32 none = 0;

	if (bpf_map_lookup_elem(&rs_seen, &tgid))
		return BPF_RB_NO_WAKEUP;
	bpf_map_update_elem(&rs_seen, &tgid, &none, BPF_ANY);
	return BPF_RB_FORCE_WAKEUP;
}

#endif
