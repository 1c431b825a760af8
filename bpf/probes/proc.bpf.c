// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The life of processes that matter: those that had a transfer, and those that the filter names. */
#include "lib/emit.bpf.h"
#include "lib/locate.bpf.h"

#define SIGKILL	 9
#define SIGCHLD	 17
#define SIGCONT	 18
#define SIGSTOP	 19
#define SIGTSTP	 20
#define SIGTTIN	 21
#define SIGTTOU	 22
#define SIGURG	 23
#define SIGWINCH 28

#define SIGNAL_GROUP_EXIT 0x4 /* signal_struct.flags: the process is ending */
#define PID_LIMIT	  (4 * 1024 * 1024)

/* RS_SEEN_* of a process that matters, or NULL. */
static __always_inline __u32 *known(__u32 tgid)
{
	__u32 *v = bpf_map_lookup_elem(&rs_seen, &tgid);

	return v ? v : bpf_map_lookup_elem(&rs_pids, &tgid);
}

static __always_inline struct rs_ev_proc *begin(struct task_struct *task,
						enum rs_ev_proc_kind event)
{
	struct rs_ev_proc *r = RS_RESERVE(struct rs_ev_proc, RS_EV_PROC);

	if (!r)
		return NULL;
	r->tgid = BPF_CORE_READ(task, tgid);
	r->tid = BPF_CORE_READ(task, pid);
	r->event = event;
	r->start_ns = rs_task_start(task);
	rs_task_comm(task, r->comm);
	return r;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(rs_proc_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 ppid = parent->tgid, tgid = child->tgid, none = 0;
	struct rs_ev_proc *r;

	if (child->pid != child->tgid) /* a thread */
		return 0;
	if (rs_cfg.discover) /* told of the last one that had this number, too late */
		bpf_map_delete_elem(&rs_verdicts, &tgid);
	if (!known(ppid))
		return 0;
	if (rs_cfg.filter_pid && bpf_map_lookup_elem(&rs_pids, &ppid) &&
	    bpf_map_update_elem(&rs_pids, &tgid, &none, BPF_ANY))
		rs_count(RS_N_PIDS_FULL);
	r = begin(child, RS_PROC_FORK);
	if (!r)
		return 0;
	r->ppid = ppid;
	rs_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

#define WAKES_PER_SECOND 100 /* of processes not known yet that are told of; and of libraries */

/* Where many programs are run one behind the other, looking at each at once would cost more than it gives. */
static __u64 exec_second, load_second;
static __u32 execs, loads;

static __always_inline bool may_wake(__u64 *second, __u32 *n)
{
	__u64 now = bpf_ktime_get_ns() >> 30;

	if (*second != now) {
		*second = now;
		*n = 0;
	}
	return (*n)++ < WAKES_PER_SECOND;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(rs_proc_exec, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	bool is_known = known(tgid);
	struct rs_ev_proc *r;

	bpf_map_delete_elem(&rs_go, &tgid);
	/* Another program: it is captured until user space has decided anew. */
	if (rs_cfg.discover)
		bpf_map_delete_elem(&rs_verdicts, &tgid);
	if (!is_known && !rs_task_wanted(tgid))
		return 0;
	bpf_map_delete_elem(&rs_tlsvar, &tgid);
	r = begin(task, RS_PROC_EXEC);
	if (!r)
		return 0;
	r->ppid = BPF_CORE_READ(task, real_parent, tgid);
	/* It has become another program: its /proc must be read anew. */
	rs_submit(r, is_known || may_wake(&exec_second, &execs) ? BPF_RB_FORCE_WAKEUP
								: BPF_RB_NO_WAKEUP);
	return 0;
}

#define NAME_LEN 48

/* Has the file's name "ssl", "tls", or what is in tcnative and conscrypt? User space looks closer. */
static __always_inline bool like_tls(struct file *file)
{
	char n[NAME_LEN + 2] = {};
	const unsigned char *name = BPF_CORE_READ(file, f_path.dentry, d_name.name);

	bpf_probe_read_kernel_str(n, NAME_LEN, name);
#pragma unroll
	for (int i = 0; i < NAME_LEN; i++) {
		if ((n[i + 1] == 's' && n[i + 2] == 'l' && n[i] == 's') ||
		    (n[i + 1] == 'l' && n[i + 2] == 's' && n[i] == 't') ||
		    (n[i + 1] == 'c' && n[i + 2] == 'n' && n[i] == 't') ||
		    (n[i + 1] == 's' && n[i + 2] == 'c' && n[i] == 'n'))
			return true;
	}
	return false;
}

/*
 * Room for a mapping is looked for: the first thing that is done for a library, also one that is loaded late. In
 * no other place does the kernel say so to programs of ours without a price for every system call.
 */
SEC("tp_btf/vm_unmapped_area")
int rs_proc_loads(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, fd = (__u32)rs_sys_arg4(regs);
	struct rs_ev_proc *r;
	struct file *file;

	if (!rs_cfg.tls || rs_sys_nr(regs) != RS_NR_mmap || (__s32)fd < 0 || rs_task_compat(task))
		return 0;
	file = rs_fd_file(task, fd);
	if (!file || !like_tls(file) || !rs_task_traced(tgid))
		return 0;
	r = begin(task, RS_PROC_LOADS);
	if (!r)
		return 0;
	r->dev = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	r->ino = BPF_CORE_READ(file, f_inode, i_ino);
	rs_submit(r, may_wake(&load_second, &loads) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(rs_proc_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct rs_ev_proc *r;
	__u32 code;

	if (BPF_CORE_READ(task, signal, live.counter)) /* other threads go on */
		return 0;
	if (!known(tgid))
		return 0;
	r = begin(task, RS_PROC_EXIT);
	if (r) {
		code = task->exit_code;
		if (BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT)
			code = BPF_CORE_READ(task, signal, group_exit_code);
		r->code = code;
		r->signal = code & 0x7f;
		r->ppid = BPF_CORE_READ(task, real_parent, tgid);
		rs_submit(r, BPF_RB_NO_WAKEUP);
	}
	bpf_map_delete_elem(&rs_seen, &tgid);
	bpf_map_delete_elem(&rs_go, &tgid);
	bpf_map_delete_elem(&rs_verdicts, &tgid);
	bpf_map_delete_elem(&rs_listening, &tgid);
	bpf_map_delete_elem(&rs_pids, &tgid);
	bpf_map_delete_elem(&rs_tlsvar, &tgid);
	return 0;
}

/* Does this signal's default action end the process? */
static __always_inline bool ends_process(int sig)
{
	switch (sig) {
	case SIGCHLD:
	case SIGCONT:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
	case SIGURG:
	case SIGWINCH:
		return false;
	}
	return true;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(rs_proc_signal, int sig, struct kernel_siginfo *info, struct k_sigaction *ka)
{
	struct task_struct *task = rs_task();
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct rs_ev_proc *r;
	__u32 *seen;

	if (ka->sa.sa_handler || !ends_process(sig)) /* handled or ignored */
		return 0;
	seen = known(tgid);
	if (!seen || *seen & RS_SEEN_SIGNAL)
		return 0;
	/*
	 * Whatever ends a process reaches its threads as SIGKILL; the reason is in the exit code. Zero:
	 * the process called exit_group. No group exit: another thread calls execve.
	 */
	if (sig == SIGKILL) {
		if (!(BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT))
			return 0;
		sig = BPF_CORE_READ(task, signal, group_exit_code) & 0x7f;
		if (!sig)
			return 0;
	}
	*seen |= RS_SEEN_SIGNAL;
	r = begin(task, RS_PROC_SIGNAL);
	if (!r)
		return 0;
	r->signal = sig;
	rs_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

/*
 * The argument was a pid until 6.8 (commit 72ba14deb40a), and is the task since: no address is as
 * small as a pid. A raw tracepoint, because the two are different types.
 */
SEC("raw_tp/mark_victim")
int rs_proc_oom(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 victim = ctx->args[0];
	struct task_struct *task = (struct task_struct *)victim;
	struct rs_ev_proc *r;
	__u32 tgid;

	if (victim < PID_LIMIT)
		tgid = victim;
	else
		tgid = BPF_CORE_READ(task, tgid);
	if (!known(tgid))
		return 0;
	r = RS_RESERVE(struct rs_ev_proc, RS_EV_PROC);
	if (!r)
		return 0;
	r->tgid = tgid;
	r->tid = tgid;
	r->event = RS_PROC_OOM;
	if (victim >= PID_LIMIT) {
		r->start_ns = rs_task_start(task);
		rs_task_comm(task, r->comm);
	}
	rs_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}
