// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "children.h"
#include "inject.h"
#include "load.h"
#include "ring.h"
#include "ringspan.skel.h"
#include "source/record.h"
#include "uprobe.h"

struct rs_kernel {
	struct ringspan_bpf *skel;
	struct rs_ring ring;
	enum rs_capture_mode backend;
	struct rs_probe probes[RS_PROBE_COUNT];
	struct bpf_link *links[RS_PROBE_COUNT];
	struct rs_probe_state states[RS_PROBE_COUNT];
	uint64_t bad_records, pids_full; /* what is counted on this side */
	uint32_t *pids;			 /* of the filter, as asked for */
	size_t npids;
	bool uprobe_multi; /* the kernel attaches uprobes without CAP_SYS_ADMIN (6.6) */
	int ncpu;
	uint64_t *percpu;     /* RS_BPFC_COUNT values for each CPU */
	const uint64_t *live; /* rs_live; NULL: no memory for it */
	/* of the drain that is running */
	rs_event_fn ahead, fn;
	void *arg;
};

static void on_sample(void *arg, const void *data, size_t size)
{
	struct rs_kernel *k = arg;

	if (data && rs_record_valid(data, size))
		k->fn(k->arg, data);
	else
		k->bad_records++;
}

static void on_ahead(void *arg, const void *data, size_t size)
{
	struct rs_kernel *k = arg;

	if (rs_record_valid(data, size))
		k->ahead(k->arg, data);
}

static int open_ring(struct rs_kernel *k, const struct rs_kernel_opts *opts,
		     struct rs_kernel_err *err)
{
	size_t size = opts->ring_bytes ? opts->ring_bytes : RS_RING_DEFAULT;
	int rc = rs_ring_open(&k->ring, bpf_map__fd(k->skel->maps.rs_ring), size);
	char what[96];

	if (!rc)
		return 0;
	snprintf(what, sizeof(what), "map a ring buffer of %zu KB", size / 1024);
	return rs_kernel_explain(err, rc, what, "");
}

static size_t live_bytes(const struct rs_kernel *k)
{
	return bpf_map__max_entries(k->skel->maps.rs_live) * sizeof(*k->live);
}

/* Without it sockets' ends are known by their records alone. */
static void map_live(struct rs_kernel *k)
{
	void *p = mmap(NULL, live_bytes(k), PROT_READ, MAP_SHARED,
		       bpf_map__fd(k->skel->maps.rs_live), 0);

	k->live = p == MAP_FAILED ? NULL : p;
}

static int check_opts(const struct rs_kernel_opts *opts, struct rs_kernel_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = opts->ring_bytes;

	*err = (struct rs_kernel_err){ 0 };
	if (size && (size < page || (size & (size - 1)) || size > 1u << 30)) {
		snprintf(
			err->msg, sizeof(err->msg),
			"ring buffer of %zu bytes: not a power of two from %zu to 1 GiB; give another --ring-size",
			size, page);
		return -EINVAL;
	}
	return 0;
}

/* In 6.3 and 6.4 sendfile goes by the tracepoints; splice_to_socket, in 6.5, goes through sendmsg. */
static enum rs_capture_mode choose(enum rs_capture_mode mode, const struct rs_kernel_btf *btf)
{
	if (mode != RS_CAPTURE_AUTO)
		return mode;
	return rs_kernel_socket_tps(btf) ? RS_CAPTURE_SOCKET : RS_CAPTURE_SYSCALL;
}

int rs_kernel_open(const struct rs_kernel_opts *opts, struct rs_kernel **ret,
		   struct rs_kernel_err *err)
{
	struct rs_kernel_btf btf = { 0 };
	struct rs_kernel *k;
	int r;

	r = check_opts(opts, err);
	if (r)
		return r;
	r = rs_kernel_btf_read(&btf);
	if (r)
		return rs_kernel_explain(err, r, "read /sys/kernel/btf/vmlinux",
					 "made by CONFIG_DEBUG_INFO_BTF");
	k = calloc(1, sizeof(*k));
	if (!k) {
		r = -ENOMEM;
		goto fail;
	}
	k->backend = choose(opts->mode, &btf);
	k->uprobe_multi = rs_kernel_uprobe_multi(&btf);
	r = rs_kernel_load(opts, k->backend, &btf, k->probes, &k->skel, err);
	if (r)
		goto fail;
	k->ncpu = libbpf_num_possible_cpus();
	k->percpu =
		k->ncpu > 0 ? calloc((size_t)k->ncpu, RS_BPFC_COUNT * sizeof(*k->percpu)) : NULL;
	if (!k->percpu) {
		r = rs_kernel_explain(err, -ENOMEM, "read counters", "");
		goto fail;
	}
	k->pids = opts->npids ? calloc(opts->npids, sizeof(*k->pids)) : NULL;
	if (k->pids) {
		memcpy(k->pids, opts->pids, opts->npids * sizeof(*k->pids));
		k->npids = opts->npids;
	}
	map_live(k);
	r = open_ring(k, opts, err);
	for (size_t i = 0; !r && i < opts->npids; i++) {
		r = rs_kernel_add_pid(k, opts->pids[i]);
		if (r)
			rs_kernel_explain(err, r, "filter by process", "");
	}
	if (r)
		goto fail;
	rs_kernel_btf_release(&btf);
	*ret = k;
	return 0;
fail:
	rs_kernel_btf_release(&btf);
	rs_kernel_close(k);
	return r;
}

static struct bpf_link *attach_iter(struct rs_kernel *k, struct bpf_program *prog)
{
	union bpf_iter_link_info info = { .map.map_fd =
						  (uint32_t)bpf_map__fd(k->skel->maps.rs_sk) };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));

	return bpf_program__attach_iter(prog, &opts);
}

/* An iterator's program runs while its descriptor is read; ours write nothing there. */
static int run_iter(struct bpf_link *link)
{
	char none[8];
	ssize_t n;
	int fd = bpf_iter_create(bpf_link__fd(link));

	if (fd < 0)
		return -errno;
	do { /* EAGAIN: it has looked at a million */
		n = read(fd, none, sizeof(none));
	} while (n > 0 || (n < 0 && errno == EAGAIN));
	n = n < 0 ? -errno : 0;
	close(fd);
	return (int)n;
}

static int walk_probe(const struct rs_kernel *k)
{
	return k->backend == RS_CAPTURE_SOCKET ? RS_PROBE_rs_iter_files : RS_PROBE_rs_iter_walk;
}

/* Before anything is captured: what is opened from now on is seen to be new. */
static void mark_present(struct rs_kernel *k)
{
	struct bpf_link *link = k->links[walk_probe(k)];

	k->skel->bss->rs_marking = 1;
	if (link)
		run_iter(link);
	k->skel->bss->rs_marking = 0;
}

static struct bpf_program *program(struct rs_kernel *k, int probe)
{
	return bpf_object__find_program_by_name(k->skel->obj, k->probes[probe].prog);
}

/* Messages of the sockets in rs_socks pass this program: it goes with the map. */
static int attach_msg(struct rs_kernel *k, struct bpf_program *prog)
{
	return bpf_prog_attach(bpf_program__fd(prog), bpf_map__fd(k->skel->maps.rs_socks),
			       BPF_SK_MSG_VERDICT, 0)
		       ? -errno
		       : 0;
}

static struct bpf_link *attach_ops(struct bpf_program *prog)
{
	int fd = rs_inject_cgroup();
	struct bpf_link *link = NULL;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	link = bpf_program__attach_cgroup(prog, fd);
	close(fd);
	return link;
}

static int attach_one(struct rs_kernel *k, int i)
{
	struct rs_probe *p = &k->probes[i];
	struct bpf_program *prog = program(k, i);
	int r = 0;

	if (p->reason[0])
		return 0;
	if (strcmp(p->state.name, "uprobe") == 0) { /* to files, later */
		p->state.attached = true;
		return 0;
	}
	if (i == RS_PROBE_rs_inject_msg)
		r = attach_msg(k, prog);
	else if (i == RS_PROBE_rs_inject_ops)
		k->links[i] = attach_ops(prog);
	else if (i == RS_PROBE_rs_iter_conns)
		k->links[i] = attach_iter(k, prog);
	else
		k->links[i] = bpf_program__attach(prog);
	if (!k->links[i] && i != RS_PROBE_rs_inject_msg)
		r = -errno;
	if (r) {
		snprintf(p->reason, sizeof(p->reason), "attach: %s", strerror(-r));
		p->state.reason = p->reason;
		return r;
	}
	p->state.attached = true;
	return 0;
}

static void add_child(void *arg, uint32_t pid)
{
	struct rs_kernel *k = arg;

	if (rs_kernel_add_pid(k, pid))
		k->pids_full++;
}

int rs_kernel_attach(struct rs_kernel *k, struct rs_kernel_err *err)
{
	*err = (struct rs_kernel_err){ 0 };
	for (int i = 0; i < RS_PROBE_COUNT; i++) {
		int r = attach_one(k, i);

		if (r && k->probes[i].required)
			return rs_kernel_explain(err, r, k->probes[i].state.name, "attach");
	}
	return 0;
}

void rs_kernel_begin(struct rs_kernel *k)
{
	mark_present(k);
	__atomic_store_n(&k->skel->bss->rs_active, 1, __ATOMIC_RELEASE);
	/* Children that are older than the agent; those to come are the fork probe's, which runs already.
	 * Without /proc they are missing, the rest is there. */
	if (k->npids)
		(void)rs_children(k->pids, k->npids, add_child, k);
}

void rs_kernel_close(struct rs_kernel *k)
{
	if (!k)
		return;
	for (int i = 0; i < RS_PROBE_COUNT; i++)
		bpf_link__destroy(k->links[i]);
	rs_ring_close(&k->ring);
	if (k->live)
		munmap((void *)k->live, live_bytes(k));
	ringspan_bpf__destroy(k->skel);
	free(k->percpu);
	free(k->pids);
	free(k);
}

int rs_kernel_fd(const struct rs_kernel *k)
{
	return bpf_map__fd(k->skel->maps.rs_ring);
}

size_t rs_kernel_drain(struct rs_kernel *k, size_t budget, rs_event_fn ahead, rs_event_fn fn,
		       void *arg)
{
	k->ahead = ahead;
	k->fn = fn;
	k->arg = arg;
	return rs_ring_read(&k->ring, budget, ahead ? on_ahead : NULL, on_sample, k);
}

uint64_t rs_kernel_written(const struct rs_kernel *k)
{
	return rs_ring_written(&k->ring);
}

uint64_t rs_kernel_read_pos(const struct rs_kernel *k)
{
	return rs_ring_read_pos(&k->ring);
}

int rs_kernel_policy(struct rs_kernel *k, uint64_t conn, const struct rs_bpf_policy *policy)
{
	int fd = bpf_map__fd(k->skel->maps.rs_policy);
	int r;

	r = policy ? bpf_map_update_elem(fd, &conn, policy, BPF_ANY)
		   : bpf_map_delete_elem(fd, &conn);
	if (r < 0)
		return -errno;
	if (policy && policy->stop && k->skel->rodata->rs_cfg.inject == RS_INJECT_TRACEPARENT)
		bpf_map_delete_elem(bpf_map__fd(k->skel->maps.rs_socks), &conn);
	__atomic_add_fetch(&k->skel->bss->rs_epoch, 1, __ATOMIC_RELEASE);
	return 0;
}

int rs_kernel_add_pid(struct rs_kernel *k, uint32_t tgid)
{
	uint32_t one = 1;

	return bpf_map_update_elem(bpf_map__fd(k->skel->maps.rs_pids), &tgid, &one, BPF_ANY) < 0
		       ? -errno
		       : 0;
}

uint64_t rs_kernel_later_caps(const struct rs_kernel *k)
{
	uint64_t caps = 1ull << CAP_BPF | 1ull << CAP_PERFMON;

	for (int i = 0; i < RS_UPROBE_COUNT; i++) {
		if (rs_uprobe_loaded(k, (enum rs_uprobe_prog)i, NULL))
			return k->uprobe_multi ? caps : caps | 1ull << CAP_SYS_ADMIN;
	}
	return 0;
}

bool rs_kernel_reachable(const struct rs_kernel *k)
{
	uint32_t zero = 0;

	return !bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.rs_counts), &zero, k->percpu);
}

int rs_kernel_verdict(struct rs_kernel *k, uint32_t tgid, uint32_t verdict)
{
	int fd = bpf_map__fd(k->skel->maps.rs_verdicts);

	if (!verdict) {
		bpf_map_delete_elem(fd, &tgid);
		return 0;
	}
	if (bpf_map_update_elem(fd, &tgid, &verdict, BPF_ANY) < 0)
		return -errno;
	__atomic_add_fetch(&k->skel->bss->rs_verdict_epoch, 1, __ATOMIC_RELEASE);
	return 0;
}

void rs_kernel_forget_verdicts(struct rs_kernel *k)
{
	int fd = bpf_map__fd(k->skel->maps.rs_verdicts);
	uint32_t tgid;

	/* Somebody may put one in meanwhile: not more often than there is room. */
	for (uint32_t i = bpf_map__max_entries(k->skel->maps.rs_verdicts);
	     i && !bpf_map_get_next_key(fd, NULL, &tgid); i--)
		bpf_map_delete_elem(fd, &tgid);
}

int rs_kernel_ports(struct rs_kernel *k, const uint64_t bits[RS_PORT_BITS])
{
	int fd = bpf_map__fd(k->skel->maps.rs_ports);

	for (uint32_t i = 0; i < RS_PORT_BITS; i++) {
		if (bpf_map_update_elem(fd, &i, &bits[i], BPF_ANY) < 0)
			return -errno;
	}
	return 0;
}

void rs_kernel_listening(struct rs_kernel *k, uint32_t tgid, struct rs_bpf_listening *ret)
{
	if (bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.rs_listening), &tgid, ret))
		*ret = (struct rs_bpf_listening){ { 0 } };
}

void rs_kernel_adopt(struct rs_kernel *k, uint32_t tgid)
{
	union bpf_iter_link_info info = { .task.pid = tgid };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	int probe = walk_probe(k);
	struct bpf_link *link = NULL;

	if (tgid && k->links[probe])
		link = bpf_program__attach_iter(program(k, probe), &opts);
	if (!link) { /* older kernels know no such restriction */
		mark_present(k);
		return;
	}
	k->skel->bss->rs_marking = 1;
	run_iter(link);
	k->skel->bss->rs_marking = 0;
	bpf_link__destroy(link);
}

int rs_kernel_publisher(struct rs_kernel *k, uint32_t tgid, const struct rs_bpf_tlsvar *tls)
{
	if (bpf_map_update_elem(bpf_map__fd(k->skel->maps.rs_tlsvar), &tgid, tls, BPF_ANY) < 0)
		return -errno;
	__atomic_store_n(&k->skel->bss->rs_publishers, 1, __ATOMIC_RELEASE);
	return 0;
}

int rs_kernel_go(struct rs_kernel *k, uint32_t tgid, const struct rs_bpf_go *layout)
{
	if (bpf_map_update_elem(bpf_map__fd(k->skel->maps.rs_go), &tgid, layout, BPF_ANY) < 0)
		return -errno;
	k->skel->bss->rs_any_go = 1;
	return 0;
}

void rs_kernel_request_start(struct rs_kernel *k, uint64_t conn, uint64_t off)
{
	/* A refusal costs the header in one request. */
	if (k->skel->rodata->rs_cfg.inject == RS_INJECT_TRACEPARENT)
		(void)bpf_map_update_elem(bpf_map__fd(k->skel->maps.rs_starts), &conn, &off,
					  BPF_ANY);
}

int rs_kernel_sockmap_ok(void)
{
	return rs_inject_fionread();
}

int rs_kernel_live(struct rs_kernel *k, void (*fn)(void *arg, uint64_t conn), void *arg)
{
	struct bpf_link *link = k->links[k->backend == RS_CAPTURE_SOCKET ? RS_PROBE_rs_iter_conns
									 : RS_PROBE_rs_iter_walk];

	uint32_t room = bpf_map__max_entries(k->skel->maps.rs_live), n;
	int r;

	if (!link || !k->live)
		return -EOPNOTSUPP;
	k->skel->bss->rs_nlive = 0;
	r = run_iter(link);
	n = k->skel->bss->rs_nlive;
	if (!r && n > room)
		r = -E2BIG;
	for (uint32_t i = 0; !r && i < n; i++)
		fn(arg, k->live[i]);
	return r;
}

static const int uprobes[RS_UPROBE_COUNT] = {
#define RS_PROBE(prog, section, backends, required, purpose)
#define RS_UPROBE(prog, purpose) RS_PROBE_##prog,
#include "probes.def"
#undef RS_UPROBE
#undef RS_PROBE
};

const struct bpf_program *rs_kernel_uprobe_program(const struct rs_kernel *k, int uprobe)
{
	int i = uprobes[uprobe];

	return k->probes[i].reason[0] ? NULL : program((struct rs_kernel *)k, i);
}

const char *rs_kernel_uprobe_reason(const struct rs_kernel *k, int uprobe)
{
	return k->probes[uprobes[uprobe]].reason;
}

static bool is_stand_in(int probe)
{
	return probe == RS_PROBE_rs_sock_send_in || probe == RS_PROBE_rs_sock_recv_in ||
	       probe == RS_PROBE_rs_sys_exit_in;
}

/* Runs that the kernel left out, as it counts them itself (5.12), less those that stand-ins made good. */
static uint64_t missed(struct rs_kernel *k, uint64_t stood_in)
{
	uint64_t sum = 0;

	for (int i = 0; i < RS_PROBE_COUNT; i++) {
		struct bpf_prog_info info = { 0 };
		uint32_t len = sizeof(info);

		if (k->probes[i].state.attached && !is_stand_in(i) &&
		    !bpf_obj_get_info_by_fd(bpf_program__fd(program(k, i)), &info, &len))
			sum += info.recursion_misses;
	}
	return sum > stood_in ? sum - stood_in : 0;
}

void rs_kernel_counters(struct rs_kernel *k, uint64_t ret[RS_BPFC_COUNT])
{
	uint32_t zero = 0;

	memset(ret, 0, RS_BPFC_COUNT * sizeof(*ret));
	if (!bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.rs_counts), &zero, k->percpu)) {
		for (int cpu = 0; cpu < k->ncpu; cpu++) {
			for (int i = 0; i < RS_BPFC_COUNT; i++)
				ret[i] += k->percpu[cpu * RS_BPFC_COUNT + i];
		}
	}
	ret[RS_BPFC_BAD_RECORD] += k->bad_records;
	ret[RS_BPFC_PIDS_FULL] += k->pids_full;
	ret[RS_BPFC_MISSED] += missed(k, ret[RS_BPFC_STOOD_IN]);
}

size_t rs_kernel_probes(const struct rs_kernel *k, const struct rs_probe_state **ret)
{
	struct rs_kernel *w = (struct rs_kernel *)k; /* only the copy for the caller is written */
	size_t n = 0;

	for (int i = 0; i < RS_PROBE_COUNT; i++) {
		if (!k->probes[i].variant)
			w->states[n++] = k->probes[i].state;
	}
	*ret = k->states;
	return n;
}

const char *rs_kernel_backend(const struct rs_kernel *k)
{
	return k->backend == RS_CAPTURE_SOCKET ? "socket" : "syscall";
}

static uint64_t map_bytes(int fd)
{
	unsigned long long bytes = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	}
	fclose(f);
	return bytes;
}

static bool stats_on(void)
{
	FILE *f = fopen("/proc/sys/kernel/bpf_stats_enabled", "re");
	int on = 0;

	if (f) {
		if (fscanf(f, "%d", &on) != 1)
			on = 0;
		fclose(f);
	}
	return on != 0;
}

void rs_kernel_usage(struct rs_kernel *k, struct rs_kernel_usage *ret)
{
	struct bpf_program *prog;
	struct bpf_map *map;

	*ret = (struct rs_kernel_usage){ .stats_on = stats_on() };
	bpf_object__for_each_map(map, k->skel->obj) ret->map_bytes += map_bytes(bpf_map__fd(map));
	bpf_object__for_each_program(prog, k->skel->obj)
	{
		struct bpf_prog_info info = { 0 };
		uint32_t len = sizeof(info);

		if (bpf_program__fd(prog) < 0 ||
		    bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len))
			continue;
		ret->run_ns += info.run_time_ns;
		ret->runs += info.run_cnt;
	}
}
