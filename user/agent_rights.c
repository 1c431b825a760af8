// SPDX-License-Identifier: Apache-2.0
#include "agent_rights.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "tls/tls_mode.h"

/* The directory of path, or path itself when it is one. */
static bool may_write(const void *arg)
{
	const char *path = arg, *slash = strrchr(path, '/');
	char dir[4096] = ".";

	if (slash)
		snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) && faccessat(AT_FDCWD, path, F_OK, 0) == 0)
		return false;
	return !faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS);
}

static bool can_talk(const void *arg)
{
	/* Reading counters is the same to the kernel as setting a policy, and changes nothing. */
	return rs_kernel_reachable(arg);
}

/* Files that are written, renamed or removed later may be in a directory that is another user's. */
static uint64_t for_file(const char *path)
{
	return path && may_write(path) && !rs_sandbox_without(RS_CAP(DAC_OVERRIDE), may_write, path)
		       ? RS_CAP(DAC_OVERRIDE)
		       : 0;
}

static uint64_t needed(const struct rs_config *cfg, struct rs_kernel *k,
		       const struct rs_exporters *x, bool child)
{
	uint64_t keep = rs_kernel_later_caps(k);

	if (!rs_sandbox_without(RS_CAP(BPF) | RS_CAP(SYS_ADMIN), can_talk, k))
		keep |= RS_CAP(BPF);
	if (cfg->tls !=
	    RS_TLS_NEVER) /* libraries are found through other processes' root and mappings */
		keep |= RS_CAP(SYS_PTRACE) | RS_CAP(DAC_READ_SEARCH) | RS_CAP(CHECKPOINT_RESTORE);
	if (cfg->command == RS_CMD_record)
		return keep; /* nothing is opened again */
	/* What a process is, is looked up when it is first seen: its executable, its environment. */
	keep |= RS_CAP(SYS_PTRACE) | RS_CAP(DAC_READ_SEARCH);
	keep |= for_file(cfg->spool) | for_file(cfg->socket);
	for (int i = 0; i < x->n; i++) {
		if (!strcmp(x->e[i].ops->name, "file"))
			keep |= for_file(x->e[i].target);
	}
	return keep | (child ? RS_CAP(KILL) : 0);
}

void rs_agent_drop_rights(const struct rs_config *cfg, struct rs_kernel *k,
			  const struct rs_exporters *x, bool child, struct rs_sandbox *ret)
{
	char names[256];
	int rc;

	rs_sandbox_look(ret);
	if (cfg->sandbox == RS_SANDBOX_OFF)
		return;
	rc = rs_sandbox_enter(needed(cfg, k, x, child), ret);
	if (rc)
		rs_warn("privileges cannot be given up: %s", strerror(-rc));
	else if (ret->seccomp_err)
		rs_warn("no system call filter: %s; capabilities are given up all the same",
			strerror(-ret->seccomp_err));
	rs_debug("sandbox: capabilities %s%s%s", rs_sandbox_names(ret->caps, names, sizeof(names)),
		 ret->no_new_privs ? ", no new ones" : "",
		 ret->seccomp ? ", system calls filtered" : "");
}
