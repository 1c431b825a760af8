/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Layer 2: the span that the current thread's SDK has active, where the process publishes it (OTEP 4947):
 * a thread-local pointer otel_thread_ctx_v1 to a record. User space has found where the pointer is.
 * Two reads of user memory per segment of such a process (four for a library loaded later); others pay a look
 * at a number.
 */
#ifndef RS_LIB_THREAD_CTX_H
#define RS_LIB_THREAD_CTX_H

#include "emit.bpf.h"

#if defined(__TARGET_ARCH_x86)
#define rs_thread_pointer(task) BPF_CORE_READ(task, thread.fsbase)
#define RS_DTV_AT		8 /* of the pointer to the vector of modules' blocks, glibc */
#elif defined(__TARGET_ARCH_arm64)
#define rs_thread_pointer(task) BPF_CORE_READ(task, thread.uw.tp_value)
#define RS_DTV_AT		0
#endif
#define RS_DTV_STEP	   16
#define RS_DTV_UNALLOCATED (~0ULL)

struct rs_thread_record {
	__u8 trace_id[16], span_id[8];
	__u8 valid, flags;
	__u16 attributes; /* bytes that follow; not read */
} __attribute__((aligned(8)));

/* Address of the thread-local variable for this thread, 0: it has none yet. */
static __always_inline __u64 rs_tls_address(const struct rs_bpf_tlsvar *tls)
{
	__u64 tp = rs_thread_pointer(rs_task()), dtv, block;

	if (!tls->module)
		return tp + tls->offset;
	if (bpf_probe_read_user(&dtv, sizeof(dtv), (void *)(tp + RS_DTV_AT)) ||
	    bpf_probe_read_user(&block, sizeof(block), (void *)(dtv + tls->module * RS_DTV_STEP)) ||
	    block == RS_DTV_UNALLOCATED || !block)
		return 0;
	return block + tls->offset;
}

/* The current thread's active span. False: none is published, or none is active. */
static __always_inline bool rs_thread_record(__u32 tgid, struct rs_thread_record *ret)
{
	struct rs_bpf_tlsvar *tls = bpf_map_lookup_elem(&rs_tlsvar, &tgid);
	__u64 at, record;

	if (!tls)
		return false;
	at = rs_tls_address(tls);
	if (!at || bpf_probe_read_user(&record, sizeof(record), (void *)at) || !record ||
	    bpf_probe_read_user(ret, sizeof(*ret), (void *)record) || ret->valid != 1)
		return false;
	return (*(__u64 *)ret->trace_id | *(__u64 *)&ret->trace_id[8]) && *(__u64 *)ret->span_id;
}

/* Tells of the active span before the data of a segment that is sent. A global function: see lib/buffer.bpf.h. */
int rs_emit_thread_ctx(__u64 conn, __u32 tgid, __u64 off, __u32 len);

#endif
