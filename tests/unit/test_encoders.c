// SPDX-License-Identifier: Apache-2.0
/* Encoders that were given no test of their own: what holds for all of them. What their bytes mean is checked by independent decoders: tests/diff. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "encoder.h"
#include "spangen.h"

static const char *const formats[] = {
	"datadog-v0.4", "datadog-v0.4-json", "datadog-v0.5", "datadog-v1", "zipkin",
	"sentry",	"sentry-transaction"
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

struct bytes {
	char *p;
	size_t len;
	uint32_t payloads, spans, skipped;
};

/* Everything the encoder makes of a batch, one payload behind the other. */
static struct bytes encode(struct rs_encoder *e, const struct rs_batch *b)
{
	struct rs_encode run = { .batch = b };
	struct bytes all = { 0 };

	while (!rs_encode(e, &run) && run.out.niov) {
		all.p = realloc(all.p, all.len + run.out.len);
		for (int i = 0; i < run.out.niov; i++) {
			memcpy(all.p + all.len, run.out.iov[i].iov_base, run.out.iov[i].iov_len);
			all.len += run.out.iov[i].iov_len;
		}
		all.payloads++;
		rs_payload_release(&run.out);
	}
	assert_true(run.done);
	all.spans = run.spans;
	for (int i = 0; i < RS_SKIP_COUNT; i++)
		all.skipped += run.skipped[i];
	return all;
}

/* All spans are accounted for, all SIMD levels write the same, and so does an encoder that has history. */
static void random_spans(void **state)
{
	struct rs_bufpool pool;
	struct rs_batch b;

	(void)state;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	rs_batch_init(&b, 0);
	for (size_t f = 0; f < FORMATS; f++) {
		struct rs_encoder *used;

		assert_int_equal(rs_encoder_new(formats[f], &pool, NULL, &used), 0);
		for (uint64_t seed = 1; seed < 40; seed++) {
			struct rs_spangen g = { .seed = seed };
			struct bytes first;

			rs_batch_reset(&b);
			assert_true(rs_spangen_batch(&g, &b, 1 + (uint32_t)seed % 25));
			first = encode(used, &b);
			assert_int_equal(first.spans + first.skipped, b.nspans);
			for (int level = 0; level <= (int)rs_simd_best(); level++) {
				struct rs_encoder *e;
				struct bytes other;

				assert_int_equal(rs_encoder_new_at(formats[f], (enum rs_simd)level,
								   &pool, NULL, &e),
						 0);
				other = encode(e, &b);
				assert_int_equal(other.len, first.len);
				assert_memory_equal(other.p ? other.p : "", first.p ? first.p : "",
						    first.len);
				free(other.p);
				rs_encoder_free(e);
			}
			free(first.p);
		}
		rs_encoder_free(used);
	}
	rs_batch_release(&b);
	rs_bufpool_release(&pool);
}

/* Messages stay below the limit; what does not fit alone is left out alone. */
static void small_messages(void **state)
{
	struct rs_encoder_opts opts = { .max_payload = 20000 };
	struct rs_bufpool pool;
	struct rs_batch b;

	(void)state;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	rs_batch_init(&b, 0);
	for (size_t f = 0; f < FORMATS; f++) {
		struct rs_spangen g = { .seed = 77, .valid = true };
		struct rs_encode run = { .batch = &b };
		struct rs_encoder *e;
		uint32_t skipped = 0;

		rs_batch_reset(&b);
		assert_true(rs_spangen_batch(&g, &b, 200));
		assert_int_equal(rs_encoder_new(formats[f], &pool, &opts, &e), 0);
		while (!rs_encode(e, &run) && run.out.niov) {
			assert_true(run.out.len <= opts.max_payload);
			rs_payload_release(&run.out);
		}
		assert_true(run.done);
		for (int i = 0; i < RS_SKIP_COUNT; i++)
			skipped += run.skipped[i];
		assert_int_equal(skipped, run.skipped[RS_SKIP_TOO_BIG]);
		assert_int_equal(run.spans + skipped, b.nspans);
		assert_true(run.spans > b.nspans / 2);
		rs_encoder_free(e);
	}
	rs_batch_release(&b);
	rs_bufpool_release(&pool);
}

/* Room for everything: one message, and no trace is cut, however many spans there are. */
static void one_message(void **state)
{
	struct rs_encoder_opts opts = { .max_payload = 60 << 20 };
	struct rs_spangen g = { .seed = 78, .valid = true };
	struct rs_bufpool pool;
	struct rs_batch b;

	(void)state;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	rs_batch_init(&b, 0);
	assert_true(rs_spangen_batch(&g, &b, 3000));
	for (size_t f = 0; f < FORMATS; f++) {
		struct rs_encoder *e;
		struct bytes all;

		if (!strncmp(formats[f], "sentry", 6))
			continue; /* an envelope per trace */
		assert_int_equal(rs_encoder_new(formats[f], &pool, &opts, &e), 0);
		all = encode(e, &b);
		assert_int_equal(all.payloads, 1);
		assert_int_equal(all.spans + all.skipped, b.nspans);
		free(all.p);
		rs_encoder_free(e);
	}
	rs_batch_release(&b);
	rs_bufpool_release(&pool);
}

/* No memory for anything: an error or left-out spans, never a crash. */
static void no_buffers(void **state)
{
	struct rs_bufpool pool;
	struct rs_batch b;

	(void)state;
	rs_batch_init(&b, 0);
	for (size_t f = 0; f < FORMATS; f++) {
		for (size_t limit = 1; limit < 1 << 20; limit *= 4) {
			struct rs_spangen g = { .seed = 5 };
			struct rs_encoder *e;
			struct rs_encode run = { .batch = &b };

			rs_batch_reset(&b);
			assert_true(rs_spangen_batch(&g, &b, 30));
			assert_int_equal(rs_bufpool_init(&pool, limit), 0);
			assert_int_equal(rs_encoder_new(formats[f], &pool, NULL, &e), 0);
			while (!rs_encode(e, &run) && run.out.niov)
				rs_payload_release(&run.out);
			assert_int_equal(pool.in_use, 0);
			rs_encoder_free(e);
			rs_bufpool_release(&pool);
		}
	}
	rs_batch_release(&b);
}

static void empty(void **state)
{
	struct rs_bufpool pool;
	struct rs_batch b;

	(void)state;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	rs_batch_init(&b, 0);
	for (size_t f = 0; f < FORMATS; f++) {
		struct rs_encoder *e;
		struct bytes all;

		assert_int_equal(rs_encoder_new(formats[f], &pool, NULL, &e), 0);
		all = encode(e, &b);
		assert_int_equal(all.len, 0);
		rs_encoder_free(e);
	}
	rs_batch_release(&b);
	rs_bufpool_release(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_spans), cmocka_unit_test(small_messages),
		cmocka_unit_test(one_message),	cmocka_unit_test(no_buffers),
		cmocka_unit_test(empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
