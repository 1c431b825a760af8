// SPDX-License-Identifier: Apache-2.0
#include "load.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ringspan.skel.h"

#define BTF_PATH "/sys/kernel/btf/vmlinux"

/*
 * What libbpf said during one load. libbpf's print callback has no argument, so the place is kept per
 * thread, and only while a load runs.
 */
struct load_log {
	char prog[64];	 /* the program that was refused */
	char tail[4096]; /* the end of what was said about it */
	size_t len;
};

static _Thread_local struct load_log *load_log;

static void log_add(struct load_log *log, const char *text, size_t n)
{
	size_t room = sizeof(log->tail) - 1;

	if (n > room) {
		text += n - room;
		n = room;
	}
	if (log->len + n > room) {
		size_t cut = log->len + n - room;

		memmove(log->tail, log->tail + cut, log->len - cut);
		log->len -= cut;
	}
	memcpy(log->tail + log->len, text, n);
	log->len += n;
	log->tail[log->len] = 0;
}

static int on_print(enum libbpf_print_level level, const char *fmt, va_list args)
{
	struct load_log *log = load_log;
	char *text = NULL;
	int n;

	if (!log || level == LIBBPF_DEBUG)
		return 0;
	n = vasprintf(&text, fmt, args);
	if (n < 0)
		return 0;
	/* "libbpf: prog 'NAME': BPF program load failed: ...", and others that begin the same way */
	if (!log->prog[0] && sscanf(text, "libbpf: prog '%63[^']'", log->prog) != 1)
		log->prog[0] = 0;
	log_add(log, text, (size_t)n);
	free(text);
	return 0;
}

/* Does this line say why, or does it only say that? */
static bool says_why(const char *line, size_t len)
{
	static const char *const not [] = {
		"-- BEGIN",
		"arg#",
		"libbpf: failed to load",
		"libbpf: prog '",
		"libbpf: Error in bpf_",
		"libbpf: Failed to bump",
	};

	if (!len)
		return false;
	for (size_t i = 0; i < sizeof(not ) / sizeof(not [0]); i++) {
		if (strncmp(line, not [i], strlen(not [i])) == 0)
			return false;
	}
	return true;
}

/* The verifier's last words: its verdict is the last line before its statistics. */
static void last_line(const struct load_log *log, char *ret, size_t size)
{
	const char *best = "", *p = log->tail;
	size_t best_len = 0;

	while (*p) {
		size_t n = strcspn(p, "\n");

		if (strncmp(p, "processed ", 10) == 0 || strncmp(p, "-- END", 6) == 0)
			break;
		if (says_why(p, n)) {
			best = p;
			best_len = n;
		}
		p += n + (p[n] == '\n');
	}
	snprintf(ret, size, "%.*s", (int)best_len, best);
}

int rs_kernel_btf_read(struct rs_kernel_btf *ret)
{
	struct btf_header h;
	char *data = NULL;
	size_t len = 0;
	int fd, r = 0;

	fd = open(BTF_PATH, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || h.magic != BTF_MAGIC)
		r = -EIO;
	if (!r) {
		data = malloc(h.str_len ? h.str_len : 1);
		r = data ? 0 : -ENOMEM;
	}
	while (!r && len < h.str_len) {
		ssize_t n = pread(fd, data + len, h.str_len - len,
				  (off_t)h.hdr_len + h.str_off + (off_t)len);

		if (n <= 0)
			r = n < 0 ? -errno : -EIO;
		else
			len += (size_t)n;
	}
	close(fd);
	if (r)
		free(data);
	else
		*ret = (struct rs_kernel_btf){ data, len };
	return r;
}

void rs_kernel_btf_release(struct rs_kernel_btf *btf)
{
	free(btf->data);
	*btf = (struct rs_kernel_btf){ 0 };
}

bool rs_kernel_btf_has(const struct rs_kernel_btf *btf, const char *name)
{
	char want[128];
	int n;

	n = snprintf(want, sizeof(want), "%c%s", 0, name);
	if (!btf->data || n < 0 || (size_t)n >= sizeof(want))
		return false;
	return memmem(btf->data, btf->len, want, (size_t)n + 1) != NULL;
}

bool rs_kernel_btf_has_tp(const struct rs_kernel_btf *btf, const char *tracepoint)
{
	char name[96];

	snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
	return rs_kernel_btf_has(btf, name);
}

bool rs_kernel_socket_tps(const struct rs_kernel_btf *btf)
{
	return rs_kernel_btf_has_tp(btf, "sock_send_length") &&
	       rs_kernel_btf_has_tp(btf, "sock_recv_length") &&
	       rs_kernel_btf_has(btf, "splice_to_socket");
}

void rs_kernel_line(const char *path, char *ret, size_t size)
{
	FILE *f = fopen(path, "re");

	ret[0] = 0;
	if (!f)
		return;
	if (!fgets(ret, (int)size, f))
		ret[0] = 0;
	ret[strcspn(ret, "\n")] = 0;
	fclose(f);
}

static bool lockdown_confidential(void)
{
	char text[128];

	rs_kernel_line("/sys/kernel/security/lockdown", text, sizeof(text));
	return strstr(text, "[confidentiality]") != NULL;
}

int rs_kernel_explain(struct rs_kernel_err *err, int r, const char *what, const char *detail)
{
	const char *todo = "see `ringspan check`";
	char context[128], policy[256];

	err->unsupported = true;
	if (r == -EPERM || r == -EACCES) {
		/* A capability that is missing and seccomp say EPERM. AppArmor's labels have no such parts. */
		rs_kernel_line("/proc/self/attr/current", context, sizeof(context));
		if (r == -EACCES && strchr(context, ':')) {
			snprintf(
				policy, sizeof(policy),
				"does SELinux forbid it to %s? Then its audit log says so; the agent needs the "
				"classes bpf and perf_event",
				context);
			todo = policy;
		} else if (lockdown_confidential())
			todo = "the kernel is locked down (confidentiality mode), which forbids tracing";
		else if (geteuid() != 0)
			todo = "run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE";
		else
			todo = "give the container or service CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN before "
			       "5.8), CAP_SYS_RESOURCE before 5.11, and a seccomp profile that allows bpf()";
	} else if (r == -ENOMEM) {
		todo = "free memory or use a smaller --ring-size";
		err->unsupported = false;
	} else if (r == -E2BIG || r == -EINVAL) {
		todo = "this kernel's verifier refuses it; please report the kernel's version";
	} else if (r == -ENOENT || r == -ESRCH) {
		todo = "the kernel lacks it; see `ringspan check`";
	}
	snprintf(err->msg, sizeof(err->msg), "%s: %s%s%s%s; %s", what, strerror(-r),
		 detail[0] ? " (" : "", detail, detail[0] ? ")" : "", todo);
	return r;
}

static int explain_ring(struct rs_kernel_err *err, int r, const struct rs_kernel_opts *opts)
{
	char what[64];

	snprintf(what, sizeof(what), "make a ring buffer of %zu KB",
		 (opts->ring_bytes ? opts->ring_bytes : RS_RING_DEFAULT) / 1024);
	return rs_kernel_explain(err, r, what, "");
}

static void set_off(struct rs_probe *p, const char *reason)
{
	snprintf(p->reason, sizeof(p->reason), "%s", reason);
	p->state.reason = p->reason;
}

enum {
	S = 1 << RS_CAPTURE_SOCKET,
	Y = 1 << RS_CAPTURE_SYSCALL,
	B = S | Y,
	I = 1 << 7, /* with --inject */
};

static bool is_tracepoint(const char *section)
{
	return strncmp(section, "tp_btf/", 7) == 0 || strncmp(section, "raw_tp/", 7) == 0;
}

/* Atomic operations that return the old value (5.12) leave no name; this function (5.13) does. */
static bool has_fetch(const struct rs_kernel_btf *btf)
{
	return rs_kernel_btf_has(btf, "BPF_FUNC_for_each_map_elem");
}

/* Can a task be preempted inside a tracepoint's program (7.0)? Then stand-ins are attached. The name is that of
 * the lock that replaced the disabling of preemption around tracepoints. */
static bool preemptible(const struct rs_kernel_btf *btf)
{
	return rs_kernel_btf_has(btf, "class_srcu_fast_notrace_t");
}

/* Not wanted on this kernel, where another program of the same attach point does its work? */
static bool is_variant(int probe, const struct rs_kernel_btf *btf)
{
	switch (probe) {
	case RS_PROBE_rs_sys_exit:
		return !has_fetch(btf);
	case RS_PROBE_rs_sys_exit_old:
		return has_fetch(btf);
	case RS_PROBE_rs_tcp_window:
		return !rs_kernel_btf_has(btf, "bpf_rdonly_cast");
	case RS_PROBE_rs_tcp_window_old:
		return rs_kernel_btf_has(btf, "bpf_rdonly_cast");
	case RS_PROBE_rs_sock_send_in:
	case RS_PROBE_rs_sock_recv_in:
	case RS_PROBE_rs_sys_exit_in:
		return !preemptible(btf);
	}
	return false;
}

static bool is_uprobe(const char *section)
{
	return strcmp(section, "uprobe") == 0;
}

/* Do programs of uprobes know which place they run for (5.15)? */
static bool has_cookies(const struct rs_kernel_btf *btf)
{
	return rs_kernel_btf_has(btf, "BPF_FUNC_get_attach_cookie");
}

bool rs_kernel_uprobe_multi(const struct rs_kernel_btf *btf)
{
	return rs_kernel_btf_has(btf, "bpf_uprobe_multi_link");
}

/* Programs of --inject; they look on from the socket tracepoints. */
static void init_inject(int probe, struct rs_probe *p, enum rs_capture_mode backend,
			const struct rs_kernel_opts *opts)
{
	p->state.wanted =
		opts->cfg.inject != RS_INJECT_OFF &&
		(probe != RS_PROBE_rs_inject_msg || opts->cfg.inject == RS_INJECT_TRACEPARENT);
	if (!p->state.wanted)
		set_off(p, "not asked for (--inject)");
	else if (backend != RS_CAPTURE_SOCKET)
		set_off(p, "needs the socket backend (kernel 6.5)");
	else if (opts->inject_refused)
		set_off(p, opts->inject_refused);
}

static void init_probes(struct rs_probe probes[RS_PROBE_COUNT], enum rs_capture_mode backend,
			const struct rs_kernel_btf *btf, const struct rs_kernel_opts *opts)
{
#define RS_PROBE(prog_, section, backends, required_, purpose_)                                    \
	probes[RS_PROBE_##prog_] = (struct rs_probe){                                              \
		.state = { .name = section,                                                        \
			   .purpose = purpose_,                                                    \
			   .reason = "",                                                           \
			   .wanted = (backends)&1 << backend },                                    \
		.inject = (backends)&I,                                                            \
		.prog = #prog_,                                                                    \
		.required = required_,                                                             \
	};
#include "probes.def"
#undef RS_PROBE
	for (int i = 0; i < RS_PROBE_COUNT; i++) {
		struct rs_probe *p = &probes[i];

		p->variant = is_variant(i, btf);
		if (p->inject)
			init_inject(i, p, backend, opts);
		else if (!p->state.wanted || p->variant)
			set_off(p, "belongs to the other capture backend");
		else if (is_tracepoint(p->state.name) &&
			 !rs_kernel_btf_has_tp(btf, strchr(p->state.name, '/') + 1))
			set_off(p, "this kernel has no such tracepoint");
		else if (is_uprobe(p->state.name) && !has_cookies(btf))
			set_off(p, "before kernel 5.15: uprobes have no cookies");
	}
}

/* Maps that are not needed are not made: a sockmap takes CAP_NET_ADMIN. */
static void configure_inject(struct ringspan_bpf *skel)
{
	enum rs_bpf_inject how = (enum rs_bpf_inject)skel->rodata->rs_cfg.inject;

	bpf_map__set_autocreate(skel->maps.rs_socks, how == RS_INJECT_TRACEPARENT);
	bpf_map__set_autocreate(skel->maps.rs_starts, how == RS_INJECT_TRACEPARENT);
	bpf_map__set_autocreate(skel->maps.rs_inject, how != RS_INJECT_OFF);
	bpf_map__set_autocreate(skel->maps.rs_requests, how != RS_INJECT_OFF);
	bpf_map__set_autocreate(skel->maps.rs_threads, how != RS_INJECT_OFF);
	bpf_map__set_autocreate(skel->maps.rs_wanders, how != RS_INJECT_OFF);
	bpf_map__set_autocreate(skel->maps.rs_serving, how != RS_INJECT_OFF);
	bpf_map__set_autocreate(skel->maps.rs_looks, how != RS_INJECT_OFF);
}

static int configure(struct ringspan_bpf *skel, const struct rs_kernel_opts *opts,
		     enum rs_capture_mode backend, const struct rs_kernel_btf *btf)
{
	size_t ring = opts->ring_bytes ? opts->ring_bytes : RS_RING_DEFAULT;
	struct timespec now = { 0 };
	uint32_t own;
	int r;

	skel->rodata->rs_cfg = opts->cfg;
	skel->rodata->rs_cfg.abi = RS_ABI;
	skel->rodata->rs_cfg.self_tgid = (uint32_t)getpid();
	if (!opts->cfg.cap_bytes || opts->cfg.cap_bytes > RS_CAP_MAX)
		skel->rodata->rs_cfg.cap_bytes = opts->cfg.cap_bytes ? RS_CAP_MAX : 512;
	if (!opts->cfg.head_bytes || opts->cfg.head_bytes > RS_HEAD_MAX)
		skel->rodata->rs_cfg.head_bytes = RS_HEAD_MAX;
	clock_gettime(CLOCK_BOOTTIME, &now);
	skel->rodata->rs_started_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	skel->rodata->rs_by_syscall = backend == RS_CAPTURE_SYSCALL;
	skel->rodata->rs_preemptible = preemptible(btf);
	skel->rodata->rs_cfg.tls = opts->cfg.tls && has_cookies(btf);
	if (opts->inject_refused || backend != RS_CAPTURE_SOCKET)
		skel->rodata->rs_cfg.inject = RS_INJECT_OFF;
	configure_inject(skel);
	r = bpf_map__set_max_entries(skel->maps.rs_ring, (uint32_t)ring);
	own = bpf_map__max_entries(skel->maps.rs_scratch); /* RS_SLOT_OWN */
	if (!r && preemptible(btf))
		r = bpf_map__set_max_entries(skel->maps.rs_scratch, 2 * own + RS_TLS_SLOTS);
	else if (!r && skel->rodata->rs_cfg.tls)
		r = bpf_map__set_max_entries(skel->maps.rs_scratch, own + RS_TLS_SLOTS);
	if (!r)
		r = bpf_map__set_max_entries(skel->maps.rs_live,
					     opts->max_conns ? opts->max_conns : 65536);
	if (!r && backend == RS_CAPTURE_SYSCALL)
		r = bpf_map__set_max_entries(skel->maps.rs_conns, 16384);
	return r;
}

/* One attempt. On failure of one program: its index in *ret_bad, or -1. */
static int try_load(const struct rs_kernel_opts *opts, enum rs_capture_mode backend,
		    const struct rs_kernel_btf *btf, struct rs_probe probes[RS_PROBE_COUNT],
		    struct ringspan_bpf **ret, int *ret_bad)
{
	struct ringspan_bpf *skel;
	int r;

	*ret_bad = -1;
	skel = ringspan_bpf__open();
	if (!skel)
		return -errno;
	r = configure(skel, opts, backend, btf);
	for (int i = 0; !r && i < RS_PROBE_COUNT; i++) {
		struct bpf_program *prog =
			bpf_object__find_program_by_name(skel->obj, probes[i].prog);

		r = prog ? bpf_program__set_autoload(prog, !probes[i].reason[0]) : -ENOENT;
		if (!r && is_uprobe(probes[i].state.name) && rs_kernel_uprobe_multi(btf))
			r = bpf_program__set_expected_attach_type(prog, TRACE_UPROBE_MULTI);
	}
	if (!r)
		r = ringspan_bpf__load(skel);
	if (!r) {
		*ret = skel;
		return 0;
	}
	for (int i = 0; i < RS_PROBE_COUNT; i++) {
		if (!probes[i].reason[0] && strcmp(load_log->prog, probes[i].prog) == 0)
			*ret_bad = i;
	}
	ringspan_bpf__destroy(skel);
	return r;
}

int rs_kernel_load(const struct rs_kernel_opts *opts, enum rs_capture_mode backend,
		   const struct rs_kernel_btf *btf, struct rs_probe probes[RS_PROBE_COUNT],
		   struct ringspan_bpf **ret, struct rs_kernel_err *err)
{
	struct load_log log;
	char line[RS_REASON_MAX] = "";
	int r, bad;

	init_probes(probes, backend, btf, opts);
	for (int i = 0; i < RS_PROBE_COUNT; i++) {
		if (probes[i].required && probes[i].state.wanted && !probes[i].variant &&
		    probes[i].reason[0])
			return rs_kernel_explain(err, -ENOENT, probes[i].state.name,
						 probes[i].reason);
	}
	libbpf_set_print(on_print);
	load_log = &log;
	for (;;) {
		log = (struct load_log){ .len = 0 };
		r = try_load(opts, backend, btf, probes, ret, &bad);
		if (!r)
			break;
		last_line(&log, line, sizeof(line));
		if (bad < 0 || probes[bad].required)
			break;
		set_off(&probes[bad], line[0] ? line : strerror(-r));
	}
	load_log = NULL;
	if (r && bad < 0 && strstr(log.tail, "map 'rs_ring'") && r != -EPERM)
		return explain_ring(err, r, opts);
	if (r && bad < 0)
		return rs_kernel_explain(err, r, "load the BPF programs", line);
	if (r)
		return rs_kernel_explain(err, r, probes[bad].state.name, line);
	return 0;
}
