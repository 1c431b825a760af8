/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 1: which goroutine a thread runs. Since Go 1.18 a register holds the current one (struct runtime.g)
 * all the time, in system calls too: R14 on x86-64, R28 on arm64 (Go's ABIInternal). Its number is at a place
 * that user space knows per version. Only while the thread is on that goroutine's own stack is it what runs:
 * else it is the scheduler, or C.
 */
#ifndef RS_LIB_GO_H
#define RS_LIB_GO_H

#include "config.bpf.h"
#include "maps.bpf.h"

/* r: struct pt_regs of a tracepoint or of a uprobe. */
#if defined(__TARGET_ARCH_x86)
#define rs_go_g(r)  ((r)->r14)
#define rs_go_sp(r) ((r)->sp)
#else
#define rs_go_g(r)  (((struct user_pt_regs *)(r))->regs[28])
#define rs_go_sp(r) (((struct user_pt_regs *)(r))->sp)
#endif

/*
 * Goroutines that received something, and those that they made: process and goroutine -> 1. Of others nobody
 * wants to know what they make. Losing one loses its children's parents.
 */
struct rs_go_key {
	__u64 task;
	__u32 tgid;
	__u32 pad_;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct rs_go_key);
	__type(value, __u32);
} rs_go_tasks SEC(".maps");

static __always_inline bool rs_go_serves(__u32 tgid, __u64 task)
{
	struct rs_go_key key = { .task = task, .tgid = tgid };

	return bpf_map_lookup_elem(&rs_go_tasks, &key) != NULL;
}

static __always_inline void rs_go_mark(__u32 tgid, __u64 task)
{
	struct rs_go_key key = { .task = task, .tgid = tgid };
	__u32 one = 1;

	if (task && !bpf_map_lookup_elem(&rs_go_tasks, &key))
		bpf_map_update_elem(&rs_go_tasks, &key, &one, BPF_ANY);
}

/* NULL: not Go, or not known as such. */
static __always_inline struct rs_bpf_go *rs_go_of(__u32 tgid)
{
	if (!*(volatile __u32 *)&rs_any_go)
		return NULL;
	return bpf_map_lookup_elem(&rs_go, &tgid);
}

/* A field of the current goroutine; 0: it cannot be had. regs: the thread's user registers. */
static __always_inline __u64 rs_go_field(__u64 g, __u64 sp, __u32 at)
{
	__u64 stack[2] = {}, v = 0; /* runtime.g begins with its stack's bounds, low and high */

	if (!g || bpf_probe_read_user(stack, sizeof(stack), (void *)g))
		return 0;
	if (sp < stack[0] || sp > stack[1] || bpf_probe_read_user(&v, sizeof(v), (void *)(g + at)))
		return 0;
	return v;
}

/* Number of the goroutine that the thread in a system call runs, or 0. */
static __always_inline __u64 rs_go_current(__u32 tgid, struct pt_regs *regs)
{
	struct rs_bpf_go *go = rs_go_of(tgid);

	return go ? rs_go_field(rs_go_g(regs), rs_go_sp(regs), go->goid) : 0;
}

#endif
