/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uprobe — attaches a loaded program at places in a file: in every process that has the file mapped,
 * now or later. By uprobe_multi where the kernel has it (6.6; CAP_BPF and CAP_PERFMON suffice), else by one
 * perf event a place (which needs CAP_SYS_ADMIN).
 *
 * Once per file: two attachments at one place run the program twice. Nothing stays in the kernel when the
 * agent ends.
 */
#ifndef RS_KERNEL_UPROBE_H
#define RS_KERNEL_UPROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct rs_kernel;

/* Programs for user space code: those of probes.def with the section "uprobe". */
enum rs_uprobe_prog {
#define RS_PROBE(prog, section, backends, required, purpose)
#define RS_UPROBE(prog, purpose) RS_UPROBE_##prog,
#include "probes.def"
#undef RS_UPROBE
#undef RS_PROBE
	RS_UPROBE_COUNT,
};

struct rs_uprobe_at {
	uint64_t offset; /* in the file, of an instruction's first byte */
	uint64_t cookie; /* bpf_get_attach_cookie() gives it to the program */
};

struct rs_uprobe;

/*
 * Which file probes go into. The kernel puts them into the file behind a layered file system: containers of one
 * image, each with its own device number, have one file, and what is attached through one of them holds for all.
 */
struct rs_uprobe_file {
	dev_t dev; /* 0: a layer's */
	ino_t ino;
	off_t size;
	struct timespec changed;
};

/* 0 or -errno. */
int rs_uprobe_file(int fd, struct rs_uprobe_file *ret);
/*
 * Is it still that file? held: a probe or a process keeps a, so that its number cannot have become another's.
 * In layers, number, size and time of change have to agree.
 */
bool rs_uprobe_same_file(const struct rs_uprobe_file *a, bool held, const struct rs_uprobe_file *b);

#define RS_UPROBE_MAX 1024 /* places in one call */

/*
 * tgid: of the process that is meant (where rs_uprobe_by_process); 0: all. path: as the agent sees the file (/proc/PID/root/…, /proc/PID/map_files/…, /proc/self/fd/N: links are
 * followed). 0 or -errno; then nothing is attached. -EOPNOTSUPP: the program was not loaded. The program
 * may run before this returns.
 */
int rs_uprobe_attach(struct rs_kernel *k, enum rs_uprobe_prog prog, const char *path, uint32_t tgid,
		     const struct rs_uprobe_at *at, size_t n, struct rs_uprobe **ret);
/*
 * Is the file held so that nobody can write into it while probes are attached (or NULL)? It is where the agent's user owns
 * it or the agent has CAP_LEASE, and the file system has leases; nobody writes into a program that runs in any case.
 */
bool rs_uprobe_guarded(const struct rs_uprobe *u);
/*
 * Does somebody wait to write into it? To be asked at SIGIO; it is to be detached or let go, which lets them go on (the
 * kernel makes them wait for at most /proc/sys/fs/lease-break-time). Not for one that was let go.
 */
bool rs_uprobe_in_the_way(const struct rs_uprobe *u);
/* Can it be attached to one process? (Perf events follow one thread alone.) */
bool rs_uprobe_by_process(const struct rs_kernel *k);
/* NULL is fine. The kernel waits until no CPU can be in the program any more: 20 to 400 ms. */
void rs_uprobe_detach(struct rs_uprobe *u);
/* The same without waiting, by a thread that does nothing else. u is not used for anything but rs_uprobe_gone(). */
void rs_uprobe_let_go(struct rs_uprobe *u);
/* Is it detached? Then u is freed. To be asked until it says so, if only to free u. NULL: it is. */
bool rs_uprobe_gone(struct rs_uprobe *u);

/* Is the program loaded? If not, *ret_reason (if not NULL) says why, valid as long as k. */
bool rs_uprobe_loaded(const struct rs_kernel *k, enum rs_uprobe_prog prog, const char **ret_reason);

#endif
