// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include "trace/sample.h"
#include "unit.h"

static void thresholds(void **st)
{
	FILE *f = fopen("tests/vectors/otlp/th.tsv", "r");
	static const int digits[] = { 3, 4, 5, 14 };
	char line[256], *save;
	int rows = 0;

	(void)st;
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f)); /* column names */
	while (fgets(line, sizeof(line), f)) {
		char *word = strtok_r(line, "\t\n", &save), *slash = strchr(word, '/');
		double p =
			slash ? strtod(word, NULL) / strtod(slash + 1, NULL) : strtod(word, NULL);

		for (int i = 0; i < 4; i++) {
			char text[RS_SAMPLE_TH_TEXT];
			uint64_t t = rs_sample_threshold(p, digits[i]), back, rv;
			char state[64];

			word = strtok_r(NULL, "\t\n", &save);
			rs_sample_th_text(t, text);
			assert_string_equal(text, word);
			snprintf(state, sizeof(state), "ot=th:%s", text);
			rs_sample_ot(str_c(state), &back, &rv);
			assert_int_equal(back, t);
		}
		rows++;
	}
	fclose(f);
	assert_true(rows > 10);
}

static void ot_member(void **st)
{
	static const struct {
		const char *state;
		uint64_t th, rv;
	} t[] = {
		{ "", RS_SAMPLE_NO_TH, RS_SAMPLE_NO_TH },
		{ "ot=th:8", 0x80000000000000, RS_SAMPLE_NO_TH },
		{ "ot=th:028f", 0x028f0000000000, RS_SAMPLE_NO_TH },
		{ "dd=s:1, ot=rv:0123456789abcd;th:0", 0, 0x0123456789abcd },
		{ "ot=th:8F", RS_SAMPLE_NO_TH, RS_SAMPLE_NO_TH },
		{ "ot=th:", RS_SAMPLE_NO_TH, RS_SAMPLE_NO_TH },
		{ "ot=th:123456789abcdef", RS_SAMPLE_NO_TH, RS_SAMPLE_NO_TH },
		{ "ot=rv:123", RS_SAMPLE_NO_TH, RS_SAMPLE_NO_TH },
		{ "xot=th:8", RS_SAMPLE_NO_TH, RS_SAMPLE_NO_TH },
	};

	(void)st;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint64_t th, rv;

		rs_sample_ot(str_c(t[i].state), &th, &rv);
		assert_int_equal(th, t[i].th);
		assert_int_equal(rv, t[i].rv);
	}
}

/* A trace whose randomness is `r`. */
static struct rs_sample_trace trace(uint8_t id[16], uint64_t r)
{
	memset(id, 0xff, 16);
	for (int i = 0; i < 7; i++)
		id[15 - i] = (uint8_t)(r >> 8 * i);
	return (struct rs_sample_trace){ .trace_id = id };
}

static void heads(void **st)
{
	enum {
		ROOT,
		WIRE_YES,
		WIRE_NO
	};
	static const struct {
		enum rs_sampler_kind kind;
		bool low[3], high[3]; /* for R below and above T */
	} t[] = {
		{ RS_SAMPLER_ON, { 1, 1, 1 }, { 1, 1, 1 } },
		{ RS_SAMPLER_OFF, { 0, 0, 0 }, { 0, 0, 0 } },
		{ RS_SAMPLER_RATIO, { 0, 0, 0 }, { 1, 1, 1 } },
		{ RS_SAMPLER_PARENT_ON, { 1, 1, 0 }, { 1, 1, 0 } },
		{ RS_SAMPLER_PARENT_OFF, { 0, 1, 0 }, { 0, 1, 0 } },
		{ RS_SAMPLER_PARENT_RATIO, { 0, 1, 0 }, { 1, 1, 0 } },
	};
	uint8_t id[16];

	(void)st;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct rs_sampler s;

		rs_sampler_init(&s, t[i].kind, 0.25);
		for (int k = 0; k < 3; k++) {
			struct rs_sample_trace tr = trace(id, 0xbfffffffffffff);

			tr.from_wire = k != ROOT;
			tr.sampled = k == WIRE_YES;
			assert_int_equal(rs_sample_head(&s, &tr), t[i].low[k]);
			tr = trace(id, 0xc0000000000000);
			tr.from_wire = k != ROOT;
			tr.sampled = k == WIRE_YES;
			assert_int_equal(rs_sample_head(&s, &tr), t[i].high[k]);
		}
		rs_sampler_release(&s);
	}
}

static void backend_rates(void **st)
{
	struct rs_sampler s;
	struct rs_sample_trace t;
	uint8_t id[16];

	(void)st;
	rs_sampler_init(&s, RS_SAMPLER_PARENT_ON, 1);
	t = trace(id, 0x40000000000000);
	t.service = STR("web");
	assert_true(rs_sample_head(&s, &t));
	rs_sampler_rate(&s, STR("Web"), STR("prod"), 0.5);
	assert_false(rs_sample_head(&s, &t));
	rs_sampler_rate(&s, STR("web"), STR("PROD"), 0.9);
	assert_true(rs_sample_head(&s, &t));
	t.service = STR("other");
	rs_sampler_rate(&s, STR_NONE, STR_NONE, 0.0);
	assert_false(rs_sample_head(&s, &t));
	/* The caller of a service has decided. */
	t.from_wire = t.sampled = true;
	assert_true(rs_sample_head(&s, &t));
	rs_sampler_release(&s);
}

static void rules_and_limit(void **st)
{
	struct rs_sampler s;
	struct rs_span span = { .start_ns = 100, .end_ns = 1100 };
	int n = 0;

	(void)st;
	rs_sampler_init(&s, RS_SAMPLER_OFF, 0);
	assert_false(rs_sample_has_rules(&s));
	s.keep_errors = true;
	assert_true(rs_sample_has_rules(&s));
	assert_false(rs_sample_rule(&s, &span));
	span.status = RS_STATUS_ERROR;
	assert_true(rs_sample_rule(&s, &span));
	span.status = RS_STATUS_OK;
	s.keep_slow_ns = 1000;
	assert_true(rs_sample_rule(&s, &span));
	s.keep_slow_ns = 1001;
	assert_false(rs_sample_rule(&s, &span));

	assert_true(rs_sample_room(&s, 1)); /* no limit */
	s.per_second = 100;
	for (int i = 0; i < 1000; i++)
		n += rs_sample_room(&s, 5000000000u);
	assert_int_equal(n, 100);
	for (int i = 0; i < 1000; i++) /* half a second more */
		n += rs_sample_room(&s, 5000000000u + (uint64_t)i * 500000);
	assert_in_range(n, 149, 150);
	rs_sampler_release(&s);
}

static void marks(void **st)
{
	static const struct {
		enum rs_sampler_kind kind;
		bool wire, sampled, by_rule;
		const char *state, *after;
	} t[] = {
		{ RS_SAMPLER_ON, 0, 0, 0, "", "" },
		{ RS_SAMPLER_RATIO, 0, 0, 0, "", "ot=th:c" },
		{ RS_SAMPLER_RATIO, 1, 0, 0, "a=b,c=d", "ot=th:c,a=b,c=d" },
		{ RS_SAMPLER_RATIO, 1, 1, 0, "a=b,ot=th:8;rv:f0000000000000,c=d",
		  "ot=th:c;rv:f0000000000000,a=b,c=d" },
		{ RS_SAMPLER_RATIO, 1, 1, 0, "ot=th:e", "ot=th:e" }, /* rarer already */
		{ RS_SAMPLER_PARENT_RATIO, 1, 1, 0, "ot=th:8", "ot=th:8" },
		{ RS_SAMPLER_PARENT_RATIO, 1, 1, 0, "a=b", "a=b" },
		{ RS_SAMPLER_PARENT_RATIO, 1, 1, 0, "ot=th:ffff;x:1",
		  "ot=x:1" }, /* R is below it */
		{ RS_SAMPLER_PARENT_RATIO, 1, 0, 1, "ot=th:8,a=b", "a=b" },
		{ RS_SAMPLER_RATIO, 0, 0, 1, "", "" },
	};
	struct rs_arena a;
	uint8_t id[16];

	(void)st;
	rs_arena_init(&a, 4096, 0);
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct rs_span span = { .flags = 0x100,
					.trace_state = rs_arena_str(&a, str_c(t[i].state)) };
		struct rs_sample_trace tr = trace(id, 0xf0000000000000);
		struct rs_sampler s;

		tr.from_wire = t[i].wire;
		tr.sampled = t[i].sampled;
		tr.state = span.trace_state;
		rs_sampler_init(&s, t[i].kind, 0.25);
		rs_sample_mark(&s, &tr, t[i].by_rule, &span, &a);
		assert_int_equal(span.flags, 0x101);
		assert_int_equal(span.trace_state.len, strlen(t[i].after));
		if (span.trace_state.len)
			assert_memory_equal(span.trace_state.ptr, t[i].after, span.trace_state.len);
		rs_sampler_release(&s);
	}
	rs_arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thresholds),	   cmocka_unit_test(ot_member),
		cmocka_unit_test(heads),	   cmocka_unit_test(backend_rates),
		cmocka_unit_test(rules_and_limit), cmocka_unit_test(marks),
	};

	return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
