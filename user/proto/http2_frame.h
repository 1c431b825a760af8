/* SPDX-License-Identifier: Apache-2.0 */
/* http2_frame — frames of HTTP/2 (RFC 9113 4 and 6), and header blocks out of them. Pure functions. */
#ifndef RS_PROTO_HTTP2_FRAME_H
#define RS_PROTO_HTTP2_FRAME_H

#include "hpack.h"

/* RFC 9113 6 */
enum rs_h2_frame_type {
	RS_H2_DATA,
	RS_H2_HEADERS,
	RS_H2_PRIORITY,
	RS_H2_RST_STREAM,
	RS_H2_SETTINGS,
	RS_H2_PUSH_PROMISE,
	RS_H2_PING,
	RS_H2_GOAWAY,
	RS_H2_WINDOW_UPDATE,
	RS_H2_CONTINUATION,
	RS_H2_COUNT,
};

#define RS_H2_FL_END_STREAM  0x1
#define RS_H2_FL_ACK	     0x1
#define RS_H2_FL_END_HEADERS 0x4
#define RS_H2_FL_PADDED	     0x8
#define RS_H2_FL_PRIORITY    0x20

#define RS_H2_FRAME_HEAD 9 /* bytes of a frame's header */

struct rs_h2_frame {
	uint32_t len, id;
	uint8_t type, flags;
};

static inline uint32_t rs_h2_u32(const char *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* in has RS_H2_FRAME_HEAD bytes. */
static inline struct rs_h2_frame rs_h2_frame_at(struct str in)
{
	return (struct rs_h2_frame){
		.len = rs_h2_u32(in.ptr) >> 8,
		.type = (uint8_t)in.ptr[3],
		.flags = (uint8_t)in.ptr[4],
		.id = rs_h2_u32(in.ptr + 5) & 0x7fffffff,
	};
}

/* The rules on length and stream that a frame of a known type keeps to. */
static inline bool rs_h2_frame_ok(const struct rs_h2_frame *f)
{
	switch ((enum rs_h2_frame_type)f->type) {
	case RS_H2_DATA:
	case RS_H2_HEADERS:
	case RS_H2_CONTINUATION:
		return f->id != 0;
	case RS_H2_PRIORITY:
		return f->id && f->len == 5;
	case RS_H2_RST_STREAM:
		return f->id && f->len == 4;
	case RS_H2_SETTINGS:
		return !f->id && f->len % 6 == 0 && !(f->flags & RS_H2_FL_ACK && f->len);
	case RS_H2_PUSH_PROMISE:
		return f->id && f->len >= 4;
	case RS_H2_PING:
		return !f->id && f->len == 8;
	case RS_H2_GOAWAY:
		return !f->id && f->len >= 8;
	case RS_H2_WINDOW_UPDATE:
		return f->len == 4;
	case RS_H2_COUNT:
		break;
	}
	return true; /* RFC 9113 5.5: unknown types are ignored */
}

/* A header block, in one frame or in several. */
struct rs_h2_block {
	struct str text;
	uint32_t id; /* of the stream that it opens or belongs to; PUSH_PROMISE: that it promises */
	size_t used; /* bytes of its frames */
	uint32_t rest; /* of these, bytes that are not in the input */
	bool more;     /* other frames follow */
	bool broken;   /* where they begin is not known */
	bool end_stream;
};

/*
 * The block's text, as far as it is in the input; gathered in memory when it is in more than one frame.
 * False: it makes no sense.
 */
bool rs_h2_gather(struct str in, const struct rs_h2_frame *f, struct rs_hpack_mem *mem,
		  struct rs_h2_block *b);

#endif
