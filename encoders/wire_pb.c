// SPDX-License-Identifier: Apache-2.0
#include "wire_pb.h"

char *rs_pb_text_moved(struct rs_sink *s, char *p, size_t at, unsigned width)
{
	struct rs_pb_msg m = { .at = at, .width = (uint8_t)width };
	uint8_t unused;

	return rs_pb_close_move(s, p, &unused, &m);
}

char *rs_pb_close_move(struct rs_sink *s, char *p, uint8_t *width, const struct rs_pb_msg *m)
{
	size_t len, n;
	char *at;

	/* The body, or its beginning, is not where m says: the span is rolled back later. */
	if (s->err)
		return p;
	p = rs_sink_need(s, p, 16);
	if (s->err)
		return p;
	at = s->base + m->at;
	len = (size_t)(p - at) - m->width;
	n = rs_pb_varint_len(len);
	memmove(at + n, at + m->width, len);
	rs_pb_varint(at, len);
	*width = (uint8_t)n;
	return at + n + len;
}
