// SPDX-License-Identifier: Apache-2.0
/* text: the table of tests/vectors/otlp/utf8.tsv, then every SIMD level against the byte-wise reference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "unit.h"

typedef char *text_fn(char *p, const char *s, size_t len, bool final);
#if defined(__x86_64__)
#define LEVELS(X)                                                                                  \
	X(base, RS_SIMD_BASE)                                                                      \
	X(ssse3, RS_SIMD_SSSE3) X(avx2, RS_SIMD_AVX2) X(avx512, RS_SIMD_AVX512)
#else
#define LEVELS(X) X(base, RS_SIMD_BASE)
#endif
#define DECLARE(l, n) text_fn rs_text_raw_any_##l, rs_text_json_any_##l;
LEVELS(DECLARE)
#define ROW(l, n) { n, rs_text_raw_any_##l, rs_text_json_any_##l },
static const struct {
	enum rs_simd level;
	text_fn *raw, *json;
} levels[] = { LEVELS(ROW) };
#define NLEVELS (sizeof(levels) / sizeof(levels[0]))

/* The reference: one sequence at a time, by the definition. */
static size_t reference(char *out, const char *s, size_t len, bool final, bool json)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t o = 0;

	while (len) {
		size_t n;
		enum rs_utf8 kind = rs_utf8_next(u, len, &n);

		if (kind == RS_UTF8_CUT && final)
			break;
		if (kind != RS_UTF8_OK) {
			memcpy(out + o, "\xef\xbf\xbd", 3);
			o += 3;
		} else if (json && *u < 0x20) {
			static const char shorts[] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu";

			if (shorts[*u] == 'u')
				o += (size_t)snprintf(out + o, 8, "\\u%04x", *u);
			else
				o += (size_t)snprintf(out + o, 8, "\\%c", shorts[*u]);
		} else if (json && (*u == '"' || *u == '\\')) {
			o += (size_t)snprintf(out + o, 8, "\\%c", *u);
		} else {
			memcpy(out + o, u, n);
			o += n;
		}
		u += n;
		len -= n;
	}
	return o;
}

static size_t unhex(const char *hex, char *out)
{
	size_t n = 0;

	if (!strcmp(hex, "-"))
		return 0;
	for (; hex[0] && hex[1]; hex += 2) {
		unsigned v;

		assert_int_equal(sscanf(hex, "%2x", &v), 1);
		out[n++] = (char)v;
	}
	return n;
}

static void table(void **st)
{
	FILE *f = fopen("tests/vectors/otlp/utf8.tsv", "r");
	char line[512];
	int rows = 0;

	(void)st;
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	while (fgets(line, sizeof(line), f)) {
		char hex[128], rep[256], cut[256], src[256] = "", want[256];
		int valid;
		size_t len, n;

		assert_int_equal(sscanf(line, "%127s %d %255s %255s", hex, &valid, rep, cut), 4);
		len = unhex(hex, src);
		for (size_t l = 0; l < NLEVELS; l++) {
			char got[1024];

			if (levels[l].level > rs_simd_best())
				continue;
			n = unhex(rep, want);
			assert_int_equal(levels[l].raw(got, src, len, false) - got, n);
			assert_memory_equal(got, want, n);
			if (strcmp(cut, "n/a"))
				n = unhex(cut, want);
			assert_int_equal(levels[l].raw(got, src, len, true) - got, n);
			assert_memory_equal(got, want, n);
		}
		rows++;
	}
	fclose(f);
	assert_int_equal(rows, 41);
}

static uint64_t rnd(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Text of a mix that changes with the seed: ASCII, escapes, whole and broken characters of all lengths. */
static size_t compose(uint64_t *x, char *s, size_t max)
{
	static const char *const parts[] = { "\xc3\xa9",
					     "\xe6\x97\xa5",
					     "\xf0\x9f\x98\x80",
					     "\xe2\x80\xa8",
					     "\xf4\x8f\xbf\xbf",
					     "\xed\xa0\x80",
					     "\xc0\x80",
					     "\xff",
					     "\x80",
					     "\xe6\x97",
					     "\xf0\x9f\x98",
					     "\xf0\x9f",
					     "\xc3",
					     "\xef\xbf\xbd",
					     "\xe0\x9f\xbf",
					     "\xf4\x90\x80\x80",
					     "\xf0\x8f\xbf\xbf" };
	unsigned ascii = (unsigned)(rnd(x) % 100), whole = (unsigned)(rnd(x) % 100);
	size_t len = 0;

	while (len < max) {
		unsigned r = (unsigned)(rnd(x) % 100);
		size_t n = 1;

		if (r < ascii) {
			s[len] = (char)(0x20 + rnd(x) % 0x60);
		} else if (r < ascii + 3) {
			s[len] = "\n\t\"\\\r\b\f\x01\x1f"[rnd(x) % 10];
		} else if (r < ascii + 4) {
			s[len] = (char)rnd(x);
		} else {
			size_t k = rnd(x) % 100 < whole
					   ? rnd(x) % 5
					   : rnd(x) % (sizeof(parts) / sizeof(parts[0]));

			n = strlen(parts[k]);
			if (n > max - len)
				n = max - len;
			memcpy(s + len, parts[k], n);
		}
		len += n;
	}
	return len;
}

static void random_text(void **st)
{
	static char want[4096 * 6 + 64], got[4096 * 6 + 64];
	uint64_t x = 0x9e3779b97f4a7c15;

	(void)st;
	for (int round = 0; round < 40000; round++) {
		size_t max = rnd(&x) % (round % 100 ? 140 : 1500);
		/* Exactly sized, so that AddressSanitizer sees what is read behind the padding. */
		char *s = malloc(max + RS_ARENA_PAD);
		size_t len = compose(&x, s, max);

		memset(s + len, (int)rnd(&x), RS_ARENA_PAD);
		for (int mode = 0; mode < 4; mode++) {
			bool final = mode & 1, json = mode & 2;
			size_t n = reference(want, s, len, final, json);

			for (size_t l = 0; l < NLEVELS; l++) {
				text_fn *fn = json ? levels[l].json : levels[l].raw;

				if (levels[l].level > rs_simd_best())
					continue;
				if ((size_t)(fn(got, s, len, final) - got) != n ||
				    memcmp(got, want, n))
					fail_msg("round %d mode %d level %zu", round, mode, l);
			}
		}
		free(s);
	}
}

/* Pieces of a long text join without a seam. */
static void long_text(void **st)
{
	size_t len = 3 * RS_TEXT_PIECE + 77;
	char *s = malloc(len + RS_ARENA_PAD), *want = malloc(len * 6 + 64);
	struct rs_bufpool pool;
	uint64_t x = 42;

	(void)st;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	for (int round = 0; round < 60; round++) {
		struct rs_sink sink = { 0 };
		size_t n;
		char *p;

		assert_int_equal(compose(&x, s, len), len);
		memset(s + len, 0x80, RS_ARENA_PAD);
		p = rs_sink_open(&sink, &pool, SIZE_MAX / 4);
		if (round & 1)
			p = rs_text_json(&sink, p, str_of(s, len));
		else
			p = rs_text_raw(&sink, p, str_of(s, len));
		n = reference(want, s, len, true, round & 1);
		assert_int_equal(rs_sink_pos(&sink, p), n);
		assert_memory_equal(sink.base, want, n);
		rs_sink_abort(&sink);
	}
	rs_bufpool_release(&pool);
	free(s);
	free(want);
}

static void limit(void **st)
{
	(void)st;
	assert_int_equal(rs_utf8_limit(STR("abc"), 5).len, 3);
	assert_int_equal(rs_utf8_limit(STR("abc"), 2).len, 2);
	assert_int_equal(rs_utf8_limit(STR("a\xe6\x97\xa5"), 3).len, 1);
	assert_int_equal(rs_utf8_limit(STR("a\xe6\x97\xa5z"), 4).len, 4);
	assert_int_equal(rs_utf8_limit(STR("\xf0\x9f\x98\x80z"), 3).len, 0);
	/* Nothing to keep together among stray continuation bytes. */
	assert_int_equal(rs_utf8_limit(STR("\x80\x80\x80\x80\x80\x80\x80\x80"), 6).len, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table),
		cmocka_unit_test(random_text),
		cmocka_unit_test(long_text),
		cmocka_unit_test(limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
