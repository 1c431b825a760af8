/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str — a borrowed run of bytes, passed by value. Not NUL-terminated, may hold any byte.
 *
 * A str never owns: it is valid as long as what it points into. The empty str has len 0 and any
 * pointer, NULL included. All functions accept it. Nothing here allocates.
 */
#ifndef RS_BASE_STR_H
#define RS_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *ptr;
	size_t len;
};

#define STR(lit)   ((struct str){ (lit), sizeof(lit) - 1 })
#define STR_NONE   ((struct str){ NULL, 0 })
/* for printf("%.*s", STR_ARG(s)) */
#define STR_ARG(s) (int)(s).len, (s).ptr ? (s).ptr : ""

static inline struct str str_of(const char *ptr, size_t len)
{
	return (struct str){ ptr, len };
}

static inline struct str str_c(const char *cstr)
{
	return (struct str){ cstr, cstr ? strlen(cstr) : 0 };
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline char str_lower_char(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* ASCII case-insensitive. */
static inline bool str_ieq(struct str a, struct str b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		if (str_lower_char(a.ptr[i]) != str_lower_char(b.ptr[i]))
			return false;
	}
	return true;
}

static inline bool str_starts(struct str s, struct str prefix)
{
	return s.len >= prefix.len &&
	       (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

/* The part from `off` on, at most `len` bytes; out of range: shorter or empty. */
static inline struct str str_at(struct str s, size_t off, size_t len)
{
	if (off > s.len)
		off = s.len;
	if (len > s.len - off)
		len = s.len - off;
	return (struct str){ s.ptr ? s.ptr + off : NULL, len };
}

static inline struct str str_from(struct str s, size_t off)
{
	return str_at(s, off, SIZE_MAX);
}

/* Position of the first `c`, or s.len. */
static inline size_t str_find(struct str s, char c)
{
	const char *p = s.len ? memchr(s.ptr, c, s.len) : NULL;

	return p ? (size_t)(p - s.ptr) : s.len;
}

/* What stands before the first `sep` goes to *ret_head; returns what stands after it (or nothing). */
static inline struct str str_cut(struct str s, char sep, struct str *ret_head)
{
	size_t at = str_find(s, sep);

	*ret_head = str_at(s, 0, at);
	return str_from(s, at + 1);
}

/* Without spaces and tabs at both ends. */
static inline struct str str_trim(struct str s)
{
	while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
		s.ptr++;
		s.len--;
	}
	while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* Decimal digits only, no sign, no space; false on anything else or on overflow. */
static inline bool str_u64(struct str s, uint64_t *ret)
{
	uint64_t v = 0;

	if (!s.len)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		unsigned d = (unsigned)(unsigned char)s.ptr[i] - '0';

		if (d > 9 || v > (UINT64_MAX - d) / 10)
			return false;
		v = v * 10 + d;
	}
	*ret = v;
	return true;
}

#endif
