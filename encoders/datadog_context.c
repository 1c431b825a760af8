// SPDX-License-Identifier: Apache-2.0
/* What all spans of a resource and scope share: their tags, service, environment; v1: fields of the payload. */
#include "datadog_map.h"

/* Adds a tag of all spans unless there is one of that name. */
static void ctx_add(struct dd_map *m, struct dd_key *k, const struct rs_val *v)
{
	if (k->ctx == m->ctx_no)
		return;
	k->ctx = m->ctx_no;
	m->ctx_tag[m->nctx++] = (struct dd_ctx_tag){ .key = k, .val = v };
}

static void ctx_add_text(struct dd_map *m, enum dd_const c, struct rs_val *v, struct str s)
{
	if (!s.len)
		return;
	*v = (struct rs_val){ .type = RS_VAL_STR, .len = (uint32_t)s.len, .str = s.ptr };
	ctx_add(m, m->keys.c[c], v);
}

static bool ctx_add_attrs(struct dd_map *m, const struct rs_attrs *as, bool resource)
{
	for (uint32_t i = 0; i < as->n; i++) {
		struct dd_key *k = dd_key_of(&m->keys, as->a[i].key);

		if (!k)
			return false;
		if (k->slot != DD_NO_SLOT) {
			if (resource && !(m->ctx_present >> k->slot & 1)) {
				m->ctx_present |= 1ull << k->slot;
				m->ctx_slot[k->slot] = &as->a[i].val;
			}
		}
		if (k->use == DD_EATEN || (m->v1 && k->use != DD_TAG))
			continue;
		ctx_add(m, k->to, &as->a[i].val);
	}
	return true;
}

bool dd_set_context(struct dd_map *m, const struct rs_item *it)
{
	const struct rs_scope *sc = &it->ss->scope;
	const struct rs_attrs *ra = &it->rs->resource.attrs;
	char *buf = m->ctx_buf;
	struct str env, version;

	if (!rs_grow(&m->ctx_tag, &m->ctx_cap, ra->n + sc->attrs.n + 8, sizeof(*m->ctx_tag)))
		return false;
	m->ss = it->ss;
	m->ctx_no++;
	m->nctx = 0;
	m->ctx_present = 0;
	m->present = 0;
	ctx_add_text(m, DD_C_OTEL_SCOPE_NAME, &m->ctx_val[0], sc->name);
	ctx_add_text(m, DD_C_OTEL_LIBRARY_NAME, &m->ctx_val[0], sc->name);
	ctx_add_text(m, DD_C_OTEL_SCOPE_VERSION, &m->ctx_val[1], sc->version);
	ctx_add_text(m, DD_C_OTEL_LIBRARY_VERSION, &m->ctx_val[1], sc->version);
	if (!ctx_add_attrs(m, &sc->attrs, false) || !ctx_add_attrs(m, ra, true))
		return false;
	m->ctx_service = dd_service_of(m, dd_slot_str(m, DD_SERVICE_NAME), buf);
	if (!m->ctx_service.key) {
		/* Interned: it is every span's. */
		m->ctx_service.key = dd_key_of_name(&m->keys, m->ctx_service.s);
		if (!m->ctx_service.key)
			return false;
		m->ctx_service.key = m->ctx_service.key->to;
	}
	buf += 4 * DD_MAX_NAME + RS_ARENA_PAD;
	env = dd_slot_str2(m, DD_DEPLOYMENT_ENV_NAME, DD_DEPLOYMENT_ENV);
	version = dd_slot_str(m, DD_SERVICE_VERSION);
	env = dd_tag_value(buf, rs_utf8_limit(env, DD_MAX_KEY));
	buf += 4 * DD_MAX_NAME + RS_ARENA_PAD;
	version = dd_tag_value(buf, rs_utf8_limit(version, DD_MAX_KEY));
	if (m->v1) {
		m->ctx_env = dd_plain(env.len ? env : dd_slot_str(m, DD_ENV));
		m->ctx_version = dd_plain(version.len ? version : dd_slot_str(m, DD_VERSION));
		return true;
	}
	ctx_add_text(m, DD_C_ENV, &m->ctx_val[2], env);
	ctx_add_text(m, DD_C_VERSION, &m->ctx_val[3], version);
	return true;
}
/* What the context says about payload field 2 + i. */
static struct str ctx_field(struct dd_map *m, int i)
{
	m->present = 0;
	switch (i + 2) {
	case 2:
		return dd_slot_str2(m, DD_CONTAINER_ID, DD_K8S_POD_UID);
	case 3:
		return dd_slot_str(m, DD_SDK_LANGUAGE);
	case 4:
		return dd_slot_str(m, DD_RUNTIME_VERSION);
	case 5:
		return dd_slot_str(m, DD_SDK_VERSION);
	case 6:
		return dd_slot_str(m, DD_RUNTIME_ID);
	case 7:
		return m->ctx_env.s;
	case 8:
		return dd_slot_str(m, DD_HOST_NAME);
	}
	return m->ctx_version.s;
}

bool dd_common(struct dd_map *m)
{
	char *p = m->common_buf;

	if (!dd_set_context(m, &m->w.item[0]))
		return false;
	for (int i = 0; i < DD_COMMON; i++, p += DD_MAX_KEY + RS_ARENA_PAD) {
		struct str s = rs_utf8_limit(ctx_field(m, i), DD_MAX_KEY - 5);
		size_t n = 0;

		/* A tracer that is not Datadog's says so. */
		if (i + 2 == 5 && s.len) {
			n = 5;
			memcpy(p, "otlp-", n);
		}
		memcpy(p + n, s.len ? s.ptr : "", s.len);
		m->common[i] = (struct str){ p, n + s.len };
	}
	for (uint32_t j = 1; j < m->w.nitem; j++) {
		if (m->w.item[j].rs == m->w.item[j - 1].rs)
			continue;
		if (!dd_set_context(m, &m->w.item[j]))
			return false;
		for (int i = 0; i < DD_COMMON; i++) {
			struct str mine = str_from(m->common[i], i + 2 == 5 ? 5 : 0);

			if (!str_eq(mine, rs_utf8_limit(ctx_field(m, i), DD_MAX_KEY - 5)))
				m->common[i].len = 0;
		}
	}
	return true;
}
