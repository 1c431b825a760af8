/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sentry_units — which spans of a trace go into one envelope, and in which order.
 *
 * Containers: any SENTRY_SPANS of them. Transactions: a span that begins work in a service (sentry_is_segment(), or its
 * parent is not here, or is another resource's), first, and all below it.
 *
 * Memory grows to the largest trace and stays.
 */
#ifndef RS_ENC_SENTRY_UNITS_H
#define RS_ENC_SENTRY_UNITS_H

#include "chunks.h"

#define SENTRY_SPANS 1000u /* of an envelope at most; a transaction's own does not count */

struct sentry_unit {
	uint32_t first, n; /* of order[] */
};

struct sentry_units {
	uint32_t *order; /* items of the chunk, one unit behind the other */
	struct sentry_unit *unit;
	uint32_t nunit;

	/* By place in the chunk. */
	struct sentry_place {
		uint32_t item;
		uint32_t up; /* place of the parent, later of the transaction */
		uint32_t mark;
	} * place;
	struct {
		uint32_t epoch, place;
	} * id; /* span id to place */
	uint32_t cap, id_cap, id_epoch;
};

/* u is zeroed before its first use. c is of w. False: no memory, nothing is planned. */
bool sentry_plan(struct sentry_units *u, const struct rs_chunks *w, const struct rs_chunk *c,
		 bool transactions);
void sentry_units_release(struct sentry_units *u);

#endif
