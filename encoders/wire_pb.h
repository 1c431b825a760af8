/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_pb — protobuf's bytes: varints, tags, lengths. No span types here.
 *
 * Writers take the cursor and return it moved; they write unchecked (RS_SINK_FIXED or a need before).
 *
 * Length-delimited messages are written in one pass: rs_pb_open() leaves the room that the last message
 * of its kind needed for its length, rs_pb_close() fills it in and moves the body when the guess was
 * wrong. So lengths are minimal on the wire and the common case moves nothing.
 */
#ifndef RS_ENC_WIRE_PB_H
#define RS_ENC_WIRE_PB_H

#include "text.h"

enum rs_pb_wire {
	RS_PB_VARINT = 0,
	RS_PB_FIXED64 = 1,
	RS_PB_BYTES = 2,
	RS_PB_FIXED32 = 5,
};

#define RS_PB_TAG(field, wire) ((field) << 3 | (wire))

/* Bytes of v as a varint. */
static inline unsigned rs_pb_varint_len(uint64_t v)
{
	/* bits * 9 / 64 is bits / 7 for up to 64 bits */
	return (9 * (64 - (unsigned)__builtin_clzll(v | 1)) + 64) / 64;
}

/* Writes the bytes of v and none behind them. */
static inline char *rs_pb_varint_exact(char *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (char)(v | 0x80);
		v >>= 7;
	}
	*p++ = (char)v;
	return p;
}

/* v whose length as a varint is known: n = rs_pb_varint_len(v). */
static inline char *rs_pb_varint_n(char *p, uint64_t v, unsigned n)
{
#ifdef __BMI2__
	/* Seven bits to a byte at once; more than 56 of them are rare. */
	if (__builtin_expect(n <= 8, 1)) {
		uint64_t x = _pdep_u64(v, 0x7f7f7f7f7f7f7f7fULL) |
			     _bzhi_u64(0x8080808080808080ULL, 8 * n - 8);

		memcpy(p, &x, 8);
		return p + n;
	}
#else
	(void)n;
#endif
	return rs_pb_varint_exact(p, v);
}

static inline char *rs_pb_varint(char *p, uint64_t v)
{
	if (__builtin_expect(v < 0x80, 1)) {
		*p = (char)v;
		return p + 1;
	}
	return rs_pb_varint_n(p, v, rs_pb_varint_len(v));
}

/* Fields below 16 have tags of one byte. */
static inline char *rs_pb_tag(char *p, unsigned field, enum rs_pb_wire wire)
{
	return rs_pb_varint(p, RS_PB_TAG(field, wire));
}

/* The machines we build for are little-endian, as protobuf is. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian");

static inline char *rs_pb_fixed64(char *p, uint64_t v)
{
	memcpy(p, &v, 8);
	return p + 8;
}

/* Four bytes, the first one lowest: tags and one-byte lengths that stand together. */
static inline char *rs_pb_four(char *p, unsigned a, size_t b, unsigned c, size_t d)
{
	uint32_t v = (uint32_t)(a | b << 8 | c << 16 | d << 24);

	memcpy(p, &v, 4);
	return p + 4;
}

static inline char *rs_pb_fixed32(char *p, uint32_t v)
{
	memcpy(p, &v, 4);
	return p + 4;
}

/* A message being written: where its length stands, and how many bytes were left for it. */
struct rs_pb_msg {
	size_t at; /* offset of the length */
	uint8_t width;
};

/* *width: of the last length of this kind of message; 0 at first. p stands behind the tag. */
static inline char *rs_pb_open(const struct rs_sink *s, char *p, const uint8_t *width,
			       struct rs_pb_msg *m)
{
	m->at = rs_sink_pos(s, p);
	m->width = *width ? *width : 1;
	return p + m->width;
}

/* Cold half of close: the length takes another number of bytes than were left for it. */
char *RS_SYM(rs_pb_close_move)(struct rs_sink *s, char *p, uint8_t *width,
			       const struct rs_pb_msg *m);

static inline char *rs_pb_close(struct rs_sink *s, char *p, uint8_t *width,
				const struct rs_pb_msg *m)
{
	char *at = s->base + m->at;
	size_t len = (size_t)(p - at) - m->width;

	if (__builtin_expect(s->err || rs_pb_varint_len(len) != m->width, 0))
		return RS_SYM(rs_pb_close_move)(s, p, width, m);
	rs_pb_varint_exact(at, len);
	return p;
}

/* The whole of rs_pb_text, for texts that are not short or not valid. */
char *RS_SYM(rs_pb_text_any)(struct rs_sink *s, char *p, struct str text);

/* Length and bytes of text, made valid UTF-8; the tag stands before p. Asks for its room. */
static inline char *rs_pb_text(struct rs_sink *s, char *p, struct str text)
{
	if (__builtin_expect(text.len < 128, 1)) {
		char *end;

		p = rs_sink_need(s, p, text.len * RS_TEXT_RAW_MAX);
		*p = (char)text.len;
		end = rs_text_raw_unchecked(p + 1, text);
		if (__builtin_expect(end == p + 1 + text.len, 1))
			return end;
	}
	return RS_SYM(rs_pb_text_any)(s, p, text);
}

#endif
