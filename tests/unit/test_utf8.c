// SPDX-License-Identifier: Apache-2.0
#include "base/human.h"
#include "base/utf8.h"
#include "unit.h"

static void test_clean(void **state)
{
	static const struct {
		struct str in;
		int cols;
		const char *out;
	} c[] = {
		{ STR("plain"), 0, "plain" },
		{ STR(""), 5, "" },
		{ STR("a\x1b[31mb\x07\r\n\0c"), 0, "a\\x1b[31mb\\x07\\x0d\\x0a\\x00c" },
		{ STR("\xc2\x9b"
		      "1m"),
		  0, "\\x9b1m" }, /* C1 control */
		{ STR("a\xe2\x80\xae"
		      "b"),
		  0, "a\\u{202e}b" }, /* right-to-left override */
		{ STR("\xff"
		      "a\xc0\xaf"),
		  0,
		  "\xef\xbf\xbd"
		  "a\xef\xbf\xbd\xef\xbf\xbd" },
		{ STR("\xed\xa0\x80"), 0, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" }, /* surrogate */
		{ STR("\xe6\x97"), 0, "\xef\xbf\xbd\xef\xbf\xbd" },		    /* cut */
		{ STR("日本語 🎉 é"), 0, "日本語 🎉 é" },
		{ STR("abcdef"), 6, "abcdef" },
		{ STR("abcdefg"), 6, "abcde…" },
		{ STR("日本語"), 6, "日本語" },
		{ STR("日本語x"), 6, "日本…" },
		{ STR("ab\x01"), 4, "ab…" },
		{ STR("abc"), 1, "…" },
	};
	char buf[128];

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		size_t n = rs_utf8_clean(buf, sizeof(buf), c[i].in, c[i].cols);

		assert_string_equal(buf, c[i].out);
		assert_int_equal(n, strlen(buf));
		if (c[i].cols)
			assert_true(rs_utf8_width(str_c(buf)) <= c[i].cols);
	}
}

/* Whatever the bytes and the room, what comes out is whole, valid and without control characters. */
static void test_clean_any(void **state)
{
	struct str in = STR("a\xe6\x97\xa5\x1b\xf0\x9f\x8e\x89\xe6\x97\xc2\x85z\x7f");

	(void)state;
	for (size_t len = 0; len <= in.len; len++) {
		for (size_t size = 1; size < 64; size++) {
			for (int cols = 0; cols < 24; cols++) {
				char buf[64];
				struct str out = str_of(
					buf, rs_utf8_clean(buf, size, str_at(in, 0, len), cols));

				assert_true(out.len < size);
				assert_int_equal(buf[out.len], 0);
				if (cols)
					assert_true(rs_utf8_width(out) <= cols);
				while (out.len) {
					uint32_t cp = 0;
					size_t n = rs_utf8_decode(out, &cp);

					assert_true(n && cp >= 0x20 && !(cp >= 0x7f && cp < 0xa0));
					out = str_from(out, n);
				}
			}
		}
	}
}

static void test_human(void **state)
{
	char b[RS_HUMAN];

	(void)state;
	assert_string_equal(rs_human_duration(b, 0), "0ns");
	assert_string_equal(rs_human_duration(b, 999), "999ns");
	assert_string_equal(rs_human_duration(b, 1250), "1.25µs");
	assert_string_equal(rs_human_duration(b, 999499), "999µs");
	assert_string_equal(rs_human_duration(b, 999500), "1.00ms");
	assert_string_equal(rs_human_duration(b, 51300000), "51.3ms");
	assert_string_equal(rs_human_duration(b, 9999999), "10.0ms");
	assert_string_equal(rs_human_duration(b, 1200000000), "1.20s");
	assert_string_equal(rs_human_duration(b, 125000000000), "2m05s");
	assert_string_equal(rs_human_duration(b, 10920000000000), "3h02m");
	assert_string_equal(rs_human_duration(b, 349200000000000), "4d01h");
	assert_string_equal(rs_human_bytes(b, 512), "512 B");
	assert_string_equal(rs_human_bytes(b, 1536), "1.5 KB");
	assert_string_equal(rs_human_bytes(b, 1048575), "1.0 MB");
	assert_string_equal(rs_human_bytes(b, 16 << 20), "16.0 MB");
	assert_string_equal(rs_human_count(b, 999), "999");
	assert_string_equal(rs_human_count(b, 12345), "12,345");
	assert_string_equal(rs_human_count(b, 100000), "100k");
	assert_string_equal(rs_human_count(b, 1234567), "1.23M");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_clean_any),
		cmocka_unit_test(test_human),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
