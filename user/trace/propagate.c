// SPDX-License-Identifier: Apache-2.0
#include "propagate.h"

#include "base/digits.h"

/*
 * Up to 2 * n digits into n bytes, zeros on the left. False when a digit is wrong, there are none or
 * too many; *ret_any: some byte is not zero.
 */
static bool unhex(struct str s, bool upper, uint8_t *out, size_t n, bool *ret_any)
{
	*ret_any = false;
	if (!s.len || s.len > 2 * n)
		return false;
	memset(out, 0, n);
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[s.len - 1 - i];
		int d = upper ? rs_hex_digit(c) : rs_hex_lower_digit(c);

		if (d < 0)
			return false;
		out[n - 1 - i / 2] |= (uint8_t)(d << (i % 2 * 4));
		*ret_any |= d != 0;
	}
	return true;
}

/* Ids of a fixed length (min digits to full), not zero. */
static bool ids(struct str trace, size_t trace_min, struct str span, size_t span_min, bool upper,
		struct rs_wire_ctx *c)
{
	bool any_trace, any_span;

	return trace.len >= trace_min && span.len >= span_min &&
	       unhex(trace, upper, c->trace_id, sizeof(c->trace_id), &any_trace) && any_trace &&
	       unhex(span, upper, c->span_id, sizeof(c->span_id), &any_span) && any_span;
}

/* W3C Trace Context, section 3.2 */
bool rs_traceparent_parse(struct str header, struct rs_wire_ctx *ret)
{
	struct str h = str_trim(header);
	struct rs_wire_ctx c = { .format = RS_PROP_TRACECONTEXT };
	uint8_t version, flags;
	bool any;

	if (h.len < 55 || h.ptr[2] != '-' || h.ptr[35] != '-' || h.ptr[52] != '-')
		return false;
	if (!unhex(str_at(h, 0, 2), false, &version, 1, &any) || version == 0xff)
		return false;
	/* A later version may add fields, behind another dash. */
	if (version == 0 ? h.len != 55 : h.len > 55 && h.ptr[55] != '-')
		return false;
	if (!ids(str_at(h, 3, 32), 32, str_at(h, 36, 16), 16, false, &c))
		return false;
	if (!unhex(str_at(h, 53, 2), false, &flags, 1, &any))
		return false;
	c.flags = flags & (RS_TRACE_SAMPLED | RS_TRACE_RANDOM);
	*ret = c;
	return true;
}

/* The formats, one by one. False: not to be used; *ret is untouched. */

/* openzipkin/b3-propagation. A lone decision ("0", "1", "d") has no ids. */
static bool b3_parse(struct str header, struct rs_wire_ctx *ret)
{
	struct rs_wire_ctx c = { .format = RS_PROP_B3, .flags = RS_TRACE_SAMPLED };
	struct str trace, h = str_cut(str_trim(header), '-', &trace);
	uint8_t parent[8];
	bool any;

	if ((trace.len != 16 && trace.len != 32) || !ids(trace, 16, str_at(h, 0, 16), 16, true, &c))
		return false;
	if (h.len != 16 && h.len != 18 && h.len != 35)
		return false;
	if (h.len > 16) {
		if (h.ptr[16] != '-' || (h.ptr[17] != '0' && h.ptr[17] != '1' && h.ptr[17] != 'd'))
			return false;
		c.flags = h.ptr[17] == '0' ? 0 : RS_TRACE_SAMPLED;
	}
	if (h.len > 18 &&
	    (h.ptr[18] != '-' || !unhex(str_from(h, 19), true, parent, sizeof(parent), &any)))
		return false;
	*ret = c;
	return true;
}

static bool b3multi_parse(struct str trace, struct str span, struct str sampled, struct str debug,
			  struct rs_wire_ctx *ret)
{
	struct rs_wire_ctx c = { .format = RS_PROP_B3MULTI, .flags = RS_TRACE_SAMPLED };

	trace = str_trim(trace);
	span = str_trim(span);
	sampled = str_trim(sampled);
	if ((trace.len != 16 && trace.len != 32) || !ids(trace, 16, span, 16, true, &c))
		return false;
	if (str_eq(sampled, STR("0")) || str_ieq(sampled, STR("false")))
		c.flags = 0;
	else if (sampled.len && !str_eq(sampled, STR("1")) && !str_ieq(sampled, STR("true")))
		return false;
	if (str_eq(str_trim(debug), STR("1")))
		c.flags = RS_TRACE_SAMPLED;
	*ret = c;
	return true;
}

/* The next part of a Jaeger header: up to a colon, which may be written %3A. */
static struct str jaeger_cut(struct str s, struct str *ret_head)
{
	for (size_t i = 0; i < s.len; i++) {
		size_t n = s.ptr[i] == ':' ? 1 : str_ieq(str_at(s, i, 3), STR("%3a")) ? 3 : 0;

		if (n) {
			*ret_head = str_at(s, 0, i);
			return str_from(s, i + n);
		}
	}
	*ret_head = s;
	return str_from(s, s.len);
}

static bool jaeger_parse(struct str header, struct rs_wire_ctx *ret)
{
	struct rs_wire_ctx c = { .format = RS_PROP_JAEGER };
	struct str trace, span, parent, flags;
	uint8_t id[8], bits;
	bool any;

	flags = jaeger_cut(str_trim(header), &trace);
	flags = jaeger_cut(flags, &span);
	flags = jaeger_cut(flags, &parent);
	if (!ids(trace, 1, span, 1, true, &c) || !unhex(parent, true, id, sizeof(id), &any) ||
	    !unhex(flags, true, &bits, 1, &any))
		return false;
	/* bit 0: sampled; bit 1: debug, which implies it */
	c.flags = bits & 3 ? RS_TRACE_SAMPLED : 0;
	*ret = c;
	return true;
}

/* Value of a member of a list "k=v;p,k=v". One that is there twice is not to be relied on, as with headers. */
static struct str list_member(struct str list, char sep, struct str key)
{
	struct str found = STR_NONE;

	while (list.len) {
		struct str m, k;

		list = str_cut(list, sep, &m);
		m = str_cut(m, '=', &k);
		if (!str_ieq(str_trim(k), key))
			continue;
		if (found.ptr)
			return STR_NONE;
		str_cut(m, ';', &k);
		found = str_trim(k);
	}
	return found;
}

/* sampled: baggage's sentry-sampled, or empty. */
static bool sentry_parse(struct str header, struct str sampled, struct rs_wire_ctx *ret)
{
	struct rs_wire_ctx c = { .format = RS_PROP_SENTRY, .flags = RS_TRACE_SAMPLED };
	struct str h = str_trim(header), decision = str_from(h, 49);

	if (h.len < 49 || h.ptr[32] != '-' ||
	    !ids(str_at(h, 0, 32), 32, str_at(h, 33, 16), 16, true, &c))
		return false;
	if (decision.len && !str_eq(decision, STR("-0")) && !str_eq(decision, STR("-1")))
		return false;
	/* No decision in the header: the one its sender froze into the baggage, if any. */
	if (decision.len ? decision.ptr[1] == '0' : str_eq(sampled, STR("false")))
		c.flags = 0;
	*ret = c;
	return true;
}

/* Members in any order; others (Self=, Lineage=) are passed over. A Root without a Parent names no span. */
static bool xray_parse(struct str header, struct rs_wire_ctx *ret)
{
	struct rs_wire_ctx c = { .format = RS_PROP_XRAY, .flags = RS_TRACE_SAMPLED };
	struct str root = list_member(header, ';', STR("root"));
	char digits[32];

	if (root.len != 35 || root.ptr[0] != '1' || root.ptr[1] != '-' || root.ptr[10] != '-')
		return false;
	memcpy(digits, root.ptr + 2, 8);
	memcpy(digits + 8, root.ptr + 11, 24);
	if (!ids(str_of(digits, 32), 32, list_member(header, ';', STR("parent")), 16, true, &c))
		return false;
	if (str_eq(list_member(header, ';', STR("sampled")), STR("0")))
		c.flags = 0;
	*ret = c;
	return true;
}

static void put64(uint8_t *p, uint64_t v)
{
	for (int i = 7; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

#define DD_TAGS_MAX 512 /* bytes of x-datadog-tags at most (DD_TRACE_X_DATADOG_TAGS_MAX_LENGTH) */

static bool dd_priority(struct str s, int *ret)
{
	uint64_t v;

	s = str_trim(s);
	*ret = 1;
	if (!s.len)
		return true;
	if (s.ptr[0] == '-') {
		if (!str_u64(str_from(s, 1), &v) || v > 128)
			return false;
		*ret = -(int)v;
		return true;
	}
	if (!str_u64(s, &v) || v > 127)
		return false;
	*ret = (int)v;
	return true;
}

static bool datadog_parse(struct str trace_id, struct str parent_id, struct str priority,
			  struct str tags, struct rs_wire_ctx *ret)
{
	struct rs_wire_ctx c = { .format = RS_PROP_DATADOG };
	uint64_t trace, span;
	struct str tid;
	bool any;
	int p;

	if (!str_u64(str_trim(trace_id), &trace) || !trace ||
	    !str_u64(str_trim(parent_id), &span) || !span || !dd_priority(priority, &p))
		return false;
	put64(c.trace_id + 8, trace);
	put64(c.span_id, span);
	tid = tags.len <= DD_TAGS_MAX ? list_member(tags, ',', STR("_dd.p.tid")) : STR_NONE;
	if (tid.len != 16 || !unhex(tid, false, c.trace_id, 8, &any))
		memset(c.trace_id, 0, 8);
	c.flags = p > 0 ? RS_TRACE_SAMPLED : 0;
	*ret = c;
	return true;
}

/* The only field with this id; one that is there twice is not to be relied on. */
static struct str only(const struct rs_msg *m, uint16_t id)
{
	struct str v = STR_NONE;

	for (unsigned i = 0; i < m->nfields; i++) {
		if (m->fields[i].id != id)
			continue;
		if (v.ptr)
			return STR_NONE;
		v = m->fields[i].value;
	}
	return v;
}

/* A member of baggage, which may stand in several headers. One that is there twice is not to be relied on. */
static struct str baggage_member(const struct rs_msg *m, struct str key)
{
	struct str found = STR_NONE;

	for (unsigned i = 0; i < m->nfields; i++) {
		struct str v = m->fields[i].id == RS_F_BAGGAGE
				       ? list_member(m->fields[i].value, ',', key)
				       : STR_NONE;

		if (found.ptr && v.ptr)
			return STR_NONE;
		found = v.ptr ? v : found;
	}
	return found;
}

static bool extract(enum rs_propagator format, const struct rs_msg *m, struct rs_wire_ctx *ret)
{
	switch (format) {
	case RS_PROP_TRACECONTEXT:
		return rs_traceparent_parse(only(m, RS_F_TRACEPARENT), ret);
	case RS_PROP_DATADOG:
		return datadog_parse(
			only(m, RS_F_DATADOG_TRACE_ID), only(m, RS_F_DATADOG_PARENT_ID),
			only(m, RS_F_DATADOG_PRIORITY), only(m, RS_F_DATADOG_TAGS), ret);
	case RS_PROP_B3:
		return b3_parse(only(m, RS_F_B3), ret);
	case RS_PROP_B3MULTI:
		return b3multi_parse(only(m, RS_F_B3_TRACE_ID), only(m, RS_F_B3_SPAN_ID),
				     only(m, RS_F_B3_SAMPLED), only(m, RS_F_B3_FLAGS), ret);
	case RS_PROP_JAEGER:
		return jaeger_parse(only(m, RS_F_UBER_TRACE_ID), ret);
	case RS_PROP_SENTRY:
		return sentry_parse(only(m, RS_F_SENTRY_TRACE),
				    baggage_member(m, STR("sentry-sampled")), ret);
	case RS_PROP_XRAY:
		return xray_parse(only(m, RS_F_AMZN_TRACE_ID), ret);
	case RS_PROP_COUNT:
		break;
	}
	return false;
}

/* Most requests carry no context: one look at the fields says so. */
static bool any_context(const struct rs_msg *m)
{
	for (unsigned i = 0; i < m->nfields; i++) {
		if (m->fields[i].id < RS_F_PROTO)
			return true;
	}
	return false;
}

bool rs_context_extract(const struct rs_propagators *p, const struct rs_msg *m,
			struct rs_wire_ctx *ret)
{
	if (!any_context(m))
		return false;
	for (unsigned i = 0; i < p->n; i++) {
		if (extract(p->v[i], m, ret))
			return true;
	}
	return false;
}

bool rs_context_other(const struct rs_propagators *p, const struct rs_msg *m,
		      const struct rs_wire_ctx *c, struct rs_wire_ctx *ret)
{
	for (unsigned i = 0; i < p->n; i++) {
		struct rs_wire_ctx other;

		/* Older formats carry 64 bits of a trace id: the low ones. */
		if (p->v[i] != c->format && extract(p->v[i], m, &other) &&
		    memcmp(other.trace_id + 8, c->trace_id + 8, 8) != 0) {
			*ret = other;
			return true;
		}
	}
	return false;
}

static bool key_char(char c, bool first)
{
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
		return true;
	return !first && (c == '_' || c == '-' || c == '*' || c == '/' || c == '@');
}

static bool member_valid(struct str m)
{
	struct str key, value = str_cut(m, '=', &key);

	if (key.len == m.len || !key.len || key.len > 256 || !value.len || value.len > 256)
		return false;
	for (size_t i = 0; i < key.len; i++) {
		if (!key_char(key.ptr[i], i == 0))
			return false;
	}
	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] < 0x20 || value.ptr[i] > 0x7e || value.ptr[i] == '=')
			return false;
	}
	return true;
}

/* Counts on in *members, over several headers. */
static bool state_valid(struct str header, unsigned *members)
{
	while (header.len) {
		struct str m;

		header = str_cut(header, ',', &m);
		m = str_trim(m);
		if (!m.len)
			continue;
		if (!member_valid(m) || ++*members > 32)
			return false;
	}
	return true;
}

bool rs_tracestate_valid(struct str header)
{
	unsigned members = 0;

	return state_valid(header, &members) && members > 0;
}

#define LONG_MEMBER 128 /* section 3.3.1.5: members longer than that go first */

/* Appends the valid list's members that are no longer than `longest`, as long as there is room for whole ones. */
static size_t state_members(char *buf, size_t n, struct str list, size_t longest)
{
	while (list.len) {
		struct str m;

		list = str_cut(list, ',', &m);
		m = str_trim(m);
		if (!m.len || m.len > longest)
			continue;
		if (n + m.len + 1 > RS_TRACE_STATE_MAX)
			return n;
		if (n)
			buf[n++] = ',';
		memcpy(buf + n, m.ptr, m.len);
		n += m.len;
	}
	return n;
}

/* Several tracestate headers are one list, in order. One too large loses members: long ones, then the last. */
static size_t w3c_state(const struct rs_msg *m, char *buf)
{
	unsigned members = 0;
	size_t n = 0, all = 0;

	for (unsigned i = 0; i < m->nfields; i++) {
		struct str v = str_trim(m->fields[i].value);

		if (m->fields[i].id != RS_F_TRACESTATE || !v.len)
			continue;
		if (!state_valid(v, &members))
			return 0;
		all += v.len + 1;
	}
	for (unsigned i = 0; i < m->nfields && all <= RS_TRACE_STATE_MAX; i++) {
		struct str v = str_trim(m->fields[i].value);

		if (m->fields[i].id != RS_F_TRACESTATE || !v.len)
			continue;
		if (n)
			buf[n++] = ',';
		memcpy(buf + n, v.ptr, v.len);
		n += v.len;
	}
	for (unsigned i = 0; i < m->nfields && all > RS_TRACE_STATE_MAX; i++) {
		if (m->fields[i].id == RS_F_TRACESTATE)
			n = state_members(buf, n, m->fields[i].value, LONG_MEMBER);
	}
	return members ? n : 0;
}

#define DD_MEMBER_MAX 256 /* bytes of a tracestate member's value */

static size_t append(char *buf, size_t n, size_t max, struct str s)
{
	if (n + s.len > max)
		return n;
	if (s.len)
		memcpy(buf + n, s.ptr, s.len);
	return n + s.len;
}

/* What Datadog's own tracers make of their headers when they go on as W3C: dd=s:PRIORITY;t.NAME:VALUE… */
static size_t dd_state(const struct rs_msg *m, char *buf)
{
	struct str priority = str_trim(only(m, RS_F_DATADOG_PRIORITY)),
		   tags = only(m, RS_F_DATADOG_TAGS);
	size_t n = append(buf, 0, DD_MEMBER_MAX, STR("dd="));

	if (!priority.len)
		return 0;
	n = append(buf, n, DD_MEMBER_MAX, STR("s:"));
	n = append(buf, n, DD_MEMBER_MAX, priority);
	if (tags.len > DD_TAGS_MAX)
		return n;
	while (tags.len) {
		struct str pair, key, value;

		tags = str_cut(tags, ',', &pair);
		value = str_cut(str_trim(pair), '=', &key);
		if (!str_starts(key, STR("_dd.p.")) || !value.len ||
		    str_eq(key, STR("_dd.p.upstream_services")) ||
		    n + key.len + value.len > DD_MEMBER_MAX)
			continue;
		n = append(buf, n, DD_MEMBER_MAX, STR(";t."));
		n = append(buf, n, DD_MEMBER_MAX, str_from(key, 6));
		n = append(buf, n, DD_MEMBER_MAX, STR(":"));
		for (size_t i = 0; i < value.len; i++) {
			char c = value.ptr[i];

			buf[n++] = c == '='				      ? '~'
				   : c < 0x20 || c > 0x7e || strchr(",;~", c) ? '_'
									      : c;
		}
	}
	return rs_tracestate_valid(str_of(buf, n)) ? n : 0;
}

size_t rs_context_state(const struct rs_msg *m, const struct rs_wire_ctx *c,
			char buf[RS_TRACE_STATE_MAX])
{
	if (c->format == RS_PROP_TRACECONTEXT)
		return w3c_state(m, buf);
	return c->format == RS_PROP_DATADOG ? dd_state(m, buf) : 0;
}

bool rs_propagators_parse(struct str list, struct rs_propagators *ret, struct str *ret_unknown)
{
	static const struct {
		struct str name;
		enum rs_propagator id;
	} names[] = {
		{ { "tracecontext", 12 }, RS_PROP_TRACECONTEXT },
		{ { "datadog", 7 }, RS_PROP_DATADOG },
		{ { "b3", 2 }, RS_PROP_B3 },
		{ { "b3multi", 7 }, RS_PROP_B3MULTI },
		{ { "jaeger", 6 }, RS_PROP_JAEGER },
		{ { "sentry", 6 }, RS_PROP_SENTRY },
		{ { "xray", 4 }, RS_PROP_XRAY },
		{ { "baggage", 7 }, RS_PROP_COUNT },
		{ { "none", 4 }, RS_PROP_COUNT },
	};
	unsigned taken = 0;
	bool ok = true;

	*ret = (struct rs_propagators){ 0 };
	while (list.len) {
		struct str one;
		size_t i = 0;

		list = str_cut(list, ',', &one);
		one = str_trim(one);
		if (!one.len)
			continue;
		while (i < sizeof(names) / sizeof(names[0]) && !str_ieq(one, names[i].name))
			i++;
		if (i == sizeof(names) / sizeof(names[0])) {
			if (ok)
				*ret_unknown = one;
			ok = false;
		} else if (names[i].id != RS_PROP_COUNT && !(taken & 1u << names[i].id)) {
			taken |= 1u << names[i].id;
			ret->v[ret->n++] = (uint8_t)names[i].id;
		}
	}
	return ok;
}
