// SPDX-License-Identifier: Apache-2.0
#include "limits.h"

size_t rs_limits_cut(const char *s, size_t len, uint32_t n)
{
	size_t i = 0;

	if (len <= n)
		return len;
	for (; i < len && n; n--) {
		unsigned char c = (unsigned char)s[i++];
		unsigned more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;

		while (more-- && i < len && ((unsigned char)s[i] & 0xc0) == 0x80)
			i++;
	}
	return i;
}

static void cut_value(const struct rs_limits *l, struct rs_val *v)
{
	if (v->type == RS_VAL_STR)
		v->len = (uint32_t)rs_limits_cut(v->str, v->len, l->value_length);
}

/* Text, and the texts of an array; they are ours until the batch is handed on. */
static void cut_values(const struct rs_limits *l, struct rs_attr *a, uint32_t n)
{
	for (uint32_t i = 0; i < n && l->value_length; i++) {
		cut_value(l, &a[i].val);
		for (uint32_t k = 0; a[i].val.type == RS_VAL_ARRAY && k < a[i].val.len; k++)
			cut_value(l, (struct rs_val *)&a[i].val.arr[k]);
	}
}

static void cut_attrs(const struct rs_limits *l, uint32_t max, struct rs_attrs *a)
{
	if (a->n > max) {
		a->dropped += a->n - max;
		a->n = max;
	}
	cut_values(l, (struct rs_attr *)a->a, a->n); /* ours until the batch is handed on */
}

void rs_limits_apply(const struct rs_limits *l, struct rs_build *b)
{
	struct rs_span *s = b->span;

	if (b->n > l->attributes) {
		b->dropped += b->n - l->attributes;
		b->n = l->attributes;
	}
	cut_values(l, b->attrs, b->n);
	if (s->nevents > l->events) {
		s->dropped_events += s->nevents - l->events;
		s->nevents = l->events;
	}
	if (s->nlinks > l->links) {
		s->dropped_links += s->nlinks - l->links;
		s->nlinks = l->links;
	}
	for (uint32_t i = 0; i < s->nevents; i++)
		cut_attrs(l, l->event_attributes, &((struct rs_event *)s->events)[i].attrs);
	for (uint32_t i = 0; i < s->nlinks; i++)
		cut_attrs(l, l->link_attributes, &((struct rs_link *)s->links)[i].attrs);
}
