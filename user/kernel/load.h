/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load — opens and loads the BPF object so that a program the kernel refuses is left out, with the
 * reason, and the rest stays. Private to user/kernel/.
 */
#ifndef RS_KERNEL_LOAD_H
#define RS_KERNEL_LOAD_H

#include "kernel.h"

struct ringspan_bpf;

enum rs_probe_id {
#define RS_PROBE(prog, section, backends, required, purpose) RS_PROBE_##prog,
#include "probes.def"
#undef RS_PROBE
	RS_PROBE_COUNT,
};

#define RS_REASON_MAX 200

struct rs_probe {
	struct rs_probe_state state; /* its reason points to reason[] */
	const char *prog;
	bool required;
	bool inject;  /* only with --inject */
	bool variant; /* the other program of two for one attach point: not shown */
	char reason[RS_REASON_MAX];
};

/*
 * What of the kernel's own type information decides something: the names in it, one after the other, a NUL before each. Parsing
 * the rest would cost 50 ms.
 */
struct rs_kernel_btf {
	char *data;
	size_t len;
};

/* 0 or -errno (-ENOENT: the kernel has no BTF). */
int rs_kernel_btf_read(struct rs_kernel_btf *ret);
void rs_kernel_btf_release(struct rs_kernel_btf *btf);
bool rs_kernel_btf_has(const struct rs_kernel_btf *btf, const char *name);
/* Has the kernel this tracepoint ("sock_send_length")? */
bool rs_kernel_btf_has_tp(const struct rs_kernel_btf *btf, const char *tracepoint);

/* Do the socket tracepoints tell of every transfer (6.5)? */
bool rs_kernel_socket_tps(const struct rs_kernel_btf *btf);

/* Can one link attach a program at many places (6.6)? */
bool rs_kernel_uprobe_multi(const struct rs_kernel_btf *btf);
#define TRACE_UPROBE_MULTI 48 /* linux/bpf.h of 6.6: newer than the oldest headers we build with */

/*
 * Fills probes[] and loads. backend: RS_CAPTURE_SOCKET or RS_CAPTURE_SYSCALL. 0, or -errno with *err
 * filled. The caller destroys the skeleton.
 */
int rs_kernel_load(const struct rs_kernel_opts *opts, enum rs_capture_mode backend,
		   const struct rs_kernel_btf *btf, struct rs_probe probes[RS_PROBE_COUNT],
		   struct ringspan_bpf **ret, struct rs_kernel_err *err);

/* For user/kernel/uprobe.c, which has the numbers. The program, NULL: not loaded; why not, or "". */
struct bpf_program;
const struct bpf_program *rs_kernel_uprobe_program(const struct rs_kernel *k, int uprobe);
const char *rs_kernel_uprobe_reason(const struct rs_kernel *k, int uprobe);

/* The first line of a file, without its newline; "" when it cannot be read. */
void rs_kernel_line(const char *path, char *ret, size_t size);
/* Fills *err with the reason for a refused load, in words, and what to do. Returns r. */
int rs_kernel_explain(struct rs_kernel_err *err, int r, const char *what, const char *detail);

#define RS_RING_DEFAULT (8u << 20)

#endif
