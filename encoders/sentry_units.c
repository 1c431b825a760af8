// SPDX-License-Identifier: Apache-2.0
#include "sentry_units.h"

#include <stdlib.h>

#include "sentry_facts.h"

static bool memory(struct sentry_units *u, uint32_t n)
{
	uint32_t cap[3] = { u->cap, u->cap, u->cap };

	if (!rs_grow(&u->order, &cap[0], n, sizeof(*u->order)) ||
	    !rs_grow(&u->unit, &cap[1], n, sizeof(*u->unit)) ||
	    !rs_grow(&u->place, &cap[2], n, sizeof(*u->place)))
		return false;
	u->cap = cap[0];
	if (u->id_cap < 2 * u->cap) {
		void *p = calloc(2 * u->cap, sizeof(*u->id));

		if (!p)
			return false;
		free(u->id);
		u->id = p;
		u->id_cap = 2 * u->cap;
		u->id_epoch = 0;
	}
	return true;
}

static const struct rs_item *item_of(const struct sentry_units *u, const struct rs_chunks *w,
				     uint32_t place)
{
	return &w->item[u->place[place].item];
}

static uint32_t id_hash(const uint8_t *id)
{
	uint64_t v;

	memcpy(&v, id, 8);
	return (uint32_t)(v * 0x9e3779b97f4a7c15ull >> 32);
}

/* Place of the span with this id in the chunk; RS_CHUNK_END: none. */
static uint32_t place_of(const struct sentry_units *u, const struct rs_chunks *w, const uint8_t *id)
{
	for (uint32_t i = id_hash(id);; i++) {
		uint32_t at = i & (u->id_cap - 1);

		if (u->id[at].epoch != u->id_epoch)
			return RS_CHUNK_END;
		if (!memcmp(item_of(u, w, u->id[at].place)->s->span_id, id, 8))
			return u->id[at].place;
	}
}

static void enter(struct sentry_units *u, const struct rs_chunks *w, uint32_t place)
{
	const uint8_t *id = item_of(u, w, place)->s->span_id;
	uint32_t i = id_hash(id);

	if (place_of(u, w, id) != RS_CHUNK_END)
		return; /* the same id again: the first one counts */
	while (u->id[i & (u->id_cap - 1)].epoch == u->id_epoch)
		i++;
	u->id[i & (u->id_cap - 1)].epoch = u->id_epoch;
	u->id[i & (u->id_cap - 1)].place = place;
}

/* Makes `up` each place's transaction: up, until a span that begins one, or a circle. */
static void find_transactions(struct sentry_units *u, const struct rs_chunks *w, uint32_t n)
{
	struct sentry_place *p = u->place;

	for (uint32_t i = 0; i < n; i++) {
		const struct rs_item *it = item_of(u, w, i);
		uint32_t up =
			sentry_is_segment(it->s) ? RS_CHUNK_END : place_of(u, w, it->s->parent_id);

		/* Another service's span is another transaction's. */
		p[i].up = up == RS_CHUNK_END || item_of(u, w, up)->rs != it->rs ? i : up;
		p[i].mark = 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t top = i;

		while (p[top].up != top && p[top].mark != i + 1) {
			p[top].mark = i + 1;
			top = p[top].up;
		}
		p[top].up = top; /* a circle is broken here */
		for (uint32_t j = i, next; j != top; j = next) {
			next = p[j].up;
			p[j].up = top;
		}
	}
}

/* order[]: the transactions one behind the other, each begun by its own span. */
static void order_transactions(struct sentry_units *u, uint32_t n)
{
	struct sentry_place *p = u->place;
	uint32_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (p[i].up == i) {
			p[i].mark = u->nunit;
			u->unit[u->nunit++] = (struct sentry_unit){ 0, 0 };
		}
	}
	for (uint32_t i = 0; i < n; i++)
		u->unit[p[p[i].up].mark].n++;
	for (uint32_t i = 0; i < u->nunit; i++) {
		struct sentry_unit *un = &u->unit[i];

		un->first = at;
		at += un->n;
		un->n = 1; /* counted again as they are placed behind the first */
	}
	for (uint32_t i = 0; i < n; i++) {
		struct sentry_unit *un = &u->unit[p[p[i].up].mark];

		u->order[p[i].up == i ? un->first : un->first + un->n++] = p[i].item;
	}
}

bool sentry_plan(struct sentry_units *u, const struct rs_chunks *w, const struct rs_chunk *c,
		 bool transactions)
{
	uint32_t n = 0;

	u->nunit = 0;
	if (!memory(u, c->n))
		return false;
	for (uint32_t i = c->first; i != RS_CHUNK_END; i = w->item[i].next) {
		u->place[n].item = i;
		u->order[n++] = i;
	}
	if (!transactions) {
		for (uint32_t i = 0; i < n; i += SENTRY_SPANS)
			u->unit[u->nunit++] =
				(struct sentry_unit){ i,
						      n - i < SENTRY_SPANS ? n - i : SENTRY_SPANS };
		return true;
	}
	if (!++u->id_epoch) {
		memset(u->id, 0, u->id_cap * sizeof(*u->id));
		u->id_epoch = 1;
	}
	for (uint32_t i = 0; i < n; i++)
		enter(u, w, i);
	find_transactions(u, w, n);
	order_transactions(u, n);
	return true;
}

void sentry_units_release(struct sentry_units *u)
{
	free(u->order);
	free(u->unit);
	free(u->place);
	free(u->id);
}
