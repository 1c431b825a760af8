// SPDX-License-Identifier: Apache-2.0
#include "wire_pb.h"

char *RS_SYM(rs_pb_text_any)(struct rs_sink *s, char *p, struct str text)
{
	uint8_t width = (uint8_t)rs_pb_varint_len(text.len);
	struct rs_pb_msg m;

	p = rs_pb_open(s, p, &width, &m);
	p = rs_text_raw(s, p, text);
	return rs_pb_close(s, p, &width, &m);
}

char *RS_SYM(rs_pb_close_move)(struct rs_sink *s, char *p, uint8_t *width,
			       const struct rs_pb_msg *m)
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
	rs_pb_varint_exact(at, len);
	*width = (uint8_t)n;
	return at + n + len;
}
