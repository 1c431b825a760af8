// SPDX-License-Identifier: Apache-2.0
#include "keys.h"

#define PROBES 8

static const struct rs_key **find(struct rs_keys *k, struct str name)
{
	uint32_t h = 2166136261u; /* FNV-1a */
	const struct rs_key **slot;

	for (size_t i = 0; i < name.len; i++)
		h = (h ^ (unsigned char)name.ptr[i]) * 16777619u;
	for (uint32_t i = 0; i < PROBES; i++) {
		slot = &k->slot[(h + i) % RS_KEYS_SLOTS];
		if (!*slot || str_eq((*slot)->name, name))
			return slot;
	}
	return NULL;
}

void rs_keys_init(struct rs_keys *k)
{
	memset(k, 0, sizeof(*k));
	for (int i = 0; i < RS_K_COUNT; i++) {
		const struct rs_key **slot = find(k, rs_known_keys[i].name);

		if (slot)
			*slot = &rs_known_keys[i];
	}
}

const struct rs_key *rs_keys_get(struct rs_keys *k, struct rs_arena *a, struct str name)
{
	const struct rs_key **slot = find(k, name);
	struct rs_key *key;

	if (slot && *slot)
		return *slot;
	key = rs_arena_alloc(a, sizeof(*key));
	if (!key)
		return NULL;
	*key = rs_key_make(rs_arena_str(a, name));
	if (!key->name.ptr)
		return NULL;
	if (slot)
		*slot = key;
	return key;
}
