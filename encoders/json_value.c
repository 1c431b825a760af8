// SPDX-License-Identifier: Apache-2.0
#include "json_value.h"

static char *value(struct rs_sink *s, char *p, const struct rs_val *v,
		   const struct rs_json_limit *max, unsigned depth);

/* named: attributes, of which those without a name are left out; else a map, which may have such keys. */
static char *map(struct rs_sink *s, char *p, const struct rs_attr *a, uint32_t n,
		 const struct rs_json_limit *max, bool named, unsigned depth)
{
	bool any = false;

	p = rs_sink_need(s, p, 0);
	*p++ = '{';
	for (uint32_t i = 0; i < n && !s->err && rs_sink_pos(s, p) <= max->stop; i++) {
		if (named && !rs_attr_named(&a[i]))
			continue;
		if (any)
			*p++ = ',';
		any = true;
		p = rs_json_text(s, p, rs_utf8_limit(a[i].key->name, max->text));
		*p++ = ':';
		p = value(s, p, &a[i].val, max, depth);
	}
	*p++ = '}';
	return rs_sink_need(s, p, 0);
}

static char *value(struct rs_sink *s, char *p, const struct rs_val *v,
		   const struct rs_json_limit *max, unsigned depth)
{
	p = rs_sink_need(s, p, 0);
	switch ((enum rs_val_type)v->type) {
	case RS_VAL_EMPTY:
		return RS_LIT(p, "null");
	case RS_VAL_STR:
		p = rs_json_text(s, p, rs_utf8_limit((struct str){ v->str, v->len }, max->text));
		return rs_sink_need(s, p, 0);
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
		p = rs_json_base64(s, p, v->str, v->len < max->text ? v->len : max->text);
		*p++ = '"';
		return rs_sink_need(s, p, 0);
	case RS_VAL_ARRAY:
		if (depth >= RS_ENC_DEPTH)
			return RS_LIT(p, "null");
		*p++ = '[';
		for (uint32_t i = 0; i < v->len && !s->err && rs_sink_pos(s, p) <= max->stop; i++) {
			if (i)
				*p++ = ',';
			p = value(s, p, &v->arr[i], max, depth + 1);
		}
		*p++ = ']';
		return rs_sink_need(s, p, 0);
	case RS_VAL_MAP:
		if (depth >= RS_ENC_DEPTH)
			return RS_LIT(p, "null");
		return map(s, p, v->map, v->len, max, false, depth + 1);
	}
	return p;
}

char *rs_json_value(struct rs_sink *s, char *p, const struct rs_val *v,
		    const struct rs_json_limit *max)
{
	return value(s, p, v, max, 0);
}

char *rs_json_map(struct rs_sink *s, char *p, const struct rs_attr *a, uint32_t n,
		  const struct rs_json_limit *max)
{
	return map(s, p, a, n, max, true, 0);
}

char *rs_json_quote(struct rs_sink *s, char *p, size_t at)
{
	size_t len, more = 0;
	char *from, *to;

	if (s->err)
		return p;
	len = rs_sink_pos(s, p) - at;
	for (size_t i = 0; i < len; i++)
		more += s->base[at + i] == '"' || s->base[at + i] == '\\';
	/* In steps, as there is a limit to what may be asked for at once. */
	for (size_t left = more; left; left -= left < RS_SINK_NEED_MAX ? left : RS_SINK_NEED_MAX) {
		p = rs_sink_need(s, p, left < RS_SINK_NEED_MAX ? left : RS_SINK_NEED_MAX);
		if (s->err)
			return p;
		p += left < RS_SINK_NEED_MAX ? left : RS_SINK_NEED_MAX;
	}
	p = rs_sink_need(s, p, 0);
	if (s->err)
		return p;
	from = s->base + at + len;
	to = from + more;
	while (to != from) {
		*--to = *--from;
		if (*to == '"' || *to == '\\')
			*--to = '\\';
	}
	return p;
}

char *rs_value_text(struct rs_sink *s, char *p, const struct rs_val *v,
		    const struct rs_json_limit *max)
{
	size_t at;

	p = rs_sink_need(s, p, 0);
	switch ((enum rs_val_type)v->type) {
	case RS_VAL_EMPTY:
		return p;
	case RS_VAL_STR:
		p = rs_text_json(s, p, rs_utf8_limit((struct str){ v->str, v->len }, max->text));
		return rs_sink_need(s, p, 0);
	case RS_VAL_BYTES:
		p = rs_json_base64(s, p, v->str, v->len < max->text ? v->len : max->text);
		return rs_sink_need(s, p, 0);
	case RS_VAL_DOUBLE:
		if (v->d != v->d)
			return RS_LIT(p, "NaN");
		if (v->d - v->d != 0)
			return v->d > 0 ? RS_LIT(p, "Infinity") : RS_LIT(p, "-Infinity");
		return rs_json_double_digits(p, v->d);
	case RS_VAL_BOOL:
	case RS_VAL_INT:
		return rs_json_value(s, p, v, max);
	case RS_VAL_ARRAY:
	case RS_VAL_MAP:
		break;
	}
	at = rs_sink_pos(s, p);
	return rs_json_quote(s, rs_json_value(s, p, v, max), at);
}
