// SPDX-License-Identifier: Apache-2.0
#include "export/exporter.h"
#include "spangen.h"
#include "unit.h"

#define SECOND 1000000000ull

/* A backend that can be down. */
static bool down;

static int no_endpoint(struct rs_exporter *e, char *err, size_t size)
{
	(void)err;
	(void)size;
	e->target = "test";
	return 0;
}

static void write_if_up(struct rs_exporter *e, struct rs_item *it, struct rs_verdict *v)
{
	(void)e;
	(void)it;
	v->kind = down ? RS_V_LATER : RS_V_DONE;
}

static const struct rs_exporter_ops ops = {
	.name = "test",
	.encoder = { "otlp-json" },
	.open = no_endpoint,
	.write = write_if_up,
};

static void open_test(struct rs_exporter *e, const struct rs_config *cfg)
{
	char err[256];

	assert_int_equal(rs_exporter_open(e, &ops, NULL, cfg, NULL, NULL, err, sizeof(err)), 0);
}

/* Returns the number of spans. */
static uint32_t send_batches(struct rs_exporter *e, int n)
{
	uint32_t spans = 0;

	for (int i = 0; i < n; i++) {
		struct rs_spangen g = { .seed = (uint64_t)i + 1, .valid = true };
		struct rs_batch b;

		rs_batch_init(&b, 0);
		assert_true(rs_spangen_batch(&g, &b, 20));
		rs_exporter_batch(e, &b);
		spans += b.nspans;
		rs_batch_release(&b);
	}
	return spans;
}

/* What a queue took while its backend was down is not kept for ever. */
static void memory_goes_back(void **st)
{
	const struct rs_config cfg = { .queue_spans = 10000, .queue_bytes = 64u << 20 };
	struct rs_exporter e;
	uint32_t spans;
	size_t most;

	(void)st;
	open_test(&e, &cfg);
	down = true;
	spans = send_batches(&e, 10);
	assert_int_equal(rs_exporter_held(&e), spans);
	down = false;
	rs_exporter_tick(&e, 100 * SECOND);
	assert_int_equal(e.sent, spans);
	assert_int_equal(rs_exporter_held(&e), 0);
	most = e.pool.held;
	assert_true(most > 0);
	/* The period in which it was needed still counts. */
	rs_exporter_tick(&e, 111 * SECOND);
	assert_int_equal(e.pool.held, most);
	rs_exporter_tick(&e, 122 * SECOND);
	assert_int_equal(e.pool.held, 0);
	spans += send_batches(&e, 1);
	assert_int_equal(e.sent, spans);
	rs_exporter_release(&e);
}

/* Every span is in one place. */
static void accounted(void **st)
{
	const struct rs_config cfg = { .queue_spans = 100, .queue_bytes = 64u << 20 };
	struct rs_exporter e;
	uint64_t spans, held;

	(void)st;
	open_test(&e, &cfg);
	down = true;
	spans = send_batches(&e, 10);
	held = rs_exporter_held(&e);
	assert_int_equal(e.spans_in, spans);
	assert_in_range(held, 1, 100);
	assert_int_equal(e.lost[RS_LOSS_QUEUE_FULL], spans - held);
	rs_exporter_end(&e);
	assert_int_equal(e.lost[RS_LOSS_SHUTDOWN], held);
	assert_int_equal(rs_exporter_held(&e), 0);
	rs_exporter_release(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_goes_back),
		cmocka_unit_test(accounted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
