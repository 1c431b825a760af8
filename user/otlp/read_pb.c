// SPDX-License-Identifier: Apache-2.0
/*
 * OTLP/protobuf. As proto3 decoders do: fields in any order, of repeated scalars the last one counts,
 * repeated sub-messages of a singular field are merged, unknown fields and known ones of another wire
 * type are skipped.
 */
#include <errno.h>

#include "list.h"
#include "read.h"
#include "trace/keys.h"

struct reader {
	const char *start;
	struct rs_batch *b;
	struct rs_arena *arena;
	const char *err; /* NULL: none so far */
	size_t err_at;
	struct rs_keys keys;
};

#define NO_MEMORY "out of memory"

/* A message being read. */
struct msg {
	const char *p, *end;
};

struct field {
	uint32_t num;
	uint8_t wire;
	const char *at;	 /* its tag */
	uint64_t v;	 /* varint, fixed64, fixed32 */
	struct msg body; /* length-delimited */
};

enum {
	VARINT = 0,
	FIXED64 = 1,
	BYTES = 2,
	GROUP = 3,
	END_GROUP = 4,
	FIXED32 = 5,
};

/* A known field: number and wire type in one. */
#define FIELD(num, wire) ((num) << 3 | (wire))

static bool fail(struct reader *r, const char *at, const char *why)
{
	if (!r->err) {
		r->err = why;
		r->err_at = (size_t)(at - r->start);
	}
	return false;
}

static bool varint(struct reader *r, struct msg *m, uint64_t *ret)
{
	const char *at = m->p;
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t c;

		if (m->p == m->end)
			return fail(r, at, "a varint runs past the end of its message");
		c = (uint8_t)*m->p++;
		v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return fail(r, at, "a varint of more than ten bytes");
}

/* Reads a value of the field's wire type. Groups are their tags alone. */
static bool value(struct reader *r, struct msg *m, struct field *f)
{
	size_t n = f->wire == FIXED64 ? 8 : 4;

	switch (f->wire) {
	case VARINT:
		return varint(r, m, &f->v);
	case FIXED64:
	case FIXED32:
		if ((size_t)(m->end - m->p) < n)
			return fail(r, f->at, "a field runs past the end of its message");
		f->v = 0;
		memcpy(&f->v, m->p, n);
		m->p += n;
		return true;
	case BYTES:
		if (!varint(r, m, &f->v))
			return false;
		if (f->v > (size_t)(m->end - m->p))
			return fail(r, f->at, "a field runs past the end of its message");
		f->body = (struct msg){ m->p, m->p + f->v };
		m->p += f->v;
		return true;
	case GROUP:
	case END_GROUP:
		return true;
	default:
		return fail(r, f->at, "an unknown wire type");
	}
}

static bool tag(struct reader *r, struct msg *m, struct field *f)
{
	uint64_t v;

	f->at = m->p;
	if (!varint(r, m, &v))
		return false;
	if (v >> 3 == 0 || v >> 3 > 536870911)
		return fail(r, f->at, "an invalid field number");
	f->num = (uint32_t)(v >> 3);
	f->wire = v & 7;
	return true;
}

/* The next field; false at the message's end and on errors. Groups are skipped with all that is in them. */
static bool next_field(struct reader *r, struct msg *m, struct field *f)
{
	unsigned groups = 0;
	const char *open = m->p;

	while (m->p < m->end && !r->err) {
		if (!tag(r, m, f) || !value(r, m, f))
			return false;
		if (f->wire == GROUP) {
			open = groups++ ? open : f->at;
		} else if (f->wire == END_GROUP) {
			if (!groups--)
				return fail(r, f->at, "the end of a group that was not begun");
		} else if (!groups) {
			return true;
		}
	}
	return groups ? fail(r, open, "a group without end") : false;
}

static bool text(struct reader *r, const struct field *f, struct str *ret)
{
	*ret = rs_arena_str(r->arena, str_of(f->body.p, (size_t)(f->body.end - f->body.p)));
	return ret->ptr ? true : fail(r, f->at, NO_MEMORY);
}

/* STR or BYTES */
static void text_value(struct reader *r, const struct field *f, enum rs_val_type type,
		       struct rs_val *v)
{
	struct str s;

	if (!text(r, f, &s))
		return;
	if (s.len > UINT32_MAX)
		fail(r, f->at, "text too long");
	*v = (struct rs_val){ .type = (uint8_t)type, .len = (uint32_t)s.len, .str = s.ptr };
}

/* false: it has another length. */
static bool id(const struct field *f, uint8_t *ret, size_t n)
{
	if ((size_t)(f->body.end - f->body.p) != n)
		return false;
	memcpy(ret, f->body.p, n);
	return true;
}

/* The elements of an array or map being read, of all its parts. */
struct elements {
	struct attr_list attrs;
	struct val_list vals;
};

static void read_value(struct reader *r, struct msg m, struct rs_val *v, struct elements *el,
		       unsigned depth);

/* Behind the last part of v. */
static void finish_value(struct reader *r, struct rs_val *v, const struct elements *el)
{
	if (v->type == RS_VAL_MAP) {
		v->len = el->attrs.n;
		v->map = attr_list_array(&el->attrs, r->arena);
	} else if (v->type == RS_VAL_ARRAY) {
		v->len = el->vals.n;
		v->arr = val_list_array(&el->vals, r->arena);
	} else {
		return;
	}
	if (v->len && !v->arr)
		fail(r, r->start, NO_MEMORY);
}

static void read_attr(struct reader *r, struct msg m, struct attr_list *list, unsigned depth)
{
	struct rs_attr *a = attr_list_add(list, r->arena);
	struct elements el = { 0 };
	struct str name = STR("");
	const char *at = m.p;
	struct field f;

	if (!a) {
		fail(r, at, NO_MEMORY);
		return;
	}
	a->val.len = 1;
	while (next_field(r, &m, &f)) {
		switch (FIELD(f.num, f.wire)) {
		case FIELD(1, BYTES):
			name = str_of(f.body.p, (size_t)(f.body.end - f.body.p));
			break;
		case FIELD(2, BYTES):
			if (a->val.type == RS_VAL_EMPTY)
				a->val.len = 0;
			read_value(r, f.body, &a->val, &el, depth);
			break;
		}
	}
	finish_value(r, &a->val, &el);
	a->key = rs_keys_get(&r->keys, r->arena, name);
	if (!a->key)
		fail(r, at, NO_MEMORY);
}

static void finish_attrs(struct reader *r, const struct attr_list *list, struct rs_attrs *as)
{
	as->n = list->n;
	as->a = attr_list_array(list, r->arena);
	if (list->n && !as->a)
		fail(r, r->start, NO_MEMORY);
}

/* ArrayValue, KeyValueList, or one more part of it; what is nested too deep becomes the empty value. */
static void read_list(struct reader *r, struct msg m, struct rs_val *v, struct elements *el,
		      enum rs_val_type type, unsigned depth)
{
	struct field f;

	if (depth == RS_READ_DEPTH) {
		*v = (struct rs_val){ .type = RS_VAL_EMPTY };
		return;
	}
	if (v->type != type) {
		*v = (struct rs_val){ .type = (uint8_t)type };
		*el = (struct elements){ 0 };
	}
	while (next_field(r, &m, &f)) {
		if (FIELD(f.num, f.wire) != FIELD(1, BYTES))
			continue;
		if (type == RS_VAL_MAP) {
			read_attr(r, f.body, &el->attrs, depth + 1);
		} else {
			struct rs_val *e = val_list_add(&el->vals, r->arena);
			struct elements of_e = { 0 };

			if (!e) {
				fail(r, f.at, NO_MEMORY);
				continue;
			}
			read_value(r, f.body, e, &of_e, depth + 1);
			finish_value(r, e, &of_e);
		}
	}
}

/* AnyValue, or one more part of it: of several members the last one counts, and parts of one list are joined. */
static void read_value(struct reader *r, struct msg m, struct rs_val *v, struct elements *el,
		       unsigned depth)
{
	struct field f;

	while (next_field(r, &m, &f)) {
		switch (FIELD(f.num, f.wire)) {
		case FIELD(1, BYTES):
			text_value(r, &f, RS_VAL_STR, v);
			break;
		case FIELD(2, VARINT):
			*v = (struct rs_val){ .type = RS_VAL_BOOL, .b = f.v != 0 };
			break;
		case FIELD(3, VARINT):
			*v = (struct rs_val){ .type = RS_VAL_INT, .i = (int64_t)f.v };
			break;
		case FIELD(4, FIXED64):
			*v = (struct rs_val){ .type = RS_VAL_DOUBLE };
			memcpy(&v->d, &f.v, 8);
			break;
		case FIELD(5, BYTES):
			read_list(r, f.body, v, el, RS_VAL_ARRAY, depth);
			break;
		case FIELD(6, BYTES):
			read_list(r, f.body, v, el, RS_VAL_MAP, depth);
			break;
		case FIELD(7, BYTES):
			text_value(r, &f, RS_VAL_BYTES, v);
			break;
		}
	}
}

static void read_event(struct reader *r, struct msg m, struct rs_event *e)
{
	struct attr_list attrs = { 0 };
	struct field f;

	while (next_field(r, &m, &f)) {
		switch (FIELD(f.num, f.wire)) {
		case FIELD(1, FIXED64):
			e->time_ns = f.v;
			break;
		case FIELD(2, BYTES):
			text(r, &f, &e->name);
			break;
		case FIELD(3, BYTES):
			read_attr(r, f.body, &attrs, 0);
			break;
		case FIELD(4, VARINT):
			e->attrs.dropped = (uint32_t)f.v;
			break;
		}
	}
	finish_attrs(r, &attrs, &e->attrs);
}

/* Ids of a wrong length stay zero: such a link is left out. */
static void read_link(struct reader *r, struct msg m, struct rs_link *l)
{
	struct attr_list attrs = { 0 };
	struct field f;

	while (next_field(r, &m, &f)) {
		switch (FIELD(f.num, f.wire)) {
		case FIELD(1, BYTES):
			id(&f, l->trace_id, 16);
			break;
		case FIELD(2, BYTES):
			id(&f, l->span_id, 8);
			break;
		case FIELD(3, BYTES):
			text(r, &f, &l->trace_state);
			break;
		case FIELD(4, BYTES):
			read_attr(r, f.body, &attrs, 0);
			break;
		case FIELD(5, VARINT):
			l->attrs.dropped = (uint32_t)f.v;
			break;
		case FIELD(6, FIXED32):
			l->flags = (uint32_t)f.v;
			break;
		}
	}
	finish_attrs(r, &attrs, &l->attrs);
}

static void read_status(struct reader *r, struct msg m, struct rs_span *s)
{
	struct field f;

	s->has_status = true;
	while (next_field(r, &m, &f)) {
		if (FIELD(f.num, f.wire) == FIELD(2, BYTES))
			text(r, &f, &s->status_msg);
		else if (FIELD(f.num, f.wire) == FIELD(3, VARINT))
			s->status = rs_otlp_enum((int32_t)f.v);
	}
}

static void read_span(struct reader *r, struct msg m, struct rs_span *s)
{
	struct attr_list attrs = { 0 };
	struct event_list events = { 0 };
	struct link_list links = { 0 };
	struct rs_event *e;
	struct rs_link *l;
	struct field f;

	s->no_trace_id = s->no_span_id = true;
	while (next_field(r, &m, &f)) {
		switch (FIELD(f.num, f.wire)) {
		case FIELD(1, BYTES):
			s->no_trace_id = !id(&f, s->trace_id, 16);
			break;
		case FIELD(2, BYTES):
			s->no_span_id = !id(&f, s->span_id, 8);
			break;
		case FIELD(3, BYTES):
			text(r, &f, &s->trace_state);
			break;
		case FIELD(4, BYTES):
			s->no_parent_id = !id(&f, s->parent_id, 8) && f.body.p != f.body.end;
			break;
		case FIELD(5, BYTES):
			text(r, &f, &s->name);
			break;
		case FIELD(6, VARINT):
			s->kind = rs_otlp_enum((int32_t)f.v);
			break;
		case FIELD(7, FIXED64):
			s->start_ns = f.v;
			break;
		case FIELD(8, FIXED64):
			s->end_ns = f.v;
			break;
		case FIELD(9, BYTES):
			read_attr(r, f.body, &attrs, 0);
			break;
		case FIELD(10, VARINT):
			s->attrs.dropped = (uint32_t)f.v;
			break;
		case FIELD(11, BYTES):
			e = event_list_add(&events, r->arena);
			if (e)
				read_event(r, f.body, e);
			else
				fail(r, f.at, NO_MEMORY);
			break;
		case FIELD(12, VARINT):
			s->dropped_events = (uint32_t)f.v;
			break;
		case FIELD(13, BYTES):
			l = link_list_add(&links, r->arena);
			if (l)
				read_link(r, f.body, l);
			else
				fail(r, f.at, NO_MEMORY);
			break;
		case FIELD(14, VARINT):
			s->dropped_links = (uint32_t)f.v;
			break;
		case FIELD(15, BYTES):
			read_status(r, f.body, s);
			break;
		case FIELD(16, FIXED32):
			s->flags = (uint32_t)f.v;
			break;
		}
	}
	finish_attrs(r, &attrs, &s->attrs);
	s->nevents = events.n;
	s->events = event_list_array(&events, r->arena);
	s->nlinks = links.n;
	s->links = link_list_array(&links, r->arena);
	if ((events.n && !s->events) || (links.n && !s->links))
		fail(r, r->start, NO_MEMORY);
}

static void read_scope(struct reader *r, struct msg m, struct rs_scope *sc, struct attr_list *attrs)
{
	struct field f;

	while (next_field(r, &m, &f)) {
		switch (FIELD(f.num, f.wire)) {
		case FIELD(1, BYTES):
			text(r, &f, &sc->name);
			break;
		case FIELD(2, BYTES):
			text(r, &f, &sc->version);
			break;
		case FIELD(3, BYTES):
			read_attr(r, f.body, attrs, 0);
			break;
		case FIELD(4, VARINT):
			sc->attrs.dropped = (uint32_t)f.v;
			break;
		}
	}
}

static void read_scope_spans(struct reader *r, struct msg m, struct rs_scope_spans *ss)
{
	struct attr_list attrs = { 0 };
	struct rs_span *s;
	struct field f;

	ss->no_scope = true;
	while (next_field(r, &m, &f)) {
		switch (FIELD(f.num, f.wire)) {
		case FIELD(1, BYTES):
			ss->no_scope = false;
			read_scope(r, f.body, &ss->scope, &attrs);
			break;
		case FIELD(2, BYTES):
			s = rs_batch_add_span(r->b, ss);
			if (s)
				read_span(r, f.body, s);
			else
				fail(r, f.at, NO_MEMORY);
			break;
		case FIELD(3, BYTES):
			text(r, &f, &ss->schema_url);
			break;
		}
	}
	finish_attrs(r, &attrs, &ss->scope.attrs);
}

static void read_resource(struct reader *r, struct msg m, struct rs_resource *res,
			  struct attr_list *attrs)
{
	struct field f;

	while (next_field(r, &m, &f)) {
		if (FIELD(f.num, f.wire) == FIELD(1, BYTES))
			read_attr(r, f.body, attrs, 0);
		else if (FIELD(f.num, f.wire) == FIELD(2, VARINT))
			res->attrs.dropped = (uint32_t)f.v;
	}
}

static void read_resource_spans(struct reader *r, struct msg m, struct rs_resource_spans *rs)
{
	struct attr_list attrs = { 0 };
	struct rs_scope_spans *ss;
	struct field f;

	rs->no_resource = true;
	while (next_field(r, &m, &f)) {
		switch (FIELD(f.num, f.wire)) {
		case FIELD(1, BYTES):
			rs->no_resource = false;
			read_resource(r, f.body, &rs->resource, &attrs);
			break;
		case FIELD(2, BYTES):
			ss = rs_batch_add_scope(r->b, rs);
			if (ss)
				read_scope_spans(r, f.body, ss);
			else
				fail(r, f.at, NO_MEMORY);
			break;
		case FIELD(3, BYTES):
			text(r, &f, &rs->schema_url);
			break;
		}
	}
	finish_attrs(r, &attrs, &rs->resource.attrs);
}

int rs_read_otlp_pb(struct rs_batch *b, struct str in, struct rs_read_error *ret_err)
{
	struct reader r = { .start = in.ptr, .b = b, .arena = &b->arena };
	struct msg m = { in.ptr, in.len ? in.ptr + in.len : in.ptr };
	struct field f;

	rs_keys_init(&r.keys);
	while (next_field(&r, &m, &f)) {
		struct rs_resource_spans *rs;

		if (FIELD(f.num, f.wire) != FIELD(1, BYTES))
			continue;
		rs = rs_batch_add_resource(b);
		if (rs)
			read_resource_spans(&r, f.body, rs);
		else
			fail(&r, f.at, NO_MEMORY);
	}
	if (!r.err)
		return 0;
	*ret_err = (struct rs_read_error){ .why = r.err, .offset = r.err_at };
	return strcmp(r.err, NO_MEMORY) ? -EINVAL : -ENOMEM;
}

/*
 * JSON starts with a brace. Before it there may be space, and a newline is also the tag of protobuf's first
 * field: then it is protobuf if its fields end where the input ends.
 */
bool rs_read_is_pb(struct str in)
{
	struct reader r = { .start = in.ptr };
	struct msg m = { in.ptr, in.len ? in.ptr + in.len : in.ptr };
	struct field f;

	if (!in.len || in.ptr[0] == '{' || str_starts(in, STR("\xef\xbb\xbf")))
		return false;
	while (next_field(&r, &m, &f)) {
		if (FIELD(f.num, f.wire) != FIELD(1, BYTES) && f.num < 2)
			return false;
	}
	return !r.err;
}
