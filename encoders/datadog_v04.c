// SPDX-License-Identifier: Apache-2.0
/*
 * datadog_v04 — Datadog trace intake v0.4: array of chunks, of spans, of a map each. PUT /v0.4/traces.
 *
 * Two encoders. datadog-v0.4 writes links and events natively (span_links, span_events: agents from 7.64, whose
 * /info says span_events); datadog-v0.4-json writes them as JSON texts in meta (_dd.span_links, events), for all
 * agents. Mapping and its losses: datadog_map.h.
 *
 * Losses here: trace ids keep their upper half in _dd.p.tid of a chunk's first span and otel.trace_id; spans whose
 * trace id has a lower half of 0 are left out (the agent drops such chunks). Link attributes become text. Native
 * event attributes are text, bool, int, double, or arrays of one of these; other values become text (arrays and
 * maps: JSON; bytes: base64). Links to nowhere (no ids) are left out. JSON texts end before 25,000 bytes, with a
 * whole link or event.
 */
#include "datadog_walk.h"

struct state {
	struct rs_sink sink;
	struct dd_map map;
	bool json;
	struct rs_sink ctx; /* while a context's tags are written */
};

static char *put_text(struct rs_sink *s, char *p, const struct rs_val *v)
{
	if (v->type == DD_VAL_KEY)
		return dd_put_key(s, p, dd_val_key(v));
	return dd_put_val(s, p, v);
}

static __attribute__((noinline)) char *put_plain(struct rs_sink *s, char *p, struct str text,
						 size_t max)
{
	if (__builtin_expect(text.len > max / RS_TEXT_RAW_MAX, 0))
		return dd_put_str(s, p, text, max);
	return dd_put_str_unchecked(s, rs_sink_need(s, p, DD_STR_ROOM(text.len)), text);
}

static inline char *put_field(struct rs_sink *s, char *p, const struct dd_text *t, size_t max)
{
	return t->key ? dd_put_key(s, p, t->key) : put_plain(s, p, t->s, max);
}

static char *put_number(char *p, const struct rs_val *v)
{
	return v->type == RS_VAL_INT ? rs_mp_int(p, v->i) : rs_mp_double(p, v->d);
}

static inline __attribute__((always_inline)) char *
put_tag(struct rs_sink *s, char *p, const struct dd_key *k, const struct rs_val *v)
{
	if (__builtin_expect(v->type == RS_VAL_STR && v->len <= DD_MAX_VALUE / RS_TEXT_RAW_MAX &&
				     v->len <= RS_TEXT_PIECE,
			     1)) {
		p = rs_sink_need(s, p, DD_KEY_ROOM + DD_STR_ROOM(v->len));
		p = dd_put_key_unchecked(p, k);
		return dd_put_str_unchecked(s, p, (struct str){ v->str, v->len });
	}
	if (v->type == DD_VAL_KEY) {
		p = rs_sink_need(s, p, 2 * DD_KEY_ROOM);
		p = dd_put_key_unchecked(p, k);
		return dd_put_key_unchecked(p, dd_val_key(v));
	}
	return put_text(s, dd_put_key(s, p, k), v);
}

/* The context's tags as they are written: once, then copied. 0 or -errno. */
static int write_ctx(struct state *st, struct dd_context *c)
{
	char *p = rs_sink_open(&st->ctx, st->sink.pool, st->sink.max);
	int err;

	if (!p)
		return st->ctx.err;
	for (uint32_t i = 0; i < c->ntag; i++) {
		p = put_text(&st->ctx, dd_put_key(&st->ctx, p, c->tag[i].key), c->tag[i].val);
		c->tag[i].end = (uint32_t)rs_sink_pos(&st->ctx, p);
	}
	err = st->ctx.err;
	if (!err) {
		uint32_t n = (uint32_t)rs_sink_pos(&st->ctx, p);

		if (rs_grow(&c->bytes, &c->bytes_cap, n + RS_SINK_SLACK, 1)) {
			memcpy(c->bytes, st->ctx.base, n);
			c->nbytes = n;
		} else {
			err = -ENOMEM;
		}
	}
	rs_sink_abort(&st->ctx);
	return err;
}

/* from: RS_ARENA_PAD readable bytes behind it. */
static char *copy(struct rs_sink *s, char *p, const char *from, size_t n)
{
	while (n > RS_SINK_NEED_MAX) {
		p = rs_sink_need(s, p, RS_SINK_NEED_MAX);
		p = rs_text_copy(p, from, RS_SINK_NEED_MAX);
		from += RS_SINK_NEED_MAX;
		n -= RS_SINK_NEED_MAX;
	}
	return rs_text_copy(rs_sink_need(s, p, n), from, n);
}

/* The context's tags, without those that the span has itself. */
static char *put_ctx(struct state *st, char *p)
{
	const struct dd_map *m = &st->map;
	struct dd_context *c = m->ctx;
	int err = c->nbytes ? 0 : write_ctx(st, c);

	if (err)
		return rs_sink_fail(&st->sink, err);
	for (uint32_t i = 0; i < m->sh->nrun && !st->sink.err; i++) {
		const struct dd_run *r = &m->sh->run[i];
		uint32_t from = r->from ? c->tag[r->from - 1].end : 0;

		p = copy(&st->sink, p, c->bytes + from, c->tag[r->to - 1].end - from);
	}
	return p;
}

static char *put_link(struct rs_sink *s, char *p, const struct rs_link *l)
{
	uint64_t high = dd_id(l->trace_id);
	uint32_t flags = dd_link_flags(l), n = rs_attrs_named(&l->attrs);

	p = rs_sink_need(s, p, 128);
	p = rs_mp_map(p, 2 + !!high + !!n + !!l->trace_state.len + !!flags);
	p = RS_MP_LIT(p, "trace_id");
	p = dd_put_u64(p, dd_id(l->trace_id + 8));
	if (high) {
		p = RS_MP_LIT(p, "trace_id_high");
		p = rs_mp_uint(p, high);
	}
	p = RS_MP_LIT(p, "span_id");
	p = dd_put_u64(p, dd_id(l->span_id));
	if (n) {
		p = RS_MP_LIT(p, "attributes");
		p = rs_mp_map(p, n);
		for (uint32_t i = 0; i < l->attrs.n; i++) {
			if (!rs_attr_named(&l->attrs.a[i]))
				continue;
			p = dd_put_str(s, p, l->attrs.a[i].key->name, DD_MAX_VALUE);
			p = put_text(s, p, &l->attrs.a[i].val);
		}
		p = rs_sink_need(s, p, 64);
	}
	if (l->trace_state.len) {
		p = RS_MP_LIT(p, "tracestate");
		p = dd_put_str(s, p, l->trace_state, DD_MAX_VALUE);
		p = rs_sink_need(s, p, 32);
	}
	if (flags) {
		p = RS_MP_LIT(p, "flags");
		p = rs_mp_uint(p, flags);
	}
	return p;
}

/* {"type":n,"…_value":v}; p has room for the heads. Others than the four scalar types: as text. */
static char *put_scalar(struct rs_sink *s, char *p, const struct rs_val *v)
{
	p = rs_sink_need(s, p, 64);
	*p++ = (char)0x82;
	p = RS_MP_LIT(p, "type");
	switch (v->type) {
	case RS_VAL_BOOL:
		*p++ = 1;
		p = RS_MP_LIT(p, "bool_value");
		return rs_mp_bool(p, v->b);
	case RS_VAL_INT:
		*p++ = 2;
		p = RS_MP_LIT(p, "int_value");
		return rs_mp_int(p, v->i);
	case RS_VAL_DOUBLE:
		*p++ = 3;
		p = RS_MP_LIT(p, "double_value");
		return rs_mp_double(p, v->d);
	}
	*p++ = 0;
	p = RS_MP_LIT(p, "string_value");
	return put_text(s, p, v);
}

/* Receivers take arrays of one scalar type. */
static bool is_plain_array(const struct rs_val *v)
{
	if (v->type != RS_VAL_ARRAY)
		return false;
	for (uint32_t i = 0; i < v->len; i++) {
		if (!dd_is_scalar(v->arr[i].type) || v->arr[i].type != v->arr[0].type)
			return false;
	}
	return true;
}

static char *put_typed(struct rs_sink *s, char *p, const struct rs_val *v)
{
	if (!is_plain_array(v))
		return put_scalar(s, p, v);
	p = rs_sink_need(s, p, 64);
	*p++ = (char)0x82;
	p = RS_MP_LIT(p, "type");
	*p++ = 4;
	p = RS_MP_LIT(p, "array_value");
	*p++ = (char)0x81;
	p = RS_MP_LIT(p, "values");
	p = rs_mp_array(p, v->len);
	for (uint32_t i = 0; i < v->len; i++)
		p = put_scalar(s, p, &v->arr[i]);
	return p;
}

static char *put_event(struct rs_sink *s, char *p, const struct rs_event *e)
{
	uint32_t n = rs_attrs_named(&e->attrs);

	p = rs_sink_need(s, p, 64);
	*p++ = n ? (char)0x83 : (char)0x82;
	p = RS_MP_LIT(p, "time_unix_nano");
	p = dd_put_u64(p, e->time_ns);
	p = RS_MP_LIT(p, "name");
	p = dd_put_str(s, p, e->name, DD_MAX_VALUE);
	if (!n)
		return p;
	p = rs_sink_need(s, p, 32);
	p = RS_MP_LIT(p, "attributes");
	p = rs_mp_map(p, n);
	for (uint32_t i = 0; i < e->attrs.n; i++) {
		if (!rs_attr_named(&e->attrs.a[i]))
			continue;
		p = dd_put_str(s, p, e->attrs.a[i].key->name, DD_MAX_VALUE);
		p = put_typed(s, p, &e->attrs.a[i].val);
	}
	return p;
}

static char *put_json(struct rs_sink *s, char *p, const struct dd_key *key,
		      const struct rs_span *span,
		      char *(*write)(struct rs_sink *, char *, const struct rs_span *))
{
	size_t at;

	p = dd_put_key(s, p, key);
	p = rs_sink_need(s, p, 16);
	at = rs_sink_pos(s, p);
	p = write(s, p + 3, span);
	return dd_close_text(s, p, at);
}

static char *put_span(void *state, char *p, bool first)
{
	struct state *st = state;
	struct rs_sink *s = &st->sink;
	const struct dd_map *m = &st->map;
	const struct dd_span *o = &m->out;
	const struct dd_shape *sh = m->sh;
	const struct dd_chunk *c = &m->chunk;
	const struct rs_span *span = o->s;
	uint32_t nlinks = dd_links(span), nevents = span->nevents;
	bool dm = first && c->dm.s.len, tid = first && c->tid_high,
	     priority = first && c->has_priority;
	uint32_t nmeta = sh->nmeta + sh->nctx + dm + tid;

	if (st->json)
		nmeta += !!nlinks + !!nevents;
	p = rs_sink_need(s, p, 64);
	*p++ = (char)(0x8c + (st->json ? 0 : !!nlinks + !!nevents));
	p = RS_MP_LIT(p, "service");
	p = put_field(s, p, &o->service, DD_MAX_NAME);
	p = RS_MP_LIT(p, "name");
	p = put_field(s, p, &o->name, DD_MAX_NAME);
	p = RS_MP_LIT(p, "resource");
	p = put_field(s, p, &o->resource, DD_MAX_RESOURCE);
	p = RS_MP_LIT(p, "trace_id");
	p = dd_put_u64(p, dd_id(span->trace_id + 8));
	p = RS_MP_LIT(p, "span_id");
	p = dd_put_u64(p, dd_id(span->span_id));
	p = RS_MP_LIT(p, "parent_id");
	p = dd_put_u64(p, dd_id(span->parent_id));
	p = RS_MP_LIT(p, "start");
	p = dd_put_u64(p, span->start_ns);
	p = RS_MP_LIT(p, "duration");
	p = rs_mp_uint(p, span->end_ns - span->start_ns);
	p = RS_MP_LIT(p, "type");
	p = put_field(s, p, &o->type, DD_MAX_NAME);
	p = RS_MP_LIT(p, "error");
	*p++ = span->status == RS_STATUS_ERROR;
	p = RS_MP_LIT(p, "metrics");
	p = rs_mp_map(p, sh->nmetrics + priority);
	if (priority) {
		p = dd_put_key(s, p, m->keys.c[DD_C_PRIORITY]);
		p = rs_mp_int(p, c->priority);
	}
	for (const struct dd_tag *t = sh->metrics, *end = t + sh->nmetrics; t < end; t++)
		p = put_number(dd_put_key(s, p, t->key), t->val);
	p = RS_MP_LIT(p, "meta");
	p = rs_mp_map(p, nmeta);
	if (tid) {
		p = dd_put_key(s, p, m->keys.c[DD_C_TID]);
		*p++ = (char)0xb0;
		p = rs_json_hex(p, span->trace_id, 8);
	}
	if (dm) {
		p = dd_put_key(s, p, m->keys.c[DD_C_DM]);
		p = put_field(s, p, &c->dm, DD_MAX_NAME);
	}
	for (const struct dd_tag *t = sh->meta, *end = t + sh->nmeta; t < end; t++)
		p = put_tag(s, p, t->key, t->val);
	if (sh->nctx)
		p = put_ctx(st, p);
	if (st->json) {
		if (nlinks)
			p = put_json(s, p, m->keys.c[DD_C_SPAN_LINKS], span, dd_links_json);
		if (nevents)
			p = put_json(s, p, m->keys.c[DD_C_EVENTS], span, dd_events_json);
		return p;
	}
	p = rs_sink_need(s, p, 64);
	if (nlinks) {
		p = RS_MP_LIT(p, "span_links");
		p = rs_mp_array(p, nlinks);
		for (uint32_t i = 0; i < span->nlinks; i++) {
			if (rs_link_ok(&span->links[i]))
				p = put_link(s, p, &span->links[i]);
		}
		p = rs_sink_need(s, p, 64);
	}
	if (nevents) {
		p = RS_MP_LIT(p, "span_events");
		p = rs_mp_array(p, nevents);
		for (uint32_t i = 0; i < nevents; i++)
			p = put_event(s, p, &span->events[i]);
	}
	return p;
}

static char *put_chunk(void *state, char *p, const struct rs_chunk *c)
{
	struct state *st = state;

	p = rs_sink_need(&st->sink, p, 16);
	return rs_mp_array(p, c->n);
}

static char *begin(void *state, char *p)
{
	struct state *st = state;

	return rs_mp_array(p, st->map.w.nchunk);
}

static int check(const void *state, const char *p, size_t max)
{
	const struct state *st = state;

	if (st->sink.err)
		return st->sink.err;
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

static int init(struct rs_encoder *e)
{
	return dd_map_init(&((struct state *)e->state)->map, false, e->opts.max_payload);
}

static int init_json(struct rs_encoder *e)
{
	((struct state *)e->state)->json = true;
	return init(e);
}

static void release(struct rs_encoder *e)
{
	dd_map_release(&((struct state *)e->state)->map);
}

RS_ENCODER_OPS(datadog_v04) = {
	.name = "datadog-v0.4",
	.content_type = "application/msgpack",
	.suffix = "msgpack",
	.state_size = sizeof(struct state),
	.init = init,
	.release = release,
	.encode = encode,
};

RS_ENCODER_OPS(datadog_v04_json) = {
	.name = "datadog-v0.4-json",
	.content_type = "application/msgpack",
	.suffix = "msgpack",
	.state_size = sizeof(struct state),
	.init = init_json,
	.release = release,
	.encode = encode,
};
