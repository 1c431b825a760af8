/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure — the clock, and the allocations of everything in a benchmark's process: it stands in front of the C library's
 * functions. For one file of a program.
 */
#ifndef RS_BENCH_MEASURE_H
#define RS_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

static struct {
	unsigned long calls;
	bool counting;
} heap;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
	heap.calls += heap.counting;
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	heap.calls += heap.counting;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	heap.calls += heap.counting;
	return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	heap.calls += heap.counting;
	return __libc_memalign(align, n);
}

/* Nanoseconds. */
static inline uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
