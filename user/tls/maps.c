// SPDX-License-Identifier: Apache-2.0
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* proc(5): "start-end perms offset major:minor inode      path". */
bool rs_maps_line(char *line, struct rs_mapped *m)
{
	static const char gone[] = " (deleted)";
	char perms[8];
	int at = 0;
	size_t n;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*x %*x:%*x %" SCNu64 " %n", &m->start,
		   &m->end, perms, &m->ino, &at) < 4 ||
	    !at || !m->ino || strlen(perms) < 3 || perms[2] != 'x' || line[at] != '/')
		return false;
	m->path = line + at;
	n = strcspn(m->path, "\n");
	line[(size_t)at + n] = 0;
	m->deleted = n > sizeof(gone) - 1 && strcmp(m->path + n - (sizeof(gone) - 1), gone) == 0;
	if (m->deleted)
		line[(size_t)at + n - (sizeof(gone) - 1)] = 0;
	return true;
}

int rs_maps_each(uint32_t tgid, bool (*fn)(void *arg, const struct rs_mapped *m), void *arg)
{
	char path[40], *line = NULL;
	struct rs_mapped m;
	uint64_t last = 0; /* a file's mappings stand together */
	size_t cap = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/maps", tgid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (getline(&line, &cap, f) > 0) {
		if (!rs_maps_line(line, &m) || m.ino == last)
			continue;
		last = m.ino;
		if (!fn(arg, &m))
			break;
	}
	free(line);
	fclose(f);
	return 0;
}

int rs_maps_open(uint32_t tgid, const struct rs_mapped *m)
{
	char path[4096 + 64];
	struct stat st;
	int fd;

	if (!m->deleted) {
		snprintf(path, sizeof(path), "/proc/%u/root%s", tgid, m->path);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		/* Another file may have taken its name. Layered file systems show another inode number in
		 * maps than in stat(2): there the name has to do. */
		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	/* Needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. */
	snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64, tgid, m->start,
		 m->end);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}
