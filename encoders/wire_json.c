// SPDX-License-Identifier: Apache-2.0
#include "wire_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

char *rs_json_u64_long(char *p, uint64_t v)
{
	return rs_json_u64(p, v);
}

/* digits d1d2…dn with the point after the first one moved by exp10, in the style of Python's repr. */
static char *format(char *p, const char *digits, int n, int exp10)
{
	if (exp10 < -4 || exp10 >= 16) {
		int e = exp10 < 0 ? -exp10 : exp10;

		*p++ = digits[0];
		if (n > 1) {
			*p++ = '.';
			memcpy(p, digits + 1, (size_t)n - 1);
			p += n - 1;
		}
		*p++ = 'e';
		*p++ = exp10 < 0 ? '-' : '+';
		if (e < 10)
			*p++ = '0';
		return rs_json_u64(p, (uint64_t)e);
	}
	if (exp10 < 0) {
		p = RS_LIT(p, "0.");
		for (int i = -1; i > exp10; i--)
			*p++ = '0';
		memcpy(p, digits, (size_t)n);
		return p + n;
	}
	for (int i = 0; i <= exp10; i++)
		*p++ = i < n ? digits[i] : '0';
	*p++ = '.';
	if (n <= exp10 + 1) {
		*p++ = '0';
	} else {
		memcpy(p, digits + exp10 + 1, (size_t)(n - exp10 - 1));
		p += n - exp10 - 1;
	}
	return p;
}

static int strip(const char *digits, int n)
{
	while (n > 1 && digits[n - 1] == '0')
		n--;
	return n;
}

/*
 * Decimals of at most 15 digits and 9 places: m / 10^k divided exactly rounds to d, so the digits of m
 * read back as d, and decimals of 15 digits are unique, so none is shorter once zeros are stripped.
 */
static char *short_decimal(char *p, double d)
{
	static const double pow10[] = { 1e0, 1e3, 1e6, 1e9 };

	for (int i = 0; i < 4; i++) {
		double scaled = d * pow10[i];
		uint64_t m;
		char digits[24];
		int n, exp10;

		if (scaled >= 1e15)
			return NULL;
		m = (uint64_t)(scaled + 0.5);
		if ((double)m / pow10[i] != d)
			continue;
		n = (int)(rs_json_u64(digits, m) - digits);
		exp10 = n - 1 - 3 * i;
		return format(p, digits, strip(digits, n), exp10);
	}
	return NULL;
}

/* Correctly rounded to n digits; false when that does not read back as d. */
static bool try_digits(double d, int n, char *digits, int *exp10)
{
	char buf[40];

	snprintf(buf, sizeof(buf), "%.*e", n - 1, d);
	digits[0] = buf[0];
	if (n > 1)
		memcpy(digits + 1, buf + 2, (size_t)n - 1);
	*exp10 = atoi(strchr(buf, 'e') + 1);
	return strtod(buf, NULL) == d;
}

/*
 * Beside a power of two the nearest 16-digit decimal may fail to read back while its neighbour does.
 * digits hold 16 digits.
 */
static bool try_neighbour(double d, char *digits, int exp10)
{
	for (int up = 0; up < 2; up++) {
		char buf[40], next[24];
		uint64_t m;

		memcpy(buf, digits, 16);
		buf[16] = 0;
		m = strtoull(buf, NULL, 10);
		m = up ? m + 1 : m - 1;
		if (rs_json_u64(next, m) - next != 16)
			continue;
		snprintf(buf, sizeof(buf), "%.1s.%.15se%d", next, next + 1, exp10);
		if (strtod(buf, NULL) == d) {
			memcpy(digits, next, 16);
			return true;
		}
	}
	return false;
}

char *rs_json_double_digits(char *p, double d)
{
	char digits[24], *q;
	int exp10, n;

	if (signbit(d)) {
		*p++ = '-';
		d = -d;
	}
	if (d == 0)
		return RS_LIT(p, "0.0");
	if (d >= 1e-5) {
		q = short_decimal(p, d);
		if (q)
			return q;
	}
	/* 15 digits are always unique for normal numbers; subnormals have fewer. */
	for (n = d < 0x1p-1022 ? 1 : 15; n < 17; n++) {
		if (try_digits(d, n, digits, &exp10))
			break;
		if (n == 16 && try_neighbour(d, digits, exp10))
			break;
	}
	if (n == 17)
		try_digits(d, 17, digits, &exp10);
	return format(p, digits, strip(digits, n), exp10);
}

static char *base64(char *p, const uint8_t *b, size_t len)
{
	static const char abc[65] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (; len >= 3; b += 3, len -= 3) {
		uint32_t v = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];

		p[0] = abc[v >> 18];
		p[1] = abc[v >> 12 & 63];
		p[2] = abc[v >> 6 & 63];
		p[3] = abc[v & 63];
		p += 4;
	}
	if (len) {
		uint32_t v = (uint32_t)b[0] << 16 | (len == 2 ? (uint32_t)b[1] << 8 : 0);

		p[0] = abc[v >> 18];
		p[1] = abc[v >> 12 & 63];
		p[2] = len == 2 ? abc[v >> 6 & 63] : '=';
		p[3] = '=';
		p += 4;
	}
	return p;
}

char *rs_json_base64(struct rs_sink *sink, char *p, const void *bytes, size_t len)
{
	const uint8_t *b = bytes;

	while (len) {
		size_t n = len < 12288 ? len : 12288; /* a multiple of 3 */

		p = rs_sink_need(sink, p, n / 3 * 4 + 4);
		p = base64(p, b, n);
		b += n;
		len -= n;
	}
	return p;
}
