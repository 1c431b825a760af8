/* SPDX-License-Identifier: Apache-2.0 */
/* clock — the two clocks the program knows, in nanoseconds. */
#ifndef RS_BASE_CLOCK_H
#define RS_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC, as BPF's ktime. */
uint64_t rs_clock_mono(void);
/* What to add to a CLOCK_MONOTONIC time to get nanoseconds since 1970 (best of a few readings). */
int64_t rs_clock_wall_offset(void);

#endif
