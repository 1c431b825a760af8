// SPDX-License-Identifier: Apache-2.0
#include "spangen.h"

static uint32_t pick(struct rs_spangen *g, uint32_t n)
{
	uint64_t v;

	if (g->in) {
		v = g->left ? *g->in : 0;
		if (g->left) {
			g->in++;
			g->left--;
		}
		if (n > 256 && g->left) {
			v |= (uint64_t)*g->in++ << 8;
			g->left--;
		}
		return (uint32_t)(v % n);
	}
	/* xorshift64* */
	g->seed ^= g->seed >> 12;
	g->seed ^= g->seed << 25;
	g->seed ^= g->seed >> 27;
	v = g->seed * 0x2545f4914f6cdd1dull;
	return (uint32_t)(v >> 33) % n;
}

static struct str text_of(struct rs_spangen *g, struct rs_arena *a, size_t len)
{
	static const char *const parts[] = { "a",	 "GET",	 "/商品/日本語-💥", "quote \" \\ ",
					     "\t\n",	 "é",	 "hello world ",   "<&>",
					     "x=1;y=2",	 "\xff", "\xc0\x80",	   "\xed\xa0\x80",
					     "\xe6\x97", "\x80" };
	char *p = rs_arena_alloc(a, len + 32);
	size_t n = 0;

	if (!p)
		return STR_NONE;
	while (n < len) {
		const char *s = parts[pick(g, g->valid ? 9 : 14)];
		size_t l = strlen(s);

		memcpy(p + n, s, l);
		n += l;
	}
	/* Invalid text may end anywhere. */
	return (struct str){ p, g->valid ? n : len };
}

static struct str text(struct rs_spangen *g, struct rs_arena *a)
{
	static const uint32_t sizes[] = { 0,	1,    2,    7,	   8,	  15,	 16,	17,   31,
					  32,	33,   63,   64,	   100,	  255,	 256,	257,  4096,
					  5000, 8191, 8193, 24999, 25000, 25001, 65536, 70000 };

	return text_of(g, a, sizes[pick(g, pick(g, 8) ? 14 : 26)]);
}

static const struct rs_key *key(struct rs_spangen *g, struct rs_arena *a)
{
	static const char *const names[] = {
		"http.method",
		"http.route",
		"db.system",
		"db.statement",
		"messaging.system",
		"messaging.operation",
		"rpc.system",
		"rpc.method",
		"operation.name",
		"resource.name",
		"span.type",
		"sampling.priority",
		"_sampling_priority_v1",
		"env",
		"version",
		"component",
		"span.kind",
		"_dd.p.dm",
		"_dd.origin",
		"events",
		"_dd.span_links",
		"otel.trace_id",
		"error.msg",
		"peer.service",
		"error",
		"http.request.header.x",
		"url.template",
		"graphql.operation.type",
		"faas.trigger",
		"k1",
		"k2",
		"k3",
	};
	struct rs_key *k;

	if (!pick(g, 3))
		return rs_key((enum rs_known_key)pick(g, RS_K_COUNT));
	k = rs_arena_alloc(a, sizeof(*k));
	if (!k)
		return NULL;
	if (pick(g, 4))
		*k = rs_key_make(
			rs_arena_str(a, str_c(names[pick(g, sizeof(names) / sizeof(names[0]))])));
	else
		*k = rs_key_make(text_of(g, a, pick(g, 8) ? pick(g, 40) : pick(g, 300)));
	return k;
}

static bool attrs(struct rs_spangen *g, struct rs_arena *a, uint32_t n, unsigned depth,
		  struct rs_attrs *ret);

static bool value(struct rs_spangen *g, struct rs_arena *a, unsigned depth, struct rs_val *v)
{
	static const int64_t ints[] = { 0,   1,	  -1,	 127,	128,	   -32,	      -33,
					255, 256, 65535, 65536, INT32_MAX, INT64_MAX, INT64_MIN };
	static const double doubles[] = { 0.0, -0.0, 0.5,  1e300,	    5e-324,
					  0.1, -1.5, 1e21, __builtin_inf(), __builtin_nan("") };
	struct rs_attrs as;
	struct rs_val *arr;
	struct str s;

	*v = (struct rs_val){ .type = (uint8_t)pick(g, depth < 3 ? 8 : 6) };
	switch ((enum rs_val_type)v->type) {
	case RS_VAL_STR:
	case RS_VAL_BYTES:
		s = text(g, a);
		v->str = s.ptr;
		v->len = (uint32_t)s.len;
		return s.ptr;
	case RS_VAL_BOOL:
		v->b = pick(g, 2);
		break;
	case RS_VAL_INT:
		v->i = ints[pick(g, 14)];
		break;
	case RS_VAL_DOUBLE:
		v->d = doubles[pick(g, 10)];
		break;
	case RS_VAL_ARRAY:
		v->len = pick(g, 5);
		arr = rs_arena_alloc(a, v->len * sizeof(*arr));
		if (!arr)
			return false;
		for (uint32_t i = 0; i < v->len; i++) {
			if (!value(g, a, depth + 1, &arr[i]))
				return false;
		}
		v->arr = arr;
		break;
	case RS_VAL_MAP:
		if (!attrs(g, a, pick(g, 4), depth + 1, &as))
			return false;
		v->map = as.a;
		v->len = as.n;
		break;
	case RS_VAL_EMPTY:
		break;
	}
	return true;
}

static bool attrs(struct rs_spangen *g, struct rs_arena *a, uint32_t n, unsigned depth,
		  struct rs_attrs *ret)
{
	struct rs_attr *at = rs_arena_alloc(a, n * sizeof(*at));

	if (!at)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		at[i].key = key(g, a);
		if (!at[i].key || !value(g, a, depth, &at[i].val))
			return false;
	}
	*ret = (struct rs_attrs){ at, n, pick(g, 3) };
	return true;
}

static void ident(struct rs_spangen *g, uint8_t *id, size_t n)
{
	for (size_t i = 0; i < n; i++)
		id[i] = (uint8_t)pick(g, 256);
	if (g->valid)
		id[n - 1] |= 1;
	else if (!pick(g, 20))
		memset(id, 0, n);
}

static bool events(struct rs_spangen *g, struct rs_arena *a, struct rs_span *s)
{
	uint32_t n = pick(g, 10) ? pick(g, 4) : pick(g, 60);
	struct rs_event *e = rs_arena_alloc(a, n * sizeof(*e));

	if (!e)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		e[i] = (struct rs_event){ .time_ns = s->start_ns + i,
					  .name = text_of(g, a, pick(g, 20)) };
		if (!pick(g, 3))
			e[i].name = rs_arena_str(a, STR("exception"));
		if (!attrs(g, a, pick(g, 5), 0, &e[i].attrs))
			return false;
	}
	s->events = e;
	s->nevents = n;
	return true;
}

static bool links(struct rs_spangen *g, struct rs_arena *a, struct rs_span *s)
{
	uint32_t n = pick(g, 10) ? pick(g, 3) : pick(g, 250);
	struct rs_link *l = rs_arena_alloc(a, n * sizeof(*l));

	if (!l)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		l[i] = (struct rs_link){ .flags = pick(g, 4),
					 .trace_state = text_of(g, a, pick(g, 10)) };
		ident(g, l[i].trace_id, 16);
		ident(g, l[i].span_id, 8);
		if (!attrs(g, a, pick(g, 3), 0, &l[i].attrs))
			return false;
	}
	s->links = l;
	s->nlinks = n;
	return true;
}

static bool fill(struct rs_spangen *g, struct rs_arena *a, struct rs_span *s,
		 const uint8_t *trace_id)
{
	memcpy(s->trace_id, trace_id, 16);
	if (!pick(g, 3))
		ident(g, s->trace_id, 16);
	ident(g, s->span_id, 8);
	if (pick(g, 2))
		ident(g, s->parent_id, 8);
	s->kind = (uint8_t)pick(g, 6);
	s->status = (uint8_t)pick(g, 3);
	s->flags = pick(g, 1024);
	s->start_ns = 1700000000000000000ull + pick(g, 60000) * 1000003ull;
	s->end_ns = s->start_ns + pick(g, 60000) * 997ull;
	if (!g->valid && !pick(g, 20))
		s->end_ns = pick(g, 2) ? s->start_ns - 1 : UINT64_MAX;
	s->name = text_of(g, a, pick(g, 30));
	s->status_msg = text_of(g, a, pick(g, 10));
	s->trace_state = text_of(g, a, pick(g, 10));
	return attrs(g, a, pick(g, 10) ? pick(g, 12) : pick(g, 100), 0, &s->attrs) &&
	       events(g, a, s) && links(g, a, s);
}

bool rs_spangen_batch(struct rs_spangen *g, struct rs_batch *b, uint32_t spans)
{
	struct rs_resource_spans *rs = NULL;
	struct rs_scope_spans *ss = NULL;
	uint8_t trace_id[2][16];

	if (!g->in && !g->seed)
		g->seed = 1;
	ident(g, trace_id[0], 16);
	ident(g, trace_id[1], 16);
	for (uint32_t i = 0; i < spans; i++) {
		struct rs_span *s;

		if (!rs || !pick(g, 20)) {
			rs = rs_batch_add_resource(b);
			ss = NULL;
			if (!rs || !attrs(g, &b->arena, pick(g, 8), 0, &rs->resource.attrs))
				return false;
		}
		if (!ss || !pick(g, 10)) {
			ss = rs_batch_add_scope(b, rs);
			if (!ss || !attrs(g, &b->arena, pick(g, 3), 0, &ss->scope.attrs))
				return false;
			ss->scope.name = text_of(g, &b->arena, pick(g, 20));
			ss->scope.version = text_of(g, &b->arena, pick(g, 5));
		}
		s = rs_batch_add_span(b, ss);
		if (!s || !fill(g, &b->arena, s, trace_id[pick(g, 2)]))
			return false;
	}
	return true;
}
