/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox — the privilege that is left once everything is loaded, attached and open.
 *
 * Three walls, each alone of use: capabilities (effective, permitted, inheritable, ambient, bounding)
 * without those that no later feature needs; no_new_privs, so that nothing run from here gains any; a
 * system call filter without exec, fork, ptrace, mount and the like. A refused call gets EPERM and is
 * told once per call on standard error: a feature may be missing then, the agent goes on.
 *
 * What stays can be used by whoever takes over the parsers: they run in this process. See docs/deploy.md.
 */
#ifndef RS_SANDBOX_SANDBOX_H
#define RS_SANDBOX_SANDBOX_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RS_CAP(name) (1ull << CAP_##name)

enum rs_sandbox_mode { /* --sandbox */
	RS_SANDBOX_AUTO,
	RS_SANDBOX_OFF,
};

struct rs_sandbox {
	uint64_t caps; /* effective now */
	bool no_new_privs, seccomp;
	int seccomp_err; /* -errno when there is no filter, though one was wanted */
};

/* fn(arg) with this capability not in force: may it be given up? The rest is as before afterwards. */
bool rs_sandbox_without(uint64_t caps, bool (*fn)(const void *arg), const void *arg);

/*
 * Gives up all but `keep`, for good; signals to others too, unless KILL is kept (held or not). To be called by the only thread there is. 0, or -errno: capabilities
 * or no_new_privs could not be set; a kernel without seccomp is no failure (ret->seccomp_err).
 */
int rs_sandbox_enter(uint64_t keep, struct rs_sandbox *ret);
/* What is so without it, for status. */
void rs_sandbox_look(struct rs_sandbox *ret);

/* Calls refused so far. */
uint64_t rs_sandbox_refused(void);

/* "BPF PERFMON", or "none". Returns buf. */
const char *rs_sandbox_names(uint64_t caps, char *buf, size_t size);

#endif
