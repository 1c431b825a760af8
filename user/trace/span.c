// SPDX-License-Identifier: Apache-2.0
#include "span.h"

#define BATCH_CHUNK (256 * 1024)

const struct rs_key rs_known_keys[RS_K_COUNT] = {
#define RS_KEY(k, n) [RS_K_##k] = { .name = RS_SPAN_STR(n), .id = RS_K_##k, .plain = true },
#include "keys.def"
#undef RS_KEY
};

static bool is_plain(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
			return false;
	}
	return name.len > 0 && name.len <= 64;
}

struct rs_key rs_key_make(struct str name)
{
	return (struct rs_key){ .name = name, .id = RS_KEY_DYNAMIC, .plain = is_plain(name) };
}

bool rs_val_own(struct rs_arena *a, struct rs_val *v)
{
	struct rs_val *list;

	if (v->type == RS_VAL_STR || v->type == RS_VAL_BYTES) {
		v->str = rs_arena_str(a, str_of(v->str, v->len)).ptr;
		return v->str != NULL;
	}
	if (v->type != RS_VAL_ARRAY)
		return true;
	list = rs_arena_alloc(a, v->len * sizeof(*list));
	for (uint32_t i = 0; list && i < v->len; i++) {
		list[i] = v->arr[i];
		if (!rs_val_own(a, &list[i]))
			return false;
	}
	v->arr = list;
	return list != NULL;
}

void rs_batch_init(struct rs_batch *b, size_t limit)
{
	*b = (struct rs_batch){ .serial = 1 };
	rs_arena_init(&b->arena, BATCH_CHUNK, limit);
}

void rs_batch_reset(struct rs_batch *b)
{
	rs_arena_reset(&b->arena);
	b->serial++;
	b->first = b->last = NULL;
	b->nspans = 0;
}

void rs_batch_release(struct rs_batch *b)
{
	rs_arena_release(&b->arena);
	b->first = b->last = NULL;
	b->nspans = 0;
}

static void *zalloc(struct rs_batch *b, size_t size)
{
	void *p = rs_arena_alloc(&b->arena, size);

	return p ? memset(p, 0, size) : NULL;
}

struct rs_resource_spans *rs_batch_add_resource(struct rs_batch *b)
{
	struct rs_resource_spans *rs = zalloc(b, sizeof(*rs));

	if (!rs)
		return NULL;
	if (b->last)
		b->last->next = rs;
	else
		b->first = rs;
	b->last = rs;
	return rs;
}

struct rs_scope_spans *rs_batch_add_scope(struct rs_batch *b, struct rs_resource_spans *rs)
{
	struct rs_scope_spans *ss = zalloc(b, sizeof(*ss));

	if (!ss)
		return NULL;
	if (rs->last)
		rs->last->next = ss;
	else
		rs->first = ss;
	rs->last = ss;
	return ss;
}

struct rs_span *rs_batch_add_span(struct rs_batch *b, struct rs_scope_spans *ss)
{
	struct rs_span *s = zalloc(b, sizeof(*s));

	if (!s)
		return NULL;
	if (ss->last)
		ss->last->next = s;
	else
		ss->first = s;
	ss->last = s;
	ss->nspans++;
	b->nspans++;
	return s;
}

void rs_batch_drop_last(struct rs_batch *b, struct rs_scope_spans *ss)
{
	struct rs_span **at = &ss->first, *before = NULL;

	while (*at && *at != ss->last) {
		before = *at;
		at = &before->next;
	}
	if (!*at)
		return;
	*at = NULL;
	ss->last = before;
	ss->nspans--;
	b->nspans--;
}
