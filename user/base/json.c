// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <stdlib.h>

#include "digits.h"

static bool fail_at(struct rs_json *j, const char *at, const char *why)
{
	if (!j->err) {
		j->err = why;
		j->err_at = (size_t)(at - j->start);
	}
	/* Nothing is read any more. */
	j->pos = j->end;
	return false;
}

bool rs_json_fail(struct rs_json *j, const char *why)
{
	return fail_at(j, j->at, why);
}

void rs_json_init(struct rs_json *j, struct str text, struct rs_arena *arena)
{
	*j = (struct rs_json){ .start = text.ptr, .pos = text.ptr, .at = text.ptr, .arena = arena };
	j->end = text.len ? text.ptr + text.len : text.ptr;
	/* RFC 8259 8.1 lets readers ignore a byte order mark. */
	if (str_starts(text, STR("\xef\xbb\xbf")))
		j->pos += 3;
}

static void space(struct rs_json *j)
{
	while (j->pos < j->end &&
	       (*j->pos == ' ' || *j->pos == '\n' || *j->pos == '\r' || *j->pos == '\t'))
		j->pos++;
}

bool rs_json_more(struct rs_json *j)
{
	if (j->err)
		return false;
	space(j);
	return j->pos < j->end;
}

enum rs_json_type rs_json_peek(struct rs_json *j)
{
	space(j);
	if (j->pos == j->end)
		return RS_JSON_END;
	switch (*j->pos) {
	case '{':
		return RS_JSON_OBJECT;
	case '[':
		return RS_JSON_ARRAY;
	case '"':
		return RS_JSON_STRING;
	case 't':
	case 'f':
		return RS_JSON_BOOL;
	case 'n':
		return RS_JSON_NULL;
	case '-':
	case '0' ... '9':
		return RS_JSON_NUMBER;
	default:
		return RS_JSON_END;
	}
}

/* Is the next value a `type`? Else an error: what stands there instead decides which. */
static bool expect(struct rs_json *j, enum rs_json_type type, const char *why)
{
	enum rs_json_type got = rs_json_peek(j);

	if (j->err)
		return false;
	j->at = j->pos;
	if (got == type)
		return true;
	if (got != RS_JSON_END)
		return rs_json_fail(j, why);
	return rs_json_fail(j, j->pos == j->end ? "unexpected end" : "unexpected character");
}

static bool enter(struct rs_json *j)
{
	if (++j->depth > RS_JSON_DEPTH)
		return rs_json_fail(j, "nested too deep");
	j->pos++;
	j->first = true;
	return true;
}

bool rs_json_object(struct rs_json *j)
{
	return expect(j, RS_JSON_OBJECT, "expected an object") && enter(j);
}

bool rs_json_array(struct rs_json *j)
{
	return expect(j, RS_JSON_ARRAY, "expected an array") && enter(j);
}

/* Before an element: reads the comma, or the closing bracket and returns false. */
static bool next(struct rs_json *j, char close, const char *why)
{
	bool first = j->first;

	if (j->err)
		return false;
	space(j);
	j->first = false;
	if (j->pos == j->end)
		return fail_at(j, j->pos, "unexpected end");
	if (*j->pos == close) {
		j->pos++;
		j->depth--;
		return false;
	}
	if (first)
		return true;
	if (*j->pos != ',')
		return fail_at(j, j->pos, why);
	j->pos++;
	return true;
}

bool rs_json_elem(struct rs_json *j)
{
	return next(j, ']', "expected ',' or ']'");
}

static bool hex4(const char *s, const char *end, uint32_t *ret)
{
	uint32_t v = 0;

	if (end - s < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		int d = rs_hex_digit(s[i]);

		if (d < 0)
			return false;
		v = v << 4 | (uint32_t)d;
	}
	*ret = v;
	return true;
}

static char *put_utf8(char *o, uint32_t c)
{
	if (c < 0x80) {
		*o++ = (char)c;
	} else if (c < 0x800) {
		*o++ = (char)(0xc0 | c >> 6);
		*o++ = (char)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		*o++ = (char)(0xe0 | c >> 12);
		*o++ = (char)(0x80 | (c >> 6 & 63));
		*o++ = (char)(0x80 | (c & 63));
	} else {
		*o++ = (char)(0xf0 | c >> 18);
		*o++ = (char)(0x80 | (c >> 12 & 63));
		*o++ = (char)(0x80 | (c >> 6 & 63));
		*o++ = (char)(0x80 | (c & 63));
	}
	return o;
}

/* The escape at *s (behind the backslash) to o; moves *s behind it. NULL: there is no such escape. */
static char *unescape(const char **s, const char *end, char *o)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *p = *s, *hit;
	uint32_t c, low;

	if (p == end)
		return NULL;
	if (*p != 'u') {
		hit = *p ? strchr(from, *p) : NULL;
		if (!hit)
			return NULL;
		*o = to[hit - from];
		*s = p + 1;
		return o + 1;
	}
	if (!hex4(p + 1, end, &c))
		return NULL;
	p += 5;
	if (c >= 0xd800 && c < 0xe000) {
		if (c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
		    hex4(p + 2, end, &low) && low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			p += 6;
		} else {
			c = 0xfffd;
		}
	}
	*s = p;
	return put_utf8(o, c);
}

/* The string at pos, quotes included. borrow: without escapes it may point into the text. */
static bool string(struct rs_json *j, bool borrow, struct str *ret)
{
	const char *s = j->pos + 1, *p = s;
	bool escaped = false;
	char *out, *o;

	for (;; p++) {
		if (p == j->end)
			return fail_at(j, p, "string without end");
		if (*p == '"')
			break;
		if ((unsigned char)*p < 0x20)
			return fail_at(j, p, "control character in a string");
		if (*p == '\\') {
			escaped = true;
			if (++p == j->end)
				return fail_at(j, p, "string without end");
		}
	}
	j->pos = p + 1;
	if (!escaped && (borrow || p == s)) {
		*ret = str_of(s, (size_t)(p - s));
		return true;
	}
	/* Decoded, a string is never longer. */
	out = o = rs_arena_alloc(j->arena, (size_t)(p - s));
	if (!out)
		return rs_json_fail(j, "out of memory");
	while (s < p) {
		if (*s == '\\') {
			const char *esc = s++;

			o = unescape(&s, p, o);
			if (!o)
				return fail_at(j, esc, "invalid escape");
		} else {
			*o++ = *s++;
		}
	}
	*ret = str_of(out, (size_t)(o - out));
	return true;
}

bool rs_json_key(struct rs_json *j, struct str *ret_key)
{
	if (!next(j, '}', "expected ',' or '}'"))
		return false;
	if (!expect(j, RS_JSON_STRING, "expected a key") || !string(j, true, ret_key))
		return false;
	space(j);
	if (j->pos == j->end || *j->pos != ':')
		return fail_at(j, j->pos, "expected ':'");
	j->pos++;
	return true;
}

bool rs_json_str(struct rs_json *j, struct str *ret)
{
	return expect(j, RS_JSON_STRING, "expected a string") && string(j, false, ret);
}

static bool word(struct rs_json *j, struct str w)
{
	if (!str_starts(str_of(j->pos, (size_t)(j->end - j->pos)), w))
		return false;
	j->pos += w.len;
	return true;
}

bool rs_json_null(struct rs_json *j)
{
	if (rs_json_peek(j) != RS_JSON_NULL)
		return false;
	j->at = j->pos;
	return word(j, STR("null")) || rs_json_fail(j, "unexpected character");
}

bool rs_json_bool(struct rs_json *j, bool *ret)
{
	if (!expect(j, RS_JSON_BOOL, "expected true or false"))
		return false;
	if (word(j, STR("true")))
		*ret = true;
	else if (word(j, STR("false")))
		*ret = false;
	else
		return rs_json_fail(j, "unexpected character");
	return true;
}

/* How many bytes at s are a number by RFC 8259 section 6; 0: none. */
static size_t number_len(const char *s, const char *end)
{
	const char *p = s, *digits;

	if (p < end && *p == '-')
		p++;
	digits = p;
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	if (p == digits || (*digits == '0' && p > digits + 1))
		return 0;
	if (p < end && *p == '.') {
		digits = ++p;
		while (p < end && *p >= '0' && *p <= '9')
			p++;
		if (p == digits)
			return 0;
	}
	if (p < end && (*p | 32) == 'e') {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		digits = p;
		while (p < end && *p >= '0' && *p <= '9')
			p++;
		if (p == digits)
			return 0;
	}
	return (size_t)(p - s);
}

/* A number's text, checked against the grammar. */
static bool read_number(struct rs_json *j, struct str *ret)
{
	size_t n;

	if (!expect(j, RS_JSON_NUMBER, "expected a number"))
		return false;
	n = number_len(j->pos, j->end);
	if (!n)
		return rs_json_fail(j, "not a number");
	*ret = str_of(j->pos, n);
	j->pos += n;
	return true;
}

/* The text of a number or of a string. */
static bool number_or_string(struct rs_json *j, struct str *ret)
{
	if (rs_json_peek(j) == RS_JSON_STRING)
		return expect(j, RS_JSON_STRING, "") && string(j, true, ret);
	return read_number(j, ret);
}

/* The digits of a number, s behind its sign, without point, exponent and the zeros that these allow for. */
static bool digits_u64(struct str s, uint64_t *ret)
{
	size_t e = 0, point;
	uint64_t v = 0, exp = 0;
	struct str frac;
	bool down;
	int64_t shift;

	if (number_len(s.ptr, s.ptr + s.len) != s.len || s.ptr[0] == '-')
		return false;
	while (e < s.len && (s.ptr[e] | 32) != 'e')
		e++;
	down = str_starts(str_from(s, e + 1), STR("-"));
	frac = str_from(s, e + 1 + (down || str_starts(str_from(s, e + 1), STR("+"))));
	if (frac.len && (!str_u64(frac, &exp) || exp > 1 << 20))
		exp = 1 << 20; /* whatever it is exactly */
	point = str_find(str_at(s, 0, e), '.');
	frac = str_at(s, point + 1, e - (point < e ? point + 1 : e));
	shift = (down ? -(int64_t)exp : (int64_t)exp) - (int64_t)frac.len;
	for (int64_t i = 0, n = (int64_t)(point + frac.len); i < n; i++) {
		unsigned d = (unsigned)(s.ptr[i + (i >= (int64_t)point)] - '0');

		if (i >= n + shift) {
			if (d)
				return false;
		} else if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, d, &v)) {
			return false;
		}
	}
	for (; v && shift > 0; shift--) {
		if (__builtin_mul_overflow(v, 10, &v))
			return false;
	}
	*ret = v;
	return true;
}

/* A whole number: its sign and digits. 1.50e1 is one; ProtoJSON allows that, and some languages write it. */
static bool whole(struct str s, bool *ret_neg, uint64_t *ret)
{
	*ret_neg = str_starts(s, STR("-"));
	s = str_from(s, *ret_neg);
	return str_u64(s, ret) || (s.len && digits_u64(s, ret));
}

bool rs_json_u64(struct rs_json *j, uint64_t *ret)
{
	struct str s;
	bool neg;

	if (!number_or_string(j, &s))
		return false;
	if (!whole(s, &neg, ret) || (neg && *ret))
		return rs_json_fail(j, "expected an unsigned 64-bit integer");
	return true;
}

bool rs_json_i64(struct rs_json *j, int64_t *ret)
{
	struct str s;
	uint64_t v;
	bool neg;

	if (!number_or_string(j, &s))
		return false;
	if (!whole(s, &neg, &v) || v > (uint64_t)INT64_MAX + neg)
		return rs_json_fail(j, "expected a 64-bit integer");
	*ret = neg ? (int64_t)-v : (int64_t)v;
	return true;
}

bool rs_json_i32(struct rs_json *j, int32_t *ret)
{
	struct str s;
	uint64_t v;
	bool neg;

	if (!read_number(j, &s))
		return false;
	if (!whole(s, &neg, &v) || v > (uint64_t)INT32_MAX + neg)
		return rs_json_fail(j, "expected a 32-bit integer");
	*ret = (int32_t)(neg ? -(int64_t)v : (int64_t)v);
	return true;
}

bool rs_json_double(struct rs_json *j, double *ret)
{
	struct str s;
	char buf[64], *copy = buf;
	double d;

	if (!number_or_string(j, &s))
		return false;
	if (str_eq(s, STR("NaN"))) {
		*ret = __builtin_nan("");
		return true;
	}
	if (str_eq(s, STR("Infinity")) || str_eq(s, STR("-Infinity"))) {
		*ret = s.ptr[0] == '-' ? -__builtin_inf() : __builtin_inf();
		return true;
	}
	if (!s.len || number_len(s.ptr, s.ptr + s.len) != s.len)
		return rs_json_fail(j, "expected a number");
	if (s.len >= sizeof(buf)) {
		copy = rs_arena_alloc(j->arena, s.len + 1);
		if (!copy)
			return rs_json_fail(j, "out of memory");
	}
	memcpy(copy, s.ptr, s.len);
	copy[s.len] = 0;
	d = strtod(copy, NULL);
	if (d - d != 0)
		return rs_json_fail(j, "number out of range");
	*ret = d;
	return true;
}

bool rs_json_skip(struct rs_json *j)
{
	unsigned base = j->depth;
	uint64_t is_object[RS_JSON_DEPTH / 64 + 1] = { 0 };

	do {
		struct str s;
		bool b, inside;

		switch (rs_json_peek(j)) {
		case RS_JSON_OBJECT:
			if (!rs_json_object(j))
				return false;
			is_object[j->depth / 64] |= 1ULL << j->depth % 64;
			break;
		case RS_JSON_ARRAY:
			if (!rs_json_array(j))
				return false;
			is_object[j->depth / 64] &= ~(1ULL << j->depth % 64);
			break;
		case RS_JSON_STRING:
			if (!expect(j, RS_JSON_STRING, "") || !string(j, true, &s))
				return false;
			break;
		case RS_JSON_NUMBER:
			if (!read_number(j, &s))
				return false;
			break;
		case RS_JSON_BOOL:
			if (!rs_json_bool(j, &b))
				return false;
			break;
		case RS_JSON_NULL:
			if (!rs_json_null(j) || j->err)
				return false;
			break;
		case RS_JSON_END:
			return expect(j, RS_JSON_NULL, "");
		}
		/* To the next value, leaving containers that are over. */
		do {
			if (j->depth == base)
				return true;
			inside = is_object[j->depth / 64] >> j->depth % 64 & 1 ? rs_json_key(j, &s)
									       : rs_json_elem(j);
		} while (!inside && !j->err);
	} while (!j->err);
	return false;
}

void rs_json_where(const struct rs_json *j, size_t *ret_line, size_t *ret_col)
{
	size_t line = 1, bol = 0;

	for (size_t i = 0; i < j->err_at; i++) {
		if (j->start[i] == '\n') {
			line++;
			bol = i + 1;
		}
	}
	*ret_line = line;
	*ret_col = j->err_at - bol + 1;
}
