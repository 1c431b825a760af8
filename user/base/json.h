/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json — a pull reader for JSON text (RFC 8259) in memory: OTLP input and event scripts.
 *
 *	rs_json_init(&j, text, &arena);
 *	rs_json_object(&j);
 *	while (rs_json_key(&j, &key)) {
 *		if (str_eq(key, STR("t")))
 *			rs_json_u64(&j, &t);
 *		else
 *			rs_json_skip(&j);
 *	}
 *	if (j.err)
 *		rs_json_where(&j, &line, &col);      (j.err says why)
 *
 * Every value is read exactly once: by type, entered (rs_json_object, rs_json_array) and iterated to its
 * end, or skipped. Errors stick: the first one stays in j.err with its position, later calls return false
 * and read nothing. Several documents may follow each other (JSON lines): rs_json_more().
 *
 * Strict where JSON is strict (no comments, trailing commas, NaN, raw controls in strings). Escapes are
 * decoded; a surrogate without its other half becomes U+FFFD. Bytes that are not UTF-8 are passed on.
 *
 * Why not a library: jansson refuses lone surrogates and integers above 2^63 and gives no positions for
 * values; yajl replaces surrogates by '?' and is unmaintained. What is left is small.
 *
 * Memory: strings are decoded into the arena and have its padding; keys without escapes and raw numbers
 * borrow the text.
 */
#ifndef RS_BASE_JSON_H
#define RS_BASE_JSON_H

#include "arena.h"
#include "str.h"

#define RS_JSON_DEPTH 512 /* nesting at most; deeper is an error */

enum rs_json_type {
	RS_JSON_END, /* no value stands here: end of text, end of a container, or an error */
	RS_JSON_NULL,
	RS_JSON_BOOL,
	RS_JSON_NUMBER,
	RS_JSON_STRING,
	RS_JSON_ARRAY,
	RS_JSON_OBJECT,
};

struct rs_json {
	const char *start, *pos, *end;
	const char *at; /* where the last value or key began */
	struct rs_arena *arena;
	const char *err; /* NULL: none so far */
	size_t err_at;	 /* offset in the text */
	unsigned depth;
	bool first; /* a container was entered and nothing of it read yet */
};

void rs_json_init(struct rs_json *j, struct str text, struct rs_arena *arena);
/* Is there anything but space left? Between documents. */
bool rs_json_more(struct rs_json *j);

/* What value stands next; reads nothing but space. */
enum rs_json_type rs_json_peek(struct rs_json *j);

/* Enter. false: the value is something else (an error). */
bool rs_json_object(struct rs_json *j);
bool rs_json_array(struct rs_json *j);
/* The next member's key; false at the end of the object, which is left then, or on an error. */
bool rs_json_key(struct rs_json *j, struct str *ret_key);
/* Is there another element? false at the end of the array, which is left then, or on an error. */
bool rs_json_elem(struct rs_json *j);

/* Reads a null if there is one: then the value is over. */
bool rs_json_null(struct rs_json *j);
bool rs_json_bool(struct rs_json *j, bool *ret);
bool rs_json_str(struct rs_json *j, struct str *ret);
/* Integers as numbers or as strings (ProtoJSON). Exponents and fractions may be there if the value is whole: 1.5e3. */
bool rs_json_u64(struct rs_json *j, uint64_t *ret);
bool rs_json_i64(struct rs_json *j, int64_t *ret);
/* As a number only. */
bool rs_json_i32(struct rs_json *j, int32_t *ret);
/* A number, one as a string, or "NaN", "Infinity", "-Infinity"; one that overflows is an error. */
bool rs_json_double(struct rs_json *j, double *ret);
/* Any value, whatever is in it (it must be well-formed). */
bool rs_json_skip(struct rs_json *j);

/* Sets the error, at the last value, unless there is one; `why` is static. Always returns false. */
bool rs_json_fail(struct rs_json *j, const char *why);
/* Line and column (in bytes) of the error, counted from 1. */
void rs_json_where(const struct rs_json *j, size_t *ret_line, size_t *ret_col);

#endif
