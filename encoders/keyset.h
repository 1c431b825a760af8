/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keyset — names already written to an object, so that none is written twice. Emptied in constant time.
 *
 * Names are borrowed until the next begin and have RS_ARENA_PAD readable bytes behind them.
 */
#ifndef RS_ENC_KEYSET_H
#define RS_ENC_KEYSET_H

#include "strtab.h"

struct rs_keyset {
	struct rs_keyset_slot {
		uint64_t hash;
		struct str name;
		uint32_t epoch;
	} * slot;
	uint32_t cap, count, epoch;
};

/* k is zeroed. 0 or -ENOMEM. */
static inline int rs_keyset_init(struct rs_keyset *k)
{
	k->cap = 64;
	k->slot = calloc(k->cap, sizeof(*k->slot));
	return k->slot ? 0 : -ENOMEM;
}

static inline void rs_keyset_release(struct rs_keyset *k)
{
	free(k->slot);
}

static inline void rs_keyset_begin(struct rs_keyset *k)
{
	if (!++k->epoch) {
		memset(k->slot, 0, k->cap * sizeof(*k->slot));
		k->epoch = 1;
	}
	k->count = 0;
}

static __attribute__((noinline, unused)) bool rs_keyset_grow(struct rs_keyset *k)
{
	struct rs_keyset_slot *old = k->slot, *slot = calloc(2 * (size_t)k->cap, sizeof(*slot));
	uint32_t n = k->cap;

	if (!slot)
		return false;
	k->slot = slot;
	k->cap = 2 * n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = (uint32_t)old[i].hash;

		if (old[i].epoch != k->epoch)
			continue;
		while (slot[j & (k->cap - 1)].epoch == k->epoch)
			j++;
		slot[j & (k->cap - 1)] = old[i];
	}
	free(old);
	return true;
}

/* True: it is new. False: it is there already (or there is no memory to remember it: left out, then). */
static inline bool rs_keyset_add(struct rs_keyset *k, struct str name)
{
	uint64_t hash = rs_strtab_hash(name.ptr, name.len);

	for (uint32_t i = (uint32_t)hash;; i++) {
		struct rs_keyset_slot *slot = &k->slot[i & (k->cap - 1)];

		if (slot->epoch != k->epoch) {
			if (k->count * 2 >= k->cap) {
				if (!rs_keyset_grow(k))
					return false;
				i = (uint32_t)hash - 1;
				continue;
			}
			*slot = (struct rs_keyset_slot){ hash, name, k->epoch };
			k->count++;
			return true;
		}
		if (slot->hash == hash && slot->name.len == name.len &&
		    rs_strtab_same(slot->name.ptr, name.ptr, name.len))
			return false;
	}
}

#endif
