// SPDX-License-Identifier: Apache-2.0
/*
 * otlp_pb — opentelemetry-proto 1.x TracesData (= ExportTraceServiceRequest) in protobuf: ascending
 * fields, minimal varints, default values left out, members of AnyValue always written.
 *
 * Field numbers stand beside the tags: common.proto, resource.proto and trace.proto of opentelemetry/proto.
 */
#include "groups.h"
#include "memo.h"
#include "wire_pb.h"

/* Messages by how long they tend to be; each kind remembers the bytes its last length took. */
enum kind {
	KIND_RESOURCE_SPANS,
	KIND_RESOURCE,
	KIND_SCOPE_SPANS,
	KIND_SCOPE,
	KIND_SPAN,
	KIND_EVENT,
	KIND_LINK,
	KIND_STATUS,
	KIND_ATTR,
	KIND_VALUE,
	KIND_LIST,
	KIND_COUNT,
};

struct state {
	struct rs_sink sink;
	uint8_t width[KIND_COUNT];
	struct rs_pb_msg rs, ss; /* the resource's and the scope's that are open */
	struct rs_memo resources;
};

/* The cursor's companions, in registers once everything is inlined. */
struct ctx {
	struct rs_sink *s;
	uint8_t *width;
};

/* The tag and length of a message; the body follows. */
#define OPEN(c, p, field, kind, msg)                                                               \
	rs_pb_open((c)->s, rs_pb_tag(p, field, RS_PB_BYTES), &(c)->width[kind], msg)
#define CLOSE(c, p, kind, msg) rs_pb_close((c)->s, p, &(c)->width[kind], msg)

static __attribute__((noinline)) char *put_some_text(const struct ctx *c, char *p, unsigned field,
						     struct str v)
{
	return rs_text_empty(v) ? p : rs_pb_text(c->s, rs_pb_tag(p, field, RS_PB_BYTES), v);
}

/* A string field; left out when empty. */
static inline char *put_text(const struct ctx *c, char *p, unsigned field, struct str v)
{
	return v.len ? put_some_text(c, p, field, v) : p;
}

static inline char *put_u32(char *p, unsigned field, uint32_t v)
{
	return v ? rs_pb_varint(rs_pb_tag(p, field, RS_PB_VARINT), v) : p;
}

static inline char *put_bytes(const struct ctx *c, char *p, const void *bytes, size_t len)
{
	p = rs_pb_varint(p, len);
	for (const char *b = bytes; len;) {
		size_t n = len < RS_TEXT_PIECE ? len : RS_TEXT_PIECE;

		p = rs_sink_need(c->s, p, n);
		memcpy(p, b, n);
		p += n;
		b += n;
		len -= n;
	}
	return p;
}

static char *put_attr_any(const struct ctx *c, char *p, const struct rs_attr *a, unsigned depth);

/* AnyValue's member, without the message around it. */
static char *put_value(const struct ctx *c, char *p, const struct rs_val *v, unsigned depth)
{
	struct rs_pb_msg list, elem;

	switch ((enum rs_val_type)v->type) {
	case RS_VAL_EMPTY:
		break;
	case RS_VAL_STR: /* 1 */
		*p++ = 0x0a;
		return rs_pb_text(c->s, p, str_of(v->str, v->len));
	case RS_VAL_BOOL: /* 2 */
		p[0] = 0x10;
		p[1] = v->b;
		return p + 2;
	case RS_VAL_INT: /* 3 */
		*p++ = 0x18;
		return rs_pb_varint(p, (uint64_t)v->i);
	case RS_VAL_DOUBLE: { /* 4 */
		uint64_t bits;

		memcpy(&bits, &v->d, 8);
		*p++ = 0x21;
		return rs_pb_fixed64(p, bits);
	}
	case RS_VAL_BYTES: /* 7 */
		*p++ = 0x3a;
		return put_bytes(c, p, v->str, v->len);
	case RS_VAL_ARRAY: /* 5; ArrayValue.values: 1 */
		if (depth == RS_ENC_DEPTH)
			break;
		p = OPEN(c, p, 5, KIND_LIST, &list);
		for (uint32_t i = 0; i < v->len; i++) {
			p = rs_sink_need(c->s, p, 0);
			p = OPEN(c, p, 1, KIND_VALUE, &elem);
			p = put_value(c, p, &v->arr[i], depth + 1);
			p = CLOSE(c, p, KIND_VALUE, &elem);
		}
		p = rs_sink_need(c->s, p, 0);
		return CLOSE(c, p, KIND_LIST, &list);
	case RS_VAL_MAP: /* 6; KeyValueList.values: 1 */
		if (depth == RS_ENC_DEPTH)
			break;
		p = OPEN(c, p, 6, KIND_LIST, &list);
		for (uint32_t i = 0; i < v->len; i++) {
			p = rs_sink_need(c->s, p, 0);
			p = OPEN(c, p, 1, KIND_ATTR, &elem);
			p = put_attr_any(c, p, &v->map[i], depth + 1);
			p = CLOSE(c, p, KIND_ATTR, &elem);
		}
		p = rs_sink_need(c->s, p, 0);
		return CLOSE(c, p, KIND_LIST, &list);
	}
	return p;
}

/* KeyValue's fields: key 1, value 2. */
static char *put_attr_any(const struct ctx *c, char *p, const struct rs_attr *a, unsigned depth)
{
	struct rs_pb_msg value;

	p = put_text(c, p, 1, a->key->name);
	if (a->val.type == RS_VAL_EMPTY && a->val.len)
		return p;
	p = OPEN(c, p, 2, KIND_VALUE, &value);
	p = put_value(c, p, &a->val, depth);
	p = rs_sink_need(c->s, p, 0);
	return CLOSE(c, p, KIND_VALUE, &value);
}

/* One KeyValue of a list, by the long way. */
static __attribute__((noinline)) char *put_attr_slow(const struct ctx *c, char *p, unsigned field,
						     const struct rs_attr *a)
{
	struct rs_pb_msg kv;

	p = rs_sink_need(c->s, p, 0);
	p = OPEN(c, p, field, KIND_ATTR, &kv);
	p = put_attr_any(c, p, a, 0);
	return CLOSE(c, p, KIND_ATTR, &kv);
}

/*
 * The same with plain key and text value: all lengths follow from those of the key and the text, provided
 * that the text is valid. NULL: it is not. Writes unchecked.
 */
static inline char *put_attr_text(char *p, unsigned tag, struct str key, struct str v)
{
	size_t len = key.len + v.len + 6;
	char *end;

	if (__builtin_expect(len < 128, 1)) {
		p = rs_pb_four(p, tag, len, 0x0a, key.len);
		p = rs_text_copy_key(p, key);
		p = rs_pb_four(p, 0x12, v.len + 2, 0x0a, v.len);
	} else {
		unsigned width = rs_pb_varint_len(v.len);
		size_t value_len = 1 + width + v.len;
		unsigned value_width = rs_pb_varint_len(value_len);

		*p++ = (char)tag;
		p = rs_pb_varint(p, 3 + key.len + value_width + value_len);
		*p++ = 0x0a;
		*p++ = (char)key.len;
		p = rs_text_copy_key(p, key);
		*p++ = 0x12;
		p = rs_pb_varint_n(p, value_len, value_width);
		*p++ = 0x0a;
		p = rs_pb_varint_n(p, v.len, width);
	}
	end = rs_text_raw_unchecked(p, v);
	return __builtin_expect(end == p + v.len, 1) ? end : NULL;
}

static inline char *put_attr_int(char *p, unsigned tag, struct str key, int64_t v)
{
	unsigned n = rs_pb_varint_len((uint64_t)v);

	p = rs_pb_four(p, tag, key.len + n + 5, 0x0a, key.len);
	p = rs_text_copy_key(p, key);
	p = rs_pb_four(p, 0x12, n + 1, 0x18, 0) - 1;
	return rs_pb_varint_n(p, (uint64_t)v, n);
}

/*
 * repeated KeyValue attributes = field. Attributes with an empty key are invalid: left out, and added to
 * what is returned in *dropped.
 */
static char *put_attrs(const struct ctx *c, char *p, unsigned field, const struct rs_attrs *as,
		       uint32_t *dropped)
{
	unsigned tag = RS_PB_TAG(field, RS_PB_BYTES);
	uint32_t bad = as->dropped;
	const struct rs_attr *a = as->a;
	struct rs_sink *s = c->s;

	for (uint32_t n = as->n; n; n--, a++) {
		struct str key = a->key->name;
		uint32_t len = a->val.len;
		char *q;

		if (__builtin_expect(a->key->plain, 1)) {
			if (a->val.type == RS_VAL_STR && len <= RS_TEXT_PIECE) {
				p = rs_sink_need(s, p, len * RS_TEXT_RAW_MAX);
				q = put_attr_text(p, tag, key, str_of(a->val.str, len));
				if (__builtin_expect(q != NULL, 1)) {
					p = q;
					continue;
				}
			} else if (a->val.type == RS_VAL_INT) {
				p = rs_sink_need(s, p, 0);
				p = put_attr_int(p, tag, key, a->val.i);
				continue;
			}
		} else if (!rs_attr_named(a)) {
			bad++;
			continue;
		}
		p = put_attr_slow(c, p, field, a);
	}
	*dropped = bad;
	return rs_sink_need(s, p, 0);
}

static char *put_event(const struct ctx *c, char *p, const struct rs_event *e)
{
	struct rs_pb_msg m;
	uint32_t dropped;

	p = OPEN(c, p, 11, KIND_EVENT, &m);
	if (e->time_ns)
		p = rs_pb_fixed64(rs_pb_tag(p, 1, RS_PB_FIXED64), e->time_ns);
	p = put_text(c, p, 2, e->name);
	p = put_attrs(c, p, 3, &e->attrs, &dropped);
	p = put_u32(p, 4, dropped);
	return CLOSE(c, p, KIND_EVENT, &m);
}

/* A bytes field of n < 128 bytes. */
static inline char *put_id(char *p, unsigned field, const uint8_t *id, size_t n)
{
	p[0] = (char)RS_PB_TAG(field, RS_PB_BYTES);
	p[1] = (char)n;
	memcpy(p + 2, id, n);
	return p + 2 + n;
}

static char *put_link(const struct ctx *c, char *p, const struct rs_link *l)
{
	struct rs_pb_msg m;
	uint32_t dropped;

	p = OPEN(c, p, 13, KIND_LINK, &m);
	p = put_id(p, 1, l->trace_id, 16);
	p = put_id(p, 2, l->span_id, 8);
	p = put_text(c, p, 3, l->trace_state);
	p = put_attrs(c, p, 4, &l->attrs, &dropped);
	p = put_u32(p, 5, dropped);
	if (l->flags)
		p = rs_pb_fixed32(rs_pb_tag(p, 6, RS_PB_FIXED32), l->flags);
	return CLOSE(c, p, KIND_LINK, &m);
}

static inline char *put_span(const struct ctx *c, char *p, const struct rs_span *span)
{
	uint32_t dropped, dropped_links = span->dropped_links;
	struct rs_pb_msg m, st;

	p = rs_sink_need(c->s, p, 0);
	p = OPEN(c, p, 2, KIND_SPAN, &m);
	p = put_id(p, 1, span->trace_id, 16);
	p = put_id(p, 2, span->span_id, 8);
	p = put_text(c, p, 3, span->trace_state);
	if (!rs_id_is_zero(span->parent_id, 8))
		p = put_id(p, 4, span->parent_id, 8);
	p = put_text(c, p, 5, span->name);
	p = put_u32(p, 6, span->kind);
	if (span->start_ns)
		p = rs_pb_fixed64(rs_pb_tag(p, 7, RS_PB_FIXED64), span->start_ns);
	if (span->end_ns)
		p = rs_pb_fixed64(rs_pb_tag(p, 8, RS_PB_FIXED64), span->end_ns);
	p = put_attrs(c, p, 9, &span->attrs, &dropped);
	p = put_u32(p, 10, dropped);
	for (uint32_t i = 0; i < span->nevents; i++) {
		p = rs_sink_need(c->s, p, 0);
		p = put_event(c, p, &span->events[i]);
	}
	p = put_u32(p, 12, span->dropped_events);
	for (uint32_t i = 0; i < span->nlinks; i++) {
		if (!rs_link_ok(&span->links[i])) {
			dropped_links++;
			continue;
		}
		p = rs_sink_need(c->s, p, 0);
		p = put_link(c, p, &span->links[i]);
	}
	p = rs_sink_need(c->s, p, 0);
	p = put_u32(p, 14, dropped_links);
	if (span->status || span->has_status || !rs_text_empty(span->status_msg)) {
		p = OPEN(c, p, 15, KIND_STATUS, &st);
		p = put_text(c, p, 2, span->status_msg);
		p = put_u32(p, 3, span->status);
		p = CLOSE(c, p, KIND_STATUS, &st);
	}
	if (span->flags)
		p = rs_pb_fixed32(rs_pb_tag(p, 16, RS_PB_FIXED32), span->flags);
	return CLOSE(c, p, KIND_SPAN, &m);
}

static char *put_resource(const struct ctx *c, struct rs_memo *memo, char *p,
			  const struct rs_resource_spans *rs)
{
	size_t at = rs_sink_pos(c->s, p);
	struct rs_pb_msg m;
	uint32_t dropped;

	if (rs->no_resource || rs_memo_put(memo, c->s, &p, &rs->resource))
		return p;
	p = OPEN(c, p, 1, KIND_RESOURCE, &m);
	p = put_attrs(c, p, 1, &rs->resource.attrs, &dropped);
	p = put_u32(p, 2, dropped);
	p = CLOSE(c, p, KIND_RESOURCE, &m);
	rs_memo_keep(memo, c->s, at, p, &rs->resource);
	return p;
}

static char *put_scope(const struct ctx *c, char *p, const struct rs_scope_spans *ss)
{
	struct rs_pb_msg m;
	uint32_t dropped;

	if (ss->no_scope)
		return p;
	p = OPEN(c, p, 1, KIND_SCOPE, &m);
	p = put_text(c, p, 1, ss->scope.name);
	p = put_text(c, p, 2, ss->scope.version);
	p = put_attrs(c, p, 3, &ss->scope.attrs, &dropped);
	p = put_u32(p, 4, dropped);
	return CLOSE(c, p, KIND_SCOPE, &m);
}

static inline char *open_resource(struct rs_encoder *e, char *p, const struct rs_resource_spans *rs)
{
	struct state *st = e->state;
	const struct ctx c = { &st->sink, st->width };

	p = rs_sink_need(c.s, p, 0);
	p = OPEN(&c, p, 1, KIND_RESOURCE_SPANS, &st->rs);
	return put_resource(&c, &st->resources, p, rs);
}

static inline char *open_scope(struct rs_encoder *e, char *p, const struct rs_scope_spans *ss)
{
	struct state *st = e->state;
	const struct ctx c = { &st->sink, st->width };

	p = rs_sink_need(c.s, p, 0);
	p = OPEN(&c, p, 2, KIND_SCOPE_SPANS, &st->ss);
	return put_scope(&c, p, ss);
}

static inline char *put_one(struct rs_encoder *e, char *p, const struct rs_cursor *at)
{
	struct state *st = e->state;
	const struct ctx c = { &st->sink, st->width };

	return put_span(&c, p, at->span);
}

static inline char *close_scope(struct rs_encoder *e, char *p, const struct rs_scope_spans *ss)
{
	struct state *st = e->state;
	const struct ctx c = { &st->sink, st->width };

	p = put_text(&c, rs_sink_need(c.s, p, 0), 3, ss->schema_url);
	return CLOSE(&c, p, KIND_SCOPE_SPANS, &st->ss);
}

static inline char *close_resource(struct rs_encoder *e, char *p,
				   const struct rs_resource_spans *rs)
{
	struct state *st = e->state;
	const struct ctx c = { &st->sink, st->width };

	p = put_text(&c, rs_sink_need(c.s, p, 0), 3, rs->schema_url);
	return CLOSE(&c, p, KIND_RESOURCE_SPANS, &st->rs);
}

static const struct rs_groups groups = { open_resource, close_resource, open_scope, close_scope,
					 put_one };

static int encode(struct rs_encoder *e, struct rs_encode *run)
{
	struct rs_sink *s = &((struct state *)e->state)->sink;
	char *p = rs_sink_open(s, e->pool, e->opts.max_payload);
	const struct rs_encode was = *run;
	bool full = false;
	uint32_t n = 0;

	if (!p)
		return s->err;
	p = rs_put_groups(e, run, s, p, &n, &full, &groups);
	return rs_end_groups(run, &was, s, p, n, full);
}

static int init(struct rs_encoder *e)
{
	return rs_memo_init(&((struct state *)e->state)->resources);
}

static void release(struct rs_encoder *e)
{
	rs_memo_release(&((struct state *)e->state)->resources);
}

RS_ENCODER_OPS(otlp_pb) = {
	.name = "otlp-proto",
	.content_type = "application/x-protobuf",
	.suffix = "pb",
	.state_size = sizeof(struct state),
	.init = init,
	.release = release,
	.encode = encode,
};
