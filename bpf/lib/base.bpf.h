/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Layer 0: kernel types, helpers, the shared contract, and what the verifier needs to be told. */
#ifndef RS_LIB_BASE_H
#define RS_LIB_BASE_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>

#include "shared/config.h"
#include "shared/events.h"

/* Macros of the kernel's own headers, which BTF does not carry. */
#define EPIPE	     32
#define AF_UNIX	     1
#define AF_INET	     2
#define AF_INET6     10
#define SOCK_STREAM  1
#define IPPROTO_TCP  6
#define MSG_OOB	     0x1
#define MSG_PEEK     0x2
#define MSG_TRUNC    0x20
#define MSG_ERRQUEUE 0x2000
#define PF_IO_WORKER 0x10
#define PF_KTHREAD   0x200000
#define TS_COMPAT    0x2 /* x86: thread_info.status */
#define TIF_32BIT    22	 /* arm64: thread_info.flags */
#define SOCK_DEAD    0	 /* enum sock_flags: bits of skc_flags */
#define SOCK_DONE    1
#define S_IFMT	     0170000
#define S_IFSOCK     0140000

/*
 * The same address as a pointer to `type`, whose fields are then read without a helper's call. 6.2: for programs that are not
 * loaded on older kernels (user/kernel/load.c). No code: the verifier removes the call.
 */
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;
#define rs_cast(type, p) ((type *)bpf_rdonly_cast(p, bpf_core_type_id_kernel(type)))

/*
 * The verifier must see a bound on the very register that is used; the compiler likes to compare one
 * register and use another. The empty asm makes the value opaque to it just before the comparison.
 */
#define rs_opaque(x) asm volatile("" : "+r"(x))

/* min(x, max) for a constant max, in a form the verifier follows. */
static __always_inline __u64 rs_clamp(__u64 x, __u64 max)
{
	rs_opaque(x);
	if (x > max)
		x = max;
	return x;
}

/*
 * For x that is never above RS_CAP_MAX, to say so to the verifier: it sees less than 2 * RS_CAP_MAX.
 * A mask and not a comparison: a comparison makes two paths, and every loop after it is walked twice.
 */
#define RS_BOUND (2 * RS_CAP_MAX)
static __always_inline __u64 rs_bound(__u64 x)
{
	rs_opaque(x);
	return x & (RS_BOUND - 1);
}

#endif
