// SPDX-License-Identifier: Apache-2.0
/* What holds for every encoder in steady state: it allocates nothing, and leaves alone what is being sent. */
#include <stdlib.h>
#include <string.h>

#include "alloc_count.h"
#include "encoder.h"
#include "spangen.h"
#include "unit.h"

static size_t encode_all(struct rs_encoder *e, const struct rs_batch *b)
{
	struct rs_encode run = { .batch = b };
	size_t len = 0;

	while (!rs_encode(e, &run) && run.out.niov) {
		len += run.out.len;
		rs_payload_release(&run.out);
	}
	return len;
}

/* Batches of many spans and of one, in turn: once each has been seen, nothing asks for memory any more. */
static void no_allocations(void **st)
{
	enum {
		BATCHES = 6
	};
	struct rs_batch b[BATCHES];
	const char *name;

	(void)st;
	for (int i = 0; i < BATCHES; i++) {
		struct rs_spangen g = { .seed = (uint64_t)i + 1 };

		rs_batch_init(&b[i], 0);
		assert_true(rs_spangen_batch(&g, &b[i], i % 2 ? 1 : 60));
	}
	for (size_t k = 0; (name = rs_encoder_name(k)); k++) {
		struct rs_bufpool pool;
		struct rs_encoder *e;
		uint64_t calls, made;

		assert_int_equal(rs_bufpool_init(&pool, 0), 0);
		assert_int_equal(rs_encoder_new(name, &pool, NULL, &e), 0);
		for (int round = 0; round < 3; round++) {
			for (int i = 0; i < BATCHES; i++)
				encode_all(e, &b[i]);
		}
		calls = alloc_count();
		made = pool.made;
		for (int round = 0; round < 20; round++) {
			for (int i = 0; i < BATCHES; i++)
				encode_all(e, &b[i]);
		}
		if (alloc_count() != calls || pool.made != made)
			fail_msg("%s: %llu allocations, %llu buffers", name,
				 (unsigned long long)(alloc_count() - calls),
				 (unsigned long long)(pool.made - made));
		assert_int_equal(pool.in_use, 0);
		rs_encoder_free(e);
		rs_bufpool_release(&pool);
	}
	for (int i = 0; i < BATCHES; i++)
		rs_batch_release(&b[i]);
}

/* Payloads in flight keep their bytes while their encoder goes on. */
static void payloads_in_flight(void **st)
{
	const char *name;

	(void)st;
	for (size_t k = 0; (name = rs_encoder_name(k)); k++) {
		struct rs_encode sending[4];
		struct rs_bufpool pool;
		struct rs_encoder *e;
		struct rs_batch b[4];
		char *copy[4];

		assert_int_equal(rs_bufpool_init(&pool, 0), 0);
		assert_int_equal(rs_encoder_new(name, &pool, NULL, &e), 0);
		for (int i = 0; i < 4; i++) {
			struct rs_spangen g = { .seed = 100 + (uint64_t)i, .valid = true };
			size_t n = 0;

			rs_batch_init(&b[i], 0);
			assert_true(rs_spangen_batch(&g, &b[i], 10));
			sending[i] = (struct rs_encode){ .batch = &b[i] };
			assert_int_equal(rs_encode(e, &sending[i]), 0);
			copy[i] = malloc(sending[i].out.len + 1);
			for (int v = 0; v < sending[i].out.niov; v++) {
				memcpy(copy[i] + n, sending[i].out.iov[v].iov_base,
				       sending[i].out.iov[v].iov_len);
				n += sending[i].out.iov[v].iov_len;
			}
		}
		for (int round = 0; round < 8; round++)
			encode_all(e, &b[round % 4]);
		for (int i = 0; i < 4; i++) {
			size_t n = 0;

			for (int v = 0; v < sending[i].out.niov; v++) {
				assert_memory_equal(copy[i] + n, sending[i].out.iov[v].iov_base,
						    sending[i].out.iov[v].iov_len);
				n += sending[i].out.iov[v].iov_len;
			}
			rs_payload_release(&sending[i].out);
			rs_batch_release(&b[i]);
			free(copy[i]);
		}
		assert_int_equal(pool.in_use, 0);
		rs_encoder_free(e);
		rs_bufpool_release(&pool);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_allocations),
		cmocka_unit_test(payloads_in_flight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
