// SPDX-License-Identifier: Apache-2.0
#include "http2_guess.h"

#define FRAME_MAX 16384 /* RFC 9113 6.5.2: a frame's content, unless its receiver allows more */

bool rs_h2_frame_likely(struct str in, struct rs_h2_frame *f)
{
	static const uint8_t flags[RS_H2_COUNT] = {
		[RS_H2_DATA] = RS_H2_FL_END_STREAM | RS_H2_FL_PADDED,
		[RS_H2_HEADERS] = RS_H2_FL_END_STREAM | RS_H2_FL_END_HEADERS | RS_H2_FL_PADDED |
				  RS_H2_FL_PRIORITY,
		[RS_H2_SETTINGS] = RS_H2_FL_ACK,
		[RS_H2_PUSH_PROMISE] = RS_H2_FL_END_HEADERS | RS_H2_FL_PADDED,
		[RS_H2_PING] = RS_H2_FL_ACK,
		[RS_H2_CONTINUATION] = RS_H2_FL_END_HEADERS,
	};

	*f = rs_h2_frame_at(in);
	return f->type < RS_H2_COUNT && f->len <= FRAME_MAX && !(f->flags & ~flags[f->type]) &&
	       !((uint8_t)in.ptr[5] & 0x80) && rs_h2_frame_ok(f);
}

static bool on_guess(void *arg, const struct rs_hpack_field *f)
{
	struct rs_h2_guess *g = arg;

	g->fields++;
	if (f->index == 2 || f->index == 4 || f->index == 6)
		g->asks = true;
	if (f->index == 8)
		g->answers = true;
	for (size_t i = 0; i < f->name.len; i++) {
		uint8_t c = (uint8_t)f->name.ptr[i];

		if (c <= ' ' || c >= 127 || (c >= 'A' && c <= 'Z'))
			g->odd = true;
	}
	return false;
}

/* f is a HEADERS frame at the front of `in`: is it one? *ret_g: what it says, as far as its first bytes do. */
static bool block_likely(struct str in, const struct rs_h2_frame *f, struct rs_h2_guess *ret_g)
{
	char scratch[4096]; /* Huffman code grows by less than two */
	struct rs_hpack_mem mem = { scratch, scratch + sizeof(scratch) };
	struct rs_hpack table;
	struct rs_h2_block b;
	bool whole;

	*ret_g = (struct rs_h2_guess){ 0 };
	in = str_at(in, 0,
		    RS_H2_FRAME_HEAD +
			    (f->len < sizeof(scratch) / 2 ? f->len : sizeof(scratch) / 2));
	whole = in.len == RS_H2_FRAME_HEAD + f->len && f->flags & RS_H2_FL_END_HEADERS;
	rs_hpack_init(&table, false, NULL, NULL);
	if (!rs_h2_gather(in, f, &mem, &b))
		return false;
	if (!rs_hpack_decode(&table, b.text, &mem, on_guess, ret_g) && whole)
		return false;
	/* Of a part, few fields prove nothing. */
	if (!whole && ret_g->fields < 3)
		ret_g->asks = ret_g->answers = false;
	return !ret_g->odd && !(ret_g->asks && ret_g->answers);
}

int rs_h2_chain(struct str in, struct rs_h2_guess *ret_g)
{
	int n = 0;

	*ret_g = (struct rs_h2_guess){ 0 };
	while (in.len >= RS_H2_FRAME_HEAD && n < 8) {
		struct rs_h2_guess g = { 0 };
		struct rs_h2_frame f;

		if (!rs_h2_frame_likely(in, &f) ||
		    (f.type == RS_H2_HEADERS && !block_likely(in, &f, &g)))
			return -1;
		if (!ret_g->asks && !ret_g->answers)
			*ret_g = g;
		if (in.len < RS_H2_FRAME_HEAD + f.len)
			break;
		in = str_from(in, RS_H2_FRAME_HEAD + f.len);
		n++;
	}
	return n;
}
