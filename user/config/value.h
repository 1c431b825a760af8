/* SPDX-License-Identifier: Apache-2.0 */
/* value — text to numbers as people write them: 16m, 64KiB, 500ms, 1.5s. */
#ifndef RS_CONFIG_VALUE_H
#define RS_CONFIG_VALUE_H

#include "base/str.h"

/* Bytes with an optional k, m, g (powers of 1024; "B" and "iB" may follow). False: not a size, or too big. */
bool rs_value_bytes(struct str s, uint64_t *ret);
/* Nanoseconds; unit ns, us, ms, s, m or h, without one seconds; decimals allowed. */
bool rs_value_duration(struct str s, uint64_t *ret_ns);
/* Is it a number from 0 to 1? */
bool rs_value_ratio(const char *s);

#endif
