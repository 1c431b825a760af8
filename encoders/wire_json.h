/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_json — JSON's bytes: literals, numbers, hex, base64. No span types here.
 *
 * Writers take the cursor and return it moved. They write unchecked: the caller has asked the sink for
 * room, or the bytes fit into RS_SINK_FIXED. rs_json_text() and rs_json_base64() ask themselves.
 */
#ifndef RS_ENC_WIRE_JSON_H
#define RS_ENC_WIRE_JSON_H

#include "text.h"

/* A string literal, as constant-size stores. */
#define RS_LIT(p, lit) (memcpy((p), "" lit, sizeof(lit) - 1), (p) + sizeof(lit) - 1)

#define RS_JSON_DOUBLE_MAX 32 /* bytes of the longest number */

/* The shortest decimal that reads back as d, formatted as Python's repr (1.0, 0.5, 1e+300, -0.0). d is finite. */
char *rs_json_double_digits(char *p, double d);

static inline char *rs_json_u64(char *p, uint64_t v)
{
	static const char pairs[201] = "0001020304050607080910111213141516171819"
				       "2021222324252627282930313233343536373839"
				       "4041424344454647484950515253545556575859"
				       "6061626364656667686970717273747576777879"
				       "8081828384858687888990919293949596979899";
	char buf[20];
	size_t at = sizeof(buf);

	while (v >= 100) {
		at -= 2;
		memcpy(buf + at, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (v >= 10) {
		at -= 2;
		memcpy(buf + at, pairs + v * 2, 2);
	} else {
		buf[--at] = (char)('0' + v);
	}
	memcpy(p, buf + at, sizeof(buf) - at);
	return p + sizeof(buf) - at;
}

static inline char *rs_json_i64(char *p, int64_t v)
{
	uint64_t u = (uint64_t)v;

	if (v < 0) {
		*p++ = '-';
		u = -u;
	}
	return rs_json_u64(p, u);
}

/* n bytes as lower-case hex digits, no quotes. */
static inline char *rs_json_hex(char *p, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		p[2 * i] = "0123456789abcdef"[b[i] >> 4];
		p[2 * i + 1] = "0123456789abcdef"[b[i] & 15];
	}
	return p + 2 * n;
}

/* "text" with quotes. Asks for its room. */
static inline char *rs_json_text(struct rs_sink *sink, char *p, struct str s)
{
	*p++ = '"';
	p = rs_text_json(sink, p, s);
	*p++ = '"';
	return p;
}

/* A number, or one of the strings "NaN", "Infinity", "-Infinity" (ProtoJSON). */
static inline char *rs_json_double(char *p, double d)
{
	if (d != d)
		return RS_LIT(p, "\"NaN\"");
	if (d - d != 0)
		return d > 0 ? RS_LIT(p, "\"Infinity\"") : RS_LIT(p, "\"-Infinity\"");
	return rs_json_double_digits(p, d);
}

/* Standard base64 with padding, no quotes. Asks for its room. */
char *rs_json_base64(struct rs_sink *sink, char *p, const void *bytes, size_t len);

#endif
