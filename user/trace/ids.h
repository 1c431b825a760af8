/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ids — trace and span ids, and the W3C traceparent header (W3C Trace Context, level 2).
 *
 * Ids are random and never all zero. The generator is xoshiro256**, seeded by the kernel, or by a
 * number for replays that must come out the same. Not thread-safe.
 */
#ifndef RS_TRACE_IDS_H
#define RS_TRACE_IDS_H

#include "base/str.h"

struct rs_ids {
	uint64_t s[4];
};

/* seed 0: from the kernel. */
void rs_ids_init(struct rs_ids *ids, uint64_t seed);
void rs_ids_trace(struct rs_ids *ids, uint8_t ret[16]);
void rs_ids_span(struct rs_ids *ids, uint8_t ret[8]);

#define RS_TRACE_SAMPLED 0x01 /* W3C trace flags */
#define RS_TRACE_RANDOM  0x02

struct rs_wire_ctx {
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint8_t flags; /* the bits known to level 2; others read as 0 */
};

/* False when the header is not to be used: the rules of section 3.2 (upper case, version ff, zero ids, a
 * tail on version 00, ...). Spaces and tabs around it are trimmed. */
bool rs_traceparent_parse(struct str header, struct rs_wire_ctx *ret);

/* Is a tracestate header worth passing on? At most 32 members of key=value, as section 3.3 says. */
bool rs_tracestate_valid(struct str header);

#endif
