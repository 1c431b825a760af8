// SPDX-License-Identifier: Apache-2.0
#include "gos.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "go/program.h"
#include "kernel/kernel.h"
#include "kernel/uprobe.h"
#include "tls/elf.h"

/* A program that has ended may be started again; if nobody can write into its file. */
#define LINGER_NS 30000000000ull
#define DETACHING 32 /* files at once: each takes two threads for a moment */

/* An executable that processes run, or did; version: of Go, or empty. */
struct file {
	struct rs_list known;
	struct rs_uprobe_file id;
	bool go; /* it can be followed */
	uint32_t procs;
	uint64_t unused_ns; /* since when no process runs it */
	char version[32];
	struct rs_bpf_go layout;
	bool tls_tried;
	bool going; /* its probes are being detached */
	uint64_t tls_since_ns;
	struct rs_uprobe *tasks, *tls; /* NULL: nothing to attach, or refused */
};

struct proc {
	struct rs_list live;
	uint32_t tgid;
	struct file *file;
};

void rs_gos_init(struct rs_gos *gs, struct rs_kernel *kernel, struct rs_counters *n)
{
	*gs = (struct rs_gos){ .kernel = kernel, .n = n };
	rs_map_init(&gs->by_tgid, RS_GO_PROCS);
	rs_pool_init(&gs->procs, sizeof(struct proc), RS_GO_PROCS);
	rs_pool_init(&gs->files, sizeof(struct file), RS_GO_FILES);
	rs_list_init(&gs->known);
	rs_list_init(&gs->live);
}

static void let_go(struct rs_gos *gs, struct file *f)
{
	f->going = true;
	gs->going++;
	rs_uprobe_let_go(f->tasks);
	rs_uprobe_let_go(f->tls);
}

static bool detached(struct file *f)
{
	if (rs_uprobe_gone(f->tasks))
		f->tasks = NULL;
	if (rs_uprobe_gone(f->tls))
		f->tls = NULL;
	return !f->tasks && !f->tls;
}

/*
 * True: it is forgotten. False: as soon as its probes are gone, when asked again. (If it were found again before, they would
 * run twice.)
 */
static bool forget_file(struct rs_gos *gs, struct file *f)
{
	if (!f->going && (gs->going < DETACHING || detached(f)))
		let_go(gs, f);
	if (!f->going || !detached(f))
		return false;
	gs->going--;
	rs_list_del(&f->known);
	rs_pool_put(&gs->files, f);
	return true;
}

static void forget(struct rs_gos *gs, struct proc *p)
{
	rs_map_del(&gs->by_tgid, p->tgid);
	rs_list_del(&p->live);
	if (--p->file->procs == 0)
		p->file->unused_ns = rs_clock_mono();
	rs_pool_put(&gs->procs, p);
}

/* Those that have ended. */
static void sweep(struct rs_gos *gs)
{
	struct rs_list *pos, *tmp;

	rs_list_for_each_safe (pos, tmp, &gs->live) {
		struct proc *p = rs_list_entry(pos, struct proc, live);

		if (kill((pid_t)p->tgid, 0) && errno == ESRCH)
			forget(gs, p);
	}
}

void rs_gos_release(struct rs_gos *gs)
{
	struct rs_list *pos, *tmp;

	if (!gs->live.next)
		return;
	/* At once: what the kernel waits for is the same. */
	while (!rs_list_empty(&gs->known)) {
		rs_list_for_each_safe (pos, tmp, &gs->known)
			(void)forget_file(gs, rs_list_entry(pos, struct file, known));
		usleep(1000);
	}
	rs_map_release(&gs->by_tgid);
	rs_pool_release(&gs->procs);
	rs_pool_release(&gs->files);
}

static struct rs_uprobe *attach(struct rs_gos *gs, const struct rs_go_program *g, const char *path,
				enum rs_uprobe_prog prog, unsigned first, unsigned last)
{
	struct rs_uprobe_at at[RS_GO_PLACES];
	struct rs_uprobe *u = NULL;
	size_t n = 0;
	int r;

	for (uint32_t i = 0; i < g->nplaces; i++) {
		if (g->places[i].kind >= first && g->places[i].kind <= last)
			at[n++] = (struct rs_uprobe_at){
				g->places[i].offset, RS_GO_COOKIE(g->places[i].kind, &g->layout)
			};
	}
	if (!n)
		return NULL;
	r = rs_uprobe_attach(gs->kernel, prog, path, 0, at, n, &u);
	if (r) {
		gs->n->v[RS_C_GO_REFUSED]++;
		rs_debug("%s: probes of %s were refused: %s", path, g->version, strerror(-r));
		return NULL;
	}
	return u;
}

/*
 * Has another program been written into the file? Nobody can while processes run it, but right afterwards: its probes
 * are in the wrong places now.
 */
static bool written_anew(struct rs_gos *gs, const struct file *f, const struct rs_uprobe_file *id)
{
	if (f->going || rs_uprobe_same_file(&f->id, false, id))
		return false;
	if (f->procs)
		sweep(gs);
	return !f->procs;
}

static struct file *known_file(struct rs_gos *gs, const struct rs_uprobe_file *id)
{
	struct rs_list *pos;

	rs_list_for_each (pos, &gs->known) {
		struct file *f = rs_list_entry(pos, struct file, known);

		if (!rs_uprobe_same_file(&f->id, f->procs || f->tasks || f->tls, id))
			continue;
		if (written_anew(gs, f, id)) {
			/* At once: what runs now must not meet them. */
			rs_uprobe_detach(f->tasks);
			rs_uprobe_detach(f->tls);
			rs_list_del(&f->known);
			rs_pool_put(&gs->files, f);
			return NULL;
		}
		rs_list_del(&f->known); /* asked for last */
		rs_list_add_tail(&gs->known, &f->known);
		return f;
	}
	return NULL;
}

/* Room for one more: the one longest not asked for gives way. NULL: all are in use. */
static struct file *room(struct rs_gos *gs)
{
	struct rs_list *pos, *tmp;

	if (gs->files.in_use == RS_GO_FILES) {
		rs_list_for_each_safe (pos, tmp, &gs->known) {
			struct file *f = rs_list_entry(pos, struct file, known);

			if (!f->procs && forget_file(gs, f))
				break;
		}
	}
	return rs_pool_get(&gs->files);
}

/* Is it a Go program, and where does one look? Attaches what is not attached yet. */
static void study(struct rs_gos *gs, struct file *f, int fd, const char *path, bool tls)
{
	struct rs_go_program *g = malloc(sizeof(*g));
	struct rs_elf *e = NULL;
	int r = g ? rs_elf_open(fd, &e) : -ENOMEM;

	if (!r)
		r = rs_go_inspect(e, g);
	rs_elf_close(e);
	if (!r) {
		if (!f->go) {
			f->tasks =
				attach(gs, g, path, RS_UPROBE_rs_go_task, RS_GO_CALLS, RS_GO_SENDS);
			gs->n->v[RS_C_GO_PROGRAMS]++;
		}
		if (tls) {
			f->tls = attach(gs, g, path, RS_UPROBE_rs_text, RS_GO_READ, RS_GO_WRITE);
			f->tls_tried = true;
			f->tls_since_ns = rs_clock_mono();
		}
		f->go = true;
		f->layout = g->layout;
	} else if (r == -ENOTSUP || r == -EBADMSG) {
		gs->n->v[RS_C_GO_UNKNOWN]++;
		rs_debug("%s: %s cannot be followed: %s", path, r == -ENOTSUP ? g->version : "Go",
			 strerror(-r));
	}
	if (!r || r == -ENOTSUP)
		memcpy(f->version, g->version, sizeof(f->version));
	free(g);
}

static struct file *file_of(struct rs_gos *gs, uint32_t tgid, bool tls)
{
	struct rs_uprobe_file id;
	struct file *f = NULL;
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/exe", tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (rs_uprobe_file(fd, &id) == 0) {
		f = known_file(gs, &id);
		if (f && f->going) {
			if (f->procs)
				sweep(gs);
			if (f->procs || !forget_file(gs, f)) {
				close(fd); /* it is looked at again when it has a connection */
				return NULL;
			}
			f = NULL;
		}
		if (f && (!f->go || !tls || f->tls_tried))
			goto out;
		if (!f && (f = room(gs))) {
			*f = (struct file){ .id = id, .unused_ns = rs_clock_mono() };
			rs_list_add_tail(&gs->known, &f->known);
		}
		if (f)
			study(gs, f, fd, path, tls);
	}
out:
	close(fd);
	return f;
}

static struct proc *new_proc(struct rs_gos *gs, uint32_t tgid, struct file *f)
{
	struct proc *p = rs_pool_get(&gs->procs);

	if (!p || rs_map_put(&gs->by_tgid, tgid, p)) {
		rs_pool_put(&gs->procs, p);
		return NULL;
	}
	*p = (struct proc){ .tgid = tgid, .file = f };
	rs_list_add_tail(&gs->live, &p->live);
	f->procs++;
	return p;
}

void rs_gos_look(struct rs_gos *gs, uint32_t tgid, bool tls)
{
	struct proc *p;
	struct file *f;

	if (!gs->kernel)
		return;
	f = file_of(gs, tgid, tls);
	p = rs_map_get(&gs->by_tgid, tgid);
	if (p && p->file != f) {
		forget(gs, p);
		p = NULL;
	}
	if (f && *f->version && !p)
		p = new_proc(gs, tgid, f);
	if (p && f->go) /* a refusal costs its goroutines */
		(void)rs_kernel_go(gs->kernel, tgid, &f->layout);
}

bool rs_gos_process(const struct rs_gos *gs, uint32_t tgid, struct rs_gos_info *ret)
{
	const struct proc *p = rs_map_get(&gs->by_tgid, tgid);

	if (p)
		*ret = (struct rs_gos_info){ .version = p->file->version,
					     .followed = p->file->go,
					     .tls = p->file->tls != NULL,
					     .tls_since_ns = p->file->tls_since_ns };
	return p != NULL;
}

void rs_gos_tick(struct rs_gos *gs)
{
	uint64_t now = rs_clock_mono();
	struct rs_list *pos, *tmp;

	if (!gs->kernel)
		return;
	sweep(gs);
	rs_list_for_each_safe (pos, tmp, &gs->known) {
		struct file *f = rs_list_entry(pos, struct file, known);

		if (!f->procs && (f->going || !rs_uprobe_guarded(f->tasks) ||
				  !rs_uprobe_guarded(f->tls) || now - f->unused_ns > LINGER_NS))
			(void)forget_file(gs, f);
	}
}

void rs_gos_make_way(struct rs_gos *gs)
{
	struct rs_list *pos;

	if (!gs->kernel)
		return;
	rs_list_for_each (pos, &gs->known) {
		struct file *f = rs_list_entry(pos, struct file, known);

		if (!f->going && (rs_uprobe_in_the_way(f->tasks) || rs_uprobe_in_the_way(f->tls)))
			let_go(gs, f);
	}
}
