// SPDX-License-Identifier: Apache-2.0
/*
 * The OTLP readers, and the OTLP encoders behind them. First byte: protobuf or JSON, and the SIMD level.
 * Checked: what is refused is refused at a place in the input; what is accepted comes out of the encoders as
 * something the readers accept, and after one time through them nothing changes any more.
 */
#include <stdlib.h>

#include "encoder.h"
#include "fuzz.h"
#include "otlp/read.h"

static struct rs_bufpool pool;
static struct rs_encoder *encoders[2][RS_SIMD_COUNT];

static void setup(void)
{
	static const char *const names[] = { "otlp-json", "otlp-proto" };

	FUZZ_CHECK(!rs_bufpool_init(&pool, 0));
	for (int pb = 0; pb < 2; pb++) {
		for (enum rs_simd l = 0; l <= rs_simd_best(); l++)
			FUZZ_CHECK(!rs_encoder_new_at(names[pb], l, &pool, NULL, &encoders[pb][l]));
	}
}

static int read_any(struct rs_batch *b, bool pb, struct str in, struct rs_read_error *err)
{
	return pb ? rs_read_otlp_pb(b, in, err) : rs_read_otlp_json(b, in, err);
}

/* One message; false: nothing that could be sent. */
static bool encode(const struct rs_batch *b, bool pb, unsigned level, struct rs_payload *ret)
{
	struct rs_encode run = { .batch = b };

	FUZZ_CHECK(!rs_encode(encoders[pb][level], &run));
	*ret = run.out;
	FUZZ_CHECK(run.done);
	return run.out.niov > 0;
}

static struct str bytes_of(const struct rs_payload *pl)
{
	return str_of(pl->iov[0].iov_base, pl->iov[0].iov_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rs_read_error err = { 0 };
	struct rs_payload first, again;
	struct rs_batch b;
	unsigned level;
	bool pb;
	char *copy;

	if (!size)
		return 0;
	if (!encoders[0][0])
		setup();
	pb = data[0] & 1;
	level = data[0] / 2 % (rs_simd_best() + 1u);
	/* Exactly sized, so that a read behind the end is seen. */
	copy = malloc(size);
	FUZZ_CHECK(copy);
	memcpy(copy, data + 1, size - 1);
	rs_batch_init(&b, 64 << 20);
	if (read_any(&b, pb, str_of(copy, size - 1), &err)) {
		FUZZ_CHECK(err.why && err.offset <= size - 1);
		free(copy);
		rs_batch_release(&b);
		return 0;
	}
	free(copy);
	for (int to = 0; to < 2; to++) {
		struct rs_batch back;

		if (!encode(&b, to, level, &first))
			continue;
		rs_batch_init(&back, 256 << 20);
		FUZZ_CHECK(!read_any(&back, to, bytes_of(&first), &err));
		FUZZ_CHECK(encode(&back, to, level, &again));
		FUZZ_CHECK(str_eq(bytes_of(&first), bytes_of(&again)));
		rs_payload_release(&again);
		/* JSON -> protobuf -> JSON; the other way round a NaN loses its payload. */
		if (to == 0) {
			FUZZ_CHECK(encode(&back, true, level, &again));
			rs_batch_reset(&back);
			FUZZ_CHECK(!rs_read_otlp_pb(&back, bytes_of(&again), &err));
			rs_payload_release(&again);
			FUZZ_CHECK(encode(&back, false, level, &again));
			FUZZ_CHECK(str_eq(bytes_of(&first), bytes_of(&again)));
			rs_payload_release(&again);
		}
		rs_payload_release(&first);
		rs_batch_release(&back);
	}
	FUZZ_CHECK(pool.in_use == 0);
	rs_batch_release(&b);
	return 0;
}
