// SPDX-License-Identifier: Apache-2.0
#include "uprobe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "load.h"

/* One link for all places, or one for each. */
struct rs_uprobe {
	int multi;   /* descriptor of the link; -1: single[] */
	int lease;   /* descriptor of the file with a read lease on it; -1: none */
	bool closed; /* by another thread: atomic */
	size_t n;
	struct bpf_link *single[];
};

int rs_uprobe_file(int fd, struct rs_uprobe_file *ret)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
	*ret = (struct rs_uprobe_file){ .dev = fs.f_type == OVERLAYFS_SUPER_MAGIC ? 0 : st.st_dev,
					.ino = st.st_ino,
					.size = st.st_size,
					.changed = st.st_ctim };
	return 0;
}

bool rs_uprobe_same_file(const struct rs_uprobe_file *a, bool held, const struct rs_uprobe_file *b)
{
	if (a->ino != b->ino || a->dev != b->dev)
		return false;
	return (held && a->dev) || (a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
				    a->changed.tv_nsec == b->changed.tv_nsec);
}

/* BPF_LINK_CREATE's arguments, as in linux/bpf.h of 6.6. */
struct link_create_uprobe_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};

static int attach_multi(int prog_fd, const char *path, uint32_t tgid, const struct rs_uprobe_at *at,
			size_t n)
{
	struct link_create_uprobe_multi attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = TRACE_UPROBE_MULTI,
		.path = (uint64_t)(uintptr_t)path,
		.cnt = (uint32_t)n,
		.pid = tgid,
	};
	uint64_t *v = malloc(2 * n * sizeof(*v));
	long fd;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		v[i] = at[i].offset;
		v[n + i] = at[i].cookie;
	}
	attr.offsets = (uint64_t)(uintptr_t)v;
	attr.cookies = (uint64_t)(uintptr_t)(v + n);
	fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		fd = -errno;
	free(v);
	return (int)fd;
}

static int attach_single(struct rs_uprobe *u, const struct bpf_program *prog, const char *path,
			 const struct rs_uprobe_at *at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = at[i].cookie);

		u->single[i] = bpf_program__attach_uprobe_opts(prog, -1, path, at[i].offset, &opts);
		if (!u->single[i])
			return -errno;
		u->n++;
	}
	return 0;
}

/*
 * The kernel puts the probes of a file into whatever is executed from it, at the old offsets: amid another program's
 * instructions when one has been written there. With a lease (fcntl(2)) nobody opens it for writing before it is given back.
 */
static int take_lease(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && fcntl(fd, F_SETLEASE, F_RDLCK)) {
		close(fd);
		return -1;
	}
	return fd;
}

int rs_uprobe_attach(struct rs_kernel *k, enum rs_uprobe_prog prog, const char *path, uint32_t tgid,
		     const struct rs_uprobe_at *at, size_t n, struct rs_uprobe **ret)
{
	const struct bpf_program *p = rs_kernel_uprobe_program(k, prog);
	struct rs_uprobe *u;
	int r = 0;

	if (!p)
		return -EOPNOTSUPP;
	if (!n || n > RS_UPROBE_MAX)
		return -EINVAL;
	u = calloc(1, sizeof(*u) + n * sizeof(struct bpf_link *));
	if (!u)
		return -ENOMEM;
	u->multi = -1;
	u->lease = take_lease(path);
	if (bpf_program__expected_attach_type(p) == TRACE_UPROBE_MULTI) {
		u->multi = attach_multi(bpf_program__fd(p), path, tgid, at, n);
		r = u->multi < 0 ? u->multi : 0;
	} else {
		r = attach_single(u, p, path, at, n);
	}
	if (r) {
		rs_uprobe_detach(u);
		return r;
	}
	*ret = u;
	return 0;
}

static void close_links(struct rs_uprobe *u)
{
	if (u->multi >= 0)
		close(u->multi);
	for (size_t i = 0; i < u->n; i++)
		bpf_link__destroy(u->single[i]);
	if (u->lease >= 0) /* not before the probes are gone */
		close(u->lease);
}

bool rs_uprobe_guarded(const struct rs_uprobe *u)
{
	return !u || u->lease >= 0;
}

bool rs_uprobe_in_the_way(const struct rs_uprobe *u)
{
	return u && u->lease >= 0 && fcntl(u->lease, F_GETLEASE) == F_UNLCK;
}

void rs_uprobe_detach(struct rs_uprobe *u)
{
	if (!u)
		return;
	close_links(u);
	free(u);
}

static void *closer(void *arg)
{
	struct rs_uprobe *u = arg;

	close_links(u);
	__atomic_store_n(&u->closed, true, __ATOMIC_RELEASE);
	return NULL;
}

#define CLOSER_STACK (128 * 1024)

void rs_uprobe_let_go(struct rs_uprobe *u)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (!u)
		return;
	r = pthread_attr_init(&attr);
	if (!r) {
		(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		(void)pthread_attr_setstacksize(&attr, CLOSER_STACK);
		r = pthread_create(&thread, &attr, closer, u);
		(void)pthread_attr_destroy(&attr);
	}
	if (r)
		closer(u);
}

bool rs_uprobe_gone(struct rs_uprobe *u)
{
	if (u && !__atomic_load_n(&u->closed, __ATOMIC_ACQUIRE))
		return false;
	free(u);
	return true;
}

bool rs_uprobe_by_process(const struct rs_kernel *k)
{
	const struct bpf_program *p = rs_kernel_uprobe_program(k, RS_UPROBE_rs_tls_enter);

	return p && bpf_program__expected_attach_type(p) == TRACE_UPROBE_MULTI;
}

bool rs_uprobe_loaded(const struct rs_kernel *k, enum rs_uprobe_prog prog, const char **ret_reason)
{
	const char *reason = rs_kernel_uprobe_reason(k, prog);

	if (ret_reason)
		*ret_reason = reason;
	return !reason[0];
}
