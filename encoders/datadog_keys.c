// SPDX-License-Identifier: Apache-2.0
#include "datadog_keys.h"

#include <errno.h>
#include <stdlib.h>

#include "wire_msgpack.h"

struct well_known {
	struct str name;
	enum dd_use use;
	const char *renamed;
};

static const struct well_known well_known[DD_SLOTS] = {
#define RENAMED(x)	       DD_TAG, x
#define DD_ATTR(id, text, use) [DD_##id] = { { text, sizeof(text) - 1 }, use },
#include "datadog_attrs.def"
#undef DD_ATTR
#undef RENAMED
};

static const struct str const_text[DD_CONSTS_COUNT] = {
#define X(id, text) [DD_C_##id] = { text, sizeof(text) - 1 },
	DD_CONSTS(X)
#undef X
};

/* s, valid and at most max bytes, in the keys' arena. */
static struct str clean(struct rs_arena *a, struct str s, size_t max)
{
	struct str in = rs_utf8_limit(s, max);
	char *p = rs_arena_alloc(a, in.len * RS_TEXT_RAW_MAX + RS_ARENA_PAD);

	if (!p)
		return STR_NONE;
	return rs_utf8_limit(
		(struct str){ p, (size_t)(RS_SYM(rs_text_raw_any)(p, in.ptr, in.len, true) - p) },
		max);
}

static struct dd_key *find(const struct dd_keys *ks, struct str name, uint64_t hash)
{
	for (uint32_t i = (uint32_t)hash & (ks->cap - 1);; i = (i + 1) & (ks->cap - 1)) {
		struct dd_key *k = ks->table[i];

		if (!k || (k->raw_hash == hash && dd_same(k->raw, name)))
			return k;
	}
}

static void link_key(struct dd_keys *ks, struct dd_key *k)
{
	uint32_t i = (uint32_t)k->raw_hash & (ks->cap - 1);

	while (ks->table[i])
		i = (i + 1) & (ks->cap - 1);
	ks->table[i] = k;
}

static bool table_grow(struct dd_keys *ks)
{
	struct dd_key **old = ks->table;
	uint32_t n = ks->cap;

	ks->table = calloc(n * 2, sizeof(*ks->table));
	if (!ks->table) {
		ks->table = old;
		return false;
	}
	ks->cap = n * 2;
	for (uint32_t i = 0; i < n; i++) {
		if (old[i])
			link_key(ks, old[i]);
	}
	free(old);
	return true;
}

struct dd_key *dd_key_of_name(struct dd_keys *ks, struct str name)
{
	uint64_t hash = rs_strtab_hash(name.ptr, name.len);
	struct dd_key *k = find(ks, name, hash);
	char *mp;

	if (k)
		return k;
	if (ks->count * 2 >= ks->cap && !table_grow(ks))
		return NULL;
	k = rs_arena_alloc(&ks->arena, sizeof(*k));
	if (!k)
		return NULL;
	*k = (struct dd_key){ .raw = rs_arena_str(&ks->arena, name),
			      .raw_hash = hash,
			      .slot = DD_NO_SLOT };
	k->name = clean(&ks->arena, name, DD_MAX_KEY);
	mp = rs_arena_alloc(&ks->arena, k->name.len + 3 + RS_ARENA_PAD);
	if (!mp || (name.len && !k->raw.ptr) || !k->name.ptr)
		return NULL;
	k->mp = mp;
	mp = rs_mp_str_head(mp, k->name.len);
	memcpy(mp, k->name.ptr, k->name.len);
	k->mp_len = (uint32_t)(mp - k->mp + (ptrdiff_t)k->name.len);
	k->as_is = str_eq(k->name, k->raw);
	k->born = ks->epoch;
	k->to = k;
	k->use = k->name.len ? DD_TAG : DD_EATEN; /* tags without a name do not exist */
	link_key(ks, k);
	ks->count++;
	/* Names that differ only in what does not survive are one tag. */
	if (k->name.len && !k->as_is) {
		k->to = dd_key_of_name(ks, k->name);
		if (!k->to)
			return NULL;
		k->to = k->to->to;
	}
	return k;
}

static struct dd_key *key_of_literal(struct dd_keys *ks, struct str lit)
{
	struct str own = rs_arena_str(&ks->arena, lit);

	return own.ptr ? dd_key_of_name(ks, own) : NULL;
}

/* http.request.header.X is http.request.headers.X at Datadog. */
static struct dd_key *header_key(struct dd_keys *ks, struct str name)
{
	static const struct str prefix = { "http.request.header.", 20 };
	char buf[DD_MAX_KEY + RS_ARENA_PAD] = "http.request.headers.";
	struct str rest;

	if (!str_starts(name, prefix))
		return NULL;
	rest = str_at(name, prefix.len, DD_MAX_KEY - 21);
	memcpy(buf + 21, rest.ptr, rest.len);
	return dd_key_of_name(ks, (struct str){ buf, 21 + rest.len });
}

struct dd_key *dd_key_intern(struct dd_keys *ks, const struct rs_key *rk)
{
	size_t i = ((uintptr_t)rk >> 4 ^ (uintptr_t)rk >> 14) % DD_CACHE;
	uint32_t before = ks->count;
	struct dd_key *k, *header;

	/* The same place, in another batch: often the same name again. */
	if (ks->cache[i].rk == rk && dd_same(ks->cache[i].k->raw, rk->name)) {
		ks->cache[i].batch = ks->batch_no;
		return ks->cache[i].k;
	}
	k = dd_key_of_name(ks, rk->name);
	if (!k)
		return NULL;
	if (ks->count != before && k->slot == DD_NO_SLOT) {
		header = header_key(ks, rk->name);
		if (header)
			k->to = header;
	}
	ks->cache[i].rk = rk;
	ks->cache[i].k = k;
	ks->cache[i].batch = ks->batch_no;
	return k;
}

/* Empties the table of names and enters those that are always there. */
static bool keys_reset(struct dd_keys *ks)
{
	memset(ks->table, 0, ks->cap * sizeof(*ks->table));
	memset(ks->cache, 0, sizeof(ks->cache));
	ks->count = 0;
	ks->life++;
	rs_arena_reset(&ks->arena);
	for (int i = 0; i < DD_SLOTS; i++) {
		const struct well_known *w = &well_known[i];
		struct dd_key *k = key_of_literal(ks, w->name);

		if (!k)
			return false;
		k->slot = (uint8_t)i;
		k->use = (uint8_t)w->use;
		if (w->renamed) {
			k->to = key_of_literal(ks, str_c(w->renamed));
			if (!k->to)
				return false;
		}
	}
	for (int i = 0; i < DD_CONSTS_COUNT; i++) {
		ks->c[i] = key_of_literal(ks, const_text[i]);
		if (!ks->c[i])
			return false;
		ks->cval[i] = (struct rs_val){ .type = DD_VAL_KEY, .str = (const char *)ks->c[i] };
	}
	for (int i = 0; i < RS_K_COUNT; i++) {
		ks->known[i] = key_of_literal(ks, rs_known_keys[i].name);
		if (!ks->known[i])
			return false;
		ks->known[i]->fixed = &rs_known_keys[i];
	}
	return true;
}

int dd_keys_batch(struct dd_keys *ks, const struct rs_batch *b)
{
	if (ks->count > DD_KEYS_MAX && !keys_reset(ks))
		return -ENOMEM;
	if (ks->batch == b && ks->serial == b->serial)
		return 0;
	ks->batch = b;
	ks->serial = b->serial;
	if (!++ks->batch_no) {
		memset(ks->cache, 0, sizeof(ks->cache));
		ks->batch_no = 1;
		ks->life++;
	}
	return 0;
}

int dd_keys_init(struct dd_keys *ks)
{
	ks->cap = 1024;
	rs_arena_init(&ks->arena, 32 * 1024, 0);
	ks->table = calloc(ks->cap, sizeof(struct dd_key *));
	return ks->table && keys_reset(ks) ? 0 : -ENOMEM;
}

void dd_keys_release(struct dd_keys *ks)
{
	rs_arena_release(&ks->arena);
	free(ks->table);
}
