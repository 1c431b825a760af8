/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 2: stand-ins. Since 7.0 a task can be preempted inside a tracepoint's program, and the kernel
 * does not run a program for one task while another is inside it on the same CPU: that event would
 * be lost, and with a scheduler's slice between, many. (bpf_preempt_disable does not help: the task
 * is then preempted where it enables again, still inside.)
 *
 * So the hot programs are attached twice there. The first marks, per CPU, that it is running; the
 * second, which the kernel calls after it for the same event, works only while the mark is set:
 * then the first was left out.
 */
#ifndef RS_LIB_STANDIN_H
#define RS_LIB_STANDIN_H

#include "config.bpf.h"
#include "maps.bpf.h"

static __always_inline void rs_busy_set(__u32 slot, __u32 on)
{
	__u32 *busy;

	if (!rs_preemptible)
		return;
	busy = bpf_map_lookup_elem(&rs_busy, &slot);
	if (busy)
		*(volatile __u32 *)busy = on;
}

/* Must the stand-in of this slot's program work? */
static __always_inline bool rs_stand_in(__u32 slot)
{
	__u32 *busy = bpf_map_lookup_elem(&rs_busy, &slot);

	if (!busy || !*(volatile __u32 *)busy)
		return false;
	rs_count(RS_N_STOOD_IN);
	return true;
}

#endif
