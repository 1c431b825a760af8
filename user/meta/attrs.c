// SPDX-License-Identifier: Apache-2.0
#include "attrs.h"

static struct rs_attr *find_attr(struct rs_res *r, struct str key)
{
	for (uint32_t i = 0; i < r->n; i++) {
		if (str_eq(r->attrs[i].key->name, key))
			return &r->attrs[i];
	}
	return NULL;
}

struct str rs_res_get(const struct rs_res *r, enum rs_known_key key)
{
	for (uint32_t i = 0; i < r->n; i++) {
		if (r->attrs[i].key == rs_key(key) && r->attrs[i].val.type == RS_VAL_STR)
			return str_of(r->attrs[i].val.str, r->attrs[i].val.len);
	}
	return STR_NONE;
}

void rs_res_val(struct rs_res *r, const struct rs_key *key, struct rs_val val)
{
	if (find_attr(r, key->name))
		return;
	if (r->n == RS_RES_MAX) {
		r->dropped++;
		return;
	}
	r->attrs[r->n++] = (struct rs_attr){ key, val };
}

static struct rs_val text(struct rs_res *r, struct str value)
{
	struct str own = rs_arena_str(r->mem, str_at(value, 0, RS_RES_VALUE_MAX));

	return (struct rs_val){ .type = own.ptr ? RS_VAL_STR : RS_VAL_EMPTY,
				.len = (uint32_t)own.len,
				.str = own.ptr };
}

void rs_res_str(struct rs_res *r, enum rs_known_key key, struct str value)
{
	struct rs_val val;

	if (!value.len || find_attr(r, rs_key(key)->name))
		return;
	val = text(r, value);
	if (val.type == RS_VAL_STR)
		rs_res_val(r, rs_key(key), val);
}

void rs_res_list(struct rs_res *r, enum rs_known_key key, struct str value)
{
	struct rs_val *one = value.len ? rs_arena_alloc(r->mem, sizeof(*one)) : NULL;

	if (!one)
		return;
	*one = text(r, value);
	if (one->type == RS_VAL_STR)
		rs_res_val(r, rs_key(key),
			   (struct rs_val){ .type = RS_VAL_ARRAY, .len = 1, .arr = one });
}

void rs_res_named(struct rs_res *r, struct str name, struct str value)
{
	struct rs_key *k = NULL;
	struct rs_val val;

	if (!name.len || name.len > 255 || find_attr(r, name))
		return;
	for (unsigned i = 0; i < RS_K_COUNT; i++) {
		if (str_eq(rs_known_keys[i].name, name)) {
			rs_res_str(r, i, value);
			return;
		}
	}
	val = text(r, value);
	k = rs_arena_alloc(r->mem, sizeof(*k));
	if (!k || val.type != RS_VAL_STR)
		return;
	*k = rs_key_make(rs_arena_str(r->mem, name));
	if (k->name.ptr)
		rs_res_val(r, k, val);
}

const struct rs_attr *rs_res_copy(const struct rs_res *r)
{
	struct rs_attr *a = rs_arena_alloc(r->mem, r->n * sizeof(*a));

	if (a && r->n)
		memcpy(a, r->attrs, r->n * sizeof(*a));
	return a;
}
