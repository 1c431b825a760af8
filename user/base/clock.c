// SPDX-License-Identifier: Apache-2.0
#include "clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t rs_clock_mono(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t rs_clock_wall_offset(void)
{
	uint64_t best = UINT64_MAX;
	int64_t off = 0;

	/* The reading least disturbed by a preemption in its middle is the best one. */
	for (int i = 0; i < 5; i++) {
		uint64_t before = rs_clock_mono();
		uint64_t wall = read_clock(CLOCK_REALTIME);
		uint64_t after = rs_clock_mono();

		if (after - before < best) {
			best = after - before;
			off = (int64_t)(wall - (before + (after - before) / 2));
		}
	}
	return off;
}
