// SPDX-License-Identifier: Apache-2.0
#include "datadog_text.h"

#include "json_value.h"

/* Cuts what was written since `at` to DD_MAX_VALUE bytes. Only valid text is there. */
static char *cut(struct rs_sink *s, char *p, size_t at)
{
	if (s->err || rs_sink_pos(s, p) - at <= DD_MAX_VALUE)
		return p;
	return s->base + at +
	       rs_utf8_limit((struct str){ s->base + at, rs_sink_pos(s, p) - at }, DD_MAX_VALUE)
		       .len;
}

char *dd_close_text(struct rs_sink *s, char *p, size_t at)
{
	char head[8];
	size_t len, n;

	p = rs_sink_need(s, p, 16);
	if (s->err)
		return p;
	len = rs_sink_pos(s, p) - at - 3;
	n = (size_t)(rs_mp_str_head(head, len) - head);
	if (n != 3)
		memmove(s->base + at + n, s->base + at + 3, len);
	memcpy(s->base + at, head, n);
	return s->base + at + n + len;
}

char *dd_put_long(struct rs_sink *s, char *p, const struct rs_val *v, size_t max)
{
	size_t at;

	p = rs_sink_need(s, p, 16);
	at = rs_sink_pos(s, p);
	p = dd_val_text(s, p + 3, v);
	if (!s->err && rs_sink_pos(s, p) - at - 3 > max)
		p = s->base + at + 3 +
		    rs_utf8_limit((struct str){ s->base + at + 3, rs_sink_pos(s, p) - at - 3 }, max)
			    .len;
	return dd_close_text(s, p, at);
}

char *dd_val_text(struct rs_sink *s, char *p, const struct rs_val *v)
{
	size_t at;

	p = rs_sink_need(s, p, 64);
	at = rs_sink_pos(s, p);
	switch (v->type) {
	case RS_VAL_STR:
		p = rs_text_raw(s, p, rs_utf8_limit((struct str){ v->str, v->len }, DD_MAX_VALUE));
		return cut(s, p, at);
	case RS_VAL_BYTES:
		p = rs_json_base64(s, p, v->str, v->len < DD_MAX_VALUE ? v->len : DD_MAX_VALUE);
		return cut(s, p, at);
	case RS_VAL_DOUBLE:
		if (v->d != v->d)
			return RS_LIT(p, "NaN");
		if (v->d - v->d != 0)
			return v->d > 0 ? RS_LIT(p, "+Inf") : RS_LIT(p, "-Inf");
		return rs_json_double_digits(p, v->d);
	case RS_VAL_EMPTY:
		return p;
	}
	p = rs_json_value(s, p, v, &(struct rs_json_limit){ at + DD_MAX_VALUE, DD_MAX_VALUE });
	return cut(s, p, at);
}

static char *json_attrs(struct rs_sink *s, char *p, const struct rs_attrs *as,
			const struct rs_json_limit *max, bool text)
{
	bool any = false;

	p = RS_LIT(p, ",\"attributes\":");
	if (!text)
		return rs_json_map(s, p, as->a, as->n, max);
	*p++ = '{';
	for (uint32_t i = 0; i < as->n && rs_sink_pos(s, p) <= max->stop && !s->err; i++) {
		if (!rs_attr_named(&as->a[i]))
			continue;
		if (any)
			*p++ = ',';
		any = true;
		p = rs_json_text(s, p, rs_utf8_limit(as->a[i].key->name, DD_MAX_VALUE));
		p = RS_LIT(p, ":\"");
		p = rs_value_text(s, p, &as->a[i].val, max);
		*p++ = '"';
		p = rs_sink_need(s, p, 0);
	}
	*p++ = '}';
	return p;
}

static char *json_dropped(char *p, uint32_t n)
{
	if (!n)
		return p;
	p = RS_LIT(p, ",\"dropped_attributes_count\":");
	return rs_json_u64(p, n);
}

static char *json_link(struct rs_sink *s, char *p, const struct rs_link *l,
		       const struct rs_json_limit *max)
{
	p = RS_LIT(p, "{\"trace_id\":\"");
	p = rs_json_hex(p, l->trace_id, 16);
	p = RS_LIT(p, "\",\"span_id\":\"");
	p = rs_json_hex(p, l->span_id, 8);
	*p++ = '"';
	if (rs_attrs_named(&l->attrs))
		p = json_attrs(s, p, &l->attrs, max, true);
	p = rs_sink_need(s, p, 64);
	if (l->flags & 0xff) {
		p = RS_LIT(p, ",\"flags\":");
		p = rs_json_u64(p, l->flags & 0xff);
	}
	if (l->trace_state.len) {
		p = RS_LIT(p, ",\"tracestate\":");
		p = rs_json_text(s, p, rs_utf8_limit(l->trace_state, DD_MAX_VALUE));
	}
	p = json_dropped(p, l->attrs.dropped);
	*p++ = '}';
	return p;
}

static char *json_event(struct rs_sink *s, char *p, const struct rs_event *e,
			const struct rs_json_limit *max)
{
	p = RS_LIT(p, "{\"time_unix_nano\":");
	p = rs_json_u64(p, e->time_ns);
	p = RS_LIT(p, ",\"name\":");
	p = rs_json_text(s, p, rs_utf8_limit(e->name, DD_MAX_VALUE));
	if (rs_attrs_named(&e->attrs))
		p = json_attrs(s, p, &e->attrs, max, false);
	p = rs_sink_need(s, p, 64);
	p = json_dropped(p, e->attrs.dropped);
	*p++ = '}';
	return p;
}

char *dd_links_json(struct rs_sink *s, char *p, const struct rs_span *span)
{
	struct rs_json_limit max = { 0, DD_MAX_VALUE };

	p = rs_sink_need(s, p, 16);
	/* With the closing bracket, below the limit. */
	max.stop = rs_sink_pos(s, p) + DD_MAX_VALUE - 1;
	*p++ = '[';
	for (uint32_t i = 0; i < span->nlinks && !s->err; i++) {
		size_t mark = rs_sink_pos(s, p);

		if (!rs_link_ok(&span->links[i]))
			continue;
		p = rs_sink_need(s, p, 128);
		if (p[-1] != '[')
			*p++ = ',';
		p = json_link(s, p, &span->links[i], &max);
		p = rs_sink_need(s, p, 16);
		if (rs_sink_pos(s, p) >= max.stop && !s->err) {
			p = s->base + mark;
			break;
		}
	}
	*p++ = ']';
	return p;
}

char *dd_events_json(struct rs_sink *s, char *p, const struct rs_span *span)
{
	struct rs_json_limit max = { 0, DD_MAX_VALUE };

	p = rs_sink_need(s, p, 16);
	max.stop = rs_sink_pos(s, p) + DD_MAX_VALUE - 1;
	*p++ = '[';
	for (uint32_t i = 0; i < span->nevents && !s->err; i++) {
		size_t mark = rs_sink_pos(s, p);

		p = rs_sink_need(s, p, 128);
		if (i)
			*p++ = ',';
		p = json_event(s, p, &span->events[i], &max);
		p = rs_sink_need(s, p, 16);
		if (rs_sink_pos(s, p) >= max.stop && !s->err) {
			p = s->base + mark;
			break;
		}
	}
	*p++ = ']';
	return p;
}
