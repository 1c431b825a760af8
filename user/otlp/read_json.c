// SPDX-License-Identifier: Apache-2.0
/*
 * OTLP/JSON: the proto3 JSON mapping with OTLP's rules (opentelemetry-proto docs/specification.md, "JSON
 * Protobuf Encoding"): hex ids, integer enums, lowerCamelCase names only, unknown members ignored.
 */
#include <errno.h>

#include "base/digits.h"
#include "base/json.h"
#include "list.h"
#include "read.h"
#include "trace/keys.h"

struct reader {
	struct rs_json j;
	struct rs_batch *b;
	struct rs_arena *arena;
	struct rs_keys keys;
};

#define NO_MEMORY "out of memory"

/* The member's value starts here: null means it is as good as absent. */
static bool next_member(struct reader *r, struct str *key)
{
	while (rs_json_key(&r->j, key)) {
		if (!rs_json_null(&r->j))
			return !r->j.err;
	}
	return false;
}

/* ProtoJSON: numbers may stand in strings. */
static void read_u32(struct reader *r, uint32_t *ret)
{
	uint64_t v;

	if (!rs_json_u64(&r->j, &v))
		return;
	if (v > UINT32_MAX)
		rs_json_fail(&r->j, "expected an unsigned 32-bit integer");
	else
		*ret = (uint32_t)v;
}

/* Enums are numbers only, and open: any int32 is one. */
static void read_enum(struct reader *r, uint8_t *ret)
{
	int32_t v;

	if (rs_json_i32(&r->j, &v))
		*ret = rs_otlp_enum(v);
}

/* An id of n bytes as hex; true: it is one. *ret_empty: there is none. */
static bool read_id(struct reader *r, uint8_t *id, size_t n, bool *ret_empty)
{
	struct str s = STR_NONE;

	rs_json_str(&r->j, &s);
	*ret_empty = !s.len;
	if (s.len != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int byte = rs_hex_byte(s.ptr + 2 * i);

		if (byte < 0)
			return false;
		id[i] = (uint8_t)byte;
	}
	return true;
}

static void read_base64(struct reader *r, struct rs_val *v)
{
	struct str s;
	uint8_t *out, *o;
	uint32_t acc = 0;
	unsigned bits = 0;
	size_t n;

	if (!rs_json_str(&r->j, &s))
		return;
	n = s.len;
	while (n && s.len - n < 2 && s.ptr[n - 1] == '=')
		n--;
	/* Padding is optional, but when there it is exact; one digit alone is no byte. */
	if ((n != s.len && s.len % 4) || n % 4 == 1) {
		rs_json_fail(&r->j, "base64 of a wrong length");
		return;
	}
	out = o = rs_arena_alloc(r->arena, n / 4 * 3 + 3);
	if (!out) {
		rs_json_fail(&r->j, NO_MEMORY);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		int d = rs_base64_digit(s.ptr[i]);

		if (d < 0) {
			rs_json_fail(&r->j, "base64 with a character that does not belong there");
			return;
		}
		acc = acc << 6 | (uint32_t)d;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			*o++ = (uint8_t)(acc >> bits);
		}
	}
	*v = (struct rs_val){ .type = RS_VAL_BYTES,
			      .len = (uint32_t)(o - out),
			      .str = (char *)out };
}

static void read_value(struct reader *r, struct rs_val *v, unsigned depth);

/* [KeyValue…] */
static void read_attrs(struct reader *r, struct attr_list *list, unsigned depth)
{
	struct str key, name;

	rs_json_array(&r->j);
	while (rs_json_elem(&r->j)) {
		struct rs_attr *a = attr_list_add(list, r->arena);

		if (!a) {
			rs_json_fail(&r->j, NO_MEMORY);
			return;
		}
		name = STR("");
		a->val.len = 1;
		rs_json_object(&r->j);
		while (next_member(r, &key)) {
			if (str_eq(key, STR("key")))
				rs_json_str(&r->j, &name);
			else if (str_eq(key, STR("value")))
				read_value(r, &a->val, depth);
			else
				rs_json_skip(&r->j);
		}
		a->key = rs_keys_get(&r->keys, r->arena, name);
		if (!a->key)
			rs_json_fail(&r->j, NO_MEMORY);
	}
}

static void finish_attrs(struct reader *r, const struct attr_list *list, struct rs_attrs *as)
{
	as->n = list->n;
	as->a = attr_list_array(list, r->arena);
	if (list->n && !as->a)
		rs_json_fail(&r->j, NO_MEMORY);
}

/* {"values":[…]}; what is nested too deep becomes the empty value. */
static void read_list(struct reader *r, struct rs_val *v, enum rs_val_type type, unsigned depth)
{
	struct attr_list attrs = { 0 };
	struct val_list vals = { 0 };
	struct str key;

	if (depth == RS_READ_DEPTH) {
		rs_json_skip(&r->j);
		*v = (struct rs_val){ .type = RS_VAL_EMPTY };
		return;
	}
	*v = (struct rs_val){ .type = (uint8_t)type };
	rs_json_object(&r->j);
	while (next_member(r, &key)) {
		if (!str_eq(key, STR("values"))) {
			rs_json_skip(&r->j);
		} else if (type == RS_VAL_MAP) {
			read_attrs(r, &attrs, depth + 1);
		} else {
			rs_json_array(&r->j);
			while (rs_json_elem(&r->j)) {
				struct rs_val *e = val_list_add(&vals, r->arena);

				if (!e)
					rs_json_fail(&r->j, NO_MEMORY);
				else if (!rs_json_null(&r->j))
					read_value(r, e, depth + 1);
			}
		}
	}
	if (type == RS_VAL_MAP) {
		v->len = attrs.n;
		v->map = attr_list_array(&attrs, r->arena);
	} else {
		v->len = vals.n;
		v->arr = val_list_array(&vals, r->arena);
	}
	if (v->len && !v->arr)
		rs_json_fail(&r->j, NO_MEMORY);
}

/* An AnyValue; of several members the last one counts. */
static void read_value(struct reader *r, struct rs_val *v, unsigned depth)
{
	struct str key, s;

	*v = (struct rs_val){ .type = RS_VAL_EMPTY };
	rs_json_object(&r->j);
	while (next_member(r, &key)) {
		if (str_eq(key, STR("stringValue"))) {
			if (!rs_json_str(&r->j, &s))
				return;
			if (s.len > UINT32_MAX) {
				rs_json_fail(&r->j, "text too long");
				return;
			}
			*v = (struct rs_val){ .type = RS_VAL_STR,
					      .len = (uint32_t)s.len,
					      .str = s.ptr };
		} else if (str_eq(key, STR("intValue"))) {
			*v = (struct rs_val){ .type = RS_VAL_INT };
			rs_json_i64(&r->j, &v->i);
		} else if (str_eq(key, STR("boolValue"))) {
			*v = (struct rs_val){ .type = RS_VAL_BOOL };
			rs_json_bool(&r->j, &v->b);
		} else if (str_eq(key, STR("doubleValue"))) {
			*v = (struct rs_val){ .type = RS_VAL_DOUBLE };
			rs_json_double(&r->j, &v->d);
		} else if (str_eq(key, STR("bytesValue"))) {
			read_base64(r, v);
		} else if (str_eq(key, STR("arrayValue"))) {
			read_list(r, v, RS_VAL_ARRAY, depth);
		} else if (str_eq(key, STR("kvlistValue"))) {
			read_list(r, v, RS_VAL_MAP, depth);
		} else {
			rs_json_skip(&r->j);
		}
	}
}

static void read_event(struct reader *r, struct rs_event *e)
{
	struct attr_list attrs = { 0 };
	struct str key;

	rs_json_object(&r->j);
	while (next_member(r, &key)) {
		if (str_eq(key, STR("timeUnixNano")))
			rs_json_u64(&r->j, &e->time_ns);
		else if (str_eq(key, STR("name")))
			rs_json_str(&r->j, &e->name);
		else if (str_eq(key, STR("attributes")))
			read_attrs(r, &attrs, 0);
		else if (str_eq(key, STR("droppedAttributesCount")))
			read_u32(r, &e->attrs.dropped);
		else
			rs_json_skip(&r->j);
	}
	finish_attrs(r, &attrs, &e->attrs);
}

/* What is no id stays zero: such a link is left out. */
static void read_link(struct reader *r, struct rs_link *l)
{
	struct attr_list attrs = { 0 };
	struct str key;
	bool empty;

	rs_json_object(&r->j);
	while (next_member(r, &key)) {
		if (str_eq(key, STR("traceId")))
			read_id(r, l->trace_id, 16, &empty);
		else if (str_eq(key, STR("spanId")))
			read_id(r, l->span_id, 8, &empty);
		else if (str_eq(key, STR("traceState")))
			rs_json_str(&r->j, &l->trace_state);
		else if (str_eq(key, STR("attributes")))
			read_attrs(r, &attrs, 0);
		else if (str_eq(key, STR("droppedAttributesCount")))
			read_u32(r, &l->attrs.dropped);
		else if (str_eq(key, STR("flags")))
			read_u32(r, &l->flags);
		else
			rs_json_skip(&r->j);
	}
	finish_attrs(r, &attrs, &l->attrs);
}

static void read_status(struct reader *r, struct rs_span *s)
{
	struct str key;

	s->has_status = true;
	rs_json_object(&r->j);
	while (next_member(r, &key)) {
		if (str_eq(key, STR("message")))
			rs_json_str(&r->j, &s->status_msg);
		else if (str_eq(key, STR("code")))
			read_enum(r, &s->status);
		else
			rs_json_skip(&r->j);
	}
}

/* One element of an array of messages: T_list_add, then read_T. */
#define READ_LIST(r, list, T)                                                                      \
	do {                                                                                       \
		rs_json_array(&(r)->j);                                                            \
		while (rs_json_elem(&(r)->j)) {                                                    \
			struct rs_##T *elem = T##_list_add(list, (r)->arena);                      \
                                                                                                   \
			if (elem)                                                                  \
				read_##T(r, elem);                                                 \
			else                                                                       \
				rs_json_fail(&(r)->j, NO_MEMORY);                                  \
		}                                                                                  \
	} while (0)

static void read_span(struct reader *r, struct rs_span *s)
{
	struct attr_list attrs = { 0 };
	struct event_list events = { 0 };
	struct link_list links = { 0 };
	struct str key;
	bool empty;

	s->no_trace_id = s->no_span_id = true;
	rs_json_object(&r->j);
	while (next_member(r, &key)) {
		if (str_eq(key, STR("traceId"))) {
			s->no_trace_id = !read_id(r, s->trace_id, 16, &empty);
		} else if (str_eq(key, STR("spanId"))) {
			s->no_span_id = !read_id(r, s->span_id, 8, &empty);
		} else if (str_eq(key, STR("parentSpanId"))) {
			s->no_parent_id = !read_id(r, s->parent_id, 8, &empty) && !empty;
		} else if (str_eq(key, STR("traceState"))) {
			rs_json_str(&r->j, &s->trace_state);
		} else if (str_eq(key, STR("name"))) {
			rs_json_str(&r->j, &s->name);
		} else if (str_eq(key, STR("kind"))) {
			read_enum(r, &s->kind);
		} else if (str_eq(key, STR("startTimeUnixNano"))) {
			rs_json_u64(&r->j, &s->start_ns);
		} else if (str_eq(key, STR("endTimeUnixNano"))) {
			rs_json_u64(&r->j, &s->end_ns);
		} else if (str_eq(key, STR("attributes"))) {
			read_attrs(r, &attrs, 0);
		} else if (str_eq(key, STR("droppedAttributesCount"))) {
			read_u32(r, &s->attrs.dropped);
		} else if (str_eq(key, STR("events"))) {
			READ_LIST(r, &events, event);
		} else if (str_eq(key, STR("droppedEventsCount"))) {
			read_u32(r, &s->dropped_events);
		} else if (str_eq(key, STR("links"))) {
			READ_LIST(r, &links, link);
		} else if (str_eq(key, STR("droppedLinksCount"))) {
			read_u32(r, &s->dropped_links);
		} else if (str_eq(key, STR("status"))) {
			read_status(r, s);
		} else if (str_eq(key, STR("flags"))) {
			read_u32(r, &s->flags);
		} else {
			rs_json_skip(&r->j);
		}
	}
	finish_attrs(r, &attrs, &s->attrs);
	s->nevents = events.n;
	s->events = event_list_array(&events, r->arena);
	s->nlinks = links.n;
	s->links = link_list_array(&links, r->arena);
	if ((events.n && !s->events) || (links.n && !s->links))
		rs_json_fail(&r->j, NO_MEMORY);
}

static void read_scope(struct reader *r, struct rs_scope *sc)
{
	struct attr_list attrs = { 0 };
	struct str key;

	rs_json_object(&r->j);
	while (next_member(r, &key)) {
		if (str_eq(key, STR("name")))
			rs_json_str(&r->j, &sc->name);
		else if (str_eq(key, STR("version")))
			rs_json_str(&r->j, &sc->version);
		else if (str_eq(key, STR("attributes")))
			read_attrs(r, &attrs, 0);
		else if (str_eq(key, STR("droppedAttributesCount")))
			read_u32(r, &sc->attrs.dropped);
		else
			rs_json_skip(&r->j);
	}
	finish_attrs(r, &attrs, &sc->attrs);
}

static void read_scope_spans(struct reader *r, struct rs_scope_spans *ss)
{
	struct str key;

	ss->no_scope = true;
	rs_json_object(&r->j);
	while (next_member(r, &key)) {
		if (str_eq(key, STR("scope"))) {
			ss->no_scope = false;
			read_scope(r, &ss->scope);
		} else if (str_eq(key, STR("schemaUrl"))) {
			rs_json_str(&r->j, &ss->schema_url);
		} else if (str_eq(key, STR("spans"))) {
			rs_json_array(&r->j);
			while (rs_json_elem(&r->j)) {
				struct rs_span *s = rs_batch_add_span(r->b, ss);

				if (s)
					read_span(r, s);
				else
					rs_json_fail(&r->j, NO_MEMORY);
			}
		} else {
			rs_json_skip(&r->j);
		}
	}
}

static void read_resource(struct reader *r, struct rs_resource *res)
{
	struct attr_list attrs = { 0 };
	struct str key;

	rs_json_object(&r->j);
	while (next_member(r, &key)) {
		if (str_eq(key, STR("attributes")))
			read_attrs(r, &attrs, 0);
		else if (str_eq(key, STR("droppedAttributesCount")))
			read_u32(r, &res->attrs.dropped);
		else
			rs_json_skip(&r->j);
	}
	finish_attrs(r, &attrs, &res->attrs);
}

static void read_resource_spans(struct reader *r, struct rs_resource_spans *rs)
{
	struct str key;

	rs->no_resource = true;
	rs_json_object(&r->j);
	while (next_member(r, &key)) {
		if (str_eq(key, STR("resource"))) {
			rs->no_resource = false;
			read_resource(r, &rs->resource);
		} else if (str_eq(key, STR("schemaUrl"))) {
			rs_json_str(&r->j, &rs->schema_url);
		} else if (str_eq(key, STR("scopeSpans"))) {
			rs_json_array(&r->j);
			while (rs_json_elem(&r->j)) {
				struct rs_scope_spans *ss = rs_batch_add_scope(r->b, rs);

				if (ss)
					read_scope_spans(r, ss);
				else
					rs_json_fail(&r->j, NO_MEMORY);
			}
		} else {
			rs_json_skip(&r->j);
		}
	}
}

static void read_document(struct reader *r)
{
	struct str key;

	rs_json_object(&r->j);
	while (next_member(r, &key)) {
		if (!str_eq(key, STR("resourceSpans"))) {
			rs_json_skip(&r->j);
			continue;
		}
		rs_json_array(&r->j);
		while (rs_json_elem(&r->j)) {
			struct rs_resource_spans *rs = rs_batch_add_resource(r->b);

			if (rs)
				read_resource_spans(r, rs);
			else
				rs_json_fail(&r->j, NO_MEMORY);
		}
	}
}

int rs_read_otlp_json(struct rs_batch *b, struct str in, struct rs_read_error *ret_err)
{
	struct reader r = { .b = b, .arena = &b->arena };

	rs_json_init(&r.j, in, r.arena);
	rs_keys_init(&r.keys);
	while (rs_json_more(&r.j))
		read_document(&r);
	if (!r.j.err)
		return 0;
	*ret_err = (struct rs_read_error){ .why = r.j.err, .offset = r.j.err_at };
	rs_json_where(&r.j, &ret_err->line, &ret_err->col);
	return strcmp(r.j.err, NO_MEMORY) ? -EINVAL : -ENOMEM;
}
