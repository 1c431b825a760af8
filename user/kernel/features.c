// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "inject.h"
#include "load.h"

#define INIT_PID_NS 0xEFFFFFFCu /* PROC_PID_INIT_INO: inode of the first pid namespace */

/* linux/capability.h */
enum {
	DAC_READ_SEARCH = 2,
	SYS_PTRACE = 19,
	SYS_ADMIN = 21,
	SYS_RESOURCE = 24,
	PERFMON = 38,
	BPF = 39,
};

struct list {
	struct rs_feature *at;
	size_t n, max;
};

static void add(struct list *l, const char *name, bool required, bool ok, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

static void add(struct list *l, const char *name, bool required, bool ok, const char *fmt, ...)
{
	struct rs_feature *f;
	va_list args;

	if (l->n == l->max)
		return;
	f = &l->at[l->n++];
	*f = (struct rs_feature){ .required = required, .ok = ok };
	snprintf(f->name, sizeof(f->name), "%s", name);
	va_start(args, fmt);
	vsnprintf(f->detail, sizeof(f->detail), fmt, args);
	va_end(args);
}

static uint64_t effective_caps(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	uint64_t caps = 0;
	char line[128];

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "CapEff: %" SCNx64, &caps) == 1)
			break;
	}
	fclose(f);
	return caps;
}

static bool has_cap(uint64_t caps, int cap)
{
	return caps >> cap & 1;
}

static void privileges(struct list *l, const struct rs_kernel_btf *btf)
{
	uint64_t caps = effective_caps();
	bool admin = has_cap(caps, SYS_ADMIN);
	struct rlimit lim = { 0 };

	add(l, "CAP_BPF", true, has_cap(caps, BPF) || admin, "%s",
	    has_cap(caps, BPF) || admin ? "to load programs" : "run as root, or give CAP_BPF");
	add(l, "CAP_PERFMON", true, has_cap(caps, PERFMON) || admin, "%s",
	    has_cap(caps, PERFMON) || admin ? "to read kernel memory"
					    : "run as root, or give CAP_PERFMON");
	add(l, "CAP_SYS_PTRACE", false, has_cap(caps, SYS_PTRACE), "%s",
	    has_cap(caps, SYS_PTRACE)
		    ? "to read other users' /proc/PID"
		    : "executables of other users' processes stay unknown; give CAP_SYS_PTRACE");
	add(l, "CAP_DAC_READ_SEARCH", false, has_cap(caps, DAC_READ_SEARCH), "%s",
	    has_cap(caps, DAC_READ_SEARCH)
		    ? "to read other users' environment"
		    : "OTEL_SERVICE_NAME of other users' processes stays unknown; give CAP_DAC_READ_SEARCH");
	if (!btf->data ||
	    rs_kernel_btf_has(btf, "BPF_FUNC_task_storage_get")) /* as old as the change, 5.11 */
		return;
	getrlimit(RLIMIT_MEMLOCK, &lim);
	add(l, "memlock limit", true, lim.rlim_cur == RLIM_INFINITY || has_cap(caps, SYS_RESOURCE),
	    lim.rlim_cur == RLIM_INFINITY ? "unlimited"
	    : has_cap(caps, SYS_RESOURCE)
		    ? "will be raised (CAP_SYS_RESOURCE)"
		    : "this kernel charges BPF memory to it: ulimit -l unlimited, or CAP_SYS_RESOURCE");
}

/* bpf() may be forbidden by seccomp or a security module though the capabilities are there: try it. */
static void ring(struct list *l)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "rs_check", 0, 0,
				(uint32_t)sysconf(_SC_PAGESIZE), &opts);
	int r = -errno;

	if (fd >= 0) {
		close(fd);
		add(l, "ring buffer", true, true, "can be made");
	} else if (r == -EINVAL) {
		add(l, "ring buffer", true, false, "not in this kernel: 5.8 or later is needed");
	} else {
		add(l, "ring buffer", true, false,
		    "%s: missing privilege, or bpf() forbidden by seccomp or policy", strerror(-r));
	}
}

static void lockdown(struct list *l)
{
	char line[128], mode[32] = "";
	const char *at;

	rs_kernel_line("/sys/kernel/security/lockdown", line, sizeof(line));
	at = strchr(line, '[');
	if (at)
		sscanf(at, "[%31[a-z]]", mode);
	if (strcmp(mode, "confidentiality") == 0)
		add(l, "lockdown", true, false,
		    "confidentiality mode forbids reading memory: boot with lockdown=integrity or none");
	else
		add(l, "lockdown", true, true, "%s", mode[0] ? mode : "not in this kernel");
}

static void tracepoints(struct list *l, const struct rs_kernel_btf *btf)
{
	bool sock = rs_kernel_socket_tps(btf);
	bool sys = rs_kernel_btf_has_tp(btf, "sys_exit");

	add(l, "socket tracepoints", false, sock, "%s",
	    sock ? "sock_send_length, sock_recv_length: capture is cheap"
		 : "before kernel 6.5: capture through system calls, which costs about twice as much");
	add(l, "system call tracepoints", !sock, sys, "%s",
	    sys ? "sys_exit: for --capture syscall"
		: "CONFIG_FTRACE_SYSCALLS is off: --capture syscall is not possible");
}

static void pid_namespace(struct list *l)
{
	struct stat st;
	bool ok = stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == INIT_PID_NS;

	add(l, "pid namespace", true, ok, "%s",
	    ok ? "the host's"
	       : "not the host's: process ids would not match; start the container with hostPID / --pid=host");
}

/* What AppArmor and SELinux give containers hides other processes, whatever the capabilities are. */
static void confinement(struct list *l)
{
	char label[96];

	rs_kernel_line("/proc/self/attr/current", label, sizeof(label));
	if (strstr(label, "(enforce)") || strstr(label, ":container_t:") ||
	    strstr(label, ":container_init_t:"))
		add(l, "confinement", false, false,
		    "%s: other processes' programs and TLS are hidden; run unconfined (docs/deploy.md)",
		    label);
	else
		add(l, "confinement", false, true, "%s", *label ? label : "none");
}

static void statistics(struct list *l)
{
	char line[32];
	bool on;

	rs_kernel_line("/proc/sys/kernel/bpf_stats_enabled", line, sizeof(line));
	on = line[0] && line[0] != '0';
	add(l, "BPF statistics", false, on, "%s",
	    on ? "on: status shows the programs' run time"
	       : "off: run time of the programs is not shown; sysctl kernel.bpf_stats_enabled=1");
}

static void sockmap(struct list *l)
{
	int ok = rs_inject_fionread();

	if (ok < 0)
		add(l, "FIONREAD in sockmaps", false, false, "cannot be tried: %s", strerror(-ok));
	else
		add(l, "FIONREAD in sockmaps", false, ok,
		    ok ? "right: --inject traceparent does no harm"
		       : "wrong, as since Linux commit 929e30f93125: --inject traceparent is refused");
}

size_t rs_kernel_features(struct rs_feature *ret, size_t max)
{
	struct list l = { ret, 0, max };
	struct rs_kernel_btf btf = { 0 };
	struct utsname u;
	int r;

	if (uname(&u) == 0)
		add(&l, "kernel", false, true, "%s %s", u.release, u.machine);
	r = rs_kernel_btf_read(&btf);
	add(&l, "kernel type information (BTF)", true, !r, "%s%s",
	    r ? strerror(-r) : "/sys/kernel/btf/vmlinux",
	    r ? ": needs a kernel with CONFIG_DEBUG_INFO_BTF" : "");
	privileges(&l, &btf);
	lockdown(&l);
	ring(&l);
	if (!r)
		tracepoints(&l, &btf);
	sockmap(&l);
	pid_namespace(&l);
	confinement(&l);
	statistics(&l);
	rs_kernel_btf_release(&btf);
	return l.n;
}
