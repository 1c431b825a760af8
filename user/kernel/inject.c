// SPDX-License-Identifier: Apache-2.0
#include "inject.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <mntent.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void close_all(const int *fd, int n)
{
	for (int i = 0; i < n; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
	}
}

/* A connection over loopback: fd[0] and fd[1]; fd[2]: the listener. */
static int connected_pair(int fd[3])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);

	fd[2] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd[2] < 0 || fd[0] < 0 || bind(fd[2], (struct sockaddr *)&a, len) || listen(fd[2], 1) ||
	    getsockname(fd[2], (struct sockaddr *)&a, &len) ||
	    connect(fd[0], (struct sockaddr *)&a, len))
		return -errno;
	fd[1] = accept4(fd[2], NULL, NULL, SOCK_CLOEXEC);
	return fd[1] < 0 ? -errno : 0;
}

int rs_inject_fionread(void)
{
	static const char text[] = "12345";
	const struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = SK_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd[5] = { -1, -1, -1, -1, -1 }, *map = &fd[3], *prog = &fd[4], n = 0, rc;
	uint32_t value;
	uint64_t key = 1;
	struct pollfd p;

	*map = bpf_map_create(BPF_MAP_TYPE_SOCKHASH, "rs_try", sizeof(key), sizeof(value), 1, NULL);
	*prog = bpf_prog_load(BPF_PROG_TYPE_SK_MSG, "rs_try", "GPL", pass, 2, NULL);
	if (*map < 0 || *prog < 0 || bpf_prog_attach(*prog, *map, BPF_SK_MSG_VERDICT, 0)) {
		rc = -errno;
		goto out;
	}
	rc = connected_pair(fd);
	if (rc)
		goto out;
	value = (uint32_t)fd[0];
	p = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	if (bpf_map_update_elem(*map, &key, &value, BPF_ANY) ||
	    write(fd[1], text, sizeof(text)) != sizeof(text) || poll(&p, 1, 1000) != 1 ||
	    ioctl(fd[0], FIONREAD, &n))
		rc = errno ? -errno : -EIO;
	else
		rc = n == sizeof(text);
out:
	close_all(fd, 5);
	return rc;
}

int rs_inject_cgroup(void)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	int fd = -ENOENT;

	while (f && fd == -ENOENT && (m = getmntent(f))) {
		if (strcmp(m->mnt_type, "cgroup2") != 0)
			continue;
		fd = open(m->mnt_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	if (f)
		endmntent(f);
	return fd;
}
