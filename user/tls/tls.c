// SPDX-License-Identifier: Apache-2.0
#include "tls.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "maps.h"
#include "price.h"
#include "system.h"

/* Probes stay for so long after the last process, if nobody can write into the file. */
#define LINGER_NS 30000000000ull
#define SWEEP_NS  1000000000ull
#define BY_PROCESS_NS                                                                              \
	200000000ull /* of a second, for attaching to each process: the ring has to be read, too */
#define DETACHING      32    /* files at once: each takes three threads for a moment */
#define LOADS_TIMES    16    /* that it loads something is looked at so often until the next tick */
#define AGAIN_TIMES    8     /* a process that does TLS is looked at again at most so often */
#define PRICE_MAX_NS   15000 /* --tls auto: of one call */
#define PRICE_CHEAP_NS 1000  /* when it could not be measured: */
#define PRICE_DEAR_NS  2500

/* A file that processes execute code from: with a TLS library in it, or (library NULL) not. */
struct file {
	struct rs_list known;
	struct rs_uprobe_file id;
	uint32_t
		tgid; /* 0; with --tls-exclude a shared library is attached to one process at a time */
	uint32_t procs;
	uint64_t unused_ns; /* since when no process has it; 0: some has */
	uint64_t hooked_ns; /* since when its probes are there */
	bool system;	    /* one of the system's own libraries: it stays */
	bool going;	    /* its probes are being detached */
	bool late;	    /* process tgid had ended when it was to be attached */
	const char *library;
	enum rs_tls_state state;
	struct rs_uprobe *u[RS_UPROBE_COUNT];
	char path[200], why[200];
};

struct proc {
	struct rs_list live;
	uint32_t tgid;
	uint8_t n, again, loads;
	bool later;  /* its libraries were not loaded yet when it was looked at */
	bool looked; /* into all that it had loaded at some moment */
	bool excluded;
	enum rs_tls_mode mode; /* --tls, or what a rule says of this process */
	struct file *file[RS_TLS_PER_PROC];
};

void rs_tls_init(struct rs_tls_watch *w, struct rs_kernel *kernel, enum rs_tls_mode mode,
		 const char *exclude, struct rs_counters *n)
{
	int r = 0;

	*w = (struct rs_tls_watch){ .kernel = mode == RS_TLS_NEVER ? NULL : kernel,
				    .mode = mode,
				    .exclude = str_c(exclude ? exclude : ""),
				    .n = n };
	rs_map_init(&w->by_tgid, RS_TLS_PROCS);
	rs_pool_init(&w->procs, sizeof(struct proc), RS_TLS_PROCS);
	rs_pool_init(&w->files, sizeof(struct file), RS_TLS_FILES);
	rs_list_init(&w->live);
	rs_list_init(&w->known);
	w->by_process = w->kernel && w->exclude.len && rs_uprobe_by_process(w->kernel);
	if (w->kernel)
		r = rs_tls_measure(w->kernel, &w->price);
	if (r == -EOPNOTSUPP)
		w->kernel = NULL; /* the programs are not loaded; probes say why */
	else if (r)
		rs_debug("tls: the price of a probe could not be measured: %s", strerror(-r));
}

static void let_go(struct rs_tls_watch *w, struct file *f)
{
	w->n->v[RS_C_TLS_DETACHED] += f->library && f->state == RS_TLS_HOOKED;
	f->going = true;
	w->going++;
	for (int i = 0; i < RS_UPROBE_COUNT; i++)
		rs_uprobe_let_go(f->u[i]);
}

static bool detached(struct file *f)
{
	bool all = true;

	for (int i = 0; i < RS_UPROBE_COUNT; i++) {
		if (rs_uprobe_gone(f->u[i]))
			f->u[i] = NULL;
		all &= !f->u[i];
	}
	return all;
}

/*
 * True: it is forgotten. False: as soon as its probes are gone, when asked again. (If it were found again before, they would
 * run twice.)
 */
static bool forget_file(struct rs_tls_watch *w, struct file *f)
{
	if (!f->going && (w->going < DETACHING || detached(f)))
		let_go(w, f);
	if (!f->going || !detached(f))
		return false;
	w->going--;
	rs_list_del(&f->known);
	rs_pool_put(&w->files, f);
	return true;
}

static void leave(struct proc *p, uint64_t now_ns)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (--p->file[i]->procs == 0)
			p->file[i]->unused_ns = now_ns ? now_ns : 1;
	}
	p->n = 0;
}

static void forget(struct rs_tls_watch *w, struct proc *p, uint64_t now_ns)
{
	leave(p, now_ns);
	rs_map_del(&w->by_tgid, p->tgid);
	rs_list_del(&p->live);
	rs_pool_put(&w->procs, p);
}

void rs_tls_release(struct rs_tls_watch *w)
{
	struct rs_list *pos, *tmp;

	if (!w->live.next)
		return;
	while (!rs_list_empty(&w->live))
		forget(w, rs_list_entry(w->live.next, struct proc, live), 0);
	/* At once: what the kernel waits for is the same. */
	while (!rs_list_empty(&w->known)) {
		rs_list_for_each_safe (pos, tmp, &w->known)
			(void)forget_file(w, rs_list_entry(pos, struct file, known));
		usleep(1000);
	}
	rs_map_release(&w->by_tgid);
	rs_pool_release(&w->procs);
	rs_pool_release(&w->files);
}

/* -- files -- */

/* Are probes in it? */
static bool probed(const struct file *f)
{
	bool some = false;

	for (int i = 0; i < RS_UPROBE_COUNT; i++)
		some |= f->u[i] != NULL;
	return some;
}

static struct file *find_file(struct rs_tls_watch *w, const struct rs_uprobe_file *id,
			      uint32_t tgid)
{
	struct rs_list *pos;

	rs_list_for_each (pos, &w->known) {
		struct file *f = rs_list_entry(pos, struct file, known);

		if (f->tgid == tgid && rs_uprobe_same_file(&f->id, f->procs || probed(f), id))
			return f;
	}
	return NULL;
}

/* Room for one more: the file longest not asked for that no process has. */
static struct file *file_room(struct rs_tls_watch *w)
{
	struct file *f = rs_pool_get(&w->files);
	struct rs_list *pos, *tmp;

	if (f)
		return f;
	rs_list_for_each_safe (pos, tmp, &w->known) {
		f = rs_list_entry(pos, struct file, known);
		if (!f->procs && !f->system && forget_file(w, f))
			return rs_pool_get(&w->files);
	}
	if (w->going)
		w->busy = true; /* there will be */
	else
		w->n->v[RS_C_TLS_NO_ROOM]++;
	return NULL;
}

static uint32_t price_of(const struct rs_tls_watch *w, unsigned dear)
{
	uint32_t cheap = w->price.cheap ? w->price.cheap : PRICE_CHEAP_NS;
	uint32_t full = w->price.dear ? w->price.dear : PRICE_DEAR_NS;

	return dear * full + (dear < 2 ? 2 - dear : 0) * cheap;
}

static int attach(struct rs_tls_watch *w, struct file *f, const char *path,
		  const struct rs_tls_points *p)
{
	struct rs_uprobe_at at[RS_TLS_POINTS];

	/* The ends of calls first: a call that is seen to begin is then seen to end. */
	for (int prog = RS_UPROBE_COUNT; prog-- > 0;) {
		size_t n = 0;
		int r;

		for (size_t i = 0; i < p->n; i++) {
			if ((int)p->v[i].prog == prog)
				at[n++] = p->v[i].at;
		}
		if (!n)
			continue;
		r = rs_uprobe_attach(w->kernel, (enum rs_uprobe_prog)prog, path, f->tgid, at, n,
				     &f->u[prog]);
		if (r) {
			for (prog++; prog < RS_UPROBE_COUNT; prog++) {
				rs_uprobe_detach(f->u[prog]);
				f->u[prog] = NULL;
			}
			return r;
		}
	}
	return 0;
}

static void hook(struct rs_tls_watch *w, struct file *f, const char *path,
		 const struct rs_tls_points *p, enum rs_tls_mode mode)
{
	uint32_t price = price_of(w, p->dear);
	int r;

	if (mode == RS_TLS_AUTO && price > PRICE_MAX_NS) {
		f->state = RS_TLS_DECLINED;
		snprintf(
			f->why, sizeof(f->why),
			"a call would cost %u.%u µs on this machine, its instructions cannot be emulated; --tls always does it all the same",
			price / 1000, price / 100 % 10);
		w->n->v[RS_C_TLS_DECLINED]++;
		return;
	}
	r = w->dry ? 0 : attach(w, f, path, p);
	if (r) {
		f->state = RS_TLS_FAILED;
		f->late = f->tgid && r == -ESRCH;
		snprintf(f->why, sizeof(f->why), "attach: %s", strerror(-r));
		w->n->v[RS_C_TLS_REFUSED] += !f->late;
		return;
	}
	f->state = RS_TLS_HOOKED;
	f->hooked_ns = rs_clock_mono();
	snprintf(f->why, sizeof(f->why), "%s; %u.%u µs a call", p->what, price / 1000,
		 price / 100 % 10);
	w->n->v[RS_C_TLS_ATTACHED]++;
}

/* What there is in the file. */
static void study(struct rs_tls_watch *w, struct file *f, int fd, enum rs_tls_mode mode)
{
	struct rs_tls_points *p = malloc(sizeof(*p));
	unsigned marks;
	char path[40];
	struct rs_elf *e;
	int r;

	if (!p || rs_elf_open(fd, &e)) {
		free(p);
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	marks = rs_tls_marks(e);
	for (int lib = 0; lib < RS_TLS_LIBRARIES && !f->library; lib++) {
		if (!(marks & 1u << lib))
			continue;
		r = rs_tls_find((enum rs_tls_library)lib, e, p);
		if (r == -ENOENT)
			continue;
		f->library = p->name;
		if (!r) {
			hook(w, f, path, p, mode);
		} else {
			f->state = RS_TLS_FAILED;
			snprintf(f->why, sizeof(f->why), "%s", p->what[0] ? p->what : strerror(-r));
			w->n->v[RS_C_TLS_REFUSED]++;
		}
		rs_debug("tls: %s: %s: %s", f->path, f->library, f->why);
	}
	rs_elf_close(e);
	free(p);
}

static struct file *get_file(struct rs_tls_watch *w, int fd, const char *path, uint32_t tgid,
			     enum rs_tls_mode mode)
{
	struct rs_uprobe_file id;
	struct file *f;

	if (rs_uprobe_file(fd, &id))
		return NULL;
	f = find_file(w, &id, tgid);
	if (f && f->going && !f->procs) {
		if (!forget_file(w, f)) {
			w->busy = true;
			return NULL;
		}
		f = NULL;
	}
	if (!f) {
		f = file_room(w);
		if (!f)
			return NULL;
		*f = (struct file){ .id = id, .tgid = tgid, .unused_ns = rs_clock_mono() };
		snprintf(f->path, sizeof(f->path), "%s", path);
		study(w, f, fd, mode);
	} else {
		rs_list_del(&f->known);
		if (f->library && f->state == RS_TLS_DECLINED && mode == RS_TLS_ALWAYS) {
			f->library = NULL;
			study(w, f, fd, mode);
		}
	}
	rs_list_add_tail(&w->known, &f->known);
	return f;
}

/* -- processes -- */

static bool named(const struct rs_tls_watch *w, const char *exe)
{
	const char *slash = strrchr(exe, '/'), *name = slash ? slash + 1 : exe;
	struct str left = w->exclude;

	while (left.len) {
		size_t n = strcspn(left.ptr, ",");
		char glob[256];

		while (n && isspace((unsigned char)*left.ptr)) {
			left = str_from(left, 1);
			n--;
		}
		snprintf(glob, sizeof(glob), "%.*s", (int)n, left.ptr);
		if (*glob && (fnmatch(glob, exe, 0) == 0 || fnmatch(glob, name, 0) == 0))
			return true;
		left = str_from(left, n < left.len ? n + 1 : n);
	}
	return false;
}

bool rs_tls_excluded(const struct rs_tls_watch *w, uint32_t tgid)
{
	char path[40], exe[512];
	ssize_t n;

	if (!w->exclude.len)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	return named(w, exe);
}

static void has(struct rs_tls_watch *w, struct proc *p, struct file *f)
{
	if (!f || !f->library)
		return;
	for (unsigned i = 0; i < p->n; i++) {
		if (p->file[i] == f)
			return;
	}
	if (p->n == RS_TLS_PER_PROC) {
		w->n->v[RS_C_TLS_NO_ROOM]++;
		return;
	}
	p->file[p->n++] = f;
	f->procs++;
	f->unused_ns = 0;
}

static void use(struct rs_tls_watch *w, struct proc *p, int fd, const char *path, uint32_t tgid)
{
	w->busy = false;
	has(w, p, get_file(w, fd, path, tgid, p->mode));
	if (w->busy)
		p->later = w->later = true;
}

struct looking {
	struct rs_tls_watch *w;
	struct proc *p;
	bool all; /* whatever they are called */
	char exe[256];
};

static bool on_mapped(void *arg, const struct rs_mapped *m)
{
	struct looking *l = arg;
	int fd;

	if ((!l->all && !rs_tls_promising(m->path)) || strcmp(m->path, l->exe) == 0)
		return true;
	fd = rs_maps_open(l->p->tgid, m);
	if (fd >= 0) {
		/* When some programs are left alone, a library they share is attached by process. */
		use(l->w, l->p, fd, m->path, l->w->by_process ? l->p->tgid : 0);
		close(fd);
	}
	return true;
}

enum what {
	THE_PROGRAM,
	AND_LIBRARIES, /* by their names */
	AND_ALL,       /* that is mapped */
};

/* False: it is gone, or a kernel thread. */
static bool search(struct rs_tls_watch *w, struct proc *p, enum what what)
{
	struct looking l = { .w = w, .p = p, .all = what == AND_ALL };
	char path[40];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/exe", p->tgid);
	n = readlink(path, l.exe, sizeof(l.exe) - 1);
	if (n < 0)
		return false;
	l.exe[n] = 0;
	p->excluded = p->mode == RS_TLS_NEVER || named(w, l.exe);
	if (p->excluded)
		return true;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		use(w, p, fd, l.exe, 0);
		close(fd);
	}
	if (what == THE_PROGRAM)
		return true;
	p->looked = true;
	(void)rs_maps_each(p->tgid, on_mapped, &l);
	return true;
}

static struct proc *get_proc(struct rs_tls_watch *w, uint32_t tgid)
{
	struct proc *p = rs_map_get(&w->by_tgid, tgid);

	if (p)
		return p;
	p = rs_pool_get(&w->procs);
	if (!p) {
		w->n->v[RS_C_TLS_NO_ROOM]++;
		return NULL;
	}
	*p = (struct proc){ .tgid = tgid, .mode = w->mode };
	if (rs_map_put(&w->by_tgid, tgid, p)) {
		rs_pool_put(&w->procs, p);
		w->n->v[RS_C_TLS_NO_ROOM]++;
		return NULL;
	}
	rs_list_add_tail(&w->live, &p->live);
	return p;
}

static void look(struct rs_tls_watch *w, uint32_t tgid, enum rs_tls_mode mode, bool libraries)
{
	struct proc old, *p;

	if (!w->kernel || tgid == (uint32_t)getpid())
		return;
	p = get_proc(w, tgid);
	if (!p)
		return;
	/* What it still has is not given up in between. */
	old = *p;
	p->mode = mode;
	p->n = 0;
	p->again = p->loads = 0;
	p->looked = false;
	p->later = !libraries;
	w->later |= p->later;
	if (!search(w, p, libraries ? AND_LIBRARIES : THE_PROGRAM) && libraries)
		*p = old; /* what it had is still the answer to what became of its connections */
	else
		leave(&old, rs_clock_mono());
}

void rs_tls_look(struct rs_tls_watch *w, uint32_t tgid, enum rs_tls_mode mode)
{
	look(w, tgid, mode, true);
}

void rs_tls_exec(struct rs_tls_watch *w, uint32_t tgid)
{
	look(w, tgid, w->mode, false);
}

/* Is it one that is known to the kernel as this? Layers have no device number here. */
static struct file *loaded(const struct rs_tls_watch *w, uint32_t dev, uint64_t ino)
{
	dev_t user = makedev(dev >> 20, dev & 0xfffff);
	struct rs_list *pos;

	rs_list_for_each (pos, &w->known) {
		struct file *f = rs_list_entry(pos, struct file, known);

		if (f->id.dev == user && f->id.ino == ino && f->state == RS_TLS_HOOKED &&
		    f->library && !f->tgid && !f->going)
			return f;
	}
	return NULL;
}

/* Attaching waits for the kernel; to each process of many short ones there is no time for. */
static bool no_time(struct rs_tls_watch *w, uint64_t now_ns)
{
	if (now_ns - w->second_ns >= 1000000000ull) {
		w->second_ns = now_ns;
		w->spent_ns = 0;
	}
	return w->by_process && w->spent_ns >= BY_PROCESS_NS;
}

void rs_tls_loads(struct rs_tls_watch *w, uint32_t tgid, uint32_t dev, uint64_t ino)
{
	uint64_t now = rs_clock_mono();
	struct proc *p;
	struct file *f;
	unsigned n;

	if (!w->kernel || tgid == (uint32_t)getpid())
		return;
	p = get_proc(w, tgid);
	if (!p || p->excluded)
		return;
	f = loaded(w, dev, ino);
	if (f) {
		has(w, p, f);
		return;
	}
	n = p->n;
	if (p->loads < LOADS_TIMES && !no_time(w, now)) {
		p->loads++;
		(void)search(w, p, AND_LIBRARIES);
		w->spent_ns += rs_clock_mono() - now;
	}
	/* Perhaps it was a moment too early; when it has ended by then, it was not looked into. */
	if (p->n == n) {
		p->later = w->later = true;
		p->looked = false;
	}
}

void rs_tls_again(struct rs_tls_watch *w, uint32_t tgid, bool opaque)
{
	struct proc *p;
	unsigned had;

	if (!w->kernel)
		return;
	p = get_proc(w, tgid);
	if (!p || (p->n && !opaque) || p->excluded || p->again >= AGAIN_TIMES)
		return;
	/* By their names first: there are many. */
	had = p->n;
	if (!p->again++ && !opaque)
		(void)search(w, p, AND_LIBRARIES);
	if (p->n == had)
		(void)search(w, p, AND_ALL);
}

void rs_tls_look_all(struct rs_tls_watch *w, bool (*wanted)(void *arg, uint32_t tgid), void *arg)
{
	struct dirent *d;
	DIR *dir;

	dir = opendir("/proc");
	if (!dir)
		return;
	while ((d = readdir(dir))) {
		uint32_t tgid = (uint32_t)strtoul(d->d_name, NULL, 10);

		if (tgid && (!wanted || wanted(arg, tgid)))
			rs_tls_look(w, tgid, w->mode);
	}
	closedir(dir);
}

/* -- the system's own libraries -- */

static void on_system(void *arg, int fd, const char *path)
{
	struct rs_tls_watch *w = arg;
	struct file *f = get_file(w, fd, path, 0, w->mode);

	if (f && f->library)
		f->system = true;
}

void rs_tls_look_system(struct rs_tls_watch *w, const char *root)
{
	if (!w->kernel || w->by_process)
		return;
	w->root = root;
	w->busy = false;
	rs_tls_system(&w->system, root, on_system, w);
	if (w->busy) /* some is being detached: it is to be found again then */
		w->system = (struct rs_tls_system){ 0 };
}

static void look_system_again(struct rs_tls_watch *w)
{
	struct rs_list *pos;

	if (!w->root || !rs_tls_system_changed(&w->system, w->root))
		return;
	rs_list_for_each (pos, &w->known) {
		struct file *f = rs_list_entry(pos, struct file, known);

		f->system = false;
		if (f->library && !f->procs)
			f->unused_ns = rs_clock_mono();
	}
	rs_tls_look_system(w, w->root);
}

/* Programs that were executed a moment ago: those that are still there have loaded their libraries. */
static void look_later(struct rs_tls_watch *w)
{
	struct rs_list *pos, *tmp;

	w->later = false;
	rs_list_for_each_safe (pos, tmp, &w->live) {
		struct proc *p = rs_list_entry(pos, struct proc, live);

		if (!p->later)
			continue;
		p->later = false;
		if (!p->excluded)
			look(w, p->tgid, p->mode, true);
	}
}

/* A library of one process alone cannot be found again by another. */
static bool unused(const struct file *f, uint64_t now_ns)
{
	bool guarded = true;

	if (f->procs)
		return false;
	if (f->going)
		return true;
	for (int i = 0; i < RS_UPROBE_COUNT; i++)
		guarded &= rs_uprobe_guarded(f->u[i]);
	return f->library && !f->system && f->unused_ns &&
	       (f->tgid || !guarded || now_ns - f->unused_ns >= LINGER_NS);
}

void rs_tls_tick(struct rs_tls_watch *w, uint64_t now_ns)
{
	struct rs_list *pos, *tmp;

	if (!w->kernel)
		return;
	if (w->later)
		look_later(w);
	if (now_ns - w->swept_ns < SWEEP_NS)
		return;
	w->swept_ns = now_ns;
	look_system_again(w);
	rs_list_for_each_safe (pos, tmp, &w->live) {
		struct proc *p = rs_list_entry(pos, struct proc, live);

		if (kill((pid_t)p->tgid, 0) && errno == ESRCH)
			forget(w, p, now_ns);
	}
	rs_list_for_each_safe (pos, tmp, &w->known) {
		struct file *f = rs_list_entry(pos, struct file, known);

		if (unused(f, now_ns))
			(void)forget_file(w, f);
	}
}

void rs_tls_make_way(struct rs_tls_watch *w)
{
	struct rs_list *pos;

	if (!w->kernel)
		return;
	rs_list_for_each (pos, &w->known) {
		struct file *f = rs_list_entry(pos, struct file, known);
		bool way = false;

		for (int i = 0; i < RS_UPROBE_COUNT && !f->going; i++)
			way |= rs_uprobe_in_the_way(f->u[i]);
		if (!way)
			continue;
		let_go(w, f);
		f->state = RS_TLS_FAILED;
		snprintf(f->why, sizeof(f->why), "another file is written into it");
	}
}

enum rs_tls_reading rs_tls_reading(const struct rs_tls_watch *w, uint32_t tgid,
				   uint64_t *ret_since_ns)
{
	const struct proc *p = w->kernel ? rs_map_get(&w->by_tgid, tgid) : NULL;
	enum rs_tls_reading r = RS_TLS_UNKNOWN;

	if (w->mode == RS_TLS_NEVER || (p && p->excluded))
		return RS_TLS_LEFT_ALONE;
	if (!w->kernel)
		return RS_TLS_REFUSED;
	if (!p || (!p->looked && !p->n))
		return RS_TLS_NOT_YET;
	for (unsigned i = 0; i < p->n; i++) {
		const struct file *f = p->file[i];

		if (f->state == RS_TLS_HOOKED) {
			if (r != RS_TLS_READ || f->hooked_ns > *ret_since_ns)
				*ret_since_ns = f->hooked_ns;
			r = RS_TLS_READ;
		} else if (r != RS_TLS_READ) {
			r = f->late			  ? RS_TLS_NOT_YET
			    : f->state == RS_TLS_DECLINED ? RS_TLS_TOO_DEAR
							  : RS_TLS_REFUSED;
		}
	}
	return r;
}

size_t rs_tls_process(const struct rs_tls_watch *w, uint32_t tgid,
		      struct rs_tls_info ret[RS_TLS_PER_PROC], bool *ret_excluded)
{
	const struct proc *p = w->kernel ? rs_map_get(&w->by_tgid, tgid) : NULL;

	*ret_excluded = p && p->excluded;
	for (unsigned i = 0; p && i < p->n; i++)
		ret[i] = (struct rs_tls_info){ p->file[i]->library, p->file[i]->path,
					       p->file[i]->why, p->file[i]->state };
	return p ? p->n : 0;
}

void rs_tls_each(const struct rs_tls_watch *w,
		 void (*fn)(void *arg, const struct rs_tls_info *info, uint32_t procs), void *arg)
{
	struct rs_list *pos;

	if (!w->known.next)
		return;
	rs_list_for_each (pos, &w->known) {
		const struct file *f = rs_list_entry(pos, struct file, known);
		const struct rs_tls_info info = { f->library, f->path, f->why, f->state };

		if (f->library)
			fn(arg, &info, f->procs);
	}
}
