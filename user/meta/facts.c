// SPDX-License-Identifier: Apache-2.0
#include "facts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define INODES_MAX 256	 /* sockets of a process that are looked at */
#define LINES_MAX  65536 /* connections of its network namespace */

uint32_t rs_facts_uid(uint32_t pid)
{
	char path[64], line[256];
	uint32_t uid = RS_FACTS_NO_UID;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	if (!f)
		return uid;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Uid: %*u %u", &uid) == 1)
			break;
	}
	fclose(f);
	return uid;
}

void rs_facts_comm(uint32_t pid, char ret[16])
{
	char path[64];
	ssize_t n;
	int fd;

	memset(ret, 0, 16);
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, ret, 15);
	close(fd);
	while (n > 0 && ret[n - 1] == '\n')
		ret[--n] = 0;
}

/* Lines are "ID:CONTROLLERS:PATH"; version 2's is "0::PATH". */
struct str rs_facts_cgroup_of(struct str text)
{
	struct str first = STR_NONE, line, id, controllers, path;

	while (text.len) {
		text = str_cut(text, '\n', &line);
		path = str_cut(str_cut(line, ':', &id), ':', &controllers);
		if (!path.len || path.ptr[0] != '/')
			continue;
		/* On a machine with both, everything may be in version 2's root. */
		if (str_eq(id, STR("0")) && !controllers.len && path.len > 1)
			return path;
		if (first.len <= 1)
			first = path;
	}
	return first;
}

const char *rs_facts_cgroup(uint32_t pid, struct rs_arena *a)
{
	char path[64], text[4096], *own;
	struct str found;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	n = read(fd, text, sizeof(text));
	close(fd);
	found = rs_facts_cgroup_of(str_of(text, n > 0 ? (size_t)n : 0));
	own = found.len ? rs_arena_alloc(a, found.len + 1) : NULL;
	if (own) {
		memcpy(own, found.ptr, found.len);
		own[found.len] = 0;
	}
	return own;
}

bool rs_facts_add_port(struct rs_facts *f, uint16_t port)
{
	for (uint32_t i = 0; i < f->nports; i++) {
		if (f->ports[i] == port)
			return false;
	}
	if (!port || f->nports == RS_FACTS_PORTS)
		return false;
	f->ports[f->nports++] = port;
	return true;
}

static uint32_t socket_inodes(uint32_t pid, unsigned long *ret, uint32_t max)
{
	char path[64], link[64];
	struct dirent *e;
	uint32_t n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	d = opendir(path);
	if (!d)
		return 0;
	while (n < max && (e = readdir(d))) {
		ssize_t len = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		if (len <= 0)
			continue;
		link[len] = 0;
		if (sscanf(link, "socket:[%lu]", &ret[n]) == 1)
			n++;
	}
	closedir(d);
	return n;
}

/* proc(5): "sl local_address rem_address st … inode", numbers in hexadecimal but the inode. */
static void listening_in(const char *path, const unsigned long *inodes, uint32_t n,
			 struct rs_facts *f)
{
	FILE *in = fopen(path, "re");
	char line[512];

	if (!in)
		return;
	for (int i = 0; i < LINES_MAX && fgets(line, sizeof(line), in); i++) {
		unsigned port, state;
		unsigned long inode;

		if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*u %*u %lu", &port,
			   &state, &inode) != 3 ||
		    state != 0x0a)
			continue;
		for (uint32_t k = 0; k < n; k++) {
			if (inodes[k] == inode)
				rs_facts_add_port(f, (uint16_t)port);
		}
	}
	fclose(in);
}

void rs_facts_listening(uint32_t pid, struct rs_facts *f)
{
	unsigned long inodes[INODES_MAX];
	uint32_t n = socket_inodes(pid, inodes, INODES_MAX);
	char path[64];

	if (!n)
		return;
	snprintf(path, sizeof(path), "/proc/%u/net/tcp", pid);
	listening_in(path, inodes, n, f);
	snprintf(path, sizeof(path), "/proc/%u/net/tcp6", pid);
	listening_in(path, inodes, n, f);
}
