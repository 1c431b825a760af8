/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 2: how long a thread that serves a connection was ready to run and had no CPU. The scheduler keeps
 * the sum per task (sched_info.run_delay, CONFIG_SCHED_INFO): read when the direction turns, it needs no hook
 * in the scheduler.
 */
#ifndef RS_LIB_RUNQ_H
#define RS_LIB_RUNQ_H

#include "emit.bpf.h"

/* Does the connection's next request begin, all before it being answered? */
static __always_inline bool rs_begins_request(const struct rs_conn *c, enum rs_ev_dir dir)
{
	return !c->whole && c->role == (dir == RS_DIR_OUT ? RS_ROLE_CLIENT : RS_ROLE_SERVER);
}

/*
 * Before the record of a transfer of this task (a trusted pointer). Tells of a wait of cfg.runq_us or more since the last
 * turn; but where a request begins none was under way: what the thread waited since the last answer was for others.
 */
static __always_inline void rs_run_queue(struct rs_conn *c, enum rs_ev_dir dir,
					 struct task_struct *task)
{
	__u32 tid = task->pid;
	__u64 delay;

	if (!rs_cfg.runq_us || c->turn == dir + 1)
		return;
	delay = task->sched_info.run_delay;
	if (c->runq_tid == tid && c->turn && !rs_begins_request(c, dir) &&
	    delay - c->runq_ns >= (__u64)rs_cfg.runq_us * 1000)
		rs_emit_fact(c, RS_FACT_RUN_QUEUE, (delay - c->runq_ns) / 1000);
	c->runq_ns = delay;
	c->runq_tid = tid;
}

#endif
