// SPDX-License-Identifier: Apache-2.0
/*
 * otlp_json — opentelemetry-proto 1.x TracesData in OTLP's JSON mapping: hex ids, 64-bit integers as
 * strings, enums as integers, fields with default values left out, members of AnyValue always written.
 */
#include "groups.h"
#include "memo.h"
#include "wire_json.h"

struct state {
	struct rs_sink sink;
	struct rs_json_second second;
	struct rs_memo resources;
};

/* The end of a list: the comma after its last element is taken back. */
static char *close_list(char *p)
{
	if (p[-1] == ',')
		p--;
	*p++ = ']';
	return p;
}

static char *put_attrs(struct rs_sink *s, char *p, const struct rs_attr *a, uint32_t n,
		       uint32_t *dropped, unsigned depth);

static char *put_value(struct rs_sink *s, char *p, const struct rs_val *v, unsigned depth)
{
	switch ((enum rs_val_type)v->type) {
	case RS_VAL_EMPTY:
		break;
	case RS_VAL_STR:
		p = RS_LIT(p, "{\"stringValue\":");
		p = rs_json_text(s, p, str_of(v->str, v->len));
		return RS_LIT(p, "}");
	case RS_VAL_BOOL:
		if (v->b)
			return RS_LIT(p, "{\"boolValue\":true}");
		return RS_LIT(p, "{\"boolValue\":false}");
	case RS_VAL_INT:
		p = RS_LIT(p, "{\"intValue\":\"");
		p = rs_json_i64(p, v->i);
		return RS_LIT(p, "\"}");
	case RS_VAL_DOUBLE:
		p = RS_LIT(p, "{\"doubleValue\":");
		p = rs_json_double(p, v->d);
		return RS_LIT(p, "}");
	case RS_VAL_BYTES:
		p = RS_LIT(p, "{\"bytesValue\":\"");
		p = rs_json_base64(s, p, v->str, v->len);
		return RS_LIT(p, "\"}");
	case RS_VAL_ARRAY:
		if (depth == RS_ENC_DEPTH)
			break;
		if (!v->len)
			return RS_LIT(p, "{\"arrayValue\":{}}");
		p = RS_LIT(p, "{\"arrayValue\":{\"values\":[");
		for (uint32_t i = 0; i < v->len; i++) {
			p = rs_sink_need(s, p, 0);
			if (i)
				*p++ = ',';
			p = put_value(s, p, &v->arr[i], depth + 1);
		}
		p = rs_sink_need(s, p, 0);
		return RS_LIT(p, "]}}");
	case RS_VAL_MAP:
		if (depth == RS_ENC_DEPTH)
			break;
		if (!v->len)
			return RS_LIT(p, "{\"kvlistValue\":{}}");
		p = RS_LIT(p, "{\"kvlistValue\":{\"values\":");
		p = put_attrs(s, p, v->map, v->len, NULL, depth + 1);
		return RS_LIT(p, "}}");
	}
	return RS_LIT(p, "{}");
}

/* One key-value, by the long way. */
static __attribute__((noinline)) char *put_attr(struct rs_sink *s, char *p, const struct rs_attr *a,
						unsigned depth)
{
	p = rs_sink_need(s, p, 0);
	p = RS_LIT(p, "{\"key\":");
	p = rs_json_text(s, p, a->key->name);
	if (a->val.type == RS_VAL_EMPTY && a->val.len)
		return RS_LIT(p, "},");
	p = RS_LIT(p, ",\"value\":");
	p = put_value(s, p, &a->val, depth);
	p = rs_sink_need(s, p, 0);
	return RS_LIT(p, "},");
}

/*
 * A list of key-values. dropped: attributes with an empty key are invalid, left out and counted there;
 * NULL: a map inside a value, whose keys may be anything.
 */
static char *put_attrs(struct rs_sink *s, char *p, const struct rs_attr *a, uint32_t n,
		       uint32_t *dropped, unsigned depth)
{
	*p++ = '[';
	for (; n; n--, a++) {
		struct str key = a->key->name;
		uint32_t len = a->val.len;

		/* What nearly all are: a key that needs no look, and a short text or an integer. */
		if (__builtin_expect(a->key->plain, 1)) {
			if (a->val.type == RS_VAL_STR && len <= RS_TEXT_PIECE) {
				p = rs_sink_need(s, p, len * RS_TEXT_JSON_MAX);
				p = RS_LIT(p, "{\"key\":\"");
				p = rs_text_copy_key(p, key);
				p = RS_LIT32(p, "\",\"value\":{\"stringValue\":\"");
				p = rs_text_json_unchecked(p, str_of(a->val.str, len));
				p = RS_LIT(p, "\"}},");
				continue;
			}
			if (a->val.type == RS_VAL_INT) {
				p = rs_sink_need(s, p, 0);
				p = RS_LIT(p, "{\"key\":\"");
				p = rs_text_copy_key(p, key);
				p = RS_LIT32(p, "\",\"value\":{\"intValue\":\"");
				p = rs_json_i64(p, a->val.i);
				p = RS_LIT(p, "\"}},");
				continue;
			}
		} else if (dropped && !rs_attr_named(a)) {
			++*dropped;
			continue;
		}
		p = put_attr(s, p, a, depth);
	}
	p = rs_sink_need(s, p, 0);
	return close_list(p);
}

/* A member that began at `at` is taken back when all its elements were left out. */
static char *without_empty(const struct rs_sink *s, char *p, size_t at, bool empty)
{
	return empty && !s->err ? s->base + at : p;
}

/* ,"attributes":[…],"droppedAttributesCount":n — what there is of it. */
static char *put_attr_fields(struct rs_sink *s, char *p, const struct rs_attrs *as)
{
	uint32_t dropped = as->dropped;

	if (as->n) {
		size_t at = rs_sink_pos(s, p);

		p = RS_LIT(p, ",\"attributes\":");
		p = put_attrs(s, p, as->a, as->n, &dropped, 0);
		p = without_empty(s, p, at, dropped - as->dropped == as->n);
	}
	if (dropped) {
		p = RS_LIT(p, ",\"droppedAttributesCount\":");
		p = rs_json_u64(p, dropped);
	}
	return p;
}

/* Members are written with a leading comma; the first one's becomes the brace. */
static char *open_object(char *p, size_t *ret_at, const struct rs_sink *s)
{
	*ret_at = rs_sink_pos(s, p);
	return p;
}

static char *close_object(char *p, size_t at, const struct rs_sink *s)
{
	if (s->err)
		return p;
	if (rs_sink_pos(s, p) == at)
		*p++ = '{';
	else
		s->base[at] = '{';
	*p++ = '}';
	return p;
}

static inline __attribute__((always_inline)) char *
put_text_field(struct rs_sink *s, char *p, const char *lit, size_t n, struct str v)
{
	if (rs_text_empty(v))
		return p;
	memcpy(p, lit, n);
	return rs_json_text(s, p + n, v);
}
#define TEXT_FIELD(s, p, name, v)                                                                  \
	put_text_field(s, p, ",\"" name "\":", sizeof(",\"" name "\":") - 1, v)

static char *put_count_field(char *p, const char *lit, size_t n, uint32_t v)
{
	if (!v)
		return p;
	memcpy(p, lit, n);
	return rs_json_u64(p + n, v);
}
#define COUNT_FIELD(p, name, v)                                                                    \
	put_count_field(p, ",\"" name "\":", sizeof(",\"" name "\":") - 1, v)

static char *put_event(struct rs_sink *s, char *p, const struct rs_event *e,
		       struct rs_json_second *second)
{
	size_t at;

	p = open_object(p, &at, s);
	if (e->time_ns) {
		p = RS_LIT32(p, ",\"timeUnixNano\":\"");
		p = rs_json_time(p, e->time_ns, second);
		*p++ = '"';
	}
	p = TEXT_FIELD(s, p, "name", e->name);
	p = put_attr_fields(s, p, &e->attrs);
	return close_object(p, at, s);
}

static char *put_link(struct rs_sink *s, char *p, const struct rs_link *l)
{
	p = RS_LIT(p, "{\"traceId\":\"");
	p = rs_json_hex(p, l->trace_id, 16);
	p = RS_LIT(p, "\",\"spanId\":\"");
	p = rs_json_hex(p, l->span_id, 8);
	*p++ = '"';
	p = TEXT_FIELD(s, p, "traceState", l->trace_state);
	p = put_attr_fields(s, p, &l->attrs);
	p = COUNT_FIELD(p, "flags", l->flags);
	*p++ = '}';
	return p;
}

static char *put_span(struct rs_sink *s, char *p, const struct rs_span *span,
		      struct rs_json_second *second)
{
	uint32_t dropped_links = span->dropped_links;

	p = rs_sink_need(s, p, 256);
	p = RS_LIT(p, "{\"traceId\":\"");
	p = rs_json_hex(p, span->trace_id, 16);
	p = RS_LIT(p, "\",\"spanId\":\"");
	p = rs_json_hex(p, span->span_id, 8);
	*p++ = '"';
	p = TEXT_FIELD(s, p, "traceState", span->trace_state);
	if (!rs_id_is_zero(span->parent_id, 8)) {
		p = RS_LIT32(p, ",\"parentSpanId\":\"");
		p = rs_json_hex(p, span->parent_id, 8);
		*p++ = '"';
	}
	p = TEXT_FIELD(s, p, "name", span->name);
	if (span->kind) {
		p = RS_LIT(p, ",\"kind\":");
		p = rs_json_u64(p, span->kind);
	}
	if (span->start_ns) {
		p = RS_LIT32(p, ",\"startTimeUnixNano\":\"");
		p = rs_json_time(p, span->start_ns, second);
		*p++ = '"';
	}
	if (span->end_ns) {
		p = RS_LIT32(p, ",\"endTimeUnixNano\":\"");
		p = rs_json_time(p, span->end_ns, second);
		*p++ = '"';
	}
	p = put_attr_fields(s, p, &span->attrs);
	if (span->nevents) {
		p = RS_LIT(p, ",\"events\":[");
		for (uint32_t i = 0; i < span->nevents; i++) {
			p = rs_sink_need(s, p, 0);
			p = put_event(s, p, &span->events[i], second);
			*p++ = ',';
		}
		p = close_list(p);
	}
	p = COUNT_FIELD(p, "droppedEventsCount", span->dropped_events);
	if (span->nlinks) {
		size_t at;

		p = rs_sink_need(s, p, 0);
		at = rs_sink_pos(s, p);
		p = RS_LIT(p, ",\"links\":[");
		for (uint32_t i = 0; i < span->nlinks; i++) {
			p = rs_sink_need(s, p, 256);
			if (!rs_link_ok(&span->links[i])) {
				dropped_links++;
				continue;
			}
			p = put_link(s, p, &span->links[i]);
			*p++ = ',';
		}
		p = close_list(p);
		p = without_empty(s, p, at, dropped_links - span->dropped_links == span->nlinks);
	}
	p = COUNT_FIELD(p, "droppedLinksCount", dropped_links);
	p = rs_sink_need(s, p, 0);
	if (span->status || span->has_status || !rs_text_empty(span->status_msg)) {
		size_t at;

		p = RS_LIT(p, ",\"status\":");
		p = open_object(p, &at, s);
		p = TEXT_FIELD(s, p, "message", span->status_msg);
		p = COUNT_FIELD(p, "code", span->status);
		p = close_object(p, at, s);
	}
	p = COUNT_FIELD(p, "flags", span->flags);
	p = RS_LIT(p, "},");
	return p;
}

/* "resource":{…}, */
static char *put_resource(struct rs_sink *s, struct rs_memo *memo, char *p,
			  const struct rs_resource *r)
{
	size_t from = rs_sink_pos(s, p), at;

	if (rs_memo_put(memo, s, &p, r))
		return p;
	p = RS_LIT(p, "\"resource\":");
	p = open_object(p, &at, s);
	p = put_attr_fields(s, p, &r->attrs);
	p = close_object(p, at, s);
	*p++ = ',';
	rs_memo_keep(memo, s, from, p, r);
	return p;
}

/* {"resource":{…},"scopeSpans":[ */
static inline char *open_resource(struct rs_encoder *e, char *p, const struct rs_resource_spans *rs)
{
	struct state *st = e->state;

	p = rs_sink_need(&st->sink, p, 0);
	*p++ = '{';
	if (!rs->no_resource)
		p = put_resource(&st->sink, &st->resources, p, &rs->resource);
	return RS_LIT(p, "\"scopeSpans\":[");
}

/* {"scope":{…},"spans":[ */
static inline char *open_scope(struct rs_encoder *e, char *p, const struct rs_scope_spans *ss)
{
	struct rs_sink *s = &((struct state *)e->state)->sink;
	size_t at;

	p = rs_sink_need(s, p, 0);
	*p++ = '{';
	if (!ss->no_scope) {
		p = RS_LIT(p, "\"scope\":");
		p = open_object(p, &at, s);
		p = TEXT_FIELD(s, p, "name", ss->scope.name);
		p = TEXT_FIELD(s, p, "version", ss->scope.version);
		p = put_attr_fields(s, p, &ss->scope.attrs);
		p = close_object(p, at, s);
		*p++ = ',';
	}
	return RS_LIT(p, "\"spans\":[");
}

/* ],"schemaUrl":"…"} — the end of a scope or resource. */
static char *close_group(struct rs_encoder *e, char *p, struct str schema_url)
{
	struct rs_sink *s = &((struct state *)e->state)->sink;

	p = rs_sink_need(s, p, 0);
	p = close_list(p);
	p = TEXT_FIELD(s, p, "schemaUrl", schema_url);
	return RS_LIT(p, "},");
}

static inline char *close_scope(struct rs_encoder *e, char *p, const struct rs_scope_spans *ss)
{
	return close_group(e, p, ss->schema_url);
}

static inline char *close_resource(struct rs_encoder *e, char *p,
				   const struct rs_resource_spans *rs)
{
	return close_group(e, p, rs->schema_url);
}

static inline char *put_one(struct rs_encoder *e, char *p, const struct rs_cursor *at)
{
	struct state *st = e->state;

	return put_span(&st->sink, p, at->span, &st->second);
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
	p = RS_LIT(p, "{\"resourceSpans\":[");
	p = rs_put_groups(e, run, s, p, &n, &full, &groups);
	p = close_list(p);
	*p++ = '}';
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

RS_ENCODER_OPS(otlp_json) = {
	.name = "otlp-json",
	.content_type = "application/json",
	.suffix = "json",
	.state_size = sizeof(struct state),
	.init = init,
	.release = release,
	.encode = encode,
};
