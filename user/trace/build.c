// SPDX-License-Identifier: Apache-2.0
#include "build.h"

void rs_build_init(struct rs_build *b, struct rs_span *span, struct rs_arena *arena)
{
	b->span = span;
	b->arena = arena;
	b->redact = NULL;
	b->n = b->dropped = 0;
}

static inline void put(struct rs_build *b, const struct rs_key *key, struct rs_val val)
{
	if (b->n == RS_BUILD_ATTRS) {
		b->dropped++;
		return;
	}
	b->attrs[b->n++] = (struct rs_attr){ key, val };
}

void rs_build_key(struct rs_build *b, const struct rs_key *key, struct rs_val val)
{
	put(b, key, val);
}

void rs_build_add(struct rs_build *b, enum rs_known_key k, struct rs_val val)
{
	put(b, rs_key(k), val);
}

void rs_build_str(struct rs_build *b, enum rs_known_key k, struct str value)
{
	struct str own = rs_arena_str(b->arena, value);

	if (!own.ptr || value.len > UINT32_MAX) {
		b->dropped++;
		return;
	}
	rs_build_add(
		b, k,
		(struct rs_val){ .type = RS_VAL_STR, .len = (uint32_t)own.len, .str = own.ptr });
}

void rs_build_lit(struct rs_build *b, enum rs_known_key k, struct str lit)
{
	rs_build_add(
		b, k,
		(struct rs_val){ .type = RS_VAL_STR, .len = (uint32_t)lit.len, .str = lit.ptr });
}

void rs_build_int(struct rs_build *b, enum rs_known_key k, int64_t value)
{
	rs_build_add(b, k, (struct rs_val){ .type = RS_VAL_INT, .i = value });
}

void rs_build_bool(struct rs_build *b, enum rs_known_key k, bool value)
{
	rs_build_add(b, k, (struct rs_val){ .type = RS_VAL_BOOL, .b = value });
}

void rs_build_name(struct rs_build *b, struct str name)
{
	b->span->name = rs_arena_str(b->arena, name);
}

void rs_build_redact(struct rs_build *b)
{
	uint32_t n = 0;

	if (!b->redact || !b->redact->drops)
		return;
	for (uint32_t i = 0; i < b->n; i++) {
		if (!rs_redact_drops(b->redact, b->attrs[i].key->id))
			b->attrs[n++] = b->attrs[i];
	}
	b->n = n;
}

void rs_build_finish(struct rs_build *b)
{
	size_t bytes = b->n * sizeof(b->attrs[0]);
	struct rs_attr *a = rs_arena_alloc(b->arena, bytes);

	if (!a) {
		b->span->attrs.dropped += b->n + b->dropped;
		return;
	}
	memcpy(a, b->attrs, bytes);
	b->span->attrs = (struct rs_attrs){ .a = a, .n = b->n, .dropped = b->dropped };
}
