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
	w = 0;
	if (s.len)
		memcpy(&w, s.ptr, s.len);
	return rs_hash_mix(h ^ w);
}

#endif
