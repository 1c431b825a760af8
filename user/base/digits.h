/* SPDX-License-Identifier: Apache-2.0 */
/* digits — hex, base64 and percent-encoding, read from text of others. Nothing allocates. */
#ifndef RS_BASE_DIGITS_H
#define RS_BASE_DIGITS_H

#include "str.h"

/* -1: it is none. */
static inline int rs_hex_lower_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Of either case. */
static inline int rs_hex_digit(char c)
{
	return rs_hex_lower_digit(str_lower_char(c));
}

/* Two digits: 0 to 255. -1: they are not. */
static inline int rs_hex_byte(const char two[2])
{
	int hi = rs_hex_digit(two[0]), lo = rs_hex_digit(two[1]);

	return hi < 0 || lo < 0 ? -1 : hi << 4 | lo;
}

/* Of either alphabet (RFC 4648, 4 and 5). -1: it is none; '=' is none. */
static inline int rs_base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	return c == '/' || c == '_' ? 63 : -1;
}

/* RFC 3986, 2.1; a '%' without two digits stands for itself. Writes at most room bytes, no NUL; returns how many. */
static inline size_t rs_percent_decode(struct str in, char *out, size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < in.len && n < room; i++) {
		int byte = in.ptr[i] == '%' && i + 2 < in.len ? rs_hex_byte(in.ptr + i + 1) : -1;

		out[n++] = byte < 0 ? in.ptr[i] : (char)byte;
		i += byte < 0 ? 0 : 2;
	}
	return n;
}

#endif
