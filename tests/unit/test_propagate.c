// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include "proto/trace_headers.h"
#include "trace/propagate.h"
#include "unit.h"

#define T "0af7651916cd43dd8448eb211c80319c"
#define P "b7ad6b7169203331"

static const struct rs_propagators all_formats = { RS_PROP_COUNT,
						   { RS_PROP_TRACECONTEXT, RS_PROP_DATADOG,
						     RS_PROP_B3, RS_PROP_B3MULTI, RS_PROP_JAEGER,
						     RS_PROP_SENTRY, RS_PROP_XRAY } };

static void test_traceparent(void **state)
{
	static const struct {
		const char *header;
		int flags; /* -1: not to be used */
	} cases[] = {
		{ "00-" T "-" P "-01", 1 },
		{ "00-" T "-" P "-00", 0 },
		{ "00-" T "-" P "-03", 3 },
		{ "00-" T "-" P "-ff", 3 }, /* unknown bits are not passed on */
		{ " \t00-" T "-" P "-01\t ", 1 },
		{ "cc-" T "-" P "-01", 1 },
		{ "cc-" T "-" P "-01-what", 1 },
		{ "cc-" T "-" P "-01.what", -1 },
		{ "00-" T "-" P "-01-", -1 },
		{ "00-" T "-" P "-01.", -1 },
		{ "ff-" T "-" P "-01", -1 },
		{ ".0-" T "-" P "-01", -1 },
		{ "0-" T "-" P "-01", -1 },
		{ "00-0af7651916cd43dd8448eb211c80319C-" P "-01", -1 },
		{ "00-" T "-b7ad6b716920333A-01", -1 },
		{ "00-0af7651916cd43dd8448eb211c80319-" P "-01", -1 },
		{ "00-" T "0-" P "-01", -1 },
		{ "00-00000000000000000000000000000000-" P "-01", -1 },
		{ "00-" T "-0000000000000000-01", -1 },
		{ "00-" T "-" P "-0", -1 },
		{ "00-" T "-" P "-.1", -1 },
		{ "00-" T "-" P, -1 },
		{ "00_" T "-" P "-01", -1 },
		{ "", -1 },
		{ "   ", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rs_wire_ctx c = { .flags = 0xee };
		bool ok = rs_traceparent_parse(str_c(cases[i].header), &c);

		if (ok != (cases[i].flags >= 0))
			fail_msg("'%s': %s", cases[i].header, ok ? "taken" : "refused");
		if (!ok) {
			assert_int_equal(c.flags, 0xee); /* untouched on failure */
			continue;
		}
		assert_int_equal(c.flags, cases[i].flags);
		assert_int_equal(c.trace_id[0], 0x0a);
		assert_int_equal(c.trace_id[15], 0x9c);
		assert_int_equal(c.span_id[0], 0xb7);
		assert_int_equal(c.span_id[7], 0x31);
	}
}

static void test_tracestate(void **state)
{
	static const struct {
		const char *header;
		bool ok;
	} cases[] = {
		{ "a=1", true },
		{ "a=1,b=2", true },
		{ " a=1 ,\t b=2 ", true },
		{ "a=1,,b=2,", true }, /* empty members are allowed */
		{ "0tenant@system=x", true },
		{ "a= lead", true },
		{ "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", true },
		{ "", false },
		{ ",", false },
		{ "a", false },
		{ "=1", false },
		{ "a=", false },
		{ "A=1", false },
		{ "a b=1", false },
		{ "_a=1", false },
		{ "a=1=2", false },
		{ "a=\x7f", false },
		{ "a=\xc3\xa9", false },
		{ "a=1,B=2", false },
	};
	char many[33 * 5 + 1] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (rs_tracestate_valid(str_c(cases[i].header)) != cases[i].ok)
			fail_msg("'%s'", cases[i].header);
	}
	for (int i = 0; i < 32; i++)
		memcpy(many + i * 5, "k1=v,", 6);
	assert_true(rs_tracestate_valid(str_c(many)));
	memcpy(many + 32 * 5, "k2=v", 5);
	assert_false(rs_tracestate_valid(str_c(many)));
}

/* A request with these headers, "name: value" each, as a protocol's parser hands it on. */
static void request(struct rs_msg *m, const char *const *headers)
{
	*m = (struct rs_msg){ .type = RS_MSG_REQUEST };
	for (; *headers; headers++) {
		struct str name, value = str_cut(str_c(*headers), ':', &name);
		enum rs_field_id id = rs_trace_header(name);

		assert_int_not_equal(id, RS_F_NONE);
		m->fields[m->nfields++] = (struct rs_field){ (uint16_t)id, str_trim(value) };
	}
}

static void hex(const uint8_t *p, size_t n, char *to)
{
	for (size_t i = 0; i < n; i++) {
		*to++ = "0123456789abcdef"[p[i] >> 4];
		*to++ = "0123456789abcdef"[p[i] & 15];
	}
	*to = 0;
}

#define L64  "0000000000000000"
#define T64  "8448eb211c80319c"
#define DD_T "9532127138774266268"  /* T64 */
#define DD_P "13235353014750950193" /* P */

#define NONE NULL, NULL, 0, 0

static void test_formats(void **state)
{
	static const struct {
		const char *headers[6];
		const char *trace; /* NULL: no context */
		const char *span;
		int flags, format;
	} cases[] = {
		/* b3 */
		{ { "b3: " T "-" P "-1" }, T, P, 1, RS_PROP_B3 },
		{ { "B3: " T "-" P "-0" }, T, P, 0, RS_PROP_B3 },
		{ { "b3: " T "-" P "-d" }, T, P, 1, RS_PROP_B3 },
		{ { "b3: " T "-" P }, T, P, 1, RS_PROP_B3 },
		{ { "b3: " T64 "-" P "-1" }, L64 T64, P, 1, RS_PROP_B3 },
		{ { "b3: " T "-" P "-1-05e3ac9a4f6e3b90" }, T, P, 1, RS_PROP_B3 },
		{ { "b3: 0AF7651916CD43DD8448EB211C80319C-" P "-1" }, T, P, 1, RS_PROP_B3 },
		{ { "b3: 0" }, NONE },
		{ { "b3: d" }, NONE },
		{ { "b3: " T "-" P "-" }, NONE },
		{ { "b3: " T "-" P "-2" }, NONE },
		{ { "b3: " T "-" P "-true" }, NONE },
		{ { "b3: " T "-" P "-1-05e3ac9a4f6e3b9" }, NONE },
		{ { "b3: " T "-" P "-1-05e3ac9a4f6e3b9x" }, NONE },
		{ { "b3: " T "-b7ad6b716920333" }, NONE },
		{ { "b3: " L64 L64 "-" P }, NONE },
		{ { "b3: " T "-" L64 }, NONE },
		{ { "b3: 0af7651916cd43dd8448eb211c80319-" P }, NONE },
		{ { "b3: " T }, NONE },
		{ { "b3:" }, NONE },
		{ { "b3: " T "-" P "-1", "b3: " T "-" P "-1" }, NONE },
		/* b3multi */
		{ { "X-B3-TraceId: " T, "X-B3-SpanId: " P, "X-B3-Sampled: 1" },
		  T,
		  P,
		  1,
		  RS_PROP_B3MULTI },
		{ { "x-b3-traceid: " T64, "x-b3-spanid: " P, "x-b3-sampled: false" },
		  L64 T64,
		  P,
		  0,
		  RS_PROP_B3MULTI },
		{ { "X-B3-TraceId: " T, "X-B3-SpanId: " P, "X-B3-Flags: 1" },
		  T,
		  P,
		  1,
		  RS_PROP_B3MULTI },
		{ { "X-B3-TraceId: " T, "X-B3-SpanId: " P, "X-B3-Sampled: 0", "X-B3-Flags: 1" },
		  T,
		  P,
		  1,
		  RS_PROP_B3MULTI },
		{ { "X-B3-TraceId: " T, "X-B3-SpanId: " P }, T, P, 1, RS_PROP_B3MULTI },
		{ { "X-B3-TraceId: " T, "X-B3-SpanId: " P, "X-B3-Sampled: yes" }, NONE },
		{ { "X-B3-TraceId: " T }, NONE },
		{ { "X-B3-SpanId: " P }, NONE },
		{ { "X-B3-Sampled: 0" }, NONE },
		{ { "b3: 0", "X-B3-TraceId: " T, "X-B3-SpanId: " P }, T, P, 1, RS_PROP_B3MULTI },
		/* jaeger */
		{ { "uber-trace-id: " T ":" P ":0:1" }, T, P, 1, RS_PROP_JAEGER },
		{ { "Uber-Trace-Id: " T "%3A" P "%3a0%3A0" }, T, P, 0, RS_PROP_JAEGER },
		{ { "uber-trace-id: 1:2:0:3" },
		  "00000000000000000000000000000001",
		  "0000000000000002",
		  1,
		  RS_PROP_JAEGER },
		{ { "uber-trace-id: " T ":" P ":" P ":2" }, T, P, 1, RS_PROP_JAEGER },
		{ { "uber-trace-id: " T ":" P ":0:09" }, T, P, 1, RS_PROP_JAEGER },
		{ { "uber-trace-id: " T ":" P ":0:" }, NONE },
		{ { "uber-trace-id: " T ":" P ":0" }, NONE },
		{ { "uber-trace-id: " T ":" P "::1" }, NONE },
		{ { "uber-trace-id: " T ":" P ":0:1:" }, NONE },
		{ { "uber-trace-id: 0:" P ":0:1" }, NONE },
		{ { "uber-trace-id: " T ":0:0:1" }, NONE },
		{ { "uber-trace-id: " T "0:" P ":0:1" }, NONE },
		{ { "uber-trace-id: " T ":" P "0:0:1" }, NONE },
		{ { "uber-trace-id: " T ":xyz:0:1" }, NONE },
		/* sentry */
		{ { "sentry-trace: " T "-" P "-1" }, T, P, 1, RS_PROP_SENTRY },
		{ { "sentry-trace: " T "-" P "-0" }, T, P, 0, RS_PROP_SENTRY },
		{ { "sentry-trace: " T "-" P }, T, P, 1, RS_PROP_SENTRY },
		{ { "sentry-trace: " T "-" P, "baggage: a=b, sentry-sampled=false;p" },
		  T,
		  P,
		  0,
		  RS_PROP_SENTRY },
		{ { "sentry-trace: " T "-" P "-1", "baggage: sentry-sampled=false" },
		  T,
		  P,
		  1,
		  RS_PROP_SENTRY },
		{ { "sentry-trace: " T "-" P, "baggage: a=b", "baggage: c=d,sentry-sampled=false" },
		  T,
		  P,
		  0,
		  RS_PROP_SENTRY },
		{ { "sentry-trace: " T "-" P, "baggage: sentry-sampled=false",
		    "baggage: sentry-sampled=true" },
		  T,
		  P,
		  1,
		  RS_PROP_SENTRY },
		{ { "sentry-trace: " T "-" P "-" }, NONE },
		{ { "sentry-trace: " T "-" P "-2" }, NONE },
		{ { "sentry-trace: " T "-" P "-11" }, NONE },
		{ { "sentry-trace: " T }, NONE },
		{ { "sentry-trace: " T "_" P }, NONE },
		{ { "sentry-trace: " L64 L64 "-" P "-1" }, NONE },
		{ { "baggage: sentry-trace_id=" T }, NONE },
		/* xray */
		{ { "X-Amzn-Trace-Id: Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=" P
		    ";Sampled=1" },
		  T,
		  P,
		  1,
		  RS_PROP_XRAY },
		{ { "x-amzn-trace-id: Sampled=0; Parent=" P
		    "; Root=1-0af76519-16cd43dd8448eb211c80319c; Self=x" },
		  T,
		  P,
		  0,
		  RS_PROP_XRAY },
		{ { "x-amzn-trace-id: Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=" P
		    ";Sampled=?" },
		  T,
		  P,
		  1,
		  RS_PROP_XRAY },
		{ { "x-amzn-trace-id: Root=1-0af76519-16cd43dd8448eb211c80319c" },
		  NONE }, /* a load balancer's */
		{ { "x-amzn-trace-id: Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=" P
		    ";Parent=05e3ac9a4f6e3b90" },
		  NONE },
		{ { "x-amzn-trace-id: Root=1-0af76519-16cd43dd8448eb211c80319c;"
		    "Root=1-0af76519-16cd43dd8448eb211c80319d;Parent=" P },
		  NONE },
		{ { "x-amzn-trace-id: Root=2-0af76519-16cd43dd8448eb211c80319c;Parent=" P }, NONE },
		{ { "x-amzn-trace-id: Root=1-0af76519-16cd43dd8448eb211c80319;Parent=" P }, NONE },
		{ { "x-amzn-trace-id: Root=1-0af76519x16cd43dd8448eb211c80319c;Parent=" P }, NONE },
		{ { "x-amzn-trace-id: Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad" },
		  NONE },
		/* datadog */
		{ { "x-datadog-trace-id: " DD_T, "x-datadog-parent-id: " DD_P,
		    "x-datadog-sampling-priority: 1",
		    "x-datadog-tags: _dd.p.dm=-4,_dd.p.tid=0af7651916cd43dd" },
		  T,
		  P,
		  1,
		  RS_PROP_DATADOG },
		{ { "X-Datadog-Trace-Id: " DD_T, "X-Datadog-Parent-Id: " DD_P,
		    "X-Datadog-Sampling-Priority: -1" },
		  L64 T64,
		  P,
		  0,
		  RS_PROP_DATADOG },
		{ { "x-datadog-trace-id: " DD_T, "x-datadog-parent-id: " DD_P },
		  L64 T64,
		  P,
		  1,
		  RS_PROP_DATADOG },
		{ { "x-datadog-trace-id: " DD_T ", 7", "x-datadog-parent-id: " DD_P }, NONE },
		{ { "x-datadog-trace-id: " DD_T ",junk", "x-datadog-parent-id: " DD_P }, NONE },
		{ { "x-datadog-trace-id: " DD_T, "x-datadog-parent-id: " DD_P,
		    "x-datadog-tags: _dd.p.tid=0AF7651916CD43DD" },
		  L64 T64,
		  P,
		  1,
		  RS_PROP_DATADOG },
		{ { "x-datadog-trace-id: " DD_T, "x-datadog-parent-id: " DD_P,
		    "x-datadog-tags: _dd.p.tid=12" },
		  L64 T64,
		  P,
		  1,
		  RS_PROP_DATADOG },
		{ { "x-datadog-trace-id: " DD_T, "x-datadog-parent-id: " DD_P,
		    "x-datadog-tags: _dd.p.tid=0af7651916cd43dd,_dd.p.tid=1af7651916cd43dd" },
		  L64 T64,
		  P,
		  1,
		  RS_PROP_DATADOG },
		{ { "x-datadog-trace-id: 18446744073709551616", "x-datadog-parent-id: 1" }, NONE },
		{ { "x-datadog-trace-id: 0", "x-datadog-parent-id: 1" }, NONE },
		{ { "x-datadog-trace-id: 1", "x-datadog-parent-id: 0" }, NONE },
		{ { "x-datadog-trace-id: 1" }, NONE },
		{ { "x-datadog-trace-id: abc", "x-datadog-parent-id: 1" }, NONE },
		{ { "x-datadog-trace-id: -1", "x-datadog-parent-id: 1" }, NONE },
		{ { "x-datadog-trace-id: 1", "x-datadog-parent-id: 1",
		    "x-datadog-sampling-priority: high" },
		  NONE },
		{ { "x-datadog-trace-id: 1", "x-datadog-parent-id: 1",
		    "x-datadog-sampling-priority: 1x" },
		  NONE },
		/* w3c: two of them are none; a bad one leaves the next format its turn */
		{ { "traceparent: 00-" T "-" P "-01" }, T, P, 1, RS_PROP_TRACECONTEXT },
		{ { "traceparent: 00-" T "-" P "-01", "traceparent: 00-" T "-" P "-01" }, NONE },
		{ { "traceparent: 00-" T "-" P "-01", "b3: " T64 "-" P "-0" },
		  T,
		  P,
		  1,
		  RS_PROP_TRACECONTEXT },
		{ { "traceparent: ff-" T "-" P "-01", "b3: " T64 "-" P "-0" },
		  L64 T64,
		  P,
		  0,
		  RS_PROP_B3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rs_wire_ctx c = { .flags = 0xee };
		char trace[33], span[17];
		struct rs_msg m;
		bool ok;

		request(&m, cases[i].headers);
		ok = rs_context_extract(&all_formats, &m, &c);
		if (ok != (cases[i].trace != NULL))
			fail_msg("case %zu, '%s': %s", i, cases[i].headers[0],
				 ok ? "taken" : "refused");
		if (!ok) {
			assert_int_equal(c.flags, 0xee);
			continue;
		}
		hex(c.trace_id, 16, trace);
		hex(c.span_id, 8, span);
		if (strcmp(trace, cases[i].trace) || strcmp(span, cases[i].span) ||
		    c.flags != cases[i].flags || c.format != cases[i].format)
			fail_msg("case %zu, '%s': %s %s flags %u format %u", i, cases[i].headers[0],
				 trace, span, c.flags, c.format);
	}
}

static void test_order(void **state)
{
	static const char *const both[] = { "traceparent: 00-" T "-" P "-01", "b3: " T64 "-" P "-0",
					    "uber-trace-id: 1:2:0:0", NULL };
	struct rs_propagators p;
	struct rs_wire_ctx c, other;
	struct str unknown = STR_NONE;
	struct rs_msg m;

	(void)state;
	request(&m, both);
	assert_true(rs_propagators_parse(STR("b3, tracecontext,baggage,B3"), &p, &unknown));
	assert_int_equal(p.n, 2);
	assert_true(rs_context_extract(&p, &m, &c));
	assert_int_equal(c.format, RS_PROP_B3);
	/* The same low 64 bits are the same trace in a narrower format. */
	assert_false(rs_context_other(&p, &m, &c, &other));
	assert_true(rs_context_other(&all_formats, &m, &c, &other));
	assert_int_equal(other.format, RS_PROP_JAEGER);

	assert_true(rs_propagators_parse(STR("none"), &p, &unknown));
	assert_false(rs_context_extract(&p, &m, &c));
	assert_false(rs_propagators_parse(STR("xray,ottrace,sentry,x"), &p, &unknown));
	assert_int_equal(p.n, 2);
	assert_true(str_eq(unknown, STR("ottrace")));
}

static void check_state(const char *const *headers, const char *want)
{
	char buf[RS_TRACE_STATE_MAX];
	struct rs_wire_ctx c;
	struct rs_msg m;
	size_t n;

	request(&m, headers);
	assert_true(rs_context_extract(&all_formats, &m, &c));
	n = rs_context_state(&m, &c, buf);
	if (n != strlen(want) || memcmp(buf, want, n) != 0)
		fail_msg("'%.*s', not '%s'", (int)n, buf, want);
}

static void test_state(void **state)
{
	static char large[RS_TRACE_STATE_MAX + 32] = "tracestate: ";

	(void)state;
	check_state((const char *const[]){ "traceparent: 00-" T "-" P "-01", "tracestate: a=1, b=2",
					   "tracestate: dd=s:1", NULL },
		    "a=1, b=2,dd=s:1");
	check_state(
		(const char *const[]){ "traceparent: 00-" T "-" P "-01", "tracestate: A=1", NULL },
		"");
	for (size_t i = strlen(large); i + 5 < sizeof(large); i += 4)
		memcpy(large + i, "a=1,", 5);
	check_state((const char *const[]){ "traceparent: 00-" T "-" P "-01", large, NULL }, "");
	check_state((const char *const[]){ "x-datadog-trace-id: 1", "x-datadog-parent-id: 2",
					   "x-datadog-sampling-priority: 2",
					   "x-datadog-tags: _dd.p.dm=-4,x=1,_dd.p.k=a=b", NULL },
		    "dd=s:2;t.dm:-4;t.k:a~b");
	check_state(
		(const char *const[]){ "x-datadog-trace-id: 1", "x-datadog-parent-id: 2", NULL },
		"");
	check_state((const char *const[]){ "b3: " T "-" P, "tracestate: a=1", NULL }, "");
}

/* What no sender should send, and some do. headers as in test_formats. */
static void test_nasty(void **state)
{
	static const char *const none[][6] = {
		/* w3c */
		{ "traceparent: 00-" T "-" P "-01, 00-" T "-" P "-01" },
		{ "traceparent: \"00-" T "-" P "-01\"" },
		{ "traceparent: 00-" T "-" P "-01;x" },
		{ "traceparent: 00-" T " -" P "-01" },
		{ "traceparent: 00 -" T "-" P "-01" },
		{ "traceparent: 01-" T "-" P "-01x" },
		{ "traceparent: FF-" T "-" P "-01" },
		{ "traceparent: 0x-" T "-" P "-01" },
		{ "traceparent: 00-" T "-" P "-0g" },
		{ "traceparent: 00-" T "-" P "-1" },
		{ "traceparent: 00-" T "-" P "-001" },
		{ "traceparent: cc-" L64 L64 "-" P "-01" },
		{ "traceparent: \xc2\xa0"
		  "00-" T "-" P "-01" },
		{ "traceparent: 00-" T "-" P "-01", "Traceparent: ff-" T "-" P "-01" },
		/* b3 */
		{ "b3: 1" },
		{ "b3: -" },
		{ "b3: d-d" },
		{ "b3: " T "-" P "-D" },
		{ "b3: " T "-" P "-1-" },
		{ "b3: " T "-" P "-1-05e3ac9a4f6e3b90-" },
		{ "b3: " T "--" P "-1" },
		{ "b3: " T T "-" P "-1" },
		{ "b3: " T ", " P ", 1" },
		{ "X-B3-TraceId: " T " " P, "X-B3-SpanId: " P },
		{ "X-B3-TraceId: 0x" T64, "X-B3-SpanId: " P },
		{ "X-B3-TraceId: " T, "X-B3-SpanId: " P, "X-B3-SpanId: " P },
		{ "X-B3-TraceId: " L64, "X-B3-SpanId: " P },
		/* jaeger */
		{ "uber-trace-id: :::" },
		{ "uber-trace-id: " T ":" P ":0:1", "uber-trace-id: " T ":" P ":0:1" },
		{ "uber-trace-id: " L64 L64 L64 "1:" P ":0:1" },
		{ "uber-trace-id: " T "%3" P ":0:1" },
		{ "uber-trace-id: " T ":" P ":0:100" },
		{ "uber-trace-id: " T ":" P ":0:-1" },
		{ "uber-trace-id: 0:0:0:0" },
		/* sentry */
		{ "sentry-trace: " T "-" P "-1-" },
		{ "sentry-trace: " T "-" P " -1" },
		{ "sentry-trace: " T "-" L64 "-1" },
		{ "sentry-trace: " T64 "-" P "-1" },
		/* xray */
		{ "x-amzn-trace-id: Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=" L64 },
		{ "x-amzn-trace-id: Root=1-0af76519-16cd43dd8448eb211c80319c,Parent=" P },
		{ "x-amzn-trace-id: Root=;Parent=" P },
		{ "x-amzn-trace-id: Parent=" P },
		{ "x-amzn-trace-id: Root=1-00000000-000000000000000000000000;Parent=" P },
		{ "x-amzn-trace-id: Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=" P "0" },
		/* datadog */
		{ "x-datadog-trace-id: 1", "x-datadog-trace-id: 1", "x-datadog-parent-id: 1" },
		{ "x-datadog-trace-id: 0x10", "x-datadog-parent-id: 1" },
		{ "x-datadog-trace-id: 1.5", "x-datadog-parent-id: 1" },
		{ "x-datadog-trace-id: 1", "x-datadog-parent-id: 18446744073709551616" },
		{ "x-datadog-trace-id: ,1", "x-datadog-parent-id: 1" },
		{ "x-datadog-trace-id:", "x-datadog-parent-id: 1" },
	};
	static const struct {
		const char *headers[6];
		const char *trace;
		int flags;
	} taken[] = {
		{ { "TRACEPARENT:   00-" T "-" P "-02  " }, T, 2 },
		{ { "traceparent: fe-" T "-" P "-01-" }, T, 1 },
		{ { "traceparent: 01-" T "-" P "-09" }, T, 1 },
		{ { "b3:  " T64 "-" P "-1-" P " " }, L64 T64, 1 },
		{ { "X-B3-TraceId:  " T " ", "X-B3-SpanId: " P, "X-B3-Sampled: TRUE" }, T, 1 },
		{ { "uber-trace-id: 00" T64 ":" P ":0000000000000000:1" }, L64 T64, 1 },
		{ { "uber-trace-id: " T64 ":7:0:0" }, L64 T64, 0 },
		{ { "uber-trace-id: " T ":" P ":0:8" }, T, 0 },
		{ { "sentry-trace:  " T "-" P " ", "baggage: sentry-sampled=true" }, T, 1 },
		{ { "x-amzn-trace-id: Self=1-67891234-12456789abcdef012345678a;Root=1-0af76519-"
		    "16cd43dd8448eb211c80319c;Parent=" P
		    ";Sampled=1;Lineage=1:1e7bb45c:11|1e7bb45d:0" },
		  T,
		  1 },
		{ { "x-amzn-trace-id: root=1-0AF76519-16CD43DD8448EB211C80319C;parent=" P
		    ";sampled=0" },
		  T,
		  0 },
		{ { "x-datadog-trace-id: " DD_T, "x-datadog-parent-id: " DD_P,
		    "x-datadog-tags: _dd.p.tid=0af7651916cd43d" },
		  L64 T64,
		  1 },
		{ { "x-datadog-trace-id: " DD_T, "x-datadog-parent-id: " DD_P,
		    "x-datadog-tags: _dd.p.tid=0af7651916cd43ddd" },
		  L64 T64,
		  1 },
		{ { "x-datadog-trace-id: " DD_T, "x-datadog-parent-id: " DD_P,
		    "x-datadog-tags: _dd.p.tid=0af7651916cd43dx" },
		  L64 T64,
		  1 },
		{ { "x-datadog-trace-id: " DD_T, "x-datadog-parent-id: " DD_P,
		    "x-datadog-tags: _dd.p.tid=,_dd.p.dm=-1" },
		  L64 T64,
		  1 },
		{ { "x-datadog-trace-id: " DD_T, "x-datadog-parent-id: " DD_P,
		    "x-datadog-sampling-priority: 2", "x-datadog-tags: _dd.p.tid=" L64 },
		  L64 T64,
		  1 },
		/* A malformed one of a format that is asked first is as good as absent. */
		{ { "traceparent: 00-" T "-" P, "x-datadog-trace-id: abc", "b3: 0",
		    "uber-trace-id: 1:2:0:1", "sentry-trace: -" },
		  L64 "0000000000000001",
		  1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		struct rs_wire_ctx c = { .flags = 0xee };
		struct rs_msg m;

		request(&m, none[i]);
		if (rs_context_extract(&all_formats, &m, &c))
			fail_msg("'%s': taken", none[i][0]);
		assert_int_equal(c.flags, 0xee);
	}
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		struct rs_wire_ctx c;
		char trace[33];
		struct rs_msg m;

		request(&m, taken[i].headers);
		if (!rs_context_extract(&all_formats, &m, &c))
			fail_msg("'%s': refused", taken[i].headers[0]);
		hex(c.trace_id, 16, trace);
		if (strcmp(trace, taken[i].trace) || c.flags != taken[i].flags)
			fail_msg("'%s': %s flags %u", taken[i].headers[0], trace, c.flags);
	}
}

/* A tracestate over the limit: section 3.3.1.5. */
static void test_large_state(void **state)
{
	char first[400] = "tracestate: ", second[900] = "tracestate: ", want[1100];
	size_t n = strlen(first);

	(void)state;
	/* 20 members of 15 bytes, one of 200, 6 of 95. */
	for (int i = 0; i < 20; i++)
		n += (size_t)sprintf(first + n, "%ska%02d=0123456789", i ? "," : "", i);
	check_state((const char *const[]){ "traceparent: 00-" T "-" P "-01", first, NULL },
		    first + 12);
	n = strlen(second);
	n += (size_t)sprintf(second + n, "long=%0195d", 0);
	for (int i = 0; i < 6; i++)
		n += (size_t)sprintf(second + n, ",kb%02d=%090d", i, 0);
	/* 319 + 1 + 200 + 6 * 96: too much; without the long one it fits. */
	sprintf(want, "%s,%s", first + 12, strchr(second, ',') + 1);
	assert_true(strlen(want) < RS_TRACE_STATE_MAX);
	check_state((const char *const[]){ "traceparent: 00-" T "-" P "-01", first, second, NULL },
		    want);
	/* 33 members over several headers are too many. */
	check_state((const char *const[]){ "traceparent: 00-" T "-" P "-01", first, first, NULL },
		    "");
}

/* HTTP/2 gives values as they came: blanks around them are no part of the list, and take no room. */
static void test_blank_state(void **state)
{
	static char blanks[4 * RS_TRACE_STATE_MAX];
	struct rs_msg m;
	struct rs_wire_ctx c;
	char *buf = malloc(RS_TRACE_STATE_MAX);
	size_t n;

	(void)state;
	memset(blanks, ' ', sizeof(blanks));
	request(&m,
		(const char *const[]){ "traceparent: 00-" T "-" P "-01", "tracestate: a=1", NULL });
	m.fields[m.nfields++] =
		(struct rs_field){ RS_F_TRACESTATE, str_of(blanks, sizeof(blanks)) };
	m.fields[m.nfields++] = (struct rs_field){ RS_F_TRACESTATE, STR(" b=2\t") };
	assert_true(rs_context_extract(&all_formats, &m, &c));
	n = rs_context_state(&m, &c, buf);
	assert_true(str_eq(str_of(buf, n), STR("a=1,b=2")));
	free(buf);
}

/* Cut anywhere, any byte replaced: no read outside the header (it is allocated exactly), ids never zero. */
static void test_damaged(void **state)
{
	static const char *const headers[] = {
		"traceparent:00-" T "-" P "-01",
		"b3:" T "-" P "-1-05e3ac9a4f6e3b90",
		"uber-trace-id:" T "%3A" P ":0:1",
		"sentry-trace:" T "-" P "-1",
		"x-amzn-trace-id:Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=" P ";Sampled=1",
		"tracestate:a=1,b=2",
		"x-datadog-trace-id:" DD_T,
	};
	static const char bytes[] = { 0, ' ', '-', ':', ';', ',', '=', '0', 'g', 'A', '\xff', '%' };

	(void)state;
	for (size_t h = 0; h < sizeof(headers) / sizeof(headers[0]); h++) {
		struct str name, value = str_cut(str_c(headers[h]), ':', &name);

		for (size_t len = 0; len <= value.len; len++) {
			for (size_t at = 0; at < len; at++) {
				char *copy = malloc(len), buf[RS_TRACE_STATE_MAX];
				struct rs_wire_ctx c;
				struct rs_msg m = { .type = RS_MSG_REQUEST, .nfields = 2 };

				assert_non_null(copy);
				memcpy(copy, value.ptr, len);
				copy[at] = bytes[(at + len) % sizeof(bytes)];
				m.fields[0] = (struct rs_field){ (uint16_t)rs_trace_header(name),
								 str_of(copy, len) };
				m.fields[1] = (struct rs_field){ RS_F_DATADOG_PARENT_ID, STR("7") };
				if (rs_context_extract(&all_formats, &m, &c)) {
					static const uint8_t zero[16];

					assert_memory_not_equal(c.trace_id, zero, 16);
					assert_memory_not_equal(c.span_id, zero, 8);
					rs_context_state(&m, &c, buf);
				}
				free(copy);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traceparent), cmocka_unit_test(test_tracestate),
		cmocka_unit_test(test_blank_state), cmocka_unit_test(test_formats),
		cmocka_unit_test(test_order),	    cmocka_unit_test(test_state),
		cmocka_unit_test(test_nasty),	    cmocka_unit_test(test_large_state),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests_name("propagate", tests, NULL, NULL);
}
