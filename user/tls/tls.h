/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls — which programs have which TLS library, and the probes on those: attached once per file (device and
 * inode: an upgraded library is another one, a deleted one is found as long as a process has it), for as long
 * as a process that has it lives, and a little longer, so that short programs one behind the other find it.
 *
 * A process is looked at when it is first seen, when it has become another program, and again when it does TLS
 * and no library is known of it (loaded since). Nothing is written into any process. Bounded; needs a loaded
 * kernel side. Not thread-safe.
 */
#ifndef RS_TLS_TLS_H
#define RS_TLS_TLS_H

#include "base/counters.h"
#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/str.h"
#include "kernel/uprobe.h"
#include "tls/points.h"
#include "tls/system.h"
#include "tls_mode.h"

#define RS_TLS_PROCS	4096
#define RS_TLS_FILES	512 /* files known, with a library and without */
#define RS_TLS_PER_PROC 8   /* libraries of one process */

enum rs_tls_state {
	RS_TLS_HOOKED,	 /* probes are attached */
	RS_TLS_DECLINED, /* they would be too dear, see why */
	RS_TLS_FAILED,	 /* they cannot be placed or attached, see why */
};

/* What one call of a library costs here, measured: the kernel's part alone. ns; 0: not measured. */
struct rs_tls_price {
	uint32_t cheap; /* at an emulated instruction */
	uint32_t dear;	/* at one that is single-stepped */
};

struct rs_tls_watch {
	struct rs_kernel *kernel; /* NULL: nothing is done */
	enum rs_tls_mode mode;
	struct str exclude; /* globs, commas between */
	bool by_process; /* libraries are attached to one process at a time, since others are left alone */
	bool dry;	 /* looks only, attaches nothing: for `check` */
	struct rs_tls_price price;
	struct rs_map by_tgid;
	struct rs_pool procs, files;
	struct rs_list live;  /* processes */
	struct rs_list known; /* files, the one longest not asked for first */
	struct rs_tls_system system;
	const char *root; /* of the system's libraries; NULL: they are not looked for */
	unsigned going;	  /* files whose probes are being detached */
	bool busy; /* the file asked for last is being detached, or those that make room for it: later */
	bool later;		      /* some process is to be looked at again at the next tick */
	uint64_t second_ns, spent_ns; /* rs_tls_loads: of which second so much time is gone */
	uint64_t swept_ns;	      /* when ended processes were looked for */
	struct rs_counters *n;
};

/* exclude outlives w. Measures the price (a few ms). */
void rs_tls_init(struct rs_tls_watch *w, struct rs_kernel *kernel, enum rs_tls_mode mode,
		 const char *exclude, struct rs_counters *n);
/* Detaches all. Harmless on a zeroed struct. */
void rs_tls_release(struct rs_tls_watch *w);

/* A process is seen for the first time, or has become another program. mode: what is wanted of this one; what is
 * dear is paid for in all that have the same library. */
void rs_tls_look(struct rs_tls_watch *w, uint32_t tgid, enum rs_tls_mode mode);
/* It has just executed a program: looks into that alone, the rest is loaded later. */
void rs_tls_exec(struct rs_tls_watch *w, uint32_t tgid);
/* Does --tls-exclude name its executable? */
bool rs_tls_excluded(const struct rs_tls_watch *w, uint32_t tgid);
/* It maps a file that may be a TLS library (RS_PROC_LOADS). */
void rs_tls_loads(struct rs_tls_watch *w, uint32_t tgid, uint32_t dev, uint64_t ino);
/* It does TLS: looks for its library if none is known, or if there was TLS that none of them did (opaque). */
void rs_tls_again(struct rs_tls_watch *w, uint32_t tgid, bool opaque);
/* The system's own libraries below root ("": /), before anybody has them and for good: so no program's first
 * requests are missed. Looked at again when the directories change. root outlives w. Not with --tls-exclude. */
void rs_tls_look_system(struct rs_tls_watch *w, const char *root);
/* Every process that runs now, and that `wanted` (NULL: all) says yes to. */
void rs_tls_look_all(struct rs_tls_watch *w, bool (*wanted)(void *arg, uint32_t tgid), void *arg);
/* Call a few times a second: gives up what is not used any more. */
void rs_tls_tick(struct rs_tls_watch *w, uint64_t now_ns);
/* At SIGIO: who waits to write into a file with probes in it may, as soon as they are gone. */
void rs_tls_make_way(struct rs_tls_watch *w);

/* READ: *ret_since_ns is when the last of its libraries was attached to. */
enum rs_tls_reading rs_tls_reading(const struct rs_tls_watch *w, uint32_t tgid,
				   uint64_t *ret_since_ns);

/* For status: libraries of a process. */
struct rs_tls_info {
	const char *library; /* "openssl" */
	const char *path;    /* as the process sees it */
	const char *why;     /* how, or why not */
	enum rs_tls_state state;
};
/* Fills at most RS_TLS_PER_PROC; returns how many. *ret_excluded: the user wants it left alone. Texts are valid
 * until the next call of another function. */
size_t rs_tls_process(const struct rs_tls_watch *w, uint32_t tgid,
		      struct rs_tls_info ret[RS_TLS_PER_PROC], bool *ret_excluded);

/* For `check`: every file with a library in it, and how many processes have it. */
void rs_tls_each(const struct rs_tls_watch *w,
		 void (*fn)(void *arg, const struct rs_tls_info *info, uint32_t procs), void *arg);

#endif
