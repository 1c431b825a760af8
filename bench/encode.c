// SPDX-License-Identifier: Apache-2.0
/*
 * bench/encode — what encoding costs. Driven by bench/encode.py (`make bench-encode`).
 *
 * encode time FORMAT WORKLOAD SPANS [LEVEL]   one line of tab-separated numbers (see `time_it`)
 * encode count FORMAT WORKLOAD SPANS [LEVEL]  for callgrind: 2 warm batches, then 4 in measured()
 * encode write FORMAT WORKLOAD SPANS          the bytes of one batch, to standard output
 * encode list                                 formats, then workloads
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "measure.h"
#include "spans.h"

#define ROTATE	 8 /* batches of the same shape, so that nothing is learnt by heart */
#define CHUNK_NS 1000000
#define CHUNKS	 16
#define WARM_NS	 8000000

static struct rs_batch batches[ROTATE];
static struct rs_bufpool pool;
static struct rs_encoder *enc;

/* One batch, all its messages. Returns the bytes. */
static size_t encode_one(const struct rs_batch *b)
{
	struct rs_encode run = { .batch = b };
	size_t len = 0;

	while (!rs_encode(enc, &run) && run.out.niov) {
		len += run.out.len;
		rs_payload_release(&run.out);
	}
	if (run.spans != b->nspans) {
		fprintf(stderr, "%u of %u spans\n", run.spans, b->nspans);
		exit(1);
	}
	return len;
}

__attribute__((noinline)) void measured(void);
void measured(void)
{
	for (int i = 0; i < 4; i++)
		encode_one(&batches[2 + i]);
}

/* What moving the same bytes costs: of glibc's memcpy and a plain loop the better one. */
static void copy_loop(char *to, const char *from, size_t n)
{
	typedef char vec __attribute__((vector_size(32), aligned(1), may_alias));

	for (size_t i = 0; i < n; i += 128) {
		for (int k = 0; k < 128; k += 32)
			*(vec *)(to + i + k) = *(const vec *)(from + i + k);
		__asm__ volatile("" ::: "memory");
	}
}

static void copy_glibc(char *to, const char *from, size_t n)
{
	memcpy(to, from, n);
	__asm__ volatile("" ::: "memory");
}

/* The fastest chunk, in ns per call. */
static double time_copy(void (*copy)(char *, const char *, size_t), char *to, const char *from,
			size_t n)
{
	double best = 1e18;

	for (int c = 0; c < CHUNKS; c++) {
		uint64_t start = now(), end;
		unsigned calls = 0;

		do {
			for (int i = 0; i < 8; i++)
				copy(to, from, n);
			calls += 8;
			end = now();
		} while (end - start < CHUNK_NS / 8);
		if ((double)(end - start) / calls < best)
			best = (double)(end - start) / calls;
	}
	return best;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Columns: ns/span of the fastest chunk, of the median one, bytes/span, times memcpy, allocations. */
static void time_it(int spans)
{
	double per_batch[CHUNKS], bytes = 0, copy;
	unsigned long before;
	uint64_t t = now(), end;
	struct rs_encode run;
	char *to, *from;
	size_t n = 0;

	for (unsigned i = 0; now() - t < WARM_NS; i++)
		encode_one(&batches[i % ROTATE]);
	for (int i = 0; i < ROTATE; i++)
		bytes += (double)encode_one(&batches[i]);
	heap.counting = true;
	before = heap.calls;
	for (int c = 0; c < CHUNKS; c++) {
		unsigned calls = 0;

		t = now();
		do {
			for (int i = 0; i < ROTATE; i++)
				encode_one(&batches[i]);
			calls += ROTATE;
			end = now();
		} while (end - t < CHUNK_NS);
		per_batch[c] = (double)(end - t) / calls;
	}
	before = heap.calls - before;
	qsort(per_batch, CHUNKS, sizeof(double), by_value);

	run = (struct rs_encode){ .batch = &batches[0] };
	to = __libc_memalign(64, (size_t)(bytes / ROTATE * 2) + 4096);
	from = __libc_memalign(64, (size_t)(bytes / ROTATE * 2) + 4096);
	while (!rs_encode(enc, &run) && run.out.niov) {
		for (int i = 0; i < run.out.niov; i++) {
			memcpy(from + n, run.out.iov[i].iov_base, run.out.iov[i].iov_len);
			n += run.out.iov[i].iov_len;
		}
		rs_payload_release(&run.out);
	}
	memset(to, 1, n);
	copy = time_copy(copy_loop, to, from, n);
	if (time_copy(copy_glibc, to, from, n) < copy)
		copy = time_copy(copy_glibc, to, from, n);
	printf("%.2f\t%.2f\t%.1f\t%.2f\t%lu\n", per_batch[0] / spans, per_batch[CHUNKS / 2] / spans,
	       bytes / ROTATE / spans, per_batch[0] / copy, before);
}

static void write_it(void)
{
	struct rs_encode run = { .batch = &batches[0] };

	while (!rs_encode(enc, &run) && run.out.niov) {
		for (int i = 0; i < run.out.niov; i++)
			fwrite(run.out.iov[i].iov_base, 1, run.out.iov[i].iov_len, stdout);
		rs_payload_release(&run.out);
	}
}

int main(int argc, char **argv)
{
	enum rs_simd level = rs_simd_best();
	int spans;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (size_t i = 0; rs_encoder_name(i); i++)
			printf("format\t%s\n", rs_encoder_name(i));
		for (size_t i = 0; i < BENCH_WORKLOADS; i++)
			printf("workload\t%s\n", bench_workloads[i]);
		return 0;
	}
	if (argc < 5) {
		fputs("usage: encode time|count|write FORMAT WORKLOAD SPANS [base|ssse3|avx2|avx512]\n",
		      stderr);
		return 2;
	}
	spans = atoi(argv[4]);
	if (argc > 5)
		level = !strcmp(argv[5], "avx512")  ? RS_SIMD_AVX512
			: !strcmp(argv[5], "avx2")  ? RS_SIMD_AVX2
			: !strcmp(argv[5], "ssse3") ? RS_SIMD_SSSE3
						    : RS_SIMD_BASE;
	for (int i = 0; i < ROTATE; i++) {
		rs_batch_init(&batches[i], 0);
		bench_batch(&batches[i], argv[3], spans, (uint64_t)i + 1);
	}
	if (rs_bufpool_init(&pool, 0) || rs_encoder_new_at(argv[2], level, &pool, NULL, &enc)) {
		fprintf(stderr, "no encoder %s\n", argv[2]);
		return 2;
	}
	if (!strcmp(argv[1], "time")) {
		time_it(spans);
	} else if (!strcmp(argv[1], "count")) {
		encode_one(&batches[0]);
		encode_one(&batches[1]);
		measured();
	} else {
		write_it();
	}
	return 0;
}
