// SPDX-License-Identifier: Apache-2.0
/*
 * An exchange's span from any field values. First byte: bit 0 client, bit 1 response, bit 2 Unix socket, bits
 * 3-5 end; then a line per field: its first byte is the field, the rest its value.
 */

#include "fuzz.h"
#include "proto/exchange.h"
#include "proto/http1.h"
#include "trace/build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rs_build b;
	struct rs_conn_info conn = { .family = RS_FAMILY_INET, .l4 = RS_L4_TCP };
	struct rs_exchange x = { .ops = &rs_proto_http1, .conn = &conn };
	struct rs_span span = { 0 };
	struct rs_arena arena;
	struct str rest;

	if (!size)
		return 0;
	x.role = data[0] & 1 ? RS_ROLE_CLIENT : RS_ROLE_SERVER;
	x.has_response = data[0] & 2;
	x.request_done = true;
	x.end = (data[0] >> 3 & 7) % (RS_XEND_TIMEOUT + 1);
	if (data[0] & 4)
		conn.family = RS_FAMILY_UNIX;
	rest = str_of((const char *)data + 1, size - 1);
	while (rest.len && x.nreq < RS_MSG_FIELDS) {
		struct str line;

		rest = str_cut(rest, '\n', &line);
		if (!line.len)
			continue;
		x.req[x.nreq].id = (uint16_t)(RS_F_PROTO + (unsigned)(uint8_t)line.ptr[0] % 16);
		x.req[x.nreq++].value = str_from(line, 1);
		if (x.nresp == 0 && x.req[x.nreq - 1].id == RS_F_HTTP_STATUS)
			x.resp[x.nresp++] = x.req[x.nreq - 1];
	}
	rs_arena_init(&arena, 65536, 0);
	rs_build_init(&b, &span, &arena);
	x.ops->describe(&x, &b);
	FUZZ_CHECK(span.name.len > 0);
	FUZZ_CHECK(span.kind == (x.role == RS_ROLE_CLIENT ? RS_KIND_CLIENT : RS_KIND_SERVER));
	for (uint32_t i = 0; i < b.n; i++) {
		for (uint32_t k = 0; k < i; k++)
			FUZZ_CHECK(b.attrs[i].key != b.attrs[k].key);
	}
	rs_arena_release(&arena);
	return 0;
}
