/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd — the few vector operations that encoders use, in the width this file is compiled for.
 *
 * RS_VEC bytes: 32 (AVX2), 16 (SSSE3), or 0: none, use bytes. Loads and stores are unaligned; bit i of a
 * mask speaks of byte i.
 */
#ifndef RS_ENC_SIMD_H
#define RS_ENC_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SSSE3__)
#include <immintrin.h>

#if defined(__AVX2__) && defined(__BMI2__)

#define RS_VEC 32
typedef __m256i rs_vec;

static inline rs_vec rs_vec_load(const void *p)
{
	return _mm256_loadu_si256(p);
}

static inline void rs_vec_store(void *p, rs_vec v)
{
	_mm256_storeu_si256(p, v);
}

static inline rs_vec rs_vec_all(char c)
{
	return _mm256_set1_epi8(c);
}

/* The same 16 bytes in every lane. */
static inline rs_vec rs_vec_table(__m128i t)
{
	return _mm256_broadcastsi128_si256(t);
}

/* The n bytes before v, and v without its last n, when prev stands before v. */
#define RS_VEC_BEFORE(v, prev, n)                                                                  \
	_mm256_alignr_epi8(v, _mm256_permute2x128_si256(prev, v, 0x21), 16 - (n))

#define RS_VEC_OP(name)	  _mm256_##name
#define RS_VEC_BITS(name) _mm256_##name##_si256
#else

#define RS_VEC 16
typedef __m128i rs_vec;

static inline rs_vec rs_vec_load(const void *p)
{
	return _mm_loadu_si128(p);
}

static inline void rs_vec_store(void *p, rs_vec v)
{
	_mm_storeu_si128(p, v);
}

static inline rs_vec rs_vec_all(char c)
{
	return _mm_set1_epi8(c);
}

static inline rs_vec rs_vec_table(__m128i t)
{
	return t;
}

#define RS_VEC_BEFORE(v, prev, n) _mm_alignr_epi8(v, prev, 16 - (n))

#define RS_VEC_OP(name)	  _mm_##name
#define RS_VEC_BITS(name) _mm_##name##_si128
#endif

#define RS_VEC_FULL ((uint32_t)((1ULL << RS_VEC) - 1))

static inline uint32_t rs_vec_mask(rs_vec v)
{
	return (uint32_t)RS_VEC_OP(movemask_epi8)(v);
}

/* The bits of the first n bytes, n <= RS_VEC. */
static inline uint32_t rs_vec_first(uint32_t mask, size_t n)
{
#ifdef __BMI2__
	return _bzhi_u32(mask, (unsigned)n);
#else
	return (uint32_t)(mask & ((1ULL << n) - 1));
#endif
}

/*
 * Bytes that JSON text does not carry as they are: controls, '"', '\\', and all that is not ASCII.
 * Controls and non-ASCII are what is less than 0x20 as a signed byte; for the other two the table holds,
 * by low nibble, the one byte looked for (0xff under nibble 0, where the zero default would match NUL).
 */
static inline uint32_t rs_vec_json_special(rs_vec v)
{
	const rs_vec table =
		rs_vec_table(_mm_setr_epi8(-1, 0, '"', 0, 0, 0, 0, 0, 0, 0, 0, 0, '\\', 0, 0, 0));
	rs_vec limit = rs_vec_all(0x20), low, hit;

	/* Else the compiler makes a minimum and a comparison of it, and the constant anew each time. */
	__asm__("" : "+x"(limit));
	low = RS_VEC_OP(cmpgt_epi8)(limit, v);
	hit = RS_VEC_OP(cmpeq_epi8)(RS_VEC_OP(shuffle_epi8)(table, v), v);
	return rs_vec_mask(RS_VEC_BITS(or)(low, hit));
}

/* Are they the same n bytes? Both have RS_VEC readable bytes behind them. */
static inline bool rs_vec_same(const char *a, const char *b, size_t n)
{
	for (size_t i = 0; i < n; i += RS_VEC) {
		uint32_t differ =
			~rs_vec_mask(RS_VEC_OP(cmpeq_epi8)(rs_vec_load(a + i), rs_vec_load(b + i)));

		if (n - i < RS_VEC)
			return !rs_vec_first(differ, n - i);
		if (differ & RS_VEC_FULL)
			return false;
	}
	return true;
}

#else
#define RS_VEC 0
#endif
#endif
