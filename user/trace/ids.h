/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ids — trace and span ids.
 *
 * Ids are random and never all zero. The generator is xoshiro256**, seeded by the kernel, or by a
 * number for replays that must come out the same. Not thread-safe.
 */
#ifndef RS_TRACE_IDS_H
#define RS_TRACE_IDS_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

struct rs_ids {
	uint64_t s[4];
};

/* seed 0: from the kernel. */
void rs_ids_init(struct rs_ids *ids, uint64_t seed);
/* A half of a trace id, or a span id: as its number is written. */
static inline void rs_ids_put(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
}
/* A new trace id, a new span id. */
void rs_ids_trace(struct rs_ids *ids, uint8_t ret[16]);
void rs_ids_span(struct rs_ids *ids, uint8_t ret[8]);

#endif
