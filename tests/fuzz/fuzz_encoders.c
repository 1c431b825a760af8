// SPDX-License-Identifier: Apache-2.0
/*
 * Random spans (tests/lib/spangen.h reads the input) through every encoder, twice: once with all the room there
 * is, once with messages of 16 KiB. Checked: every span is encoded or counted, no message is above its limit, all
 * buffers come back, and the same spans give the same bytes.
 */
#include <string.h>

#include "encoder.h"
#include "fuzz.h"
#include "spangen.h"

#define ENCODERS 16

/* A checksum of all that was written. */
static uint64_t encode(struct rs_encoder *e, const struct rs_batch *b, size_t max)
{
	struct rs_encode run = { .batch = b };
	uint64_t sum = 1469598103934665603u;
	uint32_t n = 0;

	while (!rs_encode(e, &run) && run.out.niov) {
		/* OTLP's may hold a resource that is bigger than the limit, without its spans. */
		FUZZ_CHECK(run.out.len <= max || !strncmp(e->ops->name, "otlp", 4));
		for (int i = 0; i < run.out.niov; i++) {
			const unsigned char *p = run.out.iov[i].iov_base;

			for (size_t j = 0; j < run.out.iov[i].iov_len; j++)
				sum = (sum ^ p[j]) * 1099511628211u;
		}
		rs_payload_release(&run.out);
	}
	FUZZ_CHECK(run.done);
	n = run.spans;
	for (int i = 0; i < RS_SKIP_COUNT; i++)
		n += run.skipped[i];
	FUZZ_CHECK(n == b->nspans);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rs_encoder_opts small = { .max_payload = 16 * 1024 };
	struct rs_spangen g = { .in = data, .left = size };
	static struct rs_encoder *all[ENCODERS],
		*tight[ENCODERS]; /* kept: history must not matter */
	static struct rs_bufpool pool;
	struct rs_batch b;

	if (!all[0]) {
		FUZZ_CHECK(!rs_bufpool_init(&pool, 0));
		for (size_t i = 0; rs_encoder_name(i); i++) {
			FUZZ_CHECK(i < ENCODERS);
			FUZZ_CHECK(!rs_encoder_new(rs_encoder_name(i), &pool, NULL, &all[i]));
			FUZZ_CHECK(!rs_encoder_new(rs_encoder_name(i), &pool, &small, &tight[i]));
		}
	}
	rs_batch_init(&b, 8 << 20);
	if (rs_spangen_batch(&g, &b, 1 + (size ? data[0] % 8 : 0))) {
		for (size_t i = 0; rs_encoder_name(i); i++) {
			FUZZ_CHECK(encode(all[i], &b, RS_ENC_MAX_PAYLOAD) ==
				   encode(all[i], &b, RS_ENC_MAX_PAYLOAD));
			encode(tight[i], &b, small.max_payload);
			FUZZ_CHECK(pool.in_use == 0);
		}
	}
	rs_batch_release(&b);
	return 0;
}
