// SPDX-License-Identifier: Apache-2.0
#include "counters.h"

const struct rs_counter_info rs_counter_info[RS_C_COUNT] = {
#define RS_COUNTER(cid, st, k, n, h, r)                                                            \
	[RS_C_##cid] = { .stage = #st, .name = n, .help = h, .remedy = r, .kind = RS_CK_##k },
#include "status/counters.def"
#undef RS_COUNTER
};
