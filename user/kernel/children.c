// SPDX-License-Identifier: Apache-2.0
#include "children.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct process {
	uint32_t pid, parent;
	bool in;
};

struct table {
	struct process *p;
	size_t n, cap;
};

/* proc(5): "pid (comm) state ppid …", and comm may hold anything, parentheses too. */
static bool parent_of(const char *name, uint32_t *ret)
{
	char path[64], line[512], *end;
	bool ok = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(line, sizeof(line), f)) {
		end = strrchr(line, ')');
		ok = end && sscanf(end + 1, " %*c %u", ret) == 1;
	}
	fclose(f);
	return ok;
}

static int add(struct table *t, uint32_t pid, uint32_t parent)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 256;
		struct process *p = realloc(t->p, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		t->p = p;
		t->cap = cap;
	}
	t->p[t->n++] = (struct process){ pid, parent, false };
	return 0;
}

static int read_all(struct table *t)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	uint32_t parent;
	int r = 0;

	if (!d)
		return -errno;
	while (!r && (e = readdir(d))) {
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && parent_of(e->d_name, &parent))
			r = add(t, (uint32_t)strtoul(e->d_name, NULL, 10), parent);
	}
	closedir(d);
	return r;
}

static bool wanted(const struct table *t, const uint32_t *pids, size_t npids, uint32_t pid)
{
	for (size_t i = 0; i < npids; i++) {
		if (pids[i] == pid)
			return true;
	}
	for (size_t i = 0; i < t->n; i++) {
		if (t->p[i].pid == pid)
			return t->p[i].in;
	}
	return false;
}

int rs_children(const uint32_t *pids, size_t npids, void (*fn)(void *arg, uint32_t pid), void *arg)
{
	struct table t = { 0 };
	int r = read_all(&t);
	bool more = true;

	/* A generation a turn. */
	while (!r && more) {
		more = false;
		for (size_t i = 0; i < t.n; i++) {
			struct process *p = &t.p[i];

			if (p->in || !wanted(&t, pids, npids, p->parent))
				continue;
			p->in = more = true;
			fn(arg, p->pid);
		}
	}
	free(t.p);
	return r;
}
