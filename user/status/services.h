/* SPDX-License-Identifier: Apache-2.0 */
/*
 * services — requests, errors and latencies per service, of the spans that were made: what `status` shows
 * and `status --watch` sorts.
 *
 * A row is a service's received requests, or those it sent. Bounded: RS_SERVICES rows; spans of further
 * services are in one row for all others. A latency is counted in one of RS_LATENCY_BUCKETS: eight for
 * each doubling from 1 µs on, so that a quantile is at most 13 % from the truth; the last one takes all
 * that is longer than half an hour. Not thread-safe.
 */
#ifndef RS_STATUS_SERVICES_H
#define RS_STATUS_SERVICES_H

#include <stdbool.h>

#include "base/map.h"
#include "base/pool.h"
#include "base/str.h"

#define RS_SERVICES	   512
#define RS_SERVICE_NAME	   128 /* bytes of a name that are kept */
#define RS_LATENCY_BUCKETS (8 + 8 * 28 + 1)

struct rs_service {
	uint64_t spans, errors;
	bool client; /* requests it sent */
	uint8_t nname;
	char name[RS_SERVICE_NAME]; /* cut there; empty: all others */
	uint32_t bucket[RS_LATENCY_BUCKETS];
};

struct rs_services {
	struct rs_map by_key;
	struct rs_pool pool;
	struct rs_service others[2]; /* received, sent */
};

void rs_services_init(struct rs_services *s);
/* Harmless on a zeroed struct. */
void rs_services_release(struct rs_services *s);

/* Where spans of a service are counted, of a client or of a server: as long as s is there. A name that finds no room
 * counts as "others". */
struct rs_service *rs_services_row(struct rs_services *s, struct str name, bool client);

/* Row by row, others included; *pos starts at 0. NULL at the end. Rows without spans are passed over. */
const struct rs_service *rs_services_next(const struct rs_services *s, uint32_t *pos);

/* Which bucket a time of so many nanoseconds is in. */
unsigned rs_latency_bucket(uint64_t ns);
/* The first ns that is not in the bucket any more; UINT64_MAX for the last one. */
uint64_t rs_latency_end(unsigned bucket);

/* A span that took so long is counted soon: what that touches comes nearer. row: or NULL. */
static inline void rs_service_ahead(const struct rs_service *row, uint64_t took_ns)
{
	if (!row)
		return;
	__builtin_prefetch(row, 1);
	__builtin_prefetch(&row->bucket[rs_latency_bucket(took_ns)], 1);
}

/* One span: how long it took, is it an error? */
static inline void rs_service_count(struct rs_service *row, uint64_t took_ns, bool error)
{
	row->spans++;
	row->errors += error;
	row->bucket[rs_latency_bucket(took_ns)]++;
}

#endif
