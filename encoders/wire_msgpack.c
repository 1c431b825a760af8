// SPDX-License-Identifier: Apache-2.0
#include "wire_msgpack.h"

char *RS_SYM(rs_mp_text_moved)(struct rs_sink *sink, char *p, size_t at, size_t head)
{
	char tmp[8], *start;
	size_t len, n;

	p = rs_sink_need(sink, p, 16);
	if (sink->err)
		return p;
	start = sink->base + at;
	len = (size_t)(p - start) - head;
	n = (size_t)(rs_mp_str_head(tmp, len) - tmp);
	memmove(start + n, start + head, len);
	rs_mp_str_head(start, len);
	return start + n + len;
}
