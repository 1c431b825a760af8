// SPDX-License-Identifier: Apache-2.0
/*
 * json — a span as one flat object on a line of its own, for people, jq and tests:
 *
 *   trace_id span_id parent_span_id (hex; parent: absent for a root) name kind start_unix_nano
 *   end_unix_nano status{code,message} attributes{} events[{name,time_unix_nano,attributes{}}]
 *   links[{trace_id,span_id,attributes{}}] resource{}
 *
 * kind and status.code are words in lower case, times are integers, attributes are JSON values of their
 * own type; bytes are base64 text, what JSON has no number for is text ("NaN"). Members that are lists,
 * maps or status are always there. The payload ends without a newline after its last span.
 */
#include "memo.h"
#include "wire_json.h"

struct state {
	struct rs_sink sink;
	struct rs_memo resources;
};

static char *put_map(struct rs_sink *s, char *p, const struct rs_attr *a, uint32_t n,
		     unsigned depth);

static char *put_value(struct rs_sink *s, char *p, const struct rs_val *v, unsigned depth)
{
	switch ((enum rs_val_type)v->type) {
	case RS_VAL_EMPTY:
		break;
	case RS_VAL_STR:
		return rs_json_text(s, p, str_of(v->str, v->len));
	case RS_VAL_BOOL:
		if (v->b)
			return RS_LIT(p, "true");
		return RS_LIT(p, "false");
	case RS_VAL_INT:
		return rs_json_i64(p, v->i);
	case RS_VAL_DOUBLE:
		return rs_json_double(p, v->d);
	case RS_VAL_BYTES:
		*p++ = '"';
		p = rs_json_base64(s, p, v->str, v->len);
		*p++ = '"';
		return p;
	case RS_VAL_ARRAY:
		if (depth == RS_ENC_DEPTH)
			break;
		*p++ = '[';
		for (uint32_t i = 0; i < v->len; i++) {
			p = rs_sink_need(s, p, 0);
			if (i)
				*p++ = ',';
			p = put_value(s, p, &v->arr[i], depth + 1);
		}
		p = rs_sink_need(s, p, 0);
		*p++ = ']';
		return p;
	case RS_VAL_MAP:
		if (depth == RS_ENC_DEPTH)
			break;
		return put_map(s, p, v->map, v->len, depth + 1);
	}
	return RS_LIT(p, "null");
}

static char *put_map(struct rs_sink *s, char *p, const struct rs_attr *a, uint32_t n,
		     unsigned depth)
{
	*p++ = '{';
	for (uint32_t i = 0; i < n; i++) {
		p = rs_sink_need(s, p, 0);
		if (i)
			*p++ = ',';
		p = rs_json_text(s, p, a[i].key->name);
		*p++ = ':';
		p = put_value(s, p, &a[i].val, depth);
	}
	p = rs_sink_need(s, p, 0);
	*p++ = '}';
	return p;
}

static char *put_word(char *p, const char *const *words, unsigned n, unsigned i)
{
	const char *w = words[i < n ? i : 0];
	size_t len = strlen(w);

	memcpy(p, w, len);
	return p + len;
}

static char *put_event(struct rs_sink *s, char *p, const struct rs_event *e)
{
	p = RS_LIT(p, "{\"name\":");
	p = rs_json_text(s, p, e->name);
	p = RS_LIT(p, ",\"time_unix_nano\":");
	p = rs_json_u64(p, e->time_ns);
	p = RS_LIT(p, ",\"attributes\":");
	p = put_map(s, p, e->attrs.a, e->attrs.n, 0);
	*p++ = '}';
	return p;
}

static char *put_link(struct rs_sink *s, char *p, const struct rs_link *l)
{
	p = RS_LIT(p, "{\"trace_id\":\"");
	p = rs_json_hex(p, l->trace_id, 16);
	p = RS_LIT(p, "\",\"span_id\":\"");
	p = rs_json_hex(p, l->span_id, 8);
	p = RS_LIT(p, "\",\"attributes\":");
	p = put_map(s, p, l->attrs.a, l->attrs.n, 0);
	*p++ = '}';
	return p;
}

static char *put_lists(struct rs_sink *s, char *p, const struct rs_span *span)
{
	p = RS_LIT(p, ",\"events\":[");
	for (uint32_t i = 0; i < span->nevents; i++) {
		p = rs_sink_need(s, p, 0);
		if (i)
			*p++ = ',';
		p = put_event(s, p, &span->events[i]);
	}
	p = rs_sink_need(s, p, 0);
	p = RS_LIT(p, "],\"links\":[");
	for (uint32_t i = 0; i < span->nlinks; i++) {
		p = rs_sink_need(s, p, 0);
		if (i)
			*p++ = ',';
		p = put_link(s, p, &span->links[i]);
	}
	p = rs_sink_need(s, p, 0);
	*p++ = ']';
	return p;
}

static char *put_resource(struct rs_sink *s, struct rs_memo *memo, char *p,
			  const struct rs_resource *r)
{
	size_t from = rs_sink_pos(s, p);

	if (rs_memo_put(memo, s, &p, r))
		return p;
	p = put_map(s, p, r->attrs.a, r->attrs.n, 0);
	rs_memo_keep(memo, s, from, p, r);
	return p;
}

static char *put_span(struct state *st, char *p, const struct rs_span *span,
		      const struct rs_resource *resource)
{
	static const char *const kind[] = { "unspecified", "internal", "server",
					    "client",	   "producer", "consumer" };
	static const char *const code[] = { "unset", "ok", "error" };
	struct rs_sink *s = &st->sink;

	p = rs_sink_need(s, p, 256);
	p = RS_LIT(p, "{\"trace_id\":\"");
	p = rs_json_hex(p, span->trace_id, 16);
	p = RS_LIT(p, "\",\"span_id\":\"");
	p = rs_json_hex(p, span->span_id, 8);
	if (!rs_id_is_zero(span->parent_id, 8)) {
		p = RS_LIT(p, "\",\"parent_span_id\":\"");
		p = rs_json_hex(p, span->parent_id, 8);
	}
	p = RS_LIT(p, "\",\"name\":");
	p = rs_json_text(s, p, span->name);
	p = RS_LIT(p, ",\"kind\":\"");
	p = put_word(p, kind, 6, span->kind);
	p = RS_LIT(p, "\",\"start_unix_nano\":");
	p = rs_json_u64(p, span->start_ns);
	p = RS_LIT(p, ",\"end_unix_nano\":");
	p = rs_json_u64(p, span->end_ns);
	p = RS_LIT(p, ",\"status\":{\"code\":\"");
	p = put_word(p, code, 3, span->status);
	p = RS_LIT(p, "\",\"message\":");
	p = rs_json_text(s, p, span->status_msg);
	p = rs_sink_need(s, p, 0);
	p = RS_LIT(p, "},\"attributes\":");
	p = put_map(s, p, span->attrs.a, span->attrs.n, 0);
	p = put_lists(s, p, span);
	p = RS_LIT(p, ",\"resource\":");
	p = put_resource(s, &st->resources, p, resource);
	p = RS_LIT(p, "}\n");
	return p;
}

static inline char *put_one(struct rs_encoder *e, char *p, const struct rs_cursor *at)
{
	return put_span(e->state, p, at->span, &at->rs->resource);
}

static int encode(struct rs_encoder *e, struct rs_encode *run)
{
	struct rs_sink *s = &((struct state *)e->state)->sink;
	char *p = rs_sink_open(s, e->pool, e->opts.max_payload);
	bool full = false;
	uint32_t n = 0;

	if (!p)
		return s->err;
	for (const struct rs_resource_spans *rs = rs_first_resource(run); rs && !full;
	     rs = rs->next) {
		for (const struct rs_scope_spans *ss = rs_first_scope(run, rs); ss && !full;
		     ss = ss->next)
			p = rs_put_spans(e, run, s, p, rs, ss, &n, &full, put_one);
	}
	if (s->err || (full && !n)) {
		int err = s->err ? s->err : -ENOBUFS;

		rs_sink_abort(s);
		return err;
	}
	run->done = !full;
	/* The last newline is the writer's, as after every format's payload. */
	if (n)
		rs_sink_close(s, p - 1, &run->out);
	else
		rs_sink_abort(s);
	return 0;
}

static int init(struct rs_encoder *e)
{
	return rs_memo_init(&((struct state *)e->state)->resources);
}

static void release(struct rs_encoder *e)
{
	rs_memo_release(&((struct state *)e->state)->resources);
}

RS_ENCODER_OPS(json) = {
	.name = "json",
	.content_type = "application/x-ndjson",
	.suffix = "json",
	.state_size = sizeof(struct state),
	.init = init,
	.release = release,
	.encode = encode,
};
