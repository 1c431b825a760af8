// SPDX-License-Identifier: Apache-2.0
/*
 * One direction of HTTP/1 through the parser, whole and in pieces. First byte: bit 0 direction, bit 1
 * role, bits 2-3 kinds of the requests waiting, bits 4-7 size of the pieces; the rest are the stream's bytes.
 */
#include "parser.h"

/* Requests that wait for what the stream answers. */
static void prepare(void *state, const struct fuzz_stream *s)
{
	static const char *const requests[] = {
		"GET / HTTP/1.1\r\n\r\n",
		"HEAD / HTTP/1.1\r\n\r\n",
		"CONNECT / HTTP/1.1\r\n\r\n",
	};
	enum rs_ev_dir other = s->dir == RS_DIR_IN ? RS_DIR_OUT : RS_DIR_IN;
	struct rs_msg m;
	size_t used;

	if ((s->dir == RS_DIR_OUT) == (s->role == RS_ROLE_CLIENT))
		return;
	for (unsigned i = 0; i < s->arg; i++) {
		s->ops->parse(state, other, s->role, str_c(requests[i]), &used, &m);
		s->ops->parse(state, other, s->role, STR_NONE, &used, &m);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_stream s = {
		.ops = rs_protos[RS_PROTO_http1],
		.borrowed = true,
		.prepare = prepare,
	};

	if (!size)
		return 0;
	s.dir = data[0] & 1 ? RS_DIR_OUT : RS_DIR_IN;
	s.role = data[0] & 2 ? RS_ROLE_CLIENT : RS_ROLE_SERVER;
	s.arg = data[0] >> 2 & 3;
	s.bytes = str_of((const char *)data + 1, size - 1);
	fuzz_cuts_agree(&s, (data[0] >> 4) + 1u);
	return 0;
}
