// SPDX-License-Identifier: Apache-2.0
/*
 * datadog_v1 — Datadog trace intake v1 ("efficient trace payload"): maps with small numbers for keys, and every
 * string inline once per payload, then as its number. PUT /v1.0/traces.
 *
 * Strings are numbered in the order in which they stand in the payload, 0 is the empty one, and a string is never
 * inline twice: readers differ on what that would mean. Fields and chunk fields replace the tags env, version,
 * component, span.kind, _dd.p.tid, _dd.p.dm, _dd.origin and _sampling_priority_v1. Keys that the agent does not
 * know are never written, nor is the chunk's key 5. Mapping and its losses: datadog_map.h.
 *
 * Attributes keep their types: text, bool, int, double. Bytes (base64), arrays and maps (JSON) of spans and links are
 * text, as receivers take no others there; events have arrays of scalars natively. The payload's own fields (container,
 * host, versions…) are those that all its resources agree on. Losses: dropped counts; links to nowhere (no ids).
 */
#include "datadog_strings.h"
#include "datadog_walk.h"

struct state {
	struct rs_sink sink;
	struct dd_map map;
	struct dd_strings strings;
};

enum value_code {
	V_STR = 1,
	V_BOOL,
	V_DOUBLE,
	V_INT,
	V_BYTES,
	V_ARRAY
};

/* A string or the number of one, after one byte of key or code. */
static __attribute__((noinline)) char *put_late_key(struct state *st, char *p, struct dd_key *k)
{
	uint32_t at = 0;
	bool new;

	p = dd_str_key(&st->strings, &st->sink, p, k, &at, &new);
	return new ? p : rs_mp_uint(p, at);
}

static __attribute__((noinline)) char *put_new_key(struct state *st, char *p, struct dd_key *k)
{
	if (!dd_is_key_alone(&st->strings, k))
		return put_late_key(st, p, k);
	p = dd_put_key(&st->sink, p, k);
	dd_number_key(&st->strings, k);
	return p;
}

static inline char *put_key(struct state *st, char *p, struct dd_key *k)
{
	return __builtin_expect(dd_is_written(&st->strings, k), 1) ? rs_mp_uint(p, k->at)
								   : put_new_key(st, p, k);
}

static char *put_str(struct state *st, char *p, struct str s, size_t max)
{
	uint32_t at = 0;
	bool new;

	p = dd_str(&st->strings, &st->sink, p, s, max, &at, &new);
	return new ? p : rs_mp_uint(p, at);
}

static __attribute__((noinline)) char *put_new_memo(struct state *st, char *p, struct dd_memo *memo,
						    struct str s, size_t max)
{
	uint32_t at;
	bool new;

	p = dd_str_memo(&st->strings, &st->sink, p, memo, s, max, &at, &new);
	return new ? p : rs_mp_uint(p, at);
}

static inline char *put_memo(struct state *st, char *p, struct dd_memo *memo, struct str s,
			     size_t max)
{
	struct dd_key *k = dd_memo_key(memo, s);

	return __builtin_expect(k != NULL, 1) ? put_key(st, p, k)
					      : put_new_memo(st, p, memo, s, max);
}

static char *put_field(struct state *st, char *p, const struct dd_text *t, enum dd_field_no field,
		       size_t max)
{
	return t->key ? put_key(st, p, t->key)
		      : put_memo(st, p, &st->map.sh->field[field], t->s, max);
}

static __attribute__((noinline)) char *put_text(struct state *st, char *p, const struct rs_val *v)
{
	uint32_t at;
	bool new;

	p = dd_str_val(&st->strings, &st->sink, p, v, &at, &new);
	return new ? p : rs_mp_uint(p, at);
}

/* A code and a value. */
static char *put_val(struct state *st, char *p, const struct rs_val *v)
{
	p = rs_sink_need(&st->sink, p, 32);
	switch (v->type) {
	case RS_VAL_BOOL:
		*p++ = V_BOOL;
		return rs_mp_bool(p, v->b);
	case RS_VAL_DOUBLE:
		*p++ = V_DOUBLE;
		return rs_mp_double(p, v->d);
	case RS_VAL_INT:
		*p++ = V_INT;
		return rs_mp_int(p, v->i);
	case DD_VAL_KEY:
		*p++ = V_STR;
		return put_key(st, p, dd_val_key(v));
	}
	*p++ = V_STR;
	return put_text(st, p, v);
}

static inline char *put_tag(struct state *st, char *p, struct dd_tag *t)
{
	const struct rs_val *v = t->val;

	p = rs_sink_need(&st->sink, p, 16);
	p = put_key(st, p, t->key);
	if (v->type != RS_VAL_STR)
		return put_val(st, p, v);
	p = rs_sink_need(&st->sink, p, 16);
	*p++ = V_STR;
	return put_memo(st, p, &t->memo, (struct str){ v->str, v->len }, DD_MAX_VALUE);
}

/* A tag of the context. Its value is looked up once. */
static inline char *put_ctx_tag(void *state, char *p, struct dd_ctx_tag *t)
{
	struct state *st = state;
	bool new = false;

	p = rs_sink_need(&st->sink, p, 16);
	p = put_key(st, p, t->key);
	p = rs_sink_need(&st->sink, p, 16);
	*p++ = V_STR;
	if (t->val->type == DD_VAL_KEY)
		return put_key(st, p, dd_val_key(t->val));
	if (t->epoch != st->strings.tab.epoch) {
		t->epoch = st->strings.tab.epoch;
		p = dd_str_val(&st->strings, &st->sink, p, t->val, &t->at, &new);
	}
	return new ? p : rs_mp_uint(p, t->at);
}

/* The n named attributes of links (text only) and events, under their own names. */
static char *put_attrs(struct state *st, char *p, const struct rs_attrs *as, uint32_t n, bool text)
{
	struct rs_sink *s = &st->sink;

	p = rs_mp_array(p, n * 3);
	for (uint32_t i = 0; i < as->n; i++) {
		const struct rs_val *v = &as->a[i].val;

		if (!rs_attr_named(&as->a[i]))
			continue;
		p = put_str(st, p, as->a[i].key->name, DD_MAX_VALUE);
		if (!text && v->type == RS_VAL_ARRAY && dd_is_scalar_array(v)) {
			p = rs_sink_need(s, p, 16);
			*p++ = V_ARRAY;
			p = rs_mp_array(p, v->len * 2);
			for (uint32_t j = 0; j < v->len; j++)
				p = put_val(st, p, &v->arr[j]);
		} else if (text && v->type != RS_VAL_STR) {
			p = rs_sink_need(s, p, 16);
			*p++ = V_STR;
			p = put_text(st, p, v);
		} else {
			p = put_val(st, p, v);
		}
	}
	return rs_sink_need(s, p, 64);
}

static char *put_trace_id(char *p, const uint8_t *id)
{
	*p++ = (char)0xc4;
	*p++ = 16;
	memcpy(p, id, 16);
	return p + 16;
}

static char *put_link(struct state *st, char *p, const struct rs_link *l)
{
	uint32_t flags = dd_link_flags(l), n = rs_attrs_named(&l->attrs);

	p = rs_sink_need(&st->sink, p, 64);
	p = rs_mp_map(p, 2 + !!n + !!l->trace_state.len + !!flags);
	*p++ = 1;
	p = put_trace_id(p, l->trace_id);
	*p++ = 2;
	p = rs_mp_uint(p, dd_id(l->span_id));
	if (n) {
		*p++ = 3;
		p = put_attrs(st, p, &l->attrs, n, true);
	}
	if (l->trace_state.len) {
		*p++ = 4;
		p = put_str(st, p, l->trace_state, DD_MAX_VALUE);
	}
	if (flags) {
		*p++ = 5;
		p = rs_mp_uint(p, flags);
	}
	return p;
}

static char *put_event(struct state *st, char *p, const struct rs_event *e)
{
	uint32_t n = rs_attrs_named(&e->attrs);

	p = rs_sink_need(&st->sink, p, 64);
	p = rs_mp_map(p, 2 + !!n);
	*p++ = 1;
	p = rs_mp_uint(p, e->time_ns);
	*p++ = 2;
	p = put_str(st, p, e->name, DD_MAX_VALUE);
	if (n) {
		p = rs_sink_need(&st->sink, p, 16);
		*p++ = 3;
		p = put_attrs(st, p, &e->attrs, n, false);
	}
	return p;
}

static char *put_span(void *state, char *p, bool first)
{
	struct state *st = state;
	struct rs_sink *s = &st->sink;
	const struct dd_map *m = &st->map;
	const struct dd_span *o = &m->out;
	struct dd_shape *sh = m->sh;
	const struct rs_span *span = o->s;
	uint32_t nlinks = dd_links(span), nevents = span->nevents;

	(void)first;
	p = rs_sink_need(s, p, 128);
	p = rs_mp_map(p, 11 + !!nlinks + !!nevents + !!o->env.s.len + !!o->version.s.len +
				 !!o->component.s.len);
	*p++ = 1;
	p = put_field(st, p, &o->service, DD_F_SERVICE, DD_MAX_NAME);
	*p++ = 2;
	p = put_field(st, p, &o->name, DD_F_NAME, DD_MAX_NAME);
	*p++ = 3;
	p = put_field(st, p, &o->resource, DD_F_RESOURCE, DD_MAX_RESOURCE);
	p = rs_sink_need(s, p, 64);
	*p++ = 4;
	p = dd_put_u64(p, dd_id(span->span_id));
	*p++ = 5;
	p = dd_put_u64(p, dd_id(span->parent_id));
	*p++ = 6;
	p = dd_put_u64(p, span->start_ns);
	*p++ = 7;
	p = rs_mp_uint(p, span->end_ns - span->start_ns);
	*p++ = 8;
	p = rs_mp_bool(p, span->status == RS_STATUS_ERROR);
	*p++ = 9;
	p = rs_mp_array(p, 3 * (sh->nmetrics + sh->nmeta + sh->nctx));
	for (uint32_t i = 0; i < sh->nmetrics; i++)
		p = put_tag(st, p, &sh->metrics[i]);
	for (uint32_t i = 0; i < sh->nmeta; i++)
		p = put_tag(st, p, &sh->meta[i]);
	if (sh->nctx)
		p = dd_put_ctx(m, &st->strings, s, p, st, put_ctx_tag);
	p = rs_sink_need(s, p, 64);
	*p++ = 10;
	p = put_field(st, p, &o->type, DD_F_TYPE, DD_MAX_NAME);
	p = rs_sink_need(s, p, 64);
	if (nlinks) {
		*p++ = 11;
		p = rs_mp_array(p, nlinks);
		for (uint32_t i = 0; i < span->nlinks; i++) {
			if (rs_link_ok(&span->links[i]))
				p = put_link(st, p, &span->links[i]);
		}
		p = rs_sink_need(s, p, 64);
	}
	if (nevents) {
		*p++ = 12;
		p = rs_mp_array(p, nevents);
		for (uint32_t i = 0; i < nevents; i++)
			p = put_event(st, p, &span->events[i]);
		p = rs_sink_need(s, p, 64);
	}
	if (o->env.s.len) {
		*p++ = 13;
		p = put_field(st, p, &o->env, DD_F_ENV, DD_MAX_VALUE);
	}
	if (o->version.s.len) {
		*p++ = 14;
		p = put_field(st, p, &o->version, DD_F_VERSION, DD_MAX_VALUE);
	}
	if (o->component.s.len) {
		*p++ = 15;
		p = put_field(st, p, &o->component, DD_F_COMPONENT, DD_MAX_VALUE);
	}
	*p++ = 16;
	*p++ = (char)o->kind;
	return p;
}

/* The number at the end of "-4" or "934086a686-4"; 0 for anything else. */
static uint32_t mechanism(struct str dm)
{
	struct str head, n = dm;
	uint64_t v;

	/* Nearly always. */
	if (dm.len == 2 && dm.ptr[0] == '-' && dm.ptr[1] >= '0' && dm.ptr[1] <= '9')
		return (uint32_t)(dm.ptr[1] - '0');
	while (str_find(n, '-') < n.len)
		n = str_cut(n, '-', &head);
	return n.len < dm.len && str_u64(n, &v) && v < UINT32_MAX ? (uint32_t)v : 0;
}

static char *put_chunk(void *state, char *p, const struct rs_chunk *chunk)
{
	struct state *st = state;
	const struct dd_chunk *c = &st->map.chunk;

	p = rs_sink_need(&st->sink, p, 128);
	p = rs_mp_map(p, 4 + !!c->origin.s.len);
	*p++ = 1;
	p = rs_mp_int(p, c->has_priority ? c->priority : -128); /* -128: none */
	if (c->origin.s.len) {
		*p++ = 2;
		p = put_str(st, p, c->origin.s, DD_MAX_NAME);
	}
	p = rs_sink_need(&st->sink, p, 64);
	*p++ = 6;
	p = put_trace_id(p, st->map.out.s->trace_id);
	*p++ = 7;
	p = rs_mp_uint(p, mechanism(c->dm.s));
	*p++ = 4;
	return rs_mp_array(p, chunk->n);
}

static char *put_header(struct state *st, char *p)
{
	const struct dd_map *m = &st->map;
	uint32_t n = 1;

	for (int i = 0; i < DD_COMMON; i++)
		n += m->common[i] != NULL;
	p = rs_mp_map(p, n);
	for (int i = 0; i < DD_COMMON; i++) {
		if (!m->common[i])
			continue;
		p = rs_sink_need(&st->sink, p, 16);
		*p++ = (char)(i + 2);
		p = put_key(st, p, m->common[i]);
	}
	p = rs_sink_need(&st->sink, p, 16);
	*p++ = 11;
	return rs_mp_array(p, m->w.nchunk);
}

static char *begin(void *state, char *p)
{
	struct state *st = state;

	dd_strings_begin(&st->strings);
	/* Number 0 is the empty string, without being written. */
	dd_number_key(&st->strings, st->map.keys.c[DD_C_EMPTY]);
	return dd_common(&st->map) ? put_header(st, p) : NULL;
}

static int check(const void *state, const char *p, size_t max)
{
	const struct state *st = state;

	if (st->sink.err || st->strings.tab.err)
		return st->sink.err ? st->sink.err : st->strings.tab.err;
	return rs_sink_pos(&st->sink, p) > max ? -EFBIG : 0;
}

static int open_sinks(struct rs_encoder *e, char **ret_p)
{
	struct state *st = e->state;

	*ret_p = rs_sink_open(&st->sink, e->pool, e->opts.max_payload);
	return *ret_p ? 0 : st->sink.err;
}

static void close_sinks(void *state, char *p, struct rs_payload *out)
{
	rs_sink_close(&((struct state *)state)->sink, p, out);
}

static void abort_sinks(void *state)
{
	rs_sink_abort(&((struct state *)state)->sink);
}

static const struct dd_writer writer = {
	.open = open_sinks,
	.begin = begin,
	.chunk = put_chunk,
	.span = put_span,
	.check = check,
	.close = close_sinks,
	.abort = abort_sinks,
};

static int encode(struct rs_encoder *e, struct rs_encode *run)
{
	return dd_encode(&writer, &((struct state *)e->state)->map, e, run);
}

static void release(struct rs_encoder *e)
{
	struct state *st = e->state;

	dd_strings_release(&st->strings, &st->map);
}

static int init(struct rs_encoder *e)
{
	struct state *st = e->state;

	return dd_strings_init(&st->strings, &st->map, true, e->opts.max_payload);
}

RS_ENCODER_OPS(datadog_v1) = {
	.name = "datadog-v1",
	.content_type = "application/msgpack",
	.suffix = "msgpack",
	.state_size = sizeof(struct state),
	.init = init,
	.release = release,
	.encode = encode,
};
