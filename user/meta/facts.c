// SPDX-License-Identifier: Apache-2.0
#include "facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

void rs_facts_cgroup_text(uint32_t pid, char *ret, size_t size)
{
	char path[64], text[4096];
	struct str found;
	ssize_t n;
	int fd;

	ret[0] = 0;
	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text));
	close(fd);
	found = rs_facts_cgroup_of(str_of(text, n > 0 ? (size_t)n : 0));
	if (!found.len || found.len >= size)
		return;
	memcpy(ret, found.ptr, found.len);
	ret[found.len] = 0;
}

const char *rs_facts_cgroup(uint32_t pid, struct rs_arena *a)
{
	char text[4096];
	size_t n;
	char *own;

	rs_facts_cgroup_text(pid, text, sizeof(text));
	n = strlen(text);
	own = n ? rs_arena_alloc(a, n + 1) : NULL;
	if (own)
		memcpy(own, text, n + 1);
	return own;
}

void rs_facts_exe(uint32_t pid, char *ret, size_t size)
{
	static const char gone[] = " (deleted)";
	const size_t n = sizeof(gone) - 1;
	char path[64];
	ssize_t r;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	r = readlink(path, ret, size - 1);
	if (r < 0)
		r = 0;
	/* The file was replaced while it runs: an upgrade, not another program. */
	if ((size_t)r > n && !memcmp(ret + r - n, gone, n))
		r -= (ssize_t)n;
	ret[r] = '\0';
}

bool rs_facts_add_port(struct rs_facts *f, uint16_t port, bool far)
{
	uint32_t i = 0;

	while (i < f->nports && f->ports[i] != port)
		i++;
	if (i < f->nports && (far || !(f->far & 1u << i)))
		return false;
	if (!port || i == RS_FACTS_PORTS)
		return false;
	f->ports[i] = port;
	f->far = (uint16_t)((f->far & ~(1u << i)) | (uint32_t)far << i);
	if (i == f->nports)
		f->nports++;
	return true;
}
