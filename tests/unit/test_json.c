// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "unit.h"

static struct rs_arena arena;

static struct str own(const char *text, size_t len)
{
	char *copy = malloc(len ? len : 1); /* exactly sized: reads behind it are seen */

	memcpy(copy, text, len);
	return str_of(copy, len);
}

/* What a text is: skipped as a whole. NULL: fine. */
static const char *check(const char *text, size_t *ret_at)
{
	struct str s = own(text, strlen(text));
	struct rs_json j;
	const char *err;

	rs_json_init(&j, s, &arena);
	rs_json_skip(&j);
	if (!j.err && rs_json_more(&j))
		rs_json_fail(&j, "more");
	err = j.err;
	*ret_at = j.err_at;
	free((char *)s.ptr);
	return err;
}

static void grammar(void **st)
{
	static const char *const good[] = {
		"null",
		" true ",
		"false",
		"0",
		"-0",
		"-1.5e+10",
		"1E5",
		"0.0",
		"\"\"",
		"[]",
		"{}",
		"[1,2]",
		"{\"a\":1,\"b\":[{},[],\"x\"]}",
		"\"\\u00e9\\ud83d\\ude00\\n\\/\"",
		"\xef\xbb\xbf{}",
		"\n[\r\n\t1 , 2 ]",
		"\"\x7f\xff\"",
	};
	static const struct {
		const char *text;
		size_t at;
		const char *err;
	} bad[] = {
		{ "", 0, "unexpected end" },
		{ "[1,]", 3, "unexpected character" },
		{ "[1 2]", 3, "expected ',' or ']'" },
		{ "{\"a\":1,}", 7, "unexpected character" },
		{ "{\"a\" 1}", 5, "expected ':'" },
		{ "{a:1}", 1, "unexpected character" },
		{ "{1:1}", 1, "expected a key" },
		{ "{\"a\":}", 5, "unexpected character" },
		{ "[", 1, "unexpected end" },
		{ "{\"a\":1", 6, "unexpected end" },
		{ "NaN", 0, "unexpected character" },
		{ "nul", 0, "unexpected character" },
		{ "tru", 0, "unexpected character" },
		{ "01", 0, "not a number" },
		{ "1.", 0, "not a number" },
		{ "1e", 0, "not a number" },
		{ "-", 0, "not a number" },
		{ "+1", 0, "unexpected character" },
		{ "\"abc", 4, "string without end" },
		{ "\"abc\\", 5, "string without end" },
		{ "\"a\nb\"", 2, "control character in a string" },
		{ "[}", 1, "unexpected character" },
		{ "1 2", 0, "more" },
	};
	size_t at;

	(void)st;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_null(check(good[i], &at));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *err = check(bad[i].text, &at);

		assert_non_null(err);
		assert_string_equal(err, bad[i].err);
		assert_int_equal(at, bad[i].at);
	}
}

static void strings(void **st)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "\"\"", "" },
		{ "\"abc\"", "abc" },
		{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
		{ "\"\\u00e9\\u65E5\"", "\xc3\xa9\xe6\x97\xa5" },
		{ "\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80" },
		{ "\"\\ud83d\"", "\xef\xbf\xbd" },
		{ "\"\\ud83dx\"", "\xef\xbf\xbdx" },
		{ "\"\\ude00\\ud83d\"", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80" },
		{ "\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
					"A" },
		{ "\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf" },
	};
	static const char *const bad[] = { "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\\"", "5" };

	(void)st;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str s = own(rows[i].text, strlen(rows[i].text)), got;
		struct rs_json j;

		rs_json_init(&j, s, &arena);
		assert_true(rs_json_str(&j, &got));
		assert_true(str_eq(got, str_c(rows[i].want)));
		free((char *)s.ptr);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct str s = own(bad[i], strlen(bad[i])), got;
		struct rs_json j;

		rs_json_init(&j, s, &arena);
		assert_false(rs_json_str(&j, &got));
		assert_non_null(j.err);
		free((char *)s.ptr);
	}
}

static void numbers(void **st)
{
	static const char text[] =
		"[18446744073709551615,\"18446744073709551615\",\"-9223372036854775808\","
		"9223372036854775807,1.5,\"NaN\",\"-Infinity\",\"2.5\",-0.0,7]";
	struct rs_json j;
	uint64_t u;
	int32_t v;
	int64_t i;
	double d;

	(void)st;
	rs_json_init(&j, str_c(text), &arena);
	assert_true(rs_json_array(&j));
	assert_true(rs_json_elem(&j) && rs_json_u64(&j, &u) && u == UINT64_MAX);
	assert_true(rs_json_elem(&j) && rs_json_u64(&j, &u) && u == UINT64_MAX);
	assert_true(rs_json_elem(&j) && rs_json_i64(&j, &i) && i == INT64_MIN);
	assert_true(rs_json_elem(&j) && rs_json_i64(&j, &i) && i == INT64_MAX);
	assert_true(rs_json_elem(&j) && rs_json_double(&j, &d) && d == 1.5);
	assert_true(rs_json_elem(&j) && rs_json_double(&j, &d) && d != d);
	assert_true(rs_json_elem(&j) && rs_json_double(&j, &d) && d < 0 && d - d != 0);
	assert_true(rs_json_elem(&j) && rs_json_double(&j, &d) && d == 2.5);
	assert_true(rs_json_elem(&j) && rs_json_double(&j, &d) && d == 0 && __builtin_signbit(d));
	assert_true(rs_json_elem(&j) && rs_json_i32(&j, &v) && v == 7);
	assert_false(rs_json_elem(&j));
	assert_null(j.err);
	assert_false(rs_json_more(&j));

	static const struct {
		const char *text;
		int64_t value;
	} whole[] = {
		{ "1e3", 1000 },
		{ "1.0", 1 },
		{ "\"1e3\"", 1000 },
		{ "-1.50e1", -15 },
		{ "1500e-2", 15 },
		{ "0.00012E+4", -1 },
		{ "-0", 0 },
		{ "-0.0e5", 0 },
		{ "0e999999999999999999999", 0 },
		{ "1.7e+18", 1700000000000000000 },
		{ "-9.223372036854775808e18", INT64_MIN },
		{ "922337203685477580700000e-5", INT64_MAX },
		{ "\"007\"", 7 },
	};
	for (size_t k = 0; k < sizeof(whole) / sizeof(whole[0]); k++) {
		rs_json_init(&j, str_c(whole[k].text), &arena);
		/* -1: there is a fraction left */
		assert_int_equal(rs_json_i64(&j, &i), whole[k].value != -1);
		if (!j.err)
			assert_int_equal(i, whole[k].value);
	}
	rs_json_init(&j, str_c("[1.8446744073709551615e19, -0, -1]"), &arena);
	rs_json_array(&j);
	assert_true(rs_json_elem(&j) && rs_json_u64(&j, &u) && u == UINT64_MAX);
	assert_true(rs_json_elem(&j) && rs_json_u64(&j, &u) && u == 0);
	assert_true(rs_json_elem(&j) && !rs_json_u64(&j, &u));

	static const char *const not_i64[] = { "1e21",
					       "1.5",
					       "15e-1",
					       "1e-999999999999999999999",
					       "1e999999999999999999999",
					       "9.3e18",
					       "\"1e\"",
					       "\"1.\"",
					       "\".5e1\"",
					       "\"+1\"",
					       "\"--1\"",
					       "\"-\"",
					       "\"0x1\"",
					       "\"\"",
					       "\"abc\"",
					       "true",
					       "9223372036854775808",
					       "-9223372036854775809",
					       "\" 1\"" };
	for (size_t k = 0; k < sizeof(not_i64) / sizeof(not_i64[0]); k++) {
		rs_json_init(&j, str_c(not_i64[k]), &arena);
		assert_false(rs_json_i64(&j, &i));
		assert_non_null(j.err);
	}
	rs_json_init(&j, str_c("1E400"), &arena);
	assert_false(rs_json_double(&j, &d));
	assert_string_equal(j.err, "number out of range");
	rs_json_init(&j, str_c("[-2147483648,2147483648]"), &arena);
	rs_json_array(&j);
	assert_true(rs_json_elem(&j) && rs_json_i32(&j, &v) && v == INT32_MIN);
	assert_true(rs_json_elem(&j) && !rs_json_i32(&j, &v));
}

static void positions(void **st)
{
	static const char text[] = "{\n  \"a\": 1,\n  \"b\": \"x\"\n}\n{\"a\": \"y\"}";
	struct rs_json j;
	struct str key;
	size_t line, col;
	uint64_t v = 0;
	int docs = 0;

	(void)st;
	rs_json_init(&j, str_c(text), &arena);
	while (rs_json_more(&j)) {
		docs++;
		rs_json_object(&j);
		while (rs_json_key(&j, &key)) {
			if (str_eq(key, STR("a")))
				rs_json_u64(&j, &v);
			else
				rs_json_skip(&j);
		}
	}
	assert_int_equal(docs, 2);
	assert_int_equal(v, 1);
	assert_string_equal(j.err, "expected an unsigned 64-bit integer");
	rs_json_where(&j, &line, &col);
	assert_int_equal(line, 5);
	assert_int_equal(col, 7);
}

static void deep(void **st)
{
	char text[2 * RS_JSON_DEPTH + 3];
	size_t at;

	(void)st;
	memset(text, '[', RS_JSON_DEPTH);
	memset(text + RS_JSON_DEPTH, ']', RS_JSON_DEPTH);
	text[2 * RS_JSON_DEPTH] = 0;
	assert_null(check(text, &at));
	memset(text, '[', RS_JSON_DEPTH + 1);
	memset(text + RS_JSON_DEPTH + 1, ']', RS_JSON_DEPTH + 1);
	text[2 * RS_JSON_DEPTH + 2] = 0;
	assert_string_equal(check(text, &at), "nested too deep");
}

static int setup(void **st)
{
	(void)st;
	rs_arena_init(&arena, 65536, 0);
	return 0;
}

static int teardown(void **st)
{
	(void)st;
	rs_arena_release(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grammar),   cmocka_unit_test(strings), cmocka_unit_test(numbers),
		cmocka_unit_test(positions), cmocka_unit_test(deep),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
