/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pclntab — the functions of a Go program by name, from its line table (section .gopclntab), which stripped
 * programs have too: the runtime needs it for tracebacks. Pure, no allocation, bounds checked: any bytes are
 * safe to read. The form is that of Go 1.18 and 1.20 to 1.27 (runtime.pcHeader in Go's source); older ones
 * are not read.
 */
#ifndef RS_GO_PCLNTAB_H
#define RS_GO_PCLNTAB_H

#include <stdint.h>

#include "base/str.h"

struct rs_go_pcln {
	struct str names; /* function names, each ends with a zero */
	struct str funcs; /* the table of entries, then what it points into */
	uint32_t n;	  /* functions */
	uint64_t
		text; /* address at which their code begins; 0: it is not told (from 1.26 on, and in PIE) */
};

struct rs_go_func {
	struct str name;
	uint32_t start, end; /* offsets from the beginning of the code */
};

/* tab outlives ret. 0, or -EBADMSG. */
int rs_go_pcln_open(struct str tab, struct rs_go_pcln *ret);
/* Function number i < n. False: the table contradicts itself there. */
bool rs_go_pcln_func(const struct rs_go_pcln *p, uint32_t i, struct rs_go_func *ret);

#endif
