// SPDX-License-Identifier: Apache-2.0
/*
 * datadog_v05 — Datadog trace intake v0.5: a dictionary of strings, then chunks of spans of 12 fields with numbers
 * for strings. PUT /v0.5/traces.
 *
 * The dictionary precedes the spans that fill it, so they are written to two sinks and sent as two iovecs. Every
 * string stands in it once. Mapping and its losses: datadog_map.h.
 *
 * Losses here, beside those of v0.4-json: links and events are JSON texts in meta (_dd.span_links, events), cut to
 * whole elements below 25,000 bytes; the protocol has no other place for them.
 */
#include "datadog_strings.h"
#include "datadog_walk.h"

struct state {
	struct rs_sink sink; /* chunks */
	struct rs_sink dict;
	char *dp;
	struct dd_map map;
	struct dd_strings strings;
};

/* Room for the header of the whole: 92, and an array header. */
#define HEAD 6

static __attribute__((noinline)) uint32_t late_key_at(struct state *st, struct dd_key *k)
{
	uint32_t at = 0;
	bool new;

	st->dp = dd_str_key(&st->strings, &st->dict, st->dp, k, &at, &new);
	return at;
}

static __attribute__((noinline)) uint32_t new_key_at(struct state *st, struct dd_key *k)
{
	if (!dd_is_key_alone(&st->strings, k))
		return late_key_at(st, k);
	st->dp = dd_put_key(&st->dict, st->dp, k);
	return dd_number_key(&st->strings, k);
}

static inline uint32_t key_at(struct state *st, struct dd_key *k)
{
	return __builtin_expect(dd_is_written(&st->strings, k), 1) ? k->at : new_key_at(st, k);
}

static __attribute__((noinline)) uint32_t new_memo_at(struct state *st, struct dd_memo *memo,
						      struct str s, size_t max)
{
	uint32_t at;
	bool new;

	st->dp = dd_str_memo(&st->strings, &st->dict, st->dp, memo, s, max, &at, &new);
	return at;
}

static inline uint32_t memo_at(struct state *st, struct dd_memo *memo, struct str s, size_t max)
{
	struct dd_key *k = dd_memo_key(memo, s);

	return __builtin_expect(k != NULL, 1) ? key_at(st, k) : new_memo_at(st, memo, s, max);
}

static uint32_t field_at(struct state *st, const struct dd_text *t, enum dd_field_no field,
			 size_t max)
{
	return t->key ? key_at(st, t->key) : memo_at(st, &st->map.sh->field[field], t->s, max);
}

static uint32_t text_at(struct state *st, struct str s)
{
	uint32_t at = 0;
	bool new;

	st->dp = dd_str(&st->strings, &st->dict, st->dp, s, DD_MAX_NAME, &at, &new);
	return at;
}

static __attribute__((noinline)) uint32_t plain_at(struct state *st, const struct rs_val *v)
{
	uint32_t at = 0;
	bool new;

	if (v->type == RS_VAL_BOOL)
		return key_at(st, st->map.keys.c[v->b ? DD_C_TRUE : DD_C_FALSE]);
	st->dp = dd_str_val(&st->strings, &st->dict, st->dp, v, &at, &new);
	return at;
}

static inline uint32_t val_at(struct state *st, const struct rs_val *v)
{
	return v->type == DD_VAL_KEY ? key_at(st, dd_val_key(v)) : plain_at(st, v);
}

static uint32_t json_at(struct state *st, const struct rs_span *span,
			char *(*write)(struct rs_sink *, char *, const struct rs_span *))
{
	struct rs_sink *d = &st->dict;
	uint32_t index = 0;
	bool new;
	size_t at;

	st->dp = rs_sink_need(d, st->dp, 16);
	at = rs_sink_pos(d, st->dp);
	st->dp = dd_close_text(d, write(d, st->dp + 3, span), at);
	st->dp = dd_str_written(&st->strings, d, st->dp, at, &index, &new);
	return index;
}

static inline char *put_tag(struct state *st, char *p, struct dd_tag *t)
{
	const struct rs_val *v = t->val;

	p = rs_sink_need(&st->sink, p, 16);
	p = rs_mp_uint(p, key_at(st, t->key));
	if (v->type != RS_VAL_STR)
		return rs_mp_uint(p, val_at(st, v));
	return rs_mp_uint(p, memo_at(st, &t->memo, (struct str){ v->str, v->len }, DD_MAX_VALUE));
}

/* A tag of the context. Its value is looked up once. */
static inline char *put_ctx_tag(void *state, char *p, struct dd_ctx_tag *t)
{
	struct state *st = state;

	if (t->epoch != st->strings.tab.epoch) {
		t->epoch = st->strings.tab.epoch;
		t->at = val_at(st, t->val);
	}
	p = rs_sink_need(&st->sink, p, 16);
	p = rs_mp_uint(p, key_at(st, t->key));
	return rs_mp_uint(p, t->at);
}

static char *put_span(void *state, char *p, bool first)
{
	struct state *st = state;
	struct rs_sink *s = &st->sink;
	const struct dd_map *m = &st->map;
	const struct dd_span *o = &m->out;
	struct dd_shape *sh = m->sh;
	const struct dd_chunk *c = &m->chunk;
	const struct rs_span *span = o->s;
	uint32_t nlinks = dd_links(span);
	bool dm = first && c->dm.s.len, tid = first && c->tid_high,
	     priority = first && c->has_priority;

	p = rs_sink_need(s, p, 128);
	*p++ = (char)0x9c;
	p = rs_mp_uint(p, field_at(st, &o->service, DD_F_SERVICE, DD_MAX_NAME));
	p = rs_mp_uint(p, field_at(st, &o->name, DD_F_NAME, DD_MAX_NAME));
	p = rs_mp_uint(p, field_at(st, &o->resource, DD_F_RESOURCE, DD_MAX_RESOURCE));
	p = dd_put_u64(p, dd_id(span->trace_id + 8));
	p = dd_put_u64(p, dd_id(span->span_id));
	p = dd_put_u64(p, dd_id(span->parent_id));
	p = dd_put_u64(p, span->start_ns);
	p = rs_mp_uint(p, span->end_ns - span->start_ns);
	*p++ = span->status == RS_STATUS_ERROR;
	p = rs_mp_map(p, sh->nmeta + sh->nctx + dm + tid + !!nlinks + !!span->nevents);
	if (tid) {
		char hex[16 + RS_ARENA_PAD] = "";

		rs_json_hex(hex, span->trace_id, 8);
		p = rs_mp_uint(p, key_at(st, m->keys.c[DD_C_TID]));
		p = rs_mp_uint(p, text_at(st, (struct str){ hex, 16 }));
	}
	if (dm) {
		p = rs_mp_uint(p, key_at(st, m->keys.c[DD_C_DM]));
		p = rs_mp_uint(p, c->dm.key ? key_at(st, c->dm.key) : text_at(st, c->dm.s));
	}
	for (struct dd_tag *t = sh->meta, *end = t + sh->nmeta; t < end; t++)
		p = put_tag(st, p, t);
	if (sh->nctx)
		p = dd_put_ctx(m, &st->strings, s, p, st, put_ctx_tag);
	p = rs_sink_need(s, p, 64);
	if (nlinks) {
		p = rs_mp_uint(p, key_at(st, m->keys.c[DD_C_SPAN_LINKS]));
		p = rs_mp_uint(p, json_at(st, span, dd_links_json));
	}
	if (span->nevents) {
		p = rs_mp_uint(p, key_at(st, m->keys.c[DD_C_EVENTS]));
		p = rs_mp_uint(p, json_at(st, span, dd_events_json));
	}
	p = rs_mp_map(p, sh->nmetrics + priority);
	if (priority) {
		p = rs_mp_uint(p, key_at(st, m->keys.c[DD_C_PRIORITY]));
		p = rs_mp_int(p, c->priority);
	}
	for (uint32_t i = 0; i < sh->nmetrics; i++) {
		const struct rs_val *v = sh->metrics[i].val;

		p = rs_sink_need(s, p, 32);
		p = rs_mp_uint(p, key_at(st, sh->metrics[i].key));
		p = v->type == RS_VAL_INT ? rs_mp_int(p, v->i) : rs_mp_double(p, v->d);
	}
	return rs_mp_uint(p, field_at(st, &o->type, DD_F_TYPE, DD_MAX_NAME));
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

	dd_strings_begin(&st->strings);
	st->dp += HEAD;
	return rs_mp_array(p, st->map.w.nchunk);
}

static int check(const void *state, const char *p, size_t max)
{
	const struct state *st = state;

	if (st->sink.err || st->dict.err)
		return st->sink.err ? st->sink.err : st->dict.err;
	if (st->strings.tab.err)
		return st->strings.tab.err;
	return rs_sink_pos(&st->sink, p) + rs_sink_pos(&st->dict, st->dp) > max ? -EFBIG : 0;
}

static int open_sinks(struct rs_encoder *e, char **ret_p)
{
	struct state *st = e->state;

	*ret_p = rs_sink_open(&st->sink, e->pool, e->opts.max_payload);
	if (!*ret_p)
		return st->sink.err;
	st->dp = rs_sink_open(&st->dict, e->pool, e->opts.max_payload);
	if (st->dp)
		return 0;
	rs_sink_abort(&st->sink);
	return st->dict.err;
}

static void abort_sinks(void *state)
{
	struct state *st = state;

	rs_sink_abort(&st->sink);
	rs_sink_abort(&st->dict);
}

/* Gives the payload away: the dictionary with its header in front, then the chunks. */
static void close_sinks(void *state, char *p, struct rs_payload *out)
{
	struct state *st = state;
	char head[8], *end = head;
	size_t n, room;

	*end++ = (char)0x92;
	end = rs_mp_array(end, st->strings.tab.next);
	n = (size_t)(end - head);
	room = HEAD - n;
	memcpy(st->dict.base + room, head, n);
	rs_sink_close(&st->dict, st->dp, out);
	out->iov[0].iov_base = (char *)out->iov[0].iov_base + room;
	out->iov[0].iov_len -= room;
	out->len -= room;
	rs_sink_close(&st->sink, p, out);
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

	return dd_strings_init(&st->strings, &st->map, false, e->opts.max_payload);
}

RS_ENCODER_OPS(datadog_v05) = {
	.name = "datadog-v0.5",
	.content_type = "application/msgpack",
	.suffix = "msgpack",
	.state_size = sizeof(struct state),
	.init = init,
	.release = release,
	.encode = encode,
};
