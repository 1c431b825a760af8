/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points — where in a file the probes of a TLS library go, and what they cost.
 *
 * A library is one file and one line in libraries.def: from an ELF file to places. They are chosen so that
 *  - the program's stack and code flow stay as they are: no return probes of the kernel's, which replace return
 *    addresses: programs that unwind or switch stacks, or run under seccomp on some kernels, die of them;
 *  - they are cheap: see code.h;
 *  - each read and write is seen once, whichever of the library's functions is called.
 */
#ifndef RS_TLS_POINTS_H
#define RS_TLS_POINTS_H

#include "code.h"
#include "elf.h"
#include "kernel/uprobe.h"

#define RS_TLS_POINTS 96

struct rs_tls_point {
	enum rs_uprobe_prog prog;
	struct rs_uprobe_at at;
	bool cheap;
};

struct rs_tls_points {
	struct rs_tls_point v[RS_TLS_POINTS];
	size_t n;
	unsigned dear;	  /* single-stepped instructions that the dearest call comes by: 0, 1, 2 */
	const char *name; /* of the library; static */
	char what[160];	  /* which functions, and how; or why not */
};

enum rs_tls_library {
#define RS_TLS_LIBRARY(name, mark) RS_TLS_LIB_##name,
#include "libraries.def"
#undef RS_TLS_LIBRARY
	RS_TLS_LIBRARIES,
};

/* Is the library in this file, and where do its probes go? ret is zeroed. 0; -ENOENT: it is not here;
 * -EOPNOTSUPP: it is, but cannot be probed: ret->what says why; another -errno. */
#define RS_TLS_LIBRARY(name, mark)                                                                 \
	int rs_tls_find_##name(const struct rs_elf *e, struct rs_tls_points *ret);
#include "libraries.def"
#undef RS_TLS_LIBRARY
int rs_tls_find(enum rs_tls_library lib, const struct rs_elf *e, struct rs_tls_points *ret);

/* Which ones may be in this file: bit 1 << enum rs_tls_library. One pass over its names, of which there can be a million. */
unsigned rs_tls_marks(const struct rs_elf *e);

/* -- for those that look -- */

/* Cookies of rs_tls_enter, and with RS_TEXT_LEAVE of rs_text (bpf/probes/tls.bpf.c). */
#define RS_TLS_COOKIE_SP     4		/* bits from there on: how far the stack pointer is below */
#define RS_TLS_COOKIE_OUT    (1u << 20) /* a write */
#define RS_TLS_COOKIE_COUNTP (1u << 21) /* the count is where the fourth argument points */
#define RS_TLS_COOKIE_COUNT5 (1u << 22) /* with COUNTP: where the fifth points */
#define RS_TLS_COOKIE_REG                                                                          \
	24 /* bits from there on: number of the register that has the result; 0: its own */

/* Adds a point at an address. 0 or -errno. */
int rs_tls_add(struct rs_tls_points *p, const struct rs_elf *e, enum rs_uprobe_prog prog,
	       uint64_t va, uint64_t cookie, bool cheap);

/* Adds the points of a function f(session, buffer, length[, count]): where it begins, and where it
 * returns. flags: RS_TLS_COOKIE_*. 0 or -errno: -ENOTSUP: its returns cannot be found. */
int rs_tls_add_function(struct rs_tls_points *p, const struct rs_elf *e, uint64_t va, uint64_t size,
			uint32_t flags);

/* The code of the function at va; size 0: as .eh_frame_hdr says. 0 or -errno. Released by the caller. */
int rs_tls_code(const struct rs_elf *e, uint64_t va, uint64_t size, struct rs_code *ret);

#endif
