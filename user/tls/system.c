// SPDX-License-Identifier: Apache-2.0
#include "system.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH "x86_64-linux-gnu"
#else
#define ARCH "aarch64-linux-gnu"
#endif

/* Debian's, Fedora's and SUSE's, Arch's and Alpine's, and what an administrator has built. */
static const char *const dirs[RS_TLS_SYSTEM_DIRS] = {
	"/usr/lib/" ARCH,
	"/usr/lib64",
	"/usr/lib",
	"/usr/local/lib",
};

bool rs_tls_promising(const char *path)
{
	static const char *const parts[] = { "ssl", "tls", "tcnative", "conscrypt", "quiche" };
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcasestr(slash ? slash + 1 : path, parts[i]))
			return true;
	}
	return false;
}

static uint64_t changed(const char *root, const char *dir)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s", root, dir);
	if (stat(path, &st))
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
}

bool rs_tls_system_changed(const struct rs_tls_system *s, const char *root)
{
	for (int i = 0; i < RS_TLS_SYSTEM_DIRS; i++) {
		if (changed(root, dirs[i]) != s->changed_ns[i])
			return true;
	}
	return false;
}

static void each(const char *root, const char *where, void (*fn)(void *, int, const char *),
		 void *arg)
{
	char path[PATH_MAX];
	struct dirent *d;
	DIR *dir;
	int fd;

	snprintf(path, sizeof(path), "%s%s", root, where);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		if (!strstr(d->d_name, ".so") || !rs_tls_promising(d->d_name))
			continue;
		fd = openat(dirfd(dir), d->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", where, d->d_name);
		fn(arg, fd, path);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

void rs_tls_system(struct rs_tls_system *s, const char *root,
		   void (*fn)(void *arg, int fd, const char *path), void *arg)
{
	for (int i = 0; i < RS_TLS_SYSTEM_DIRS; i++) {
		s->changed_ns[i] = changed(root, dirs[i]);
		each(root, dirs[i], fn, arg);
	}
}
