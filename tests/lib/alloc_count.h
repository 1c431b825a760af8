/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_count — how often this program has asked for memory: a warm hot path does not. */
#ifndef RS_TESTS_ALLOC_COUNT_H
#define RS_TESTS_ALLOC_COUNT_H

#include <stdint.h>

/* Calls of malloc, calloc and realloc so far. */
uint64_t alloc_count(void);

#endif
