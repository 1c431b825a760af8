/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_msgpack — MessagePack's bytes, by msgpack-c's pack template instantiated over our cursor: its
 * code chooses the shortest form of every number and header, and stores go straight into the sink.
 *
 * Writers take the cursor and return it moved; they write unchecked (at most 9 bytes; RS_SINK_FIXED or a
 * need before). rs_mp_text() asks for its room. float32 is not offered: Datadog's readers refuse it.
 * Headers only: nothing of msgpack-c is linked.
 */
#ifndef RS_ENC_WIRE_MSGPACK_H
#define RS_ENC_WIRE_MSGPACK_H

#include <msgpack/pack_define.h>
#include <msgpack/timestamp.h>

#include "text.h"

struct rs_mp_cursor {
	char *p;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#define msgpack_pack_inline_func(name)	      static inline int rs_mpt##name
#define msgpack_pack_inline_func_cint(name)   static inline int rs_mpt##name
#define msgpack_pack_inline_func_fixint(name) static inline int rs_mpt_fix##name
#define msgpack_pack_user		      struct rs_mp_cursor *
#define msgpack_pack_append_buffer(c, buf, n) return (memcpy((c)->p, (buf), (n)), (c)->p += (n), 0)
#define msgpack_pack_ext		      rs_mpt_ext /* the template calls it by its library name */
#include <msgpack/pack_template.h>
#pragma GCC diagnostic pop

#define RS_MP_WRITE(p, call)                                                                       \
	do {                                                                                       \
		struct rs_mp_cursor c = { p };                                                     \
		call;                                                                              \
		return c.p;                                                                        \
	} while (0)

static inline char *rs_mp_uint(char *p, uint64_t v)
{
	RS_MP_WRITE(p, rs_mpt_uint64(&c, v));
}

/* Non-negative numbers take the unsigned forms. */
static inline char *rs_mp_int(char *p, int64_t v)
{
	if (v >= 0)
		return rs_mp_uint(p, (uint64_t)v);
	RS_MP_WRITE(p, rs_mpt_int64(&c, v));
}

static inline char *rs_mp_double(char *p, double v)
{
	RS_MP_WRITE(p, rs_mpt_double(&c, v));
}

static inline char *rs_mp_bool(char *p, bool v)
{
	*p = v ? (char)0xc3 : (char)0xc2;
	return p + 1;
}

static inline char *rs_mp_array(char *p, uint32_t n)
{
	RS_MP_WRITE(p, rs_mpt_array(&c, n));
}

static inline char *rs_mp_map(char *p, uint32_t n)
{
	RS_MP_WRITE(p, rs_mpt_map(&c, n));
}

/* Headers; the bytes follow. */
static inline char *rs_mp_str_head(char *p, size_t len)
{
	RS_MP_WRITE(p, rs_mpt_str(&c, len));
}

/* A string literal below 32 bytes as a fixstr, one constant store. */
#define RS_MP_LIT(p, lit)                                                                          \
	(*(p) = (char)(0xa0 | (sizeof(lit) - 1)), memcpy((p) + 1, "" lit, sizeof(lit) - 1),        \
	 (p) + sizeof(lit))

/* Cold: the text was not valid and its length changed; its header stands at offset `at`. */
char *RS_SYM(rs_mp_text_moved)(struct rs_sink *sink, char *p, size_t at, size_t head);

/* s as a str, made valid UTF-8. Asks for its room. */
static inline char *rs_mp_text(struct rs_sink *sink, char *p, struct str s)
{
	size_t at, head;
	char *body;

	p = rs_sink_need(sink, p, 16);
	at = rs_sink_pos(sink, p);
	body = rs_mp_str_head(p, s.len);
	head = (size_t)(body - p);
	p = rs_text_raw(sink, body, s);
	if (__builtin_expect(rs_sink_pos(sink, p) != at + head + s.len, 0))
		return RS_SYM(rs_mp_text_moved)(sink, p, at, head);
	return p;
}

#endif
