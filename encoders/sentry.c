// SPDX-License-Identifier: Apache-2.0
/*
 * sentry — Sentry envelopes. POST /api/PROJECT/envelope/. One envelope carries one trace.
 *
 * Two encoders. "sentry" writes a container of spans in Sentry's current span format (v2), at most 1,000 per
 * envelope; "sentry-transaction" one transaction per envelope, for servers that do not know the former: a span that
 * begins work in a service (no parent, a remote one, none in this batch, or of kind server or consumer) and up to 1,000
 * spans below it.
 *
 * Mapping: span attributes stay as they are; resource attributes get the prefix `resource.`, scope name and version
 * become instrumentation.name and .version; sentry.op, .origin, .release, .environment and so on are added. Op and
 * status follow Sentry's OpenTelemetry rules (sentry_op_of(), sentry_status_of()). The header's trace context says what is known of
 * sampling from tracestate's `ot=th:…;rv:…`.
 *
 * Losses: of events, those of exceptions give their attributes to the span (the last one's), a transaction's own
 * become breadcrumbs, all others are dropped; trace state; dropped counts; schema URLs; nanoseconds (times are
 * microseconds, rounded down); integers beyond ±2^53 become text, as do bytes (base64), arrays and maps (JSON) and what
 * JSON has no number for; empty values and attributes with an empty key are left out; of attributes with the same name
 * the first stays. Values go out whole, however long, but what Sentry would refuse does not: of a transaction,
 * spans beyond 1,000 or beyond 1 MiB of payload, of containers spans of more than 1 MiB, are left out and counted as
 * too big; a container ends before 5 MiB.
 */
#include "json_value.h"
#include "keyset.h"
#include "sentry_facts.h"
#include "sentry_units.h"

/* Bytes that Sentry takes: of a transaction, of a span in a container, of a container (SDKs send at 5 MB). */
#define MAX_TRANSACTION (1u << 20)
#define MAX_SPAN	(1u << 20)
#define MAX_CONTAINER	(5u << 20)

struct state {
	struct rs_sink sink;
	struct rs_keyset keys;
	struct rs_chunks w;
	struct sentry_units units; /* of the chunk that is being sent */
	bool transaction;

	/* Where the run of that mark stands between calls. */
	uint64_t mark;
	uint32_t next_chunk, next_unit;
	uint32_t planned; /* chunks whose units were made */
};

static const struct str kind_of[] = { { "", 0 },       { "internal", 8 }, { "server", 6 },
				      { "client", 6 }, { "producer", 8 }, { "consumer", 8 } };

/* -- writing ----------------------------------------------------------------------------------- */

static char *put_lit(char *p, struct str s)
{
	memcpy(p, s.ptr, s.len);
	return p + s.len;
}

/* "a b" */
static char *put_pair(struct rs_sink *s, char *p, struct str a, struct str b)
{
	*p++ = '"';
	p = rs_text_json(s, p, a);
	if (b.len) {
		*p++ = ' ';
		p = rs_text_json(s, p, b);
	}
	*p++ = '"';
	return rs_sink_need(s, p, 0);
}

/* Seconds with six decimals. */
static char *put_time(char *p, uint64_t ns)
{
	char digits[24];
	uint64_t us = ns / 1000;

	p = rs_json_u64(p, us / 1000000);
	*p++ = '.';
	/* Six digits, with leading zeros. */
	rs_json_u64(digits, 1000000 + us % 1000000);
	memcpy(p, digits + 1, 6);
	return p + 6;
}

/* ,"name": before any member but the first. */
static char *put_name(struct rs_sink *s, char *p, struct str prefix, struct str name)
{
	p = rs_sink_need(s, p, 0);
	if (p[-1] != '{')
		*p++ = ',';
	*p++ = '"';
	p = put_lit(p, prefix);
	p = rs_text_json(s, p, name);
	return RS_LIT(p, "\":");
}

static char *put_typed_value(struct rs_sink *s, char *p, const struct rs_val *v)
{
	if (v->type == RS_VAL_BOOL) {
		p = RS_LIT(p, "{\"type\":\"boolean\",\"value\":");
		p = rs_json_value(s, p, v, RS_JSON_NO_LIMIT);
	} else if (v->type == RS_VAL_INT && v->i >= -(1ll << 53) && v->i <= 1ll << 53) {
		p = RS_LIT(p, "{\"type\":\"integer\",\"value\":");
		p = rs_json_i64(p, v->i);
	} else if (v->type == RS_VAL_DOUBLE && v->d - v->d == 0) {
		p = RS_LIT(p, "{\"type\":\"double\",\"value\":");
		p = rs_json_double(p, v->d);
	} else {
		p = RS_LIT(p, "{\"type\":\"string\",\"value\":\"");
		p = rs_value_text(s, p, v, RS_JSON_NO_LIMIT);
		*p++ = '"';
	}
	*p++ = '}';
	return rs_sink_need(s, p, 0);
}

/* Plain JSON; integers that JavaScript cannot hold as text. */
static char *put_plain_value(struct rs_sink *s, char *p, const struct rs_val *v)
{
	if (v->type == RS_VAL_INT && (v->i < -(1ll << 53) || v->i > 1ll << 53)) {
		*p++ = '"';
		p = rs_json_i64(p, v->i);
		*p++ = '"';
		return p;
	}
	return rs_json_value(s, p, v, RS_JSON_NO_LIMIT);
}

/* The members of an attributes object that are not in it yet (st->keys). */
static char *put_attrs(struct state *st, char *p, struct str prefix, const struct rs_attrs *as,
		       bool typed)
{
	struct rs_sink *s = &st->sink;

	for (uint32_t i = 0; i < as->n; i++) {
		const struct rs_attr *a = &as->a[i];

		if (!rs_attr_named(a) || a->val.type == RS_VAL_EMPTY)
			continue;
		if (!rs_keyset_add(&st->keys, a->key->name))
			continue;
		p = put_name(s, p, prefix, a->key->name);
		p = typed ? put_typed_value(s, p, &a->val) : put_plain_value(s, p, &a->val);
	}
	return rs_sink_need(s, p, 0);
}

/* Attributes of the span and of its last exception. */
static char *put_own_attrs(struct state *st, char *p, const struct rs_span *span, bool typed)
{
	rs_keyset_begin(&st->keys);
	p = put_attrs(st, p, STR(""), &span->attrs, typed);
	for (uint32_t i = span->nevents; i-- > 0;) {
		if (str_eq(span->events[i].name, STR("exception")))
			return put_attrs(st, p, STR(""), &span->events[i].attrs, typed);
	}
	return p;
}

static char *put_links(struct state *st, char *p, const struct rs_span *span, bool typed)
{
	struct rs_sink *s = &st->sink;
	bool any = false;

	for (uint32_t i = 0; i < span->nlinks; i++) {
		const struct rs_link *l = &span->links[i];

		if (!rs_link_ok(l))
			continue;
		p = any ? RS_LIT(p, ",") : RS_LIT(p, ",\"links\":[");
		any = true;
		p = RS_LIT(p, "{\"trace_id\":\"");
		p = rs_json_hex(p, l->trace_id, 16);
		p = RS_LIT(p, "\",\"span_id\":\"");
		p = rs_json_hex(p, l->span_id, 8);
		*p++ = '"';
		if (l->flags) {
			if (l->flags & 1)
				p = RS_LIT(p, ",\"sampled\":true");
			else
				p = RS_LIT(p, ",\"sampled\":false");
		}
		if (l->attrs.n) {
			p = RS_LIT(p, ",\"attributes\":{");
			rs_keyset_begin(&st->keys);
			p = put_attrs(st, p, STR(""), &l->attrs, typed);
			*p++ = '}';
		}
		*p++ = '}';
		p = rs_sink_need(s, p, 0);
	}
	if (any)
		*p++ = ']';
	return p;
}

static char *put_ids(char *p, const struct rs_span *span)
{
	p = RS_LIT(p, "\"trace_id\":\"");
	p = rs_json_hex(p, span->trace_id, 16);
	p = RS_LIT(p, "\",\"span_id\":\"");
	p = rs_json_hex(p, span->span_id, 8);
	*p++ = '"';
	if (rs_id_is_zero(span->parent_id, 8))
		return p;
	p = RS_LIT(p, ",\"parent_span_id\":\"");
	p = rs_json_hex(p, span->parent_id, 8);
	*p++ = '"';
	return p;
}

/* An attribute of Sentry's own, unless the span has it or there is nothing to say. value is plain ASCII. */
static char *put_word(struct state *st, char *p, struct str name, struct str value)
{
	if (!value.len || !rs_keyset_add(&st->keys, name))
		return p;
	p = put_name(&st->sink, p, STR(""), name);
	p = RS_LIT(p, "{\"type\":\"string\",\"value\":\"");
	p = put_lit(p, value);
	return RS_LIT(p, "\"}");
}

static char *put_text(struct state *st, char *p, struct str name, struct str a, struct str b)
{
	if (!a.len || !rs_keyset_add(&st->keys, name))
		return p;
	p = put_name(&st->sink, p, STR(""), name);
	p = RS_LIT(p, "{\"type\":\"string\",\"value\":");
	p = put_pair(&st->sink, p, a, b);
	*p++ = '}';
	return p;
}

/* A span as an item of the container. */
static char *put_item(struct state *st, char *p, const struct rs_item *it)
{
	const struct rs_resource *res = &it->rs->resource;
	const struct rs_scope *scope = &it->ss->scope;
	const struct rs_span *span = it->s;
	struct rs_sink *s = &st->sink;
	struct str a, b, source;
	struct sentry_facts f;
	bool segment = sentry_is_segment(span);

	sentry_learn(&f, span);
	p = rs_sink_need(s, p, 128);
	*p++ = '{';
	p = put_ids(p, span);
	p = RS_LIT(p, ",\"name\":");
	p = rs_json_text(s, p, span->name);
	p = rs_sink_need(s, p, 64);
	p = span->status == RS_STATUS_ERROR ? RS_LIT(p, ",\"status\":\"error\"")
					    : RS_LIT(p, ",\"status\":\"ok\"");
	p = segment ? RS_LIT(p, ",\"is_segment\":true") : RS_LIT(p, ",\"is_segment\":false");
	p = RS_LIT(p, ",\"start_timestamp\":");
	p = put_time(p, span->start_ns);
	p = RS_LIT(p, ",\"end_timestamp\":");
	p = put_time(p, span->end_ns);
	p = RS_LIT(p, ",\"attributes\":{");
	p = put_own_attrs(st, p, span, true);
	p = put_word(st, p, RS_SPAN_STR("sentry.op"), sentry_op_of(&f, span->kind));
	p = put_word(st, p, RS_SPAN_STR("sentry.origin"), sentry_origin_of(&f, scope));
	if (span->kind && span->kind <= RS_KIND_CONSUMER)
		p = put_word(st, p, RS_SPAN_STR("sentry.kind"), kind_of[span->kind]);
	if (segment) {
		sentry_segment_name(&f, span, &a, &b, &source);
		p = put_text(st, p, RS_SPAN_STR("sentry.segment.name"), a, b);
		p = put_word(st, p, RS_SPAN_STR("sentry.segment.name.source"), source);
	}
	if (span->status_msg.len)
		p = put_text(st, p, RS_SPAN_STR("sentry.status.message"), span->status_msg,
			     STR_NONE);
	p = put_text(st, p, RS_SPAN_STR("sentry.release"), sentry_release_of(res), STR_NONE);
	p = put_text(st, p, RS_SPAN_STR("sentry.environment"), sentry_environment_of(res),
		     STR_NONE);
	p = put_word(st, p, RS_SPAN_STR("sentry.sdk.name"), STR("ringspan"));
	p = put_word(st, p, RS_SPAN_STR("sentry.sdk.version"), STR(RS_VERSION));
	p = put_text(st, p, RS_SPAN_STR("instrumentation.name"), scope->name, STR_NONE);
	p = put_text(st, p, RS_SPAN_STR("instrumentation.version"), scope->version, STR_NONE);
	rs_keyset_begin(&st->keys);
	p = put_attrs(st, p, STR("resource."), &res->attrs, true);
	*p++ = '}';
	p = put_links(st, p, span, true);
	*p++ = '}';
	return rs_sink_need(s, p, 0);
}

/* contexts.trace or an element of spans: what both have. Leaves the object open. */
static char *put_trace_span(struct state *st, char *p, const struct rs_item *it,
			    const struct sentry_facts *f)
{
	const struct rs_span *span = it->s;

	*p++ = '{';
	p = put_ids(p, span);
	p = RS_LIT(p, ",\"op\":\"");
	p = put_lit(p, sentry_op_of(f, span->kind));
	p = RS_LIT(p, "\",\"status\":\"");
	p = put_lit(p, sentry_status_of(f, span->status));
	p = RS_LIT(p, "\",\"origin\":\"");
	p = put_lit(p, sentry_origin_of(f, &it->ss->scope));
	p = RS_LIT(p, "\",\"data\":{");
	p = put_own_attrs(st, p, span, false);
	*p++ = '}';
	p = put_links(st, p, span, false);
	return rs_sink_need(&st->sink, p, 0);
}

/* What a span did: a request with its URL, a query, or its name. */
static char *put_description(struct rs_sink *s, char *p, const struct rs_span *span,
			     const struct sentry_facts *f)
{
	struct str url = sentry_fact_str(f, SENTRY_URL_FULL),
		   query = sentry_fact_str(f, SENTRY_DB_QUERY),
		   method = sentry_fact_str(f, SENTRY_HTTP_METHOD);

	p = RS_LIT(p, ",\"description\":");
	if (method.len && url.len && span->kind == RS_KIND_CLIENT) {
		url = str_at(url, 0, str_find(url, '?'));
		return put_pair(s, p, method, str_at(url, 0, str_find(url, '#')));
	}
	return put_pair(s, p, query.len ? query : span->name, STR_NONE);
}

static char *put_times(char *p, const struct rs_span *span)
{
	p = RS_LIT(p, ",\"start_timestamp\":");
	p = put_time(p, span->start_ns);
	p = RS_LIT(p, ",\"timestamp\":");
	return put_time(p, span->end_ns);
}

static char *put_child(struct state *st, char *p, const struct rs_item *it)
{
	struct sentry_facts f;

	sentry_learn(&f, it->s);
	p = put_trace_span(st, p, it, &f);
	p = put_description(&st->sink, p, it->s, &f);
	p = put_times(p, it->s);
	*p++ = '}';
	return rs_sink_need(&st->sink, p, 0);
}

static char *put_breadcrumbs(struct rs_sink *s, char *p, const struct rs_span *span)
{
	p = RS_LIT(p, ",\"breadcrumbs\":[");
	for (uint32_t i = 0; i < span->nevents; i++) {
		const struct rs_event *e = &span->events[i];

		p = i ? RS_LIT(p, ",{\"timestamp\":") : RS_LIT(p, "{\"timestamp\":");
		p = put_time(p, e->time_ns);
		p = str_eq(e->name, STR("exception"))
			    ? RS_LIT(p, ",\"level\":\"error\",\"message\":")
			    : RS_LIT(p, ",\"message\":");
		p = rs_json_text(s, p, e->name);
		p = rs_sink_need(s, p, 0);
		if (e->attrs.n) {
			p = RS_LIT(p, ",\"data\":");
			p = rs_json_map(s, p, e->attrs.a, e->attrs.n, RS_JSON_NO_LIMIT);
		}
		*p++ = '}';
		p = rs_sink_need(s, p, 0);
	}
	*p++ = ']';
	return p;
}

static char *put_request(struct rs_sink *s, char *p, const struct sentry_facts *f)
{
	struct str method = sentry_fact_str(f, SENTRY_HTTP_METHOD),
		   url = sentry_fact_str(f, SENTRY_URL_FULL);

	if (!method.len)
		return p;
	p = RS_LIT(p, ",\"request\":{\"method\":");
	p = rs_json_text(s, p, method);
	p = rs_sink_need(s, p, 0);
	if (!url.len)
		url = sentry_fact_str(f, SENTRY_URL_PATH);
	if (url.len) {
		p = RS_LIT(p, ",\"url\":");
		p = rs_json_text(s, p, url);
		p = rs_sink_need(s, p, 0);
	}
	*p++ = '}';
	return p;
}

/* ,"name":"text" unless it is empty. */
static char *put_member(struct rs_sink *s, char *p, struct str name, struct str value)
{
	if (!value.len)
		return p;
	*p++ = ',';
	*p++ = '"';
	p = put_lit(p, name);
	p = RS_LIT(p, "\":");
	p = rs_json_text(s, p, value);
	return rs_sink_need(s, p, 0);
}

/* An id of the transaction that is the same each time it is encoded. */
static char *put_event_id(char *p, const struct rs_span *span)
{
	uint8_t id[16];

	for (int i = 0; i < 16; i++)
		id[i] = (uint8_t)(span->trace_id[i] ^ span->span_id[i & 7]);
	p = RS_LIT(p, "\"event_id\":\"");
	p = rs_json_hex(p, id, 16);
	return RS_LIT(p, "\"");
}

static char *put_sdk(char *p)
{
	return RS_LIT(p, "\"sdk\":{\"name\":\"ringspan\",\"version\":\"" RS_VERSION "\"}");
}

/* A transaction until its list of spans. */
static char *put_transaction(struct state *st, char *p, const struct rs_item *it)
{
	const struct rs_resource *res = &it->rs->resource;
	struct rs_sink *s = &st->sink;
	struct str a, b, source;
	struct sentry_facts f;

	sentry_learn(&f, it->s);
	sentry_segment_name(&f, it->s, &a, &b, &source);
	p = RS_LIT(p, "{\"type\":\"transaction\",");
	p = put_event_id(p, it->s);
	p = RS_LIT(p, ",\"transaction\":");
	p = put_pair(s, p, rs_text_empty(a) ? RS_SPAN_STR("unnamed") : a, b);
	p = RS_LIT(p, ",\"transaction_info\":{\"source\":\"");
	p = put_lit(p, source);
	p = RS_LIT(p, "\"}");
	p = put_times(p, it->s);
	p = RS_LIT(p, ",\"platform\":\"other\"");
	p = put_member(s, p, STR("release"), sentry_release_of(res));
	p = put_member(s, p, STR("environment"), sentry_environment_of(res));
	p = put_member(s, p, STR("server_name"), sentry_find_str(&res->attrs, STR("host.name")));
	*p++ = ',';
	p = put_sdk(p);
	p = RS_LIT(p, ",\"contexts\":{\"trace\":");
	p = put_trace_span(st, p, it, &f);
	p = RS_LIT(p, "},\"otel\":{\"resource\":{");
	rs_keyset_begin(&st->keys);
	p = put_attrs(st, p, STR(""), &res->attrs, false);
	p = RS_LIT(p, "}}}");
	p = put_request(s, p, &f);
	if (it->s->nevents)
		p = put_breadcrumbs(s, p, it->s);
	p = rs_sink_need(s, p, 0);
	return RS_LIT(p, ",\"spans\":[");
}

/* -- the trace context of the envelope --------------------------------------------------------- */

/* Up to 14 hex digits in lower case; others are malformed and count for nothing. */
static bool hex(struct str s, uint64_t *ret)
{
	uint64_t v = 0;

	if (!s.len || s.len > 14)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	*ret = v;
	return true;
}

/*
 * OpenTelemetry's consistent sampling: kept if the 56 bits of randomness are not below the threshold. Sentry keeps if
 * sample_rand is below sample_rate, so its number is the other end's: 1 - randomness.
 */
static void sampling_of(const struct rs_span *span, uint64_t *rate_2_56, uint64_t *rand_2_56)
{
	struct str state = span->trace_state, member;
	uint64_t threshold = 0, randomness = 0, v;

	for (int i = 9; i < 16; i++)
		randomness = randomness << 8 | span->trace_id[i];
	while (state.len) {
		struct str key, field, name;

		state = str_cut(state, ',', &member);
		member = str_cut(str_trim(member), '=', &key);
		if (!str_eq(key, STR("ot")))
			continue;
		while (member.len) {
			member = str_cut(member, ';', &field);
			field = str_cut(field, ':', &name);
			if (!hex(field, &v))
				continue;
			if (str_eq(name, STR("th")))
				threshold = v << 4 * (14 - field.len);
			else if (str_eq(name, STR("rv")) && field.len == 14)
				randomness = v;
		}
	}
	*rate_2_56 = (1ull << 56) - threshold;
	*rand_2_56 = (1ull << 56) - 1 - randomness;
}

/* ,"name":"text" for an id of the project's, which is plain ASCII. */
static char *put_key(char *p, struct str name, const char *value)
{
	*p++ = ',';
	*p++ = '"';
	p = put_lit(p, name);
	p = RS_LIT(p, "\":\"");
	p = put_lit(p, str_at(str_c(value), 0, 64));
	*p++ = '"';
	return p;
}

static char *put_trace(struct rs_encoder *e, char *p, const struct rs_item *it)
{
	struct state *st = e->state;
	struct rs_sink *s = &st->sink;
	struct str a, b, source;
	uint64_t rate, rnd;
	struct sentry_facts f;
	char digits[24];

	sampling_of(it->s, &rate, &rnd);
	p = RS_LIT(p, "\"trace\":{\"trace_id\":\"");
	p = rs_json_hex(p, it->s->trace_id, 16);
	*p++ = '"';
	if (e->opts.sentry_key)
		p = put_key(p, STR("public_key"), e->opts.sentry_key);
	if (e->opts.sentry_org)
		p = put_key(p, STR("org_id"), e->opts.sentry_org);
	p = RS_LIT(p, ",\"sample_rate\":\"");
	p = rs_json_double(p, (double)rate / 0x1p56);
	/* Below 1, whatever the rounding. */
	p = RS_LIT(p, "\",\"sample_rand\":\"0.");
	rs_json_u64(digits, 1000000 + (uint64_t)((__uint128_t)rnd * 1000000 >> 56));
	memcpy(p, digits + 1, 6);
	p += 6;
	p = rnd < rate ? RS_LIT(p, "\",\"sampled\":\"true\"")
		       : RS_LIT(p, "\",\"sampled\":\"false\"");
	p = put_member(s, p, STR("release"), sentry_release_of(&it->rs->resource));
	p = put_member(s, p, STR("environment"), sentry_environment_of(&it->rs->resource));
	sentry_learn(&f, it->s);
	sentry_segment_name(&f, it->s, &a, &b, &source);
	if (sentry_is_segment(it->s) && a.len && !str_eq(source, STR("url"))) {
		p = RS_LIT(p, ",\"transaction\":");
		p = put_pair(s, p, a, b);
	}
	return RS_LIT(p, "}");
}

/* A number that is known later: goes in front of offset `end`, where blanks were left. */
#define BLANKS "          "
static void fill_in(struct rs_sink *s, size_t end, uint64_t v)
{
	char digits[24];
	size_t n = (size_t)(rs_json_u64(digits, v) - digits);

	memcpy(s->base + end - n, digits, n);
}

/* Was there no memory for what was written? */
static bool no_memory(const struct state *st)
{
	return st->sink.err && st->sink.err != -EFBIG;
}

/* Is what was written from offset `from` on, with the end that is missing, too much? */
static bool too_big(const struct rs_encoder *e, const char *p, size_t from)
{
	const struct state *st = e->state;
	size_t at = rs_sink_pos(&st->sink, p) + sizeof("]}\n") - 1;

	return st->sink.err || at > e->opts.max_payload ||
	       at - 1 - from > (st->transaction ? MAX_TRANSACTION : MAX_CONTAINER);
}

/*
 * The unit's spans as elements of the list that is open, as many as fit; takes them out of u. *n: how many the envelope
 * has. What is too big is left out; in a container, if it is so alone. Without memory a container ends earlier; where
 * that cannot be, the error stays.
 */
static char *put_spans(struct rs_encoder *e, struct rs_encode *run, char *p, struct sentry_unit *u,
		       size_t from, uint32_t *n)
{
	struct state *st = e->state;
	struct rs_sink *s = &st->sink;
	uint32_t max = SENTRY_SPANS + st->transaction;

	for (; u->n; u->first++, u->n--) {
		const struct rs_item *it = &st->w.item[st->units.order[u->first]];
		size_t mark = rs_sink_pos(s, p);

		if (*n < max) {
			if (p[-1] != '[')
				*p++ = ',';
			p = st->transaction ? put_child(st, p, it) : put_item(st, p, it);
			if (!too_big(e, p, from) &&
			    (st->transaction || rs_sink_pos(s, p) - mark <= MAX_SPAN)) {
				++*n;
				continue;
			}
			if (no_memory(st) && (st->transaction || !*n))
				return p;
			p = rs_sink_rollback(s, mark);
			if (*n && !st->transaction)
				break;
		}
		run->skipped[RS_SKIP_TOO_BIG]++;
	}
	return p;
}

/*
 * The unit's spans, or the first of them, as an envelope: run->out; takes them out of u. *ret_n: how many; 0: none fits.
 * 0 or -errno: no memory, nothing is taken.
 */
static int put_envelope(struct rs_encoder *e, struct rs_encode *run, struct sentry_unit *u,
			uint32_t *ret_n)
{
	struct state *st = e->state;
	const struct sentry_unit all = *u;
	const uint32_t big = run->skipped[RS_SKIP_TOO_BIG];
	const struct rs_item *first = &st->w.item[st->units.order[u->first]];
	struct rs_sink *s = &st->sink;
	char *p = rs_sink_open(s, e->pool, e->opts.max_payload);
	size_t count, length, from;
	uint32_t n = 0;
	int err;

	*ret_n = 0;
	if (!p)
		return s->err;
	*p++ = '{';
	if (st->transaction) {
		p = put_event_id(p, first->s);
		*p++ = ',';
	}
	p = put_sdk(p);
	*p++ = ',';
	p = put_trace(e, p, first);
	p = RS_LIT(p, "}\n");
	p = rs_sink_need(s, p, 0);
	if (st->transaction)
		p = RS_LIT(p, "{\"type\":\"transaction\",\"content_type\":\"application/json\"");
	else
		p = RS_LIT(p, "{\"type\":\"span\",\"item_count\":" BLANKS);
	count = rs_sink_pos(s, p);
	if (!st->transaction)
		p = RS_LIT(p, ",\"content_type\":\"application/vnd.sentry.items.span.v2+json\"");
	p = RS_LIT(p, ",\"length\":" BLANKS);
	length = rs_sink_pos(s, p);
	p = RS_LIT(p, "}\n");
	p = rs_sink_need(s, p, 0);
	from = rs_sink_pos(s, p);
	if (st->transaction) {
		p = put_transaction(st, p, first);
	} else {
		p = RS_LIT(p, "{\"items\":[");
	}
	if (too_big(e, p, from) && !no_memory(st)) {
		rs_sink_abort(s);
		run->skipped[RS_SKIP_TOO_BIG] += u->n;
		u->n = 0;
		return 0;
	}
	if (st->transaction) {
		n = 1;
		u->first++;
		u->n--;
	}
	if (!no_memory(st))
		p = put_spans(e, run, p, u, from, &n);
	if (no_memory(st)) {
		err = s->err;
		rs_sink_abort(s);
		*u = all;
		run->skipped[RS_SKIP_TOO_BIG] = big;
		return err;
	}
	if (n) {
		p = RS_LIT(p, "]}");
		fill_in(s, length, rs_sink_pos(s, p) - from);
		if (!st->transaction)
			fill_in(s, count, n);
		*p++ = '\n';
		rs_sink_close(s, p, &run->out);
		*ret_n = n;
		return 0;
	}
	rs_sink_abort(s);
	return 0;
}

/* -- chunks into envelopes --------------------------------------------------------------------- */

/* The next envelope of the window: run->out, empty: it has no more. 0 or -errno: no memory now, call again. */
static int next_envelope(struct rs_encoder *e, struct rs_encode *run)
{
	struct state *st = e->state;

	for (; st->next_chunk < st->w.nchunk; st->next_chunk++) {
		const struct rs_chunk *c = &st->w.chunk[st->next_chunk];

		if (st->planned == st->next_chunk) {
			if (!sentry_plan(&st->units, &st->w, c, st->transaction))
				return -ENOMEM;
			st->planned++;
			st->next_unit = 0;
		}
		while (st->next_unit < st->units.nunit) {
			struct sentry_unit *u = &st->units.unit[st->next_unit];
			uint32_t n;
			int err = put_envelope(e, run, u, &n);

			if (err)
				return err;
			st->next_unit += !u->n;
			run->spans += n;
			if (n)
				return 0;
		}
	}
	return 0;
}

static int encode(struct rs_encoder *e, struct rs_encode *run)
{
	struct state *st = e->state;

	for (;;) {
		int err;

		if (!run->mark || run->mark != st->mark) {
			err = rs_chunks_collect(&st->w, run);
			if (err)
				return err;
			st->next_chunk = st->planned = 0;
			run->mark = ++st->mark;
		}
		err = next_envelope(e, run);
		if (err || run->out.niov)
			return err;
		run->mark = 0;
		rs_chunks_leave(&st->w, run);
		if (run->done)
			return 0;
	}
}

static void release(struct rs_encoder *e)
{
	struct state *st = e->state;

	rs_keyset_release(&st->keys);
	rs_chunks_release(&st->w);
	sentry_units_release(&st->units);
}

static int init(struct rs_encoder *e)
{
	struct state *st = e->state;

	if (rs_keyset_init(&st->keys) || rs_chunks_init(&st->w, e->opts.max_payload)) {
		release(e);
		return -ENOMEM;
	}
	return 0;
}

static int init_transaction(struct rs_encoder *e)
{
	((struct state *)e->state)->transaction = true;
	return init(e);
}

RS_ENCODER_OPS(sentry) = {
	.name = "sentry",
	.content_type = "application/x-sentry-envelope",
	.suffix = "envelope",
	.state_size = sizeof(struct state),
	.init = init,
	.release = release,
	.encode = encode,
};

RS_ENCODER_OPS(sentry_transaction) = {
	.name = "sentry-transaction",
	.content_type = "application/x-sentry-envelope",
	.suffix = "envelope",
	.state_size = sizeof(struct state),
	.init = init_transaction,
	.release = release,
	.encode = encode,
};
