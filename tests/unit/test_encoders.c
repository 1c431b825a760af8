// SPDX-License-Identifier: Apache-2.0
/* Encoders that were given no test of their own: what holds for all of them. What their bytes mean is checked by independent decoders: tests/diff. */
#include <stdio.h>
#include <stdlib.h>

#include "encoder.h"
#include "spangen.h"
#include "trace/keys.h"
#include "unit.h"

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
		for (uint64_t seed = 1; seed < 20; seed++) {
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
	for (uint64_t i = 0; i < 8 * FORMATS; i++) {
		size_t f = i % FORMATS;

		for (size_t limit = 1; limit < 1 << 20; limit *= 4) {
			struct rs_spangen g = { .seed = 1 + i / FORMATS };
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

/* The spans left out are the same as with memory for all. */
static void same_skips(const struct rs_encode *run, const uint32_t *want)
{
	for (int i = 0; i < RS_SKIP_COUNT; i++)
		assert_int_equal(run->skipped[i], want[i]);
}

/* All buffers are in use for a while, at any point of a run: it goes on where it was, no span is lost or called too big. */
static void buffers_come_back(void **state)
{
	struct rs_bufpool pool;
	struct rs_batch b;
	const char *name;

	(void)state;
	rs_batch_init(&b, 0);
	for (size_t k = 0; (name = rs_encoder_name(k)); k++) {
		for (uint64_t seed = 1; seed < 20; seed++) {
			struct rs_spangen g = { .seed = seed };
			struct rs_encode run = { .batch = &b }, free_run = { .batch = &b };
			struct rs_encoder_opts opts = { .max_payload = 150000 };
			struct rs_encoder *e;
			unsigned calls = 0, failed = 0;

			rs_batch_reset(&b);
			assert_true(rs_spangen_batch(&g, &b, 60));
			assert_int_equal(rs_bufpool_init(&pool, 0), 0);
			assert_int_equal(rs_encoder_new(name, &pool, &opts, &e), 0);
			while (!rs_encode(e, &free_run) && free_run.out.niov)
				rs_payload_release(&free_run.out);
			rs_bufpool_trim(&pool);
			rs_bufpool_trim(&pool);
			for (;;) {
				int err;

				/* Every other call finds a pool that gives nothing, or one that does not let grow. */
				pool.limit = ++calls % 2 ? pool.in_use + (calls % 4 == 1) * 70000
							 : SIZE_MAX / 2;
				err = rs_encode(e, &run);
				assert_true(calls % 2 || !err);
				failed += err != 0;
				if (!err && !run.out.niov)
					break;
				rs_payload_release(&run.out);
				rs_bufpool_trim(&pool);
				rs_bufpool_trim(&pool);
			}
			assert_true(failed || !run.spans);
			assert_int_equal(run.spans, free_run.spans);
			same_skips(&run, free_run.skipped);
			rs_encoder_free(e);
			assert_int_equal(pool.in_use, 0);
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

/* A text in the batch's memory: a number behind what ends in a blank or dot. */
static struct rs_val text(struct rs_batch *b, const char *before, unsigned n)
{
	char buf[64];
	struct str s;

	if (strchr(before, ' ') || !strcmp(before, "name."))
		snprintf(buf, sizeof(buf), "%s%u", before, n);
	else
		snprintf(buf, sizeof(buf), "%s", before);
	s = rs_arena_str(&b->arena, str_c(buf));
	return (struct rs_val){ .type = RS_VAL_STR, .len = (uint32_t)s.len, .str = s.ptr };
}

static struct rs_attrs attrs(struct rs_batch *b, struct rs_keys *keys, unsigned n, const char *name,
			     unsigned first, const char *value, unsigned v)
{
	struct rs_attr *a = rs_arena_alloc(&b->arena, n * sizeof(*a));

	for (unsigned i = 0; i < n; i++) {
		struct rs_val k = text(b, name, first + i);

		a[i].key = rs_keys_get(keys, &b->arena, (struct str){ k.str, k.len });
		a[i].val = text(b, value, v / (i + 1));
		if (i % 4 == 3)
			a[i].val = (struct rs_val){ .type = RS_VAL_INT, .i = v };
	}
	return (struct rs_attrs){ .a = a, .n = n };
}

/*
 * Spans of few shapes, whose values come again or do not, some of which are names as well, of more resources than are
 * remembered, one of them with an array; and in between more names than are remembered.
 */
static void few_shapes(struct rs_batch *b, unsigned round)
{
	static const struct rs_val numbers[] = { { .type = RS_VAL_INT, .i = 1 },
						 { .type = RS_VAL_INT, .i = 2 } };
	static const char *const values[] = { "value ", "name.", "http.method", "" };
	struct rs_keys keys;

	rs_keys_init(&keys);
	rs_batch_reset(b);
	for (unsigned r = 0; r < 3; r++) {
		struct rs_resource_spans *rs = rs_batch_add_resource(b);
		struct rs_scope_spans *ss = rs_batch_add_scope(b, rs);
		struct rs_attrs of =
			attrs(b, &keys, 5, "name.", 3, "resource ", (round + 7 * r) % 23);

		if (r == 2)
			((struct rs_attr *)of.a)[1].val =
				(struct rs_val){ .type = RS_VAL_ARRAY, .len = 2, .arr = numbers };
		rs->resource.attrs = of;
		for (unsigned i = 0; i < 8; i++) {
			struct rs_span *s = rs_batch_add_span(b, ss);
			unsigned flood = round % 16 == 15 ? 600 : 0;

			s->trace_id[0] = (uint8_t)(1 + i / 4);
			s->trace_id[15] = s->span_id[0] = (uint8_t)(1 + i);
			s->kind = (uint8_t)(i % 3);
			s->name = RS_SPAN_STR("span");
			s->status = i == 7 ? RS_STATUS_ERROR : RS_STATUS_UNSET;
			s->attrs = attrs(b, &keys, 6 + i % 2 + flood, "name.",
					 flood ? round * 1000 + i * 600 : 0,
					 values[(round / 5 + i) % 4], round % 5 ? 40 : round);
		}
	}
}

/* What an encoder remembers of earlier batches does not show in what it writes. */
static void memory_does_not_show(void **state)
{
	struct rs_bufpool pool;
	struct rs_batch b;

	(void)state;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	rs_batch_init(&b, 0);
	for (size_t f = 0; f < FORMATS; f++) {
		struct rs_encoder *used;

		assert_int_equal(rs_encoder_new(formats[f], &pool, NULL, &used), 0);
		for (unsigned round = 0; round < 96; round++) {
			struct rs_encoder *fresh;
			struct bytes one, two;

			few_shapes(&b, round);
			assert_int_equal(rs_encoder_new(formats[f], &pool, NULL, &fresh), 0);
			one = encode(used, &b);
			two = encode(fresh, &b);
			assert_int_equal(one.spans, 24);
			assert_int_equal(one.len, two.len);
			assert_memory_equal(one.p, two.p, one.len);
			free(one.p);
			free(two.p);
			rs_encoder_free(fresh);
		}
		rs_encoder_free(used);
	}
	rs_batch_release(&b);
	rs_bufpool_release(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_spans),
		cmocka_unit_test(small_messages),
		cmocka_unit_test(one_message),
		cmocka_unit_test(no_buffers),
		cmocka_unit_test(empty),
		cmocka_unit_test(memory_does_not_show),
		cmocka_unit_test(buffers_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
