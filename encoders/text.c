// SPDX-License-Identifier: Apache-2.0
#include "text.h"

/* How a byte stands in a JSON string: up to 6 bytes, their number in the last one; number 0: as it is. */
static const char escapes[256][8] = {
#define LONG(c, digits)	 [c] = { '\\', 'u', '0', '0', digits[0], digits[1], 0, 6 }
#define SHORT(c, letter) [c] = { '\\', letter, 0, 0, 0, 0, 0, 2 }
	LONG(0x00, "00"), LONG(0x01, "01"), LONG(0x02, "02"), LONG(0x03, "03"),	 LONG(0x04, "04"),
	LONG(0x05, "05"), LONG(0x06, "06"), LONG(0x07, "07"), SHORT('\b', 'b'),	 SHORT('\t', 't'),
	SHORT('\n', 'n'), LONG(0x0b, "0b"), SHORT('\f', 'f'), SHORT('\r', 'r'),	 LONG(0x0e, "0e"),
	LONG(0x0f, "0f"), LONG(0x10, "10"), LONG(0x11, "11"), LONG(0x12, "12"),	 LONG(0x13, "13"),
	LONG(0x14, "14"), LONG(0x15, "15"), LONG(0x16, "16"), LONG(0x17, "17"),	 LONG(0x18, "18"),
	LONG(0x19, "19"), LONG(0x1a, "1a"), LONG(0x1b, "1b"), LONG(0x1c, "1c"),	 LONG(0x1d, "1d"),
	LONG(0x1e, "1e"), LONG(0x1f, "1f"), SHORT('"', '"'),  SHORT('\\', '\\'),
#undef LONG
#undef SHORT
};

static inline char *put_escape(char *p, unsigned char c)
{
	memcpy(p, escapes[c], 8);
	return p + escapes[c][7];
}

/* One sequence after the other: text that is not valid, and machines without vectors. */
static char *one_by_one(char *p, const char *src, size_t len, bool json)
{
	const unsigned char *s = (const unsigned char *)src;

	while (len) {
		size_t n = 1;

		if (json && escapes[*s][7]) {
			p = put_escape(p, *s);
		} else if (rs_utf8_next(s, len, &n) == RS_UTF8_OK) {
			memcpy(p, s, 4);
			p += n;
		} else {
			memcpy(p, "\xef\xbf\xbd", 3);
			p += 3;
		}
		s += n;
		len -= n;
	}
	return p;
}

/* Length without a character that the end cuts off. */
static inline size_t without_cut(const char *src, size_t len)
{
	const unsigned char *end = (const unsigned char *)src + len;
	size_t n;

	for (size_t k = 1; k <= 3 && k <= len; k++) {
		unsigned char c = end[-(ptrdiff_t)k];

		if (c < 0x80)
			break;
		if (c < 0xc0)
			continue;
		/* A lead byte with fewer bytes behind it than it announces. */
		if (c >= (k == 1   ? 0xc0
			  : k == 2 ? 0xe0
				   : 0xf0) &&
		    rs_utf8_next(end - k, k, &n) == RS_UTF8_CUT)
			return len - k;
		break;
	}
	return len;
}

#if RS_VEC

/* The first n bytes of v, zeros behind; n <= RS_VEC. */
static inline rs_vec head_of(rs_vec v, size_t n)
{
	static const char ones_then_zeros[2 * RS_VEC] = { [0 ... RS_VEC - 1] = -1 };

	return RS_VEC_BITS(and)(v, rs_vec_load(ones_then_zeros + RS_VEC - n));
}

static inline rs_vec high_nibbles(rs_vec v)
{
	return RS_VEC_BITS(and)(RS_VEC_OP(srli_epi16)(v, 4), rs_vec_all(0x0f));
}

/*
 * Errors of UTF-8 in v, prev standing before it; not zero somewhere: there is one. The algorithm of
 * Keiser and Lemire, "Validating UTF-8 in less than one instruction per byte" (2020): every error but a
 * missing third or fourth byte shows in the first byte and the upper half of the second; three tables
 * each say which errors their nibble allows.
 */
static inline rs_vec utf8_errors(rs_vec v, rs_vec prev)
{
	enum {
		SHORT = 1,	/* 11______ 0_______ or 11______ 11______ */
		LONG = 2,	/* 0_______ 10______ */
		OVER3 = 4,	/* 11100000 100_____ */
		SURROGATE = 16, /* 11101101 101_____ */
		OVER2 = 32,	/* 1100000_ 10______ */
		LARGE = 8,	/* 11110100 1001____ and above */
		LARGE1000 = 64, /* 11110101 1000____ and above; also OVER4: 11110000 1000____ */
		TWO = 128,	/* 10______ 10______: fine if a third or fourth byte is due */
		CARRY = SHORT | LONG | TWO,
	};
	const rs_vec first_high =
		RS_VEC_TABLE(LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, (char)TWO, (char)TWO,
			     (char)TWO, (char)TWO, SHORT | OVER2, SHORT, SHORT | OVER3 | SURROGATE,
			     SHORT | LARGE | LARGE1000);
	const rs_vec first_low = RS_VEC_TABLE(
		(char)(CARRY | OVER3 | OVER2 | LARGE1000), (char)(CARRY | OVER2), (char)CARRY,
		(char)CARRY, (char)(CARRY | LARGE), (char)(CARRY | LARGE | LARGE1000),
		(char)(CARRY | LARGE | LARGE1000), (char)(CARRY | LARGE | LARGE1000),
		(char)(CARRY | LARGE | LARGE1000), (char)(CARRY | LARGE | LARGE1000),
		(char)(CARRY | LARGE | LARGE1000), (char)(CARRY | LARGE | LARGE1000),
		(char)(CARRY | LARGE | LARGE1000), (char)(CARRY | LARGE | LARGE1000 | SURROGATE),
		(char)(CARRY | LARGE | LARGE1000), (char)(CARRY | LARGE | LARGE1000));
	const rs_vec second_high = RS_VEC_TABLE(
		SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT,
		(char)(LONG | OVER2 | TWO | OVER3 | LARGE1000),
		(char)(LONG | OVER2 | TWO | OVER3 | LARGE),
		(char)(LONG | OVER2 | TWO | SURROGATE | LARGE),
		(char)(LONG | OVER2 | TWO | SURROGATE | LARGE), SHORT, SHORT, SHORT, SHORT);
	rs_vec prev1 = RS_VEC_BEFORE(v, prev, 1);
	rs_vec prev2 = RS_VEC_BEFORE(v, prev, 2);
	rs_vec prev3 = RS_VEC_BEFORE(v, prev, 3);
	rs_vec pairs, due;

	pairs = RS_VEC_OP(shuffle_epi8)(first_high, high_nibbles(prev1));
	pairs = RS_VEC_BITS(and)(
		pairs,
		RS_VEC_OP(shuffle_epi8)(first_low, RS_VEC_BITS(and)(prev1, rs_vec_all(0x0f))));
	pairs = RS_VEC_BITS(and)(pairs, RS_VEC_OP(shuffle_epi8)(second_high, high_nibbles(v)));
	/* The top bit where a third or fourth byte is due: there TWO is right, and nowhere else. */
	due = RS_VEC_BITS(or)(RS_VEC_OP(subs_epu8)(prev2, rs_vec_all(0xe0 - 0x80)),
			      RS_VEC_OP(subs_epu8)(prev3, rs_vec_all(0xf0 - 0x80)));
	return RS_VEC_BITS(xor)(pairs, RS_VEC_BITS(and)(due, rs_vec_all((char)0x80)));
}

/* The last bytes that do not ask for more behind them. */
static const unsigned char last_max[RS_VEC] = {
	[0 ... RS_VEC - 4] = 255,
	[RS_VEC - 3] = 0xef,
	[RS_VEC - 2] = 0xdf,
	[RS_VEC - 1] = 0xbf,
};

static inline bool no_errors(rs_vec errors, rs_vec last)
{
	/* A sequence without end shows in the byte behind it, which a full last vector does not have. */
	errors = RS_VEC_BITS(or)(errors, RS_VEC_OP(subs_epu8)(last, rs_vec_load(last_max)));
	errors = RS_VEC_OP(cmpeq_epi8)(errors, rs_vec_all(0));
	return rs_vec_mask(errors) == RS_VEC_FULL;
}

/* Is it all valid UTF-8? Reads up to RS_VEC - 1 bytes behind. */
static inline bool valid(const char *s, size_t len)
{
	rs_vec prev = rs_vec_all(0), errors = rs_vec_all(0);

	for (size_t i = 0; i < len; i += RS_VEC) {
		rs_vec v = rs_vec_load(s + i);

		if (len - i < RS_VEC)
			v = head_of(v, len - i);
		errors = RS_VEC_BITS(or)(errors, utf8_errors(v, prev));
		prev = v;
	}
	return no_errors(errors, prev);
}

/* Text of one vector at most that is valid and has nothing to escape: copied. false: it is not that. */
static inline bool short_and_valid(char *p, const char *s, size_t len, bool json)
{
	rs_vec v;

	if (len > RS_VEC)
		return false;
	v = head_of(rs_vec_load(s), len);
	if (!no_errors(utf8_errors(v, rs_vec_all(0)), v))
		return false;
	if (json && rs_vec_first(rs_vec_json_special(v) & ~rs_vec_mask(v), len))
		return false;
	rs_vec_store(p, v);
	return true;
}

char *RS_SYM(rs_text_raw_any)(char *p, const char *s, size_t len, bool final)
{
	if (short_and_valid(p, s, len, false))
		return p + len;
	if (final)
		len = without_cut(s, len);
	if (!valid(s, len))
		return one_by_one(p, s, len, false);
	for (size_t i = 0; i < len; i += RS_VEC)
		rs_vec_store(p + i, rs_vec_load(s + i));
	return p + len;
}

/* n bytes at s, which have been copied to p, with escapes put in at the bits of `special`. */
static inline char *put_escapes_each(char *p, const char *s, uint32_t special, size_t n)
{
	size_t done = 0;

	/* p stands where the byte s[done] belongs; each escape moves what is behind it. */
	for (; special; special &= special - 1) {
		size_t k = (size_t)__builtin_ctz(special);

		p = put_escape(p + (k - done), (unsigned char)s[k]);
		done = k + 1;
		rs_vec_store(p, rs_vec_load(s + done));
	}
	return p + (n - done);
}

#ifdef __AVX512VBMI2__
/*
 * All of them at once: every byte gets a backslash in front, and those that are not wanted are squeezed out. What it
 * costs does not depend on how many there are, nor on anything that would have to be predicted.
 */
static inline char *put_escapes(char *p, const char *s, uint32_t special, size_t n)
{
	/* \b \t \n . \f \r, by their low nibble */
	const __m256i letters =
		RS_VEC_TABLE(0, 0, 0, 0, 0, 0, 0, 0, 'b', 't', 'n', 0, 'f', 'r', 0, 0);
	__m256i v = rs_vec_load(s), letter = _mm256_shuffle_epi8(letters, v);
	__mmask32 control = _mm256_mask_cmplt_epu8_mask(special, v, rs_vec_all(0x20));
	__mmask32 shorts = _mm256_mask_test_epi8_mask(
		_mm256_mask_cmplt_epu8_mask(control, v, rs_vec_all(0x10)), letter, letter);
	__mmask64 keep = _pdep_u64(special, 0x5555555555555555) | 0xaaaaaaaaaaaaaaaa;
	__m512i wide;

	if (__builtin_expect(control != shorts, 0))
		return put_escapes_each(p, s, special, n); /* \u00xx: rare */
	v = _mm256_mask_mov_epi8(v, shorts, letter);
	wide = _mm512_slli_epi16(_mm512_cvtepu8_epi16(v), 8);
	wide = _mm512_or_si512(wide, _mm512_set1_epi16('\\'));
	keep = _bzhi_u64(keep, (unsigned)(2 * n));
	_mm512_storeu_si512(p, _mm512_maskz_compress_epi8(keep, wide));
	return p + _mm_popcnt_u64(keep);
}
/* So no branch looks for vectors without any: it would be wrong every other time. */
#define LOOK_FOR_PLAIN false
#else
#define LOOK_FOR_PLAIN true
#define put_escapes    put_escapes_each
#endif

char *RS_SYM(rs_text_json_any)(char *p, const char *s, size_t len, bool final)
{
	bool checked = false;
	size_t n = RS_VEC;

	if (short_and_valid(p, s, len, true))
		return p + len;
	if (final)
		len = without_cut(s, len);
	for (; len; s += n, len -= n) {
		rs_vec v = rs_vec_load(s);
		uint32_t odd = rs_vec_json_special(v), high;

		rs_vec_store(p, v);
		if (__builtin_expect(len < RS_VEC, 0)) {
			n = len;
			odd = rs_vec_first(odd, n);
		}
		if (LOOK_FOR_PLAIN && !odd) {
			p += n;
			continue;
		}
		high = odd & rs_vec_mask(v);
		if (__builtin_expect(high, 0)) {
			/* From the first non-ASCII on, once: is the rest valid? Before it all was ASCII. */
			if (!checked && !valid(s, len))
				return one_by_one(p, s, len, true);
			checked = true;
			odd &= ~high;
		}
		p = put_escapes(p, s, odd, n);
	}
	return p;
}

#else

char *RS_SYM(rs_text_raw_any)(char *p, const char *s, size_t len, bool final)
{
	return one_by_one(p, s, final ? without_cut(s, len) : len, false);
}

char *RS_SYM(rs_text_json_any)(char *p, const char *s, size_t len, bool final)
{
	return one_by_one(p, s, final ? without_cut(s, len) : len, true);
}

#endif

/*
 * Long texts go piece by piece; rs_utf8_limit() cuts between characters, so that only the last piece has
 * an end to think of.
 */
char *RS_SYM(rs_text_raw_long)(struct rs_sink *sink, char *p, const char *s, size_t len)
{
	while (len) {
		struct str piece = rs_utf8_limit((struct str){ s, len }, RS_TEXT_PIECE);

		s += piece.len;
		len -= piece.len;
		p = rs_sink_need(sink, p, piece.len * RS_TEXT_RAW_MAX);
		p = RS_SYM(rs_text_raw_any)(p, piece.ptr, piece.len, !len);
	}
	return p;
}

char *RS_SYM(rs_text_json_long)(struct rs_sink *sink, char *p, const char *s, size_t len)
{
	while (len) {
		struct str piece = rs_utf8_limit((struct str){ s, len }, RS_TEXT_PIECE);

		s += piece.len;
		len -= piece.len;
		p = rs_sink_need(sink, p, piece.len * RS_TEXT_JSON_MAX);
		p = RS_SYM(rs_text_json_any)(p, piece.ptr, piece.len, !len);
	}
	return p;
}
