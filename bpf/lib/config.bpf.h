/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 0: read-only data, set by user space before the load. What a constant rules out is removed by
 * the verifier and may use what this kernel does not have.
 */
#ifndef RS_LIB_CONFIG_H
#define RS_LIB_CONFIG_H

#include "base.bpf.h"

const volatile struct rs_bpf_config rs_cfg = {};

/* 1: the system call backend; connections are found in rs_conns, not in socket storage. */
const volatile __u32 rs_by_syscall = 0;
/* CLOCK_BOOTTIME when the agent began: what is younger it has seen from its beginning. */
const volatile __u64 rs_started_ns = 0;
/* 1: tracepoints can be preempted (from 7.0 on): see lib/standin.bpf.h. */
const volatile __u32 rs_preemptible = 0;

/*
 * 1 when all programs are attached and all connections that exist are marked. What is seen of a request
 * without its response, or the reverse on a connection taken for new, would shift all that follow.
 */
__u32 rs_active = 0;

/* 1 when rs_go ever had an entry: before, nobody looks. */
__u32 rs_any_go = 0;

/* 1 as soon as some process is in rs_tlsvar. */
__u32 rs_publishers = 0;

/* Raised by user space after each change of rs_policy: a connection looks its policy up again. */
__u32 rs_epoch = 0;

/* Raised by user space when a process that was traced is not any more: no cached verdict counts. */
__u32 rs_verdict_epoch = 0;

#endif
