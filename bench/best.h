/* SPDX-License-Identifier: Apache-2.0 */
/* best — the shortest of several measurements: what else runs on the machine only adds. */
#ifndef RS_BENCH_BEST_H
#define RS_BENCH_BEST_H

/* best: a double, 0 before the first. */
#define BEST(best, expr)                                                                           \
	do {                                                                                       \
		double one = (expr);                                                               \
		if ((best) == 0 || one < (best))                                                   \
			(best) = one;                                                              \
	} while (0)

#endif
