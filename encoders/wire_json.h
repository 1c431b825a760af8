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

#if RS_VEC == 32
#define RS_COPY32(p, from) rs_vec_store((p), rs_vec_load(from))
#else
#define RS_COPY32(p, from) memcpy((p), (from), 32)
#endif

/* The same for up to 32 bytes by one vector store: writes 32 bytes. */
#define RS_LIT32(p, lit)                                                                           \
	({                                                                                         \
		static const char lit_[32] __attribute__((aligned(32))) = "" lit;                  \
		_Static_assert(sizeof(lit) <= 33, "too long");                                     \
		RS_COPY32(p, lit_);                                                                \
		(p) + sizeof(lit) - 1;                                                             \
	})

#define RS_JSON_DOUBLE_MAX 32 /* bytes of the longest number */

/* The shortest decimal that reads back as d, formatted as Python's repr (1.0, 0.5, 1e+300, -0.0). d is finite. */
char *rs_json_double_digits(char *p, double d);

/* Of v below 10^12: what stands before the last eight digits. */
char *rs_json_u64_long(char *p, uint64_t v);

/* Eight digits, zeros in front; v < 10^8. All pairs of digits are divided at once, in lanes of one word. */
static inline uint64_t rs_digits8(uint32_t v)
{
	uint64_t x = v / 10000 | (uint64_t)(v % 10000) << 32, q;

	q = x * 10486 >> 20 & 0x7f0000007f; /* by 100 */
	x = q | (x - q * 100) << 16;
	q = x * 103 >> 10 & 0xf000f000f000f; /* by 10 */
	x = q | (x - q * 10) << 8;
	return x | 0x3030303030303030;
}

/* Four digits, in the same way; v < 10^4. */
static inline uint32_t rs_digits4(uint32_t v)
{
	uint32_t q = v * 10486 >> 20, x = q | (v - q * 100) << 16;

	q = x * 103 >> 10 & 0xf000f;
	x = q | (x - q * 10) << 8;
	return x | 0x30303030;
}

/* Writes up to 24 bytes. */
static inline char *rs_json_u64(char *p, uint64_t v)
{
	uint64_t d;
	unsigned zeros;

	if (v < 10) {
		*p = (char)('0' + v);
		return p + 1;
	}
	if (v < 10000) {
		uint32_t four = rs_digits4((uint32_t)v);

		zeros = (unsigned)__builtin_ctz(four ^ 0x30303030) / 8;
		four >>= 8 * zeros;
		memcpy(p, &four, 4);
		return p + 4 - zeros;
	}
	if (v >= 100000000) {
		p = rs_json_u64_long(p, v / 100000000);
		d = rs_digits8((uint32_t)(v % 100000000));
		memcpy(p, &d, 8);
		return p + 8;
	}
	d = rs_digits8((uint32_t)v);
	zeros = (unsigned)__builtin_ctzll(d ^ 0x3030303030303030) / 8;
	d >>= 8 * zeros;
	memcpy(p, &d, 8);
	return p + 8 - zeros;
}

/* The digits of the second that was written last: times of one batch are close to each other. */
struct rs_json_second {
	uint64_t next;	 /* it and one more; 0: none */
	char digits[24]; /* ten of them */
};

/* Nanoseconds since 1970. Writes 24 bytes. */
static inline char *rs_json_time(char *p, uint64_t ns, struct rs_json_second *last)
{
	uint64_t second = ns / 1000000000, d;
	uint32_t rest = (uint32_t)(ns - second * 1000000000);

	if (__builtin_expect(second + 1 != last->next, 0)) {
		if (second < 1000000000 || second > 9999999999)
			return rs_json_u64(p, ns);
		rs_json_u64(last->digits, second);
		last->next = second + 1;
	}
	memcpy(p, last->digits, 16);
	p[10] = (char)('0' + rest / 100000000);
	d = rs_digits8(rest % 100000000);
	memcpy(p + 11, &d, 8);
	return p + 19;
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

/* n bytes (8 or 16) as lower-case hex digits, no quotes. */
static inline char *rs_json_hex(char *p, const uint8_t *b, size_t n)
{
#if defined(__SSSE3__)
	const __m128i digits = _mm_setr_epi8('0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a',
					     'b', 'c', 'd', 'e', 'f');
	__m128i v =
		n == 16 ? _mm_loadu_si128((const __m128i *)b) : _mm_loadl_epi64((const __m128i *)b);
	__m128i high = _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(15));
	__m128i low = _mm_and_si128(v, _mm_set1_epi8(15));

	high = _mm_shuffle_epi8(digits, high);
	low = _mm_shuffle_epi8(digits, low);
	_mm_storeu_si128((__m128i *)p, _mm_unpacklo_epi8(high, low));
	if (n == 16)
		_mm_storeu_si128((__m128i *)(p + 16), _mm_unpackhi_epi8(high, low));
#elif RS_VEC
	const rs_vec digits = RS_VEC_TABLE('0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a',
					   'b', 'c', 'd', 'e', 'f');
	rs_vec v = n == 16 ? vld1q_u8(b) : vcombine_u8(vld1_u8(b), vdup_n_u8(0));
	rs_vec high = vqtbl1q_u8(digits, vshrq_n_u8(v, 4));
	rs_vec low = vqtbl1q_u8(digits, vandq_u8(v, vdupq_n_u8(15)));

	rs_vec_store(p, vzip1q_u8(high, low));
	if (n == 16)
		rs_vec_store(p + 16, vzip2q_u8(high, low));
#else
	for (size_t i = 0; i < n; i++) {
		p[2 * i] = "0123456789abcdef"[b[i] >> 4];
		p[2 * i + 1] = "0123456789abcdef"[b[i] & 15];
	}
#endif
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
