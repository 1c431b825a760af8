// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include "loop/loop.h"
#include "unit.h"

struct pair {
	struct rs_loop *l;
	struct rs_loop_fd a, b;
	int calls;
};

/* Both ends are ready in one turn; whichever comes first removes both. */
static void remove_both(void *arg, uint32_t events)
{
	struct pair *p = arg;

	(void)events;
	p->calls++;
	rs_loop_del(p->l, &p->a);
	rs_loop_del(p->l, &p->b);
}

static void test_removed_watch_is_not_called(void **state)
{
	struct rs_loop l;
	struct pair p = { .l = &l };
	int fd1[2], fd2[2];

	(void)state;
	assert_int_equal(rs_loop_init(&l), 0);
	assert_int_equal(pipe(fd1), 0);
	assert_int_equal(pipe(fd2), 0);
	assert_int_equal(rs_loop_add(&l, &p.a, fd1[0], EPOLLIN, remove_both, &p), 0);
	assert_int_equal(rs_loop_add(&l, &p.b, fd2[0], EPOLLIN, remove_both, &p), 0);
	assert_int_equal(write(fd1[1], "x", 1), 1);
	assert_int_equal(write(fd2[1], "x", 1), 1);
	assert_int_equal(rs_loop_turn(&l, 1000), 1);
	assert_int_equal(p.calls, 1);
	assert_int_equal(rs_loop_turn(&l, 0), 0);
	rs_loop_del(&l, &p.a); /* twice is harmless */
	for (int i = 0; i < 2; i++) {
		close(fd1[i]);
		close(fd2[i]);
	}
	rs_loop_release(&l);
}

static void test_add_reports_bad_fd(void **state)
{
	struct rs_loop_fd w;
	struct rs_loop l;

	(void)state;
	assert_int_equal(rs_loop_init(&l), 0);
	assert_true(rs_loop_add(&l, &w, -1, EPOLLIN, remove_both, NULL) < 0);
	assert_int_equal(w.fd, -1);
	rs_loop_del(&l, &w);
	rs_loop_release(&l);
}

struct ticks {
	struct rs_loop *l;
	struct rs_loop_timer t;
	int n, until;
};

static void tick(void *arg)
{
	struct ticks *t = arg;

	if (++t->n == t->until)
		rs_loop_stop(t->l);
}

static void test_timers(void **state)
{
	struct rs_loop l;
	struct ticks once = { .l = &l, .until = 100 }, often = { .l = &l, .until = 5 };

	(void)state;
	assert_int_equal(rs_loop_init(&l), 0);
	assert_int_equal(rs_loop_timer_start(&l, &once.t, 0, 0, tick, &once), 0);
	assert_int_equal(rs_loop_timer_start(&l, &often.t, 1000000, 1000000, tick, &often), 0);
	assert_int_equal(rs_loop_run(&l), 0);
	assert_int_equal(once.n, 1);
	assert_int_equal(often.n, 5);

	l.stop = false;
	once.until = 2;
	rs_loop_timer_stop(&l, &often.t);
	rs_loop_timer_stop(&l, &often.t);
	assert_int_equal(rs_loop_timer_set(&once.t, 1000, 0), 0);
	assert_int_equal(rs_loop_run(&l), 0);
	assert_int_equal(often.n, 5);
	rs_loop_timer_stop(&l, &once.t);
	rs_loop_release(&l);
}

static void note_signal(void *arg, int signo, bool sent)
{
	assert_true(sent);
	*(int *)arg |= 1 << signo;
}

static void test_signals(void **state)
{
	struct rs_loop l;
	int seen = 0;

	(void)state;
	assert_int_equal(rs_loop_init(&l), 0);
	assert_int_equal(rs_loop_signals(&l, note_signal, &seen), 0);
	kill(getpid(), SIGTERM);
	kill(getpid(), SIGHUP);
	kill(getpid(), SIGPIPE); /* ignored */
	assert_int_equal(rs_loop_turn(&l, 1000), 1);
	assert_int_equal(seen, 1 << SIGTERM | 1 << SIGHUP);
	rs_loop_release(&l);
	rs_loop_signals_default();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_removed_watch_is_not_called),
		cmocka_unit_test(test_add_reports_bad_fd),
		cmocka_unit_test(test_timers),
		cmocka_unit_test(test_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
