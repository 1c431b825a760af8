// SPDX-License-Identifier: Apache-2.0
#include "http2_frame.h"

bool rs_h2_gather(struct str in, const struct rs_h2_frame *f, struct rs_hpack_mem *mem,
		  struct rs_h2_block *b)
{
	size_t end = RS_H2_FRAME_HEAD + (size_t)f->len, from = RS_H2_FRAME_HEAD, have, pad = 0;
	bool last = f->flags & RS_H2_FL_END_HEADERS;

	*b = (struct rs_h2_block){ .id = f->id };
	b->end_stream = f->type == RS_H2_HEADERS && f->flags & RS_H2_FL_END_STREAM;
	if (f->flags & RS_H2_FL_PADDED && from < in.len)
		pad = (uint8_t)in.ptr[from++];
	if (f->type == RS_H2_HEADERS && f->flags & RS_H2_FL_PRIORITY)
		from += 5;
	if (f->type == RS_H2_PUSH_PROMISE) {
		if (from + 4 > in.len)
			return false;
		b->id = rs_h2_u32(in.ptr + from) & 0x7fffffff;
		from += 4;
	}
	if (from + pad > end)
		return false;
	have = end - pad < in.len ? end - pad : in.len;
	b->text = str_at(in, from, have > from ? have - from : 0);
	while (!last && end + RS_H2_FRAME_HEAD <= in.len) {
		struct rs_h2_frame c = rs_h2_frame_at(str_from(in, end));
		struct str piece = str_at(in, end + RS_H2_FRAME_HEAD, c.len);

		if (c.type != RS_H2_CONTINUATION || c.id != f->id)
			return false;
		if (b->text.ptr != mem->pos && b->text.len)
			memcpy(mem->pos, b->text.ptr, b->text.len);
		b->text.ptr = mem->pos;
		if (piece.len)
			memcpy(mem->pos + b->text.len, piece.ptr, piece.len);
		b->text.len += piece.len;
		end += RS_H2_FRAME_HEAD + c.len;
		last = c.flags & RS_H2_FL_END_HEADERS;
	}
	if (b->text.ptr == mem->pos)
		mem->pos += b->text.len;
	b->more = !last;
	b->used = end;
	b->rest = end > in.len ? (uint32_t)(end - in.len) : 0;
	b->broken = !last && end < in.len;
	return true;
}
