// SPDX-License-Identifier: Apache-2.0
#include "counters.h"

const struct rs_counter_info rs_counter_info[RS_C_COUNT] = {
#define RS_COUNTER(cid, st, k, n, h, r)                                                            \
	[RS_C_##cid] = { .stage = #st, .name = n, .help = h, .remedy = r, .kind = RS_CK_##k },
#include "status/counters.def"
#undef RS_COUNTER
};

const struct rs_counter_info rs_bpf_counter_info[RS_BPFC_COUNT] = {
#define RS_BPF_COUNTER(cid, k, n, h, r)                                                            \
	[RS_BPFC_##cid] = {                                                                        \
		.stage = "kernel", .name = n, .help = h, .remedy = r, .kind = RS_CK_##k            \
	},
#include "shared/counters.def"
#undef RS_BPF_COUNTER
};

const char *const rs_counter_kind_name[] = {
	[RS_CK_IN] = "in",     [RS_CK_OUT] = "out",   [RS_CK_DROPPED] = "dropped",
	[RS_CK_HELD] = "held", [RS_CK_INFO] = "info",
};
