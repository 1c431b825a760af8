/* SPDX-License-Identifier: Apache-2.0 */
/* human — numbers as people read them, into the caller's buffer (RS_HUMAN bytes). Each returns buf. */
#ifndef RS_BASE_HUMAN_H
#define RS_BASE_HUMAN_H

#include <stdint.h>

#define RS_HUMAN 24

/* "812ns" "1.25ms" "51.3ms" "1.20s" "2m05s" "3h02m" "4d01h": three digits that matter. */
const char *rs_human_duration(char buf[RS_HUMAN], uint64_t ns);
/* "512 B" "1.5 KB" "18.1 MB": powers of 1024. */
const char *rs_human_bytes(char buf[RS_HUMAN], uint64_t bytes);
/* "999" "12,345" "1.23M": exact to five digits. */
const char *rs_human_count(char buf[RS_HUMAN], uint64_t n);

#endif
