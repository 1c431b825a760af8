// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "trace/ids.h"

#define T "0af7651916cd43dd8448eb211c80319c"
#define P "b7ad6b7169203331"

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

static bool any(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i])
			return true;
	}
	return false;
}

static void test_ids(void **state)
{
	struct rs_ids a, b, r1, r2;
	uint8_t t1[16], t2[16], s1[8], s2[8];

	(void)state;
	rs_ids_init(&a, 7);
	rs_ids_init(&b, 7);
	for (int i = 0; i < 1000; i++) {
		rs_ids_trace(&a, t1);
		rs_ids_trace(&b, t2);
		rs_ids_span(&a, s1);
		rs_ids_span(&b, s2);
		assert_memory_equal(t1, t2, 16);
		assert_memory_equal(s1, s2, 8);
		assert_true(any(t1, 16) && any(s1, 8));
	}
	rs_ids_init(&r1, 0);
	rs_ids_init(&r2, 0);
	rs_ids_trace(&r1, t1);
	rs_ids_trace(&r2, t2);
	assert_memory_not_equal(t1, t2, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traceparent),
		cmocka_unit_test(test_tracestate),
		cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests_name("ids", tests, NULL, NULL);
}
