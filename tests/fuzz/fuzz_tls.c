// SPDX-License-Identifier: Apache-2.0
/*
 * Target: proto/tls. The input is a row of segments: direction (bit 0; bit 1: only half of it was captured),
 * length (2 bytes), bytes. A handshake read whole and one read byte by byte must say the same.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "proto/tls.h"

static void run(const uint8_t *p, size_t n, size_t step, struct rs_tls_facts *facts)
{
	static struct rs_tls_handshake h;
	uint64_t off[2] = { 0 }, t = 0;

	memset(&h, 0, sizeof(h));
	memset(facts, 0, sizeof(*facts));
	while (n >= 3) {
		unsigned dir = p[0] & 1, half = p[0] & 2;
		size_t len = (size_t)p[1] << 8 | p[2];

		p += 3;
		n -= 3;
		if (len > n)
			len = n;
		t += 1000;
		for (size_t i = 0; i < len;) {
			size_t part = half || len - i < step ? len - i : step;
			struct str bytes = { (const char *)p + i, half ? part / 2 : part };

			if (rs_tls_feed(&h, facts, (enum rs_ev_dir)dir, off[dir], bytes, part, t) !=
			    RS_TLS_MORE)
				return;
			off[dir] += part;
			i += part;
		}
		p += len;
		n -= len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rs_tls_facts whole, bytes;

	run(data, size, SIZE_MAX, &whole);
	run(data, size, 1, &bytes);
	if (memcmp(&whole, &bytes, sizeof(whole)) != 0)
		abort();
	if (strlen(whole.server_name) > RS_TLS_NAME_MAX || strlen(whole.alpn) > RS_TLS_ALPN_MAX)
		abort();
	return 0;
}
