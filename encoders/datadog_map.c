// SPDX-License-Identifier: Apache-2.0
/* Windows, chunks, spans: the order of things. */
#include "datadog_map.h"

#include <errno.h>
#include <stdlib.h>

int dd_map_init(struct dd_map *m, bool v1, size_t max_payload)
{
	m->v1 = v1;
	dd_contexts_init(m);
	m->text = malloc(DD_TEXT + RS_ARENA_PAD);
	m->w.by_resource = true;
	/* v0.x sends the low half alone, and the agent drops chunks where it is 0. */
	m->w.low_half = !v1;
	if (dd_keys_init(&m->keys) || !m->text || rs_chunks_init(&m->w, max_payload)) {
		dd_map_release(m);
		return -ENOMEM;
	}
	return 0;
}

void dd_map_release(struct dd_map *m)
{
	dd_keys_release(&m->keys);
	free(m->text);
	dd_shapes_release(m);
	dd_contexts_release(m);
	rs_chunks_release(&m->w);
}

int dd_window(struct dd_map *m, const struct rs_encode *run)
{
	int err = dd_keys_batch(&m->keys, run->batch);

	if (err)
		return err;
	if (m->life != m->keys.life) {
		dd_shapes_forget(m);
		dd_contexts_forget(m);
		m->life = m->keys.life;
	}
	m->ss = NULL;
	m->again = false;
	m->ctx = &m->none;
	m->payload++;
	return rs_chunks_collect(&m->w, run);
}

static bool priority_of(const struct rs_val *v, int32_t *ret)
{
	if (v->type == RS_VAL_INT && v->i >= INT32_MIN && v->i <= INT32_MAX) {
		*ret = (int32_t)v->i;
		return true;
	}
	if (v->type == RS_VAL_DOUBLE && v->d > -1e9 && v->d < 1e9) {
		*ret = (int32_t)v->d;
		return true;
	}
	return false;
}

/* What the span's slots say about its chunk. */
static void chunk_learn(struct dd_map *m, struct dd_chunk *c)
{
	static const enum dd_slot slots[] = { DD_SAMPLING_PRIORITY_V1, DD_SAMPLING_PRIORITY };

	for (int i = 0; i < 2 && !c->has_priority; i++) {
		if (!(m->present >> slots[i] & 1) || !priority_of(m->slot[slots[i]], &c->priority))
			continue;
		c->has_priority = true;
		if (i && c->priority > 0 && !c->dm.s.len)
			c->dm = dd_constant(m, DD_C_DM_MANUAL);
	}
	if (m->present & DD_BIT(P_DM) && (!c->dm.s.len || c->dm.key))
		c->dm = dd_plain(rs_utf8_limit(dd_slot_str(m, DD_P_DM), DD_MAX_NAME));
	if (m->v1 && m->present & DD_BIT(ORIGIN) && !c->origin.s.len)
		c->origin = dd_plain(rs_utf8_limit(dd_slot_str(m, DD_ORIGIN), DD_MAX_NAME));
}

/* A field's value in tracestate's dd= member (Datadog, "W3C trace context"): s:2;t.dm:-4. Empty: not there. */
static struct str dd_state(struct str state, struct str name)
{
	while (state.len) {
		struct str member, key, field;

		state = str_cut(state, ',', &member);
		member = str_cut(str_trim(member), '=', &key);
		while (str_eq(key, STR("dd")) && member.len) {
			member = str_cut(member, ';', &field);
			field = str_cut(field, ':', &key);
			if (str_eq(key, name))
				return str_trim(field);
			key = STR("dd");
		}
	}
	return STR_NONE;
}

/*
 * The priority that Datadog's tracers sent with the context, and who decided it. Where the sampled flag says
 * otherwise, somebody in between has decided anew.
 */
static void chunk_inherits(struct dd_chunk *c, const struct rs_span *s)
{
	struct str text = dd_state(s->trace_state, STR("s"));
	bool minus = text.len && text.ptr[0] == '-';
	uint64_t v;

	if (!str_u64(minus ? str_from(text, 1) : text, &v) || v > 127)
		return;
	if ((s->flags & 1) != (!minus && v > 0))
		return;
	c->has_priority = true;
	c->priority = minus ? -(int32_t)v : (int32_t)v;
	if (!c->dm.s.len)
		c->dm = dd_plain(rs_utf8_limit(dd_state(s->trace_state, STR("t.dm")), DD_MAX_NAME));
}

#define CHUNK_SLOTS                                                                                \
	(DD_BIT(SAMPLING_PRIORITY_V1) | DD_BIT(SAMPLING_PRIORITY) | DD_BIT(P_DM) | DD_BIT(ORIGIN))

static bool scan(struct dd_map *m, const struct rs_item *it)
{
	m->present = 0;
	for (uint32_t i = 0; i < it->s->attrs.n; i++) {
		struct dd_key *k = dd_key_of(&m->keys, it->s->attrs.a[i].key);

		if (!k)
			return false;
		if (k->slot != DD_NO_SLOT && !(m->present >> k->slot & 1)) {
			m->present |= 1ull << k->slot;
			m->slot[k->slot] = &it->s->attrs.a[i].val;
		}
	}
	return true;
}

bool dd_map_span(struct dd_map *m, const struct rs_item *it)
{
	const struct rs_span *s = it->s;
	struct dd_span *o = &m->out;

	if (it->ss != m->ss && !dd_set_context(m, it))
		return false;
	m->text_at = 0;
	o->s = s;
	if (!dd_shape_of(m, s))
		return false;
	/* Found too late for what is already written of this chunk. */
	if (m->present & CHUNK_SLOTS && !m->prescan && it != m->chunk.first)
		m->again = m->prescan = true;
	o->service = m->present & DD_BIT(SERVICE_NAME)
			     ? dd_service_of(m, dd_slot_str(m, DD_SERVICE_NAME), m->service_buf)
			     : m->ctx->service;
	o->name = dd_name_of(m, s->kind);
	o->resource = dd_plain(dd_resource_of(m, s));
	o->type = dd_type_of(m, s->kind);
	if (m->v1)
		dd_set_fields(m, s);
	return true;
}

bool dd_chunk_begin(struct dd_map *m, const struct rs_chunk *of)
{
	struct dd_chunk *c = &m->chunk;
	const struct rs_item *first = &m->w.item[of->first];

	rs_json_hex(m->trace_hex, first->s->trace_id, 16);
	m->trace_val = (struct rs_val){ .type = RS_VAL_STR, .len = 32, .str = m->trace_hex };
	*c = (struct dd_chunk){ .first = first };
	c->tid_high = dd_id(first->s->trace_id);
	if (m->prescan) {
		for (uint32_t i = of->first; i != RS_CHUNK_END; i = m->w.item[i].next) {
			if (!scan(m, &m->w.item[i]))
				return false;
			if (m->present & CHUNK_SLOTS)
				chunk_learn(m, c);
		}
	}
	if (!dd_map_span(m, first))
		return false;
	if (m->present & CHUNK_SLOTS)
		chunk_learn(m, c);
	if (!c->has_priority && first->s->trace_state.len)
		chunk_inherits(c, first->s);
	if (!c->has_priority && !dd_is_datadogs(m)) {
		c->has_priority = true;
		c->priority = 1;
		if (!c->dm.s.len)
			c->dm = dd_constant(m, DD_C_DM_OTLP);
	}
	return true;
}
