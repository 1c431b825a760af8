// SPDX-License-Identifier: Apache-2.0
#include "export/queue.h"
#include "unit.h"

#define BUF (1u << RS_BUF_MIN_SHIFT)

static struct rs_payload payload(struct rs_bufpool *pool, size_t len)
{
	struct rs_payload pl = { .pool = pool, .niov = 1, .len = len };

	assert_int_equal(rs_bufpool_get(pool, len, &pl.buf[0]), 0);
	pl.iov[0] = (struct iovec){ pl.buf[0]->data, len };
	return pl;
}

static struct rs_item *push(struct rs_queue *q, struct rs_bufpool *pool, uint32_t spans)
{
	struct rs_payload pl = payload(pool, 100);
	struct rs_item *it = rs_queue_push(q, &pl, spans, 0, 1);

	assert_non_null(it);
	assert_int_equal(pl.niov, 0);
	return it;
}

static void in_order_and_counted(void **st)
{
	struct rs_bufpool pool;
	struct rs_queue q;
	struct rs_item *a, *b;

	(void)st;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	rs_queue_init(&q, 100, 1 << 20);
	a = push(&q, &pool, 3);
	b = push(&q, &pool, 4);
	assert_int_equal(q.spans, 7);
	assert_int_equal(q.bytes, 2 * BUF);
	assert_ptr_equal(rs_queue_oldest(&q), a);
	rs_queue_take(&q, a);
	assert_ptr_equal(rs_queue_oldest(&q), b);
	assert_int_equal(q.nflying, 1);
	/* It failed: first again. */
	rs_queue_back(&q, a);
	assert_ptr_equal(rs_queue_oldest(&q), a);
	assert_int_equal(q.nflying, 0);
	rs_queue_take(&q, a);
	rs_queue_done(&q, a);
	rs_queue_done(&q, b);
	assert_null(rs_queue_oldest(&q));
	assert_int_equal(q.spans, 0);
	assert_int_equal(q.bytes, 0);
	assert_int_equal(pool.in_use, 0);
	rs_queue_release(&q);
	rs_bufpool_release(&pool);
}

static void bounds(void **st)
{
	struct rs_bufpool pool;
	struct rs_queue q;

	(void)st;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	rs_queue_init(&q, 10, 3 * BUF);
	push(&q, &pool, 5);
	push(&q, &pool, 5);
	assert_false(rs_queue_over(&q));
	push(&q, &pool, 1);
	assert_true(rs_queue_over(&q)); /* spans */
	rs_queue_done(&q, rs_queue_oldest(&q));
	assert_false(rs_queue_over(&q));
	push(&q, &pool, 1);
	assert_false(rs_queue_over(&q));
	push(&q, &pool, 1);
	assert_true(rs_queue_over(&q)); /* bytes */
	rs_queue_unload(&q, rs_queue_oldest(&q));
	assert_false(rs_queue_over(&q));
	/* What is left goes with the queue. */
	rs_queue_release(&q);
	assert_int_equal(pool.in_use, 0);
	rs_bufpool_release(&pool);
}

static void parts_come_first(void **st)
{
	struct rs_bufpool pool;
	struct rs_queue q;
	struct rs_item *a, *part;
	struct rs_payload pl;

	(void)st;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	rs_queue_init(&q, 100, 1 << 20);
	a = push(&q, &pool, 8);
	push(&q, &pool, 1);
	rs_queue_take(&q, a);
	pl = payload(&pool, 10);
	part = rs_queue_push_part(&q, a, &pl, 4);
	assert_ptr_equal(rs_queue_oldest(&q), part);
	assert_int_equal(part->queued_ns, a->queued_ns);
	rs_queue_done(&q, a);
	assert_int_equal(q.spans, 5);
	rs_queue_release(&q);
	rs_bufpool_release(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order_and_counted),
		cmocka_unit_test(bounds),
		cmocka_unit_test(parts_come_first),
	};

	return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
