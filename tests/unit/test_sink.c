// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "sink.h"
#include "unit.h"

static char *fill(struct rs_sink *s, char *p, size_t n, char c)
{
	while (n) {
		size_t k = n < 1000 ? n : 1000;

		p = rs_sink_need(s, p, k);
		memset(p, c, k);
		p += k;
		n -= k;
	}
	return p;
}

static void grows(void **st)
{
	struct rs_bufpool pool;
	struct rs_sink s = { 0 };
	struct rs_payload pl = { 0 };
	char *p;

	(void)st;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	p = rs_sink_open(&s, &pool, SIZE_MAX / 4);
	p = fill(&s, p, 300000, 'a');
	p = fill(&s, p, 300000, 'b');
	assert_int_equal(s.err, 0);
	rs_sink_close(&s, p, &pl);
	assert_int_equal(pl.len, 600000);
	assert_int_equal(pl.niov, 1);
	assert_int_equal(((char *)pl.iov[0].iov_base)[299999], 'a');
	assert_int_equal(((char *)pl.iov[0].iov_base)[300000], 'b');
	assert_true(pool.grown > 0);
	rs_payload_release(&pl);
	assert_int_equal(pool.in_use, 0);
	assert_true(pool.high >= 600000);

	/* The next payload of that size does not grow, and nothing is allocated for it. */
	pool.grown = pool.made = 0;
	pool.limit = pool.held;
	p = rs_sink_open(&s, &pool, SIZE_MAX / 4);
	p = fill(&s, p, 600000, 'c');
	rs_sink_close(&s, p, &pl);
	assert_int_equal(pool.grown + pool.made, 0);
	rs_payload_release(&pl);
	rs_bufpool_release(&pool);
	assert_int_equal(pool.held, 0);
}

/* While a send holds a payload, its bytes stay; afterwards its buffer serves again. */
static void no_reuse_under_send(void **st)
{
	struct rs_bufpool pool;
	struct rs_sink s = { 0 };
	struct rs_payload sending = { 0 }, other;
	void *first;
	char *p;

	(void)st;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	p = rs_sink_open(&s, &pool, 1 << 20);
	first = p;
	p = fill(&s, p, 5000, 's');
	rs_sink_close(&s, p, &sending);
	for (int i = 0; i < 100; i++) {
		p = rs_sink_open(&s, &pool, 1 << 20);
		assert_ptr_not_equal(p, first);
		p = fill(&s, p, 5000, 'x');
		other = (struct rs_payload){ 0 };
		rs_sink_close(&s, p, &other);
		rs_payload_release(&other);
	}
	for (size_t i = 0; i < 5000; i++)
		assert_int_equal(((char *)sending.iov[0].iov_base)[i], 's');
	rs_payload_release(&sending);
	p = rs_sink_open(&s, &pool, 1 << 20);
	assert_ptr_equal(p, first);
	rs_sink_abort(&s);
	rs_bufpool_release(&pool);
}

/* An error sticks, what is before the mark survives, and the sink goes on. */
static void rollback(void **st)
{
	struct rs_bufpool pool;
	struct rs_sink s = { 0 };
	struct rs_payload pl = { 0 };
	size_t mark;
	char *p;

	(void)st;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	p = rs_sink_open(&s, &pool, 200000);
	p = fill(&s, p, 1000, 'a');
	mark = rs_sink_pos(&s, p);
	p = fill(&s, p, 9000000, 'b');
	assert_int_equal(s.err, -EFBIG);
	p = rs_sink_rollback(&s, mark);
	p = fill(&s, p, 1000, 'c');
	assert_int_equal(s.err, 0);
	rs_sink_close(&s, p, &pl);
	assert_int_equal(pl.len, 2000);
	assert_int_equal(((char *)pl.iov[0].iov_base)[999], 'a');
	assert_int_equal(((char *)pl.iov[0].iov_base)[1999], 'c');
	rs_payload_release(&pl);

	/* The pool's limit is another such error. */
	rs_bufpool_release(&pool);
	assert_int_equal(rs_bufpool_init(&pool, 200000), 0);
	s.expected = 0;
	p = rs_sink_open(&s, &pool, SIZE_MAX / 4);
	p = fill(&s, p, 500000, 'b');
	assert_int_equal(s.err, -ENOBUFS);
	assert_true(pool.refused > 0);
	rs_sink_abort(&s);
	assert_int_equal(pool.in_use, 0);
	rs_bufpool_release(&pool);
}

static void trims(void **st)
{
	struct rs_bufpool pool;
	struct rs_sink s[4] = { 0 };
	struct rs_payload pl[4] = { 0 };

	(void)st;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	for (int i = 0; i < 4; i++) {
		char *p = rs_sink_open(&s[i], &pool, SIZE_MAX / 4);

		rs_sink_close(&s[i], fill(&s[i], p, 10, 'a'), &pl[i]);
	}
	assert_int_equal(pool.held, 4 * RS_BUF_SCRATCH);
	for (int i = 0; i < 4; i++)
		rs_payload_release(&pl[i]);
	/* The period in which all were used: nothing is freed. */
	rs_bufpool_trim(&pool);
	assert_int_equal(pool.held, 4 * RS_BUF_SCRATCH);
	/* A period that needed one at a time. */
	for (int i = 0; i < 10; i++) {
		char *p = rs_sink_open(&s[0], &pool, SIZE_MAX / 4);

		rs_sink_close(&s[0], fill(&s[0], p, 10, 'a'), &pl[0]);
		rs_payload_release(&pl[0]);
	}
	rs_bufpool_trim(&pool);
	assert_int_equal(pool.held, RS_BUF_SCRATCH);
	rs_bufpool_trim(&pool);
	assert_int_equal(pool.held, 0);
	rs_bufpool_release(&pool);
}

/* By the clock: what was free for a whole period goes, what is used in it stays; the most ever used is kept in mind. */
static void trims_in_time(void **st)
{
	const uint64_t start = 5000, period = RS_BUFPOOL_QUIET_NS;
	struct rs_buf *big, *small;
	struct rs_bufpool pool;

	(void)st;
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	rs_bufpool_tick(&pool, start);
	assert_int_equal(rs_bufpool_get(&pool, 1000000, &big), 0);
	assert_int_equal(rs_bufpool_get(&pool, 1000, &small), 0);
	assert_int_equal(pool.in_use, (1 << 20) + (1 << 12));
	rs_bufpool_put(&pool, big);
	rs_bufpool_put(&pool, small);
	assert_int_equal(pool.in_use, 0);
	assert_int_equal(pool.high, (1 << 20) + (1 << 12));
	rs_bufpool_tick(&pool, start + period - 1);
	rs_bufpool_tick(&pool, start + period);
	assert_int_equal(pool.held, (1 << 20) + (1 << 12));
	assert_int_equal(rs_bufpool_get(&pool, 1000, &small), 0);
	rs_bufpool_put(&pool, small);
	rs_bufpool_tick(&pool, start + 2 * period - 1);
	assert_int_equal(pool.held, (1 << 20) + (1 << 12));
	rs_bufpool_tick(&pool, start + 2 * period);
	assert_int_equal(pool.held, 1 << 12);
	rs_bufpool_tick(&pool, start + 3 * period);
	assert_int_equal(pool.held, 0);
	assert_int_equal(pool.high, (1 << 20) + (1 << 12));
	rs_bufpool_release(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows),	 cmocka_unit_test(no_reuse_under_send),
		cmocka_unit_test(rollback),	 cmocka_unit_test(trims),
		cmocka_unit_test(trims_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
