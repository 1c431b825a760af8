// SPDX-License-Identifier: Apache-2.0
#include "map.h"

#include <errno.h>
#include <stdlib.h>

#define MIN_CAP 64

static uint32_t home(const struct rs_map *m, uint64_t key)
{
	key *= 0x9e3779b97f4a7c15ULL;
	return (uint32_t)(key >> 32) & (m->cap - 1);
}

void rs_map_init(struct rs_map *m, uint32_t max)
{
	*m = (struct rs_map){ .max = max };
}

void rs_map_release(struct rs_map *m)
{
	free(m->slots);
	rs_map_init(m, m->max);
}

/* The slot that holds key, or the free one where it would go. */
static struct rs_map_slot *find(const struct rs_map *m, uint64_t key)
{
	uint32_t i = home(m, key);

	while (m->slots[i].val && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

void *rs_map_get(const struct rs_map *m, uint64_t key)
{
	return m->count ? find(m, key)->val : NULL;
}

void rs_map_ahead(const struct rs_map *m, uint64_t key)
{
	if (m->count)
		__builtin_prefetch(&m->slots[home(m, key)]);
}

static int grow(struct rs_map *m)
{
	struct rs_map bigger = *m;

	bigger.cap = m->cap ? m->cap * 2 : MIN_CAP;
	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->cap; i++) {
		if (m->slots[i].val)
			*find(&bigger, m->slots[i].key) = m->slots[i];
	}
	free(m->slots);
	*m = bigger;
	return 0;
}

int rs_map_put(struct rs_map *m, uint64_t key, void *val)
{
	struct rs_map_slot *s;

	if (m->cap) {
		s = find(m, key);
		if (s->val) {
			s->val = val;
			return 0;
		}
	}
	if (m->count >= m->max)
		return -ENOSPC;
	/* At most two thirds full: probes stay short. */
	if ((uint64_t)(m->count + 1) * 3 > (uint64_t)m->cap * 2) {
		int err = grow(m);

		if (err)
			return err;
	}
	s = find(m, key);
	*s = (struct rs_map_slot){ key, val };
	m->count++;
	return 0;
}

void *rs_map_del(struct rs_map *m, uint64_t key)
{
	struct rs_map_slot *s;
	uint32_t hole, i;
	void *val;

	if (!m->count)
		return NULL;
	s = find(m, key);
	val = s->val;
	if (!val)
		return NULL;
	m->count--;
	hole = i = (uint32_t)(s - m->slots);
	for (;;) {
		uint32_t want;

		i = (i + 1) & (m->cap - 1);
		if (!m->slots[i].val)
			break;
		want = home(m, m->slots[i].key);
		/* Move back unless its home lies cyclically in (hole, i]. */
		if (((i - want) & (m->cap - 1)) >= ((i - hole) & (m->cap - 1))) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole].val = NULL;
	return val;
}

void *rs_map_next(const struct rs_map *m, uint32_t *pos)
{
	while (*pos < m->cap) {
		void *val = m->slots[(*pos)++].val;

		if (val)
			return val;
	}
	return NULL;
}
