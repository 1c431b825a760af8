/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd — the few vector operations that encoders use, in the width this file is compiled for.
 *
 * RS_VEC bytes: 32 (AVX2), 16 (SSSE3, NEON), or 0: none, use bytes. Loads and stores are unaligned; bit i of a
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
#define RS_VEC_TABLE(...) _mm256_broadcastsi128_si256(_mm_setr_epi8(__VA_ARGS__))

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

#define RS_VEC_TABLE(...) _mm_setr_epi8(__VA_ARGS__)

#define RS_VEC_BEFORE(v, prev, n) _mm_alignr_epi8(v, prev, 16 - (n))

#define RS_VEC_OP(name)	  _mm_##name
#define RS_VEC_BITS(name) _mm_##name##_si128
#endif

static inline uint32_t rs_vec_mask(rs_vec v)
{
	return (uint32_t)RS_VEC_OP(movemask_epi8)(v);
}

/*
 * Bytes that JSON text does not carry as they are: controls, '"', '\\', and all that is not ASCII.
 * Controls and non-ASCII are what is less than 0x20 as a signed byte; for the other two the table holds,
 * by low nibble, the one byte looked for (0xff under nibble 0, where the zero default would match NUL).
 */
static inline uint32_t rs_vec_json_special(rs_vec v)
{
	const rs_vec table = RS_VEC_TABLE(-1, 0, '"', 0, 0, 0, 0, 0, 0, 0, 0, 0, '\\', 0, 0, 0);
	rs_vec limit = rs_vec_all(0x20), low, hit;

	/* Else the compiler makes a minimum and a comparison of it, and the constant anew each time. */
	__asm__("" : "+x"(limit));
	low = RS_VEC_OP(cmpgt_epi8)(limit, v);
	hit = RS_VEC_OP(cmpeq_epi8)(RS_VEC_OP(shuffle_epi8)(table, v), v);
	return rs_vec_mask(RS_VEC_BITS(or)(low, hit));
}

#elif defined(__aarch64__)
#include <arm_neon.h>

#define RS_VEC 16
typedef uint8x16_t rs_vec;

static inline rs_vec rs_vec_load(const void *p)
{
	return vld1q_u8(p);
}

static inline void rs_vec_store(void *p, rs_vec v)
{
	vst1q_u8(p, v);
}

static inline rs_vec rs_vec_all(char c)
{
	return vdupq_n_u8((uint8_t)c);
}

#define RS_VEC_TABLE(...)		((rs_vec)(int8x16_t){ __VA_ARGS__ })
#define RS_VEC_BEFORE(v, prev, n)	vextq_u8(prev, v, 16 - (n))

/* The operations that text.c takes from x86, by their names there. */
#define RS_VEC_OP(name)			rs_neon_##name
#define RS_VEC_BITS(name)		rs_neon_##name
#define rs_neon_and(a, b)		vandq_u8(a, b)
#define rs_neon_or(a, b)		vorrq_u8(a, b)
#define rs_neon_xor(a, b)		veorq_u8(a, b)
#define rs_neon_cmpeq_epi8(a, b)	vceqq_u8(a, b)
#define rs_neon_subs_epu8(a, b)		vqsubq_u8(a, b)
#define rs_neon_srli_epi16(v, n)	vshrq_n_u8(v, n) /* what crosses bytes there is masked away */
#define rs_neon_shuffle_epi8(table, at) vqtbl1q_u8(table, at) /* at: below 16 */

/* There is no movemask: a bit of every byte's top bit, added up in three steps. */
static inline uint32_t rs_vec_mask(rs_vec v)
{
	const rs_vec bits = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };

	v = vandq_u8((rs_vec)vshrq_n_s8((int8x16_t)v, 7), bits);
	v = vpaddq_u8(v, v);
	v = vpaddq_u8(v, v);
	v = vpaddq_u8(v, v);
	return vgetq_lane_u16((uint16x8_t)v, 0);
}

/* See x86's. */
static inline uint32_t rs_vec_json_special(rs_vec v)
{
	rs_vec low = vcltq_s8((int8x16_t)v, vdupq_n_s8(0x20));
	rs_vec hit = vorrq_u8(vceqq_u8(v, vdupq_n_u8('"')), vceqq_u8(v, vdupq_n_u8('\\')));

	return rs_vec_mask(vorrq_u8(low, hit));
}

#else
#define RS_VEC 0
#endif

#if RS_VEC
#define RS_VEC_FULL ((uint32_t)((1ULL << RS_VEC) - 1))

/* The bits of the first n bytes, n <= RS_VEC. */
static inline uint32_t rs_vec_first(uint32_t mask, size_t n)
{
#ifdef __BMI2__
	return _bzhi_u32(mask, (unsigned)n);
#else
	return (uint32_t)(mask & ((1ULL << n) - 1));
#endif
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
#endif

#endif
