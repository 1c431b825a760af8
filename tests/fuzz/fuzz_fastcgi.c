// SPDX-License-Identifier: Apache-2.0
/*
 * One direction of FastCGI, whole and in pieces. First byte: bit 0 direction, bits 1-7 size of the pieces; the rest are
 * the stream's bytes.
 */
#include "parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_stream s = {
		.ops = rs_protos[RS_PROTO_fastcgi],
		.role = RS_ROLE_SERVER,
	};

	if (size < 2 || size > 4096)
		return 0;
	s.dir = data[0] & 1 ? RS_DIR_OUT : RS_DIR_IN;
	s.bytes = str_of((const char *)data + 1, size - 1);
	fuzz_cuts_agree(&s, (size_t)(data[0] >> 1) + 1);
	return 0;
}
