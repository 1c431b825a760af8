// SPDX-License-Identifier: Apache-2.0
/*
 * What all spans of a resource and scope share, made when they are first seen and known again: by the resource's id, or
 * by its content if it has none.
 */
#include "datadog_map.h"

#include <stdlib.h>

#include "strtab.h"

#define KEEP_BYTES (16 * 1024) /* text of a context that is kept */

void dd_contexts_forget(struct dd_map *m)
{
	for (int i = 0; i < DD_CONTEXTS; i++) {
		if (m->context[i])
			m->context[i]->hash = 0;
	}
}

void dd_contexts_init(struct dd_map *m)
{
	rs_arena_init(&m->passing.arena, 4096, 0);
}

void dd_contexts_release(struct dd_map *m)
{
	for (int i = 0; i < DD_CONTEXTS; i++) {
		if (!m->context[i])
			continue;
		rs_arena_release(&m->context[i]->arena);
		free(m->context[i]->bytes);
		free(m->context[i]);
	}
	rs_arena_release(&m->passing.arena);
	free(m->passing.bytes);
}

/* -- known again ------------------------------------------------------------------------------- */

static bool val_same(const struct rs_val *a, const struct rs_val *b)
{
	if (a->type != b->type || a->len != b->len)
		return false;
	switch (a->type) {
	case RS_VAL_STR:
	case RS_VAL_BYTES:
		return rs_strtab_same(a->str, b->str, a->len);
	case RS_VAL_BOOL:
		return a->b == b->b;
	case RS_VAL_EMPTY:
		return true;
	}
	return a->i == b->i; /* doubles, too: their bits */
}

static bool same_attrs(const struct dd_source *src, const struct rs_attrs *as)
{
	for (uint32_t i = 0; i < as->n; i++) {
		if (!dd_key_is(src[i].key, as->a[i].key) || !val_same(src[i].val, &as->a[i].val))
			return false;
	}
	return true;
}

static bool is_same(const struct dd_context *c, const struct rs_item *it)
{
	const struct rs_scope *sc = &it->ss->scope;
	const struct rs_attrs *ra = &it->rs->resource.attrs;

	return c->id == it->rs->resource.id && c->nscope == sc->attrs.n &&
	       c->nsrc == sc->attrs.n + ra->n && dd_same(c->scope_name, sc->name) &&
	       dd_same(c->scope_version, sc->version) && same_attrs(c->src, &sc->attrs) &&
	       (c->id || same_attrs(c->src + c->nscope, ra));
}

static uint64_t hash_attrs(const struct rs_attrs *as, uint64_t h)
{
	for (uint32_t i = 0; i < as->n; i++) {
		const struct rs_val *v = &as->a[i].val;
		uint64_t x = as->a[i].key->name.len;

		if (v->type == RS_VAL_STR || v->type == RS_VAL_BYTES)
			x += rs_strtab_hash(v->str, v->len);
		h = rs_strtab_mix(h ^ x, 0x9e3779b97f4a7c15u);
	}
	return h;
}

/* Of what it is known by; not 0. */
static uint64_t hash_of(const struct rs_item *it)
{
	const struct rs_scope *sc = &it->ss->scope;
	uint64_t h;

	if (it->rs->resource.id)
		return it->rs->resource.id;
	h = rs_strtab_hash(sc->name.ptr, sc->name.len) ^
	    rs_strtab_hash(sc->version.ptr, sc->version.len) * 3;
	h = hash_attrs(&it->rs->resource.attrs, hash_attrs(&sc->attrs, h));
	return h | 1ull << 63;
}

/* Bytes that keeping a value takes. Lists are not compared: they can be kept of a resource that has an id, if short. */
static size_t val_bytes(const struct rs_val *v, bool lists)
{
	size_t n = 0;

	if (v->type == RS_VAL_STR || v->type == RS_VAL_BYTES)
		return v->len;
	if (v->type != RS_VAL_ARRAY && v->type != RS_VAL_MAP)
		return 0;
	if (v->type == RS_VAL_MAP || !lists || v->len > KEEP_BYTES)
		return KEEP_BYTES + 1;
	for (uint32_t i = 0; i < v->len; i++)
		n += sizeof(*v) + val_bytes(&v->arr[i], false);
	return n;
}

static bool worth_keeping(const struct rs_item *it)
{
	const struct rs_scope *sc = &it->ss->scope;
	const struct rs_resource *r = &it->rs->resource;
	size_t bytes = sc->name.len + sc->version.len;

	for (uint32_t i = 0; i < sc->attrs.n; i++)
		bytes += val_bytes(&sc->attrs.a[i].val, false);
	for (uint32_t i = 0; i < r->attrs.n; i++)
		bytes += val_bytes(&r->attrs.a[i].val, r->id);
	return bytes <= KEEP_BYTES;
}

/* Its places. Ids are given one after the other: the living ones seldom share them. */
static struct dd_context **places(struct dd_map *m, uint64_t hash)
{
	return &m->context[hash % (DD_CONTEXTS / DD_WAYS) * DD_WAYS];
}

static struct dd_context *find(struct dd_map *m, uint64_t hash, const struct rs_item *it)
{
	struct dd_context **at = places(m, hash);

	for (int i = 0; i < DD_WAYS; i++) {
		if (at[i] && at[i]->hash == hash && is_same(at[i], it))
			return at[i];
	}
	return NULL;
}

/* A place for one to keep: none that this payload uses, as texts of it may be in use. */
static struct dd_context *place(struct dd_map *m, uint64_t hash)
{
	struct dd_context **at = places(m, hash);

	for (int i = 0; i < DD_WAYS; i++) {
		if (at[i])
			continue;
		at[i] = calloc(1, sizeof(*at[i]));
		if (at[i])
			rs_arena_init(&at[i]->arena, 4096, 0);
		return at[i];
	}
	for (int i = 0; i < DD_WAYS; i++) {
		struct dd_context *c = at[m->context_next++ % DD_WAYS];

		if (c->payload != m->payload)
			return c;
	}
	return NULL;
}

/* Fills c->src: with what stands in the batch, or, if it is kept, with copies. */
static bool collect(struct dd_map *m, struct dd_context *c, const struct rs_item *it, bool keep)
{
	const struct rs_attrs *of[2] = { &it->ss->scope.attrs, &it->rs->resource.attrs };
	struct dd_source *to = rs_arena_alloc(&c->arena, c->nsrc * sizeof(*to));
	struct rs_val *v = rs_arena_alloc(&c->arena, keep ? c->nsrc * sizeof(*v) : 0);

	if (!to || !v)
		return false;
	c->src = to;
	for (int i = 0; i < 2; i++) {
		for (uint32_t j = 0; j < of[i]->n; j++, to++) {
			const struct rs_attr *a = &of[i]->a[j];

			*to = (struct dd_source){ dd_key_of(&m->keys, a->key), &a->val };
			if (!to->key)
				return false;
			if (!keep)
				continue;
			*v = a->val;
			to->val = v;
			if (!rs_val_own(&c->arena, v++))
				return false;
		}
	}
	c->scope_name = it->ss->scope.name;
	c->scope_version = it->ss->scope.version;
	if (!keep)
		return true;
	c->scope_name = rs_arena_str(&c->arena, c->scope_name);
	c->scope_version = rs_arena_str(&c->arena, c->scope_version);
	return true;
}

/* -- made -------------------------------------------------------------------------------------- */

/* Interned, if it can be: short and valid. It is every span's. */
static struct dd_text text_of(struct dd_map *m, struct str s)
{
	struct dd_key *k = s.len && s.len <= DD_MAX_KEY ? dd_key_of_name(&m->keys, s) : NULL;

	return k && str_eq(k->name, s) ? (struct dd_text){ k->name, k } : dd_plain(s);
}

/* Adds a tag of all spans unless there is one of that name. */
static void add(struct dd_map *m, struct dd_context *c, struct dd_key *k, const struct rs_val *v)
{
	struct dd_ctx_tag *t = &c->tag[c->ntag];
	struct str s = { v->str, v->len };
	struct dd_text text;

	if (k->ctx == c->no)
		return;
	k->ctx = c->no;
	c->ntag++;
	*t = (struct dd_ctx_tag){ .key = k, .val = v };
	if (v->type == RS_VAL_INT) {
		char *p = rs_arena_alloc(&c->arena, 24 + RS_ARENA_PAD);

		s = p ? (struct str){ p, (size_t)(rs_json_i64(p, v->i) - p) } : STR_NONE;
	} else if (v->type != RS_VAL_STR) {
		return;
	}
	text = text_of(m, s);
	if (!text.key)
		return;
	t->text = (struct rs_val){ .type = DD_VAL_KEY, .str = (const char *)text.key };
	t->val = &t->text;
}

/* s: NULL only when it is empty; it lives as long as the context. */
static void add_text(struct dd_map *m, struct dd_context *c, enum dd_const name, struct str s)
{
	struct rs_val *v = &c->made[c->nmade++];

	if (!s.len)
		return;
	*v = (struct rs_val){ .type = RS_VAL_STR, .len = (uint32_t)s.len, .str = s.ptr };
	add(m, c, m->keys.c[name], v);
}

static void add_attrs(struct dd_map *m, struct dd_context *c)
{
	for (uint32_t i = 0; i < c->nsrc; i++) {
		struct dd_key *k = c->src[i].key;

		if (i >= c->nscope && k->slot != DD_NO_SLOT && !(c->present >> k->slot & 1)) {
			c->present |= 1ull << k->slot;
			c->slot[k->slot] = c->src[i].val;
		}
		if (k->use == DD_EATEN || (m->v1 && k->use != DD_TAG))
			continue;
		add(m, c, k->to, c->src[i].val);
	}
}

/* A normalised value of a resource attribute, in the context's memory. */
static struct str tag_value(struct dd_context *c, struct str s)
{
	char *p;

	s = rs_utf8_limit(s, DD_MAX_KEY);
	p = s.len ? rs_arena_alloc(&c->arena, s.len + RS_ARENA_PAD) : NULL;
	return p ? dd_tag_value(p, s) : STR_NONE;
}

/* v1: what the context says about the payload's fields; NULL: nothing. */
static bool set_fields(struct dd_map *m, struct dd_context *c)
{
	const struct str fields[DD_COMMON] = {
		dd_slot_str2(m, DD_CONTAINER_ID, DD_K8S_POD_UID),
		dd_slot_str(m, DD_SDK_LANGUAGE),
		dd_slot_str(m, DD_RUNTIME_VERSION),
		dd_slot_str(m, DD_SDK_VERSION),
		dd_slot_str(m, DD_RUNTIME_ID),
		c->env.s,
		dd_slot_str(m, DD_HOST_NAME),
		c->version.s,
	};
	char buf[DD_MAX_KEY + RS_ARENA_PAD];

	for (int i = 0; i < DD_COMMON; i++) {
		struct str s = rs_utf8_limit(fields[i], DD_MAX_KEY - 5);
		/* A tracer that is not Datadog's says so. */
		size_t n = i + 2 == 5 ? 5 : 0;

		c->field[i] = NULL;
		if (!s.len)
			continue;
		memset(buf, 0, sizeof(buf));
		memcpy(buf, "otlp-", n);
		memcpy(buf + n, s.ptr, s.len);
		c->field[i] = dd_key_of_name(&m->keys, (struct str){ buf, n + s.len });
		if (!c->field[i])
			return false;
		c->field[i] = c->field[i]->to;
	}
	return true;
}

static bool make(struct dd_map *m, struct dd_context *c, const struct rs_item *it, bool keep)
{
	char service[DD_MAX_NAME + RS_ARENA_PAD];
	struct str env, version;

	c->hash = 0;
	c->no = ++m->context_no;
	c->id = it->rs->resource.id;
	c->nscope = it->ss->scope.attrs.n;
	c->nsrc = c->nscope + it->rs->resource.attrs.n;
	c->present = 0;
	c->ntag = c->nmade = c->nbytes = 0;
	rs_arena_reset(&c->arena);
	c->tag = rs_arena_alloc(&c->arena, (c->nsrc + 8) * sizeof(*c->tag));
	if (!c->tag || !collect(m, c, it, keep))
		return false;
	m->ctx = c;
	m->present = 0;
	add_text(m, c, DD_C_OTEL_SCOPE_NAME, c->scope_name);
	add_text(m, c, DD_C_OTEL_LIBRARY_NAME, c->scope_name);
	add_text(m, c, DD_C_OTEL_SCOPE_VERSION, c->scope_version);
	add_text(m, c, DD_C_OTEL_LIBRARY_VERSION, c->scope_version);
	add_attrs(m, c);
	memset(service, 0, sizeof(service));
	c->service = dd_service_of(m, dd_slot_str(m, DD_SERVICE_NAME), service);
	if (!c->service.key) {
		c->service.key = dd_key_of_name(&m->keys, c->service.s);
		if (!c->service.key)
			return false;
		c->service.key = c->service.key->to;
		c->service.s = c->service.key->name;
	}
	env = tag_value(c, dd_slot_str2(m, DD_DEPLOYMENT_ENV_NAME, DD_DEPLOYMENT_ENV));
	version = tag_value(c, dd_slot_str(m, DD_SERVICE_VERSION));
	if (m->v1) {
		c->env = text_of(m, env.len ? env : dd_slot_str(m, DD_ENV));
		c->version = text_of(m, version.len ? version : dd_slot_str(m, DD_VERSION));
		return set_fields(m, c);
	}
	add_text(m, c, DD_C_ENV, env);
	add_text(m, c, DD_C_VERSION, version);
	return true;
}

/* Do spans of both become the same but for values? */
static bool is_alike(const struct dd_context *a, const struct dd_context *b)
{
	if (a->nscope != b->nscope || a->nsrc != b->nsrc || a->ntag != b->ntag ||
	    a->present != b->present)
		return false;
	for (uint32_t i = 0; i < a->nsrc; i++) {
		if (a->src[i].key != b->src[i].key || a->src[i].val->type != b->src[i].val->type)
			return false;
	}
	for (uint32_t i = 0; i < a->ntag; i++) {
		if (a->tag[i].key != b->tag[i].key)
			return false;
	}
	return true;
}

static uint32_t kind_of(const struct dd_map *m, const struct dd_context *c)
{
	for (int i = 0; i < DD_CONTEXTS; i++) {
		const struct dd_context *other = m->context[i];

		if (other && other != c && other->hash && is_alike(other, c))
			return other->kind;
	}
	return c->no;
}

bool dd_set_context(struct dd_map *m, const struct rs_item *it)
{
	struct dd_context *c = m->last;
	uint64_t hash;

	m->ss = it->ss;
	/* Nearly always. */
	if (c && c->hash && is_same(c, it)) {
		c->payload = m->payload;
		m->ctx = c;
		return true;
	}
	hash = hash_of(it);
	c = find(m, hash, it);
	if (c) {
		c->payload = m->payload;
		m->ctx = m->last = c;
		return true;
	}
	c = worth_keeping(it) ? place(m, hash) : NULL;
	if (!c) {
		hash = 0;
		c = &m->passing;
	}
	if (!make(m, c, it, hash))
		return false;
	c->kind = kind_of(m, c);
	c->hash = hash;
	c->payload = m->payload;
	m->last = c;
	return true;
}

bool dd_common(struct dd_map *m)
{
	if (!dd_set_context(m, &m->w.item[0]))
		return false;
	memcpy(m->common, m->ctx->field, sizeof(m->common));
	for (uint32_t j = 1; j < m->w.nitem; j++) {
		if (m->w.item[j].rs == m->w.item[j - 1].rs)
			continue;
		if (!dd_set_context(m, &m->w.item[j]))
			return false;
		/* The same names are the same keys. */
		for (int i = 0; i < DD_COMMON; i++) {
			if (m->common[i] != m->ctx->field[i])
				m->common[i] = NULL;
		}
	}
	return true;
}
