/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program — what an executable made by Go's own compiler tells: which Go, how its runtime is laid out, and
 * where to look at it (points.def). Works on stripped programs too. Reads the file once; no state.
 */
#ifndef RS_GO_PROGRAM_H
#define RS_GO_PROGRAM_H

#include "base/str.h"
#include "shared/config.h"

struct rs_elf;

#define RS_GO_PLACES	64
#define RS_GO_MINOR_MAX 27 /* newest Go whose layout was measured (layouts.def) */

struct rs_go_place {
	uint64_t offset; /* of the instruction, in the file */
	uint8_t kind;	 /* enum rs_bpf_go_kind */
};

struct rs_go_program {
	char version[32]; /* "go1.26.8"; longer ones are cut */
	struct rs_bpf_go layout;
	uint32_t
		nplaces; /* the ones over RS_GO_PLACES are left out: functions are not that often called */
	struct rs_go_place places[RS_GO_PLACES];
};

/* 0; -ENOEXEC: not made by Go, or by one before 1.18; -ENOTSUP: by one that is not known yet (version is
 * filled); -EBADMSG: its tables make no sense. */
int rs_go_inspect(const struct rs_elf *e, struct rs_go_program *ret);

#endif
