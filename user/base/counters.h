/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters — the ledger's numbers. One struct per agent, passed to every stage; a stage adds to its own
 * ids only. The list, with stage, kind, help and remedy, is status/counters.def. What the BPF programs count
 * is in bpf/shared/counters.def: stage "kernel".
 */
#ifndef RS_BASE_COUNTERS_H
#define RS_BASE_COUNTERS_H

#include <stdint.h>

enum rs_counter {
#define RS_COUNTER(id, stage, kind, name, help, remedy) RS_C_##id,
#include "status/counters.def"
#undef RS_COUNTER
	RS_C_COUNT,
};

enum rs_bpf_counter {
#define RS_BPF_COUNTER(id, kind, name, help, remedy) RS_BPFC_##id,
#include "shared/counters.def"
#undef RS_BPF_COUNTER
	RS_BPFC_COUNT,
};

struct rs_counters {
	uint64_t v[RS_C_COUNT];
};

enum rs_counter_kind {
	RS_CK_IN,
	RS_CK_OUT,
	RS_CK_DROPPED,
	RS_CK_HELD,
	RS_CK_INFO,
};

struct rs_counter_info {
	const char *stage, *name, *help, *remedy;
	enum rs_counter_kind kind;
};

extern const struct rs_counter_info rs_counter_info[RS_C_COUNT];
extern const struct rs_counter_info rs_bpf_counter_info[RS_BPFC_COUNT];
/* By enum rs_counter_kind: "in", "out", … */
extern const char *const rs_counter_kind_name[];

#endif
