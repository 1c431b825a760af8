// SPDX-License-Identifier: Apache-2.0
/*
 * The text pass at every SIMD level. First byte: whether the end is the text's end, raw or JSON, and how
 * many of the bytes in front are repeated, so that long texts are reached, too. Checked: all levels write what
 * the byte-wise definition of encoders/text.h says.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "text.h"

typedef char *text_fn(char *p, const char *s, size_t len, bool final);
#if defined(__x86_64__)
#define LEVELS(X) X(base) X(ssse3) X(avx2) X(avx512)
#else
#define LEVELS(X) X(base)
#endif
#define DECLARE(l) text_fn rs_text_raw_any_##l, rs_text_json_any_##l;
LEVELS(DECLARE)
#define ROW(l) { rs_text_raw_any_##l, rs_text_json_any_##l },
static text_fn *const levels[][2] = { LEVELS(ROW) };

static size_t reference(char *out, const char *s, size_t len, bool final, bool json)
{
	static const char shorts[] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu",
			  digits[] = "0123456789abcdef";
	const unsigned char *u = (const unsigned char *)s;
	char *o = out;

	for (size_t n; len; u += n, len -= n) {
		enum rs_utf8 kind = rs_utf8_next(u, len, &n);

		if (kind == RS_UTF8_CUT && final)
			break;
		if (kind != RS_UTF8_OK) {
			memcpy(o, "\xef\xbf\xbd", 3);
			o += 3;
		} else if (json && (*u < 0x20 || *u == '"' || *u == '\\')) {
			*o++ = '\\';
			*o++ = *u < 0x20 ? shorts[*u] : (char)*u;
			if (o[-1] == 'u' && *u < 0x20) {
				memcpy(o, "00", 2);
				o[2] = digits[*u >> 4];
				o[3] = digits[*u & 15];
				o += 4;
			}
		} else {
			memcpy(o, u, n);
			o += n;
		}
	}
	return (size_t)(o - out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t repeat, len, n;
	bool final, json;
	char *s, *want, *got;

	if (!size)
		return 0;
	final = data[0] & 1;
	json = data[0] & 2;
	repeat = 1 + data[0] / 4 % 4;
	len = (size - 1) * repeat;
	s = malloc(len + RS_ARENA_PAD);
	want = malloc(len * RS_TEXT_JSON_MAX + 64);
	got = malloc(len * RS_TEXT_JSON_MAX + 64);
	FUZZ_CHECK(s && want && got);
	for (size_t i = 0; i < repeat; i++)
		memcpy(s + i * (size - 1), data + 1, size - 1);
	memset(s + len, 0x9f, RS_ARENA_PAD);
	n = reference(want, s, len, final, json);
	for (size_t l = 0; l <= rs_simd_best(); l++) {
		FUZZ_CHECK((size_t)(levels[l][json](got, s, len, final) - got) == n);
		FUZZ_CHECK(!memcmp(got, want, n));
	}
	free(s);
	free(want);
	free(got);
	return 0;
}
