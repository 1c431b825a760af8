/* SPDX-License-Identifier: Apache-2.0 */
/* hash — 64-bit hashes of numbers and strings; the same on every machine of one byte order. Not keyed. */
#ifndef RS_BASE_HASH_H
#define RS_BASE_HASH_H

#include "str.h"

/* splitmix64's finaliser: a permutation, every bit of x reaches every bit of the result. */
static inline uint64_t rs_hash_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Up to seven bytes as a number. */
static inline uint64_t rs_hash_tail(const char *p, size_t n)
{
	uint64_t w = 0;
	uint32_t four;
	uint16_t two;

	if (n & 4) {
		memcpy(&four, p, 4);
		w = four;
		p += 4;
	}
	if (n & 2) {
		memcpy(&two, p, 2);
		w |= (uint64_t)two << 8 * (n & 4);
		p += 2;
	}
	if (n & 1)
		w |= (uint64_t)(uint8_t)*p << 8 * (n & 6);
	return w;
}

/* h continued with s. */
static inline uint64_t rs_hash_str(uint64_t h, struct str s)
{
	uint64_t w;

	h = rs_hash_mix(h ^ s.len);
	for (; s.len >= 8; s = str_from(s, 8)) {
		memcpy(&w, s.ptr, 8);
		h = (h ^ w) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	return rs_hash_mix(h ^ rs_hash_tail(s.ptr, s.len));
}

#endif
