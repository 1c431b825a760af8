/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gos — the Go programs that run: the kernel side is told how each process's runtime is laid out, and probes
 * are attached once per executable, for as long as a process of it lives and a little longer. Needs privilege and a loaded kernel side;
 * a program that cannot be followed loses its goroutines and its TLS, nothing else. Not thread-safe.
 */
#ifndef RS_GO_GOS_H
#define RS_GO_GOS_H

#include "base/counters.h"
#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"

struct rs_kernel;

struct rs_gos {
	struct rs_kernel *kernel;
	struct rs_map by_tgid;
	struct rs_pool procs, files;
	struct rs_list known; /* executables, the one longest not asked for first */
	struct rs_list live;  /* processes */
	unsigned going;	      /* executables whose probes are being detached */
	struct rs_counters *n;
};

#define RS_GO_PROCS 4096 /* as the map rs_go holds */
#define RS_GO_FILES 512

/* kernel may be NULL: then nothing is done. */
void rs_gos_init(struct rs_gos *gs, struct rs_kernel *kernel, struct rs_counters *n);
void rs_gos_release(struct rs_gos *gs);

/* A process is seen for the first time, or has become another program. tls: its plain text is wanted, of all that
 * run the same executable. Cheap for what is no Go program. */
void rs_gos_look(struct rs_gos *gs, uint32_t tgid, bool tls);
/* Call now and then: gives up what no process runs any more. */
void rs_gos_tick(struct rs_gos *gs);
/* At SIGIO: who waits to write into a file with probes in it may, as soon as they are gone. */
void rs_gos_make_way(struct rs_gos *gs);

/* For status. False: it is no Go program. */
struct rs_gos_info {
	const char *version; /* "go1.26.8"; valid until the next call of another function */
	bool followed; /* its goroutines are known; false: a release that is not known, or before 1.18 */
	bool tls;      /* and the plain text of crypto/tls */
	uint64_t tls_since_ns;
};
bool rs_gos_process(const struct rs_gos *gs, uint32_t tgid, struct rs_gos_info *ret);

#endif
