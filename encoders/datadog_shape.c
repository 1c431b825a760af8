// SPDX-License-Identifier: Apache-2.0
/* A span's tags: made of its attributes, or found, because a span of this shape was here before. */
#include "datadog_map.h"

#include <stdlib.h>

void dd_shapes_forget(struct dd_map *m)
{
	for (int i = 0; i < DD_SHAPES; i++)
		m->shape[i].n = DD_NO_SHAPE;
	m->other.n = DD_NO_SHAPE;
}

void dd_shapes_release(struct dd_map *m)
{
	free(m->other.meta);
	free(m->other.metrics);
	free(m->other.run);
}

/* All of a span that its shape depends on, beside its attributes. */
static uint32_t like_of(const struct rs_span *s)
{
	return s->kind | (uint32_t)s->status << 8 | (uint32_t)(s->nevents != 0) << 16 |
	       (uint32_t)(s->nlinks != 0) << 17 |
	       (uint32_t)(s->nevents && dd_last_exception(s)) << 18;
}

static struct dd_shape *place_of(struct dd_map *m, const struct rs_span *s, uint32_t like)
{
	const struct rs_attr *a = s->attrs.a;
	uint32_t n = s->attrs.n, h = n * 29 + like * 7 + m->ctx->kind * 11;

	/* Lengths of names: the same in every batch, as their places are not. */
	if (n)
		h += (uint32_t)a[0].key->name.len + (uint32_t)a[n / 2].key->name.len * 3 +
		     (uint32_t)a[n - 1].key->name.len * 5;
	return &m->shape[(h ^ h >> 5) % DD_SHAPES];
}

static inline void put(struct dd_map *m, const struct dd_shape_attr *at, const struct rs_attr *a)
{
	*at->to = &a->val;
	m->slot[at->slot] = &a->val;
}

/* Puts the span's values into the shape's tags, if it has this shape. */
static bool fill(struct dd_map *m, struct dd_shape *sh, const struct rs_span *s, uint32_t like)
{
	struct dd_shape_attr *at = sh->attr, *end = at + sh->n;
	const struct rs_attr *a = s->attrs.a;

	if (s->attrs.n != sh->n || like != sh->like || m->ctx->kind != sh->ctx)
		return false;
	if (m->keys.batch_no != sh->batch) {
		/* The same names at other places? */
		for (; at < end; at++, a++) {
			if (a->val.type != at->type || !dd_key_is(at->key, a->key))
				return false;
			at->name = a->key;
			put(m, at, a);
		}
		sh->batch = m->keys.batch_no;
	}
	for (; at < end; at++, a++) {
		if (a->key != at->name || a->val.type != at->type)
			return false;
		put(m, at, a);
	}
	m->present = sh->present;
	return true;
}

static bool is_metric(const struct rs_val *v)
{
	return v->type == RS_VAL_INT || v->type == RS_VAL_DOUBLE;
}

/* No tag, but a field or nothing. */
static bool is_eaten(const struct dd_map *m, const struct dd_key *k, const struct rs_span *s)
{
	switch (k->use) {
	case DD_EATEN:
		return true;
	case DD_FIELD:
		return m->v1;
	case DD_OURS: /* written under these names by us */
		return m->v1 || (k->slot == DD_EVENTS ? s->nevents : s->nlinks);
	}
	return false;
}

/* The attributes' tags; fills m->slot[] and m->present. */
static bool put_attrs(struct dd_map *m, struct dd_shape *sh, const struct rs_span *s)
{
	m->present = 0;
	for (uint32_t i = 0; i < s->attrs.n; i++) {
		const struct rs_attr *a = &s->attrs.a[i];
		struct dd_shape_attr at = { a->key, NULL, &m->nowhere, a->val.type, DD_SLOTS };
		struct dd_key *k = dd_key_of(&m->keys, a->key);
		uint32_t n;

		if (!k)
			return false;
		at.key = k;
		if (k->slot != DD_NO_SLOT && !(m->present >> k->slot & 1)) {
			m->present |= 1ull << k->slot;
			m->slot[k->slot] = &a->val;
			at.slot = k->slot;
		}
		if (is_eaten(m, k, s)) {
			/* no tag */
		} else if (is_metric(&a->val)) {
			n = sh->nmetrics;
			dd_put_metric(m, k->to, &a->val);
			at.to = n < sh->nmetrics ? &sh->metrics[n].val : at.to;
		} else {
			n = sh->nmeta;
			dd_put_meta(m, k->to, &a->val);
			at.to = n < sh->nmeta ? &sh->meta[n].val : at.to;
		}
		if (sh != &m->other)
			sh->attr[i] = at;
	}
	return true;
}

/* Those tags of the context that the span has not itself. */
static void put_runs(struct dd_map *m, struct dd_shape *sh)
{
	bool in = false;

	sh->nrun = sh->nctx = 0;
	for (uint32_t i = 0; i < m->ctx->ntag; i++) {
		const struct dd_key *k = m->ctx->tag[i].key;

		if (k->as_meta == m->span_no || (m->v1 && k->as_metric == m->span_no)) {
			in = false;
			continue;
		}
		if (!in)
			sh->run[sh->nrun++].from = i;
		in = true;
		sh->run[sh->nrun - 1].to = i + 1;
		sh->nctx++;
	}
	sh->no = sh->nctx == m->ctx->ntag ? 0 : ++m->shape_no;
}

/* Room for the tags of a span of n attributes. */
static bool room(struct dd_map *m, struct dd_shape *sh, uint32_t n)
{
	uint32_t cap = m->tag_cap, want = n + 24;

	if (sh != &m->other) {
		sh->meta = sh->tag[0];
		sh->metrics = sh->tag[1];
		sh->run = sh->runs;
		return true;
	}
	if (!rs_grow(&sh->meta, &cap, want, sizeof(*sh->meta)))
		return false;
	cap = m->tag_cap;
	if (!rs_grow(&sh->metrics, &cap, want, sizeof(*sh->metrics)))
		return false;
	m->tag_cap = cap;
	return rs_grow(&sh->run, &m->run_cap, m->ctx->ntag + 1, sizeof(*sh->run));
}

static bool make(struct dd_map *m, struct dd_shape *sh, const struct rs_span *s, uint32_t like)
{
	m->sh = sh;
	m->span_no++;
	m->nval = 0;
	sh->n = DD_NO_SHAPE;
	sh->nmeta = sh->nmetrics = 0;
	memset(sh->field, 0, sizeof(sh->field));
	if (!room(m, sh, s->attrs.n) || !put_attrs(m, sh, s))
		return false;
	if (!dd_is_datadogs(m))
		dd_put_otel(m, s);
	else if (!m->v1 && s->kind)
		dd_put_kind(m, s);
	if (s->trace_state.len)
		dd_put_meta_str(m, DD_C_TRACESTATE, s->trace_state);
	put_runs(m, sh);
	if (dd_has_rare(m)) {
		dd_put_rare(m);
		put_runs(m, sh);
	} else if (sh != &m->other) {
		sh->n = s->attrs.n;
		sh->like = like;
		sh->batch = m->keys.batch_no;
		sh->ctx = m->ctx->kind;
		sh->present = m->present;
	}
	return true;
}

bool dd_shape_of(struct dd_map *m, const struct rs_span *s)
{
	uint32_t like;

	/* Some tags follow from values: those spans are made anew each time. */
	if (s->attrs.n > DD_SHAPE_ATTRS || m->ctx->ntag > DD_SHAPE_TAGS ||
	    s->status == RS_STATUS_ERROR || s->status_msg.len || s->trace_state.len)
		return make(m, &m->other, s, 0);
	like = like_of(s);
	m->sh = place_of(m, s, like);
	return fill(m, m->sh, s, like) || make(m, m->sh, s, like);
}
