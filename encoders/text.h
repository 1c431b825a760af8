/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text — the one place where text becomes valid: UTF-8 checked and repaired, and for JSON escaped, in
 * one pass over the bytes.
 *
 * Policy: every maximal ill-formed subpart becomes one U+FFFD (Unicode 15, 3.9, "best practice"); a
 * sequence cut off by the end of the text is left out (captures and limits cut anywhere). JSON: `"`, `\`
 * and U+0000-U+001F are escaped, with \b \t \n \f \r in short; all else stands literally.
 *
 * Sources have RS_ARENA_PAD readable bytes behind them (trace/span.h). Written are at most
 * RS_TEXT_RAW_MAX or RS_TEXT_JSON_MAX bytes per source byte, and 64 bytes of anything behind them.
 */
#ifndef RS_ENC_TEXT_H
#define RS_ENC_TEXT_H

#include "encoder.h"
#include "simd.h"

#define RS_TEXT_RAW_MAX	 3 /* one bad byte: EF BF BD */
#define RS_TEXT_JSON_MAX 6 /* one control: \u00xx */
/* Longer texts are written in pieces of this size, so that they do not reserve six times their length. */
#define RS_TEXT_PIECE	 8192

/* Text with something to escape or to check. final: its end is the text's end. Writes unchecked. */
char *RS_SYM(rs_text_raw_any)(char *p, const char *s, size_t len, bool final);
char *RS_SYM(rs_text_json_any)(char *p, const char *s, size_t len, bool final);
/* Texts above RS_TEXT_PIECE. */
char *RS_SYM(rs_text_raw_long)(struct rs_sink *sink, char *p, const char *s, size_t len);
char *RS_SYM(rs_text_json_long)(struct rs_sink *sink, char *p, const char *s, size_t len);

#if RS_VEC
/*
 * Copies s as long as there is nothing odd in it: of a vector, odd(v) are the bits of bytes that need a
 * closer look. Nearly all text is short and plain: copied and seen to be so at once. Otherwise the rest, from
 * the first vector with something odd on, goes to any().
 */
static inline __attribute__((always_inline)) char *
rs_text_while_plain(char *p, struct str s, uint32_t (*odd)(rs_vec),
		    char *(*any)(char *, const char *, size_t, bool))
{
	size_t i = 0, last;
	rs_vec v;

	if (!s.len)
		return p;
	/* Where the last vector begins, which may be a part of one: known before, the loop counts but once. */
	last = (s.len - 1) & ~(size_t)(RS_VEC - 1);
	for (; i < last; i += RS_VEC) {
		v = rs_vec_load(s.ptr + i);
		rs_vec_store(p + i, v);
		if (__builtin_expect(odd(v), 0))
			return any(p + i, s.ptr + i, s.len - i, true);
	}
	v = rs_vec_load(s.ptr + i);
	rs_vec_store(p + i, v);
	if (__builtin_expect(rs_vec_first(odd(v), s.len - i), 0))
		return any(p + i, s.ptr + i, s.len - i, true);
	return p + s.len;
}
#endif

/* Like rs_text_raw() when the room has been asked for and s.len <= RS_TEXT_PIECE. */
static inline char *rs_text_raw_unchecked(char *p, struct str s)
{
#if RS_VEC
	return rs_text_while_plain(p, s, rs_vec_mask, RS_SYM(rs_text_raw_any));
#else
	return RS_SYM(rs_text_raw_any)(p, s.ptr, s.len, true);
#endif
}

static inline char *rs_text_json_unchecked(char *p, struct str s)
{
#if RS_VEC
	return rs_text_while_plain(p, s, rs_vec_json_special, RS_SYM(rs_text_json_any));
#else
	return RS_SYM(rs_text_json_any)(p, s.ptr, s.len, true);
#endif
}

/* Copies n bytes that have RS_ARENA_PAD readable ones behind them: without a call. Writes up to 64 bytes more. */
static inline char *rs_text_copy(char *p, const char *s, size_t n)
{
#if RS_VEC
	for (size_t i = 0; i < n; i += RS_VEC)
		rs_vec_store(p + i, rs_vec_load(s + i));
#else
	memcpy(p, s, n);
#endif
	return p + n;
}

/* Copies a plain key (rs_key.plain: 1 to 64 bytes) as it is. Writes unchecked, 64 bytes. */
static inline char *rs_text_copy_key(char *p, struct str s)
{
#if RS_VEC
	rs_vec_store(p, rs_vec_load(s.ptr));
	if (__builtin_expect(s.len > RS_VEC, 0)) {
		for (size_t i = RS_VEC; i < 64; i += RS_VEC)
			rs_vec_store(p + i, rs_vec_load(s.ptr + i));
	}
#else
	memcpy(p, s.ptr, s.len);
#endif
	return p + s.len;
}

/* s as UTF-8. Asks for its room. */
static inline char *rs_text_raw(struct rs_sink *sink, char *p, struct str s)
{
	if (__builtin_expect(s.len > RS_TEXT_PIECE, 0))
		return RS_SYM(rs_text_raw_long)(sink, p, s.ptr, s.len);
	p = rs_sink_need(sink, p, s.len * RS_TEXT_RAW_MAX);
	return rs_text_raw_unchecked(p, s);
}

/* s as the inside of a JSON string, without quotes. Asks for its room. */
static inline char *rs_text_json(struct rs_sink *sink, char *p, struct str s)
{
	if (__builtin_expect(s.len > RS_TEXT_PIECE, 0))
		return RS_SYM(rs_text_json_long)(sink, p, s.ptr, s.len);
	p = rs_sink_need(sink, p, s.len * RS_TEXT_JSON_MAX);
	return rs_text_json_unchecked(p, s);
}

/* What stands at s. */
enum rs_utf8 {
	RS_UTF8_OK,
	RS_UTF8_BAD, /* a maximal ill-formed subpart */
	RS_UTF8_CUT, /* the beginning of a character that the end cuts off */
};

/*
 * Classifies the sequence at s (left > 0 bytes); *ret_n: its length, 1 to 4. Second byte ranges:
 * Unicode 15, table 3-7.
 */
static inline enum rs_utf8 rs_utf8_next(const unsigned char *s, size_t left, size_t *ret_n)
{
	unsigned char c = s[0], lo = 0x80, hi = 0xbf;
	size_t n;

	*ret_n = 1;
	if (c < 0x80)
		return RS_UTF8_OK;
	if (c < 0xc2 || c > 0xf4)
		return RS_UTF8_BAD;
	if (c < 0xe0) {
		n = 2;
	} else if (c < 0xf0) {
		n = 3;
		if (c == 0xe0)
			lo = 0xa0;
		else if (c == 0xed)
			hi = 0x9f;
	} else {
		n = 4;
		if (c == 0xf0)
			lo = 0x90;
		else if (c == 0xf4)
			hi = 0x8f;
	}
	for (size_t i = 1; i < n; i++) {
		*ret_n = i;
		if (i == left)
			return RS_UTF8_CUT;
		if (s[i] < lo || s[i] > hi)
			return RS_UTF8_BAD;
		lo = 0x80;
		hi = 0xbf;
	}
	*ret_n = n;
	return RS_UTF8_OK;
}

/* Would s be written as nothing? It is empty, or no more than the beginning of a character. */
static inline bool rs_text_empty(struct str s)
{
	size_t n;

	if (s.len > 3)
		return false;
	return !s.len || ((unsigned char)s.ptr[0] >= 0xc2 &&
			  rs_utf8_next((const unsigned char *)s.ptr, s.len, &n) == RS_UTF8_CUT);
}

/* Has it a name? An attribute without one is invalid. */
static inline bool rs_attr_named(const struct rs_attr *a)
{
	return a->key->plain || !rs_text_empty(a->key->name);
}

/* How many have one. */
static inline uint32_t rs_attrs_named(const struct rs_attrs *as)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < as->n; i++)
		n += rs_attr_named(&as->a[i]);
	return n;
}

/* s cut to at most max bytes, on a character boundary. */
static inline struct str rs_utf8_limit(struct str s, size_t max)
{
	if (s.len <= max)
		return s;
	/* At most three continuation bytes can belong to a character that the cut would split. */
	for (size_t i = 0; i < 4 && i <= max; i++) {
		if (((unsigned char)s.ptr[max - i] & 0xc0) != 0x80)
			return (struct str){ s.ptr, max - i };
	}
	return (struct str){ s.ptr, max };
}

#endif
