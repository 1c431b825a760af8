// SPDX-License-Identifier: Apache-2.0
/*
 * What finding a thread's last active request costs, by the number of requests it has open; against the naive
 * way: collect the open ones, sort by when they were last heard of, take the last. Ends 1 when a lookup allocates or
 * when the two ways disagree. Single thread; other load on the machine shows, so best of several rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <malloc.h>

#include "base/clock.h"
#include "trace/thread.h"

struct open_at {
	struct rs_open o;
	uint64_t last;
};

static int by_last(const void *a, const void *b)
{
	const struct open_at *const *x = a, *const *y = b;

	return ((*x)->last > (*y)->last) - ((*x)->last < (*y)->last);
}

static const struct open_at *naive(struct open_at **all, struct open_at **scratch, size_t n)
{
	memcpy(scratch, all, n * sizeof(*all));
	qsort(scratch, n, sizeof(*scratch), by_last);
	return scratch[n - 1];
}

static uint32_t rnd(uint32_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 17;
	*s ^= *s << 5;
	return *s;
}

static int run(struct rs_threads *ts, size_t n)
{
	struct open_at *mem = calloc(n, sizeof(*mem)), **all = calloc(2 * n, sizeof(*all));
	double best = 1e9, best_step = 1e9, best_naive = 1e9;
	size_t lookups = 200000, steps = 200000, naives = 1 + 200000 / (n * 16 + 1), heap;
	volatile const void *sink;
	struct rs_thread *th;
	uint64_t tick = 0;
	uint32_t seed = 7;
	int rc = 0;

	if (!mem || !all)
		abort();
	for (size_t i = 0; i < n; i++) {
		all[i] = &mem[i];
		mem[i].last = ++tick;
		mem[i].o.x.request_done = true;
		rs_list_init(&mem[i].o.of_thread);
		th = rs_thread_get(ts, 1, 1);
		rs_thread_at(th, &mem[i].o);
	}
	heap = mallinfo2().uordblks;
	for (int round = 0; round < 7; round++) {
		uint64_t t0 = rs_clock_mono();

		for (size_t i = 0; i < lookups; i++)
			sink = rs_thread_last(rs_thread_find(ts, 1, 1));
		best = (double)(rs_clock_mono() - t0) / lookups < best
			       ? (double)(rs_clock_mono() - t0) / lookups
			       : best;
		/* One request ends, whichever, and another begins. */
		t0 = rs_clock_mono();
		for (size_t i = 0; i < steps; i++) {
			struct open_at *a = all[rnd(&seed) % n];

			rs_thread_leave(&a->o);
			a->last = ++tick;
			rs_thread_at(rs_thread_get(ts, 1, 1), &a->o);
		}
		best_step = (double)(rs_clock_mono() - t0) / steps < best_step
				    ? (double)(rs_clock_mono() - t0) / steps
				    : best_step;
		t0 = rs_clock_mono();
		for (size_t i = 0; i < naives; i++)
			sink = naive(all, all + n, n);
		best_naive = (double)(rs_clock_mono() - t0) / naives < best_naive
				     ? (double)(rs_clock_mono() - t0) / naives
				     : best_naive;
		if (rs_thread_last(rs_thread_find(ts, 1, 1)) != &naive(all, all + n, n)->o)
			rc = 1;
	}
	if (mallinfo2().uordblks != heap)
		rc = 1;
	printf("%8zu  %10.1f  %14.1f  %14.0f  %s\n", n, best, best_step, best_naive,
	       rc ? "WRONG" : "0");
	while ((th = rs_thread_find(ts, 1, 1)) && rs_thread_last(th))
		rs_thread_leave(rs_thread_last(th));
	(void)sink;
	free(mem);
	free(all);
	return rc;
}

int main(void)
{
	static const size_t counts[] = { 1, 10, 100, 10000 };
	struct rs_counters n = { 0 };
	struct rs_threads ts;
	int rc = 0;

	rs_threads_init(&ts, 1024, &n);
	printf("%8s  %10s  %14s  %14s  %s\n", "open", "lookup ns", "end+begin ns", "sort+scan ns",
	       "allocations");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		rc |= run(&ts, counts[i]);
	rs_threads_release(&ts);
	return rc;
}
