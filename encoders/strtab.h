/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strtab — strings already written to a payload, for formats that write each once and then its number.
 *
 * Strings are compared with the bytes that stand in the output (so: after repair), never with the source.
 * Numbers count up from `first` in the order of writing. rs_strtab_begin() empties the table in constant
 * time: entries of older epochs do not count. Texts above RS_STRTAB_FULL bytes are hashed by samples, so that
 * a stack trace costs what a short name costs, and compared in full when a sample agrees.
 */
#ifndef RS_ENC_STRTAB_H
#define RS_ENC_STRTAB_H

#include <errno.h>
#include <stdlib.h>

#include "simd.h"
#include "sink.h"

#define RS_STRTAB_FULL 256

struct rs_strtab_slot {
	uint64_t hash;
	size_t off; /* in the sink; the string's first byte */
	uint32_t len, epoch;
	uint32_t at; /* its number */
};

struct rs_strtab {
	struct rs_strtab_slot *slot;
	uint32_t cap;	/* power of two */
	uint32_t count; /* of this epoch */
	uint32_t epoch;
	uint32_t next; /* number of the next string */
	int err;       /* -ENOMEM: the table could not grow; sticks until begin */
};

static inline uint64_t rs_strtab_mix(uint64_t a, uint64_t b)
{
	__uint128_t m = (__uint128_t)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t rs_strtab_load(const char *s)
{
	uint64_t v;

	memcpy(&v, s, 8);
	return v;
}

/* s has 8 readable bytes behind it. */
static inline uint64_t rs_strtab_hash(const char *s, size_t len)
{
	const uint64_t k0 = 0x9e3779b97f4a7c15u, k1 = 0xe7037ed1a0b428dbu;
	uint64_t h = len * k1, g = k0;
	size_t step = 32, i = 0;

	if (len <= 8) {
		uint64_t v = len ? rs_strtab_load(s) << (64 - 8 * len) : 0;

		return rs_strtab_mix(v ^ k0, h ^ k1);
	}
	if (len <= 16)
		return rs_strtab_mix(rs_strtab_load(s) ^ k0, rs_strtab_load(s + len - 8) ^ h);
	if (len > RS_STRTAB_FULL)
		step = len / 8 & ~(size_t)7;
	/* Two lanes: multiplications of the one run while those of the other wait. */
	for (; i + 32 < len; i += step) {
		h = rs_strtab_mix(rs_strtab_load(s + i) ^ k0, rs_strtab_load(s + i + 8) ^ h);
		g = rs_strtab_mix(rs_strtab_load(s + i + 16) ^ k1, rs_strtab_load(s + i + 24) ^ g);
	}
	/* The last 32 bytes, or all of them: both halves overlap. */
	i = len > 32 ? len - 32 : 0;
	h = rs_strtab_mix(rs_strtab_load(s + i) ^ k0, rs_strtab_load(s + i + 8) ^ h);
	g = rs_strtab_mix(rs_strtab_load(s + len - 16) ^ k1, rs_strtab_load(s + len - 8) ^ g);
	return rs_strtab_mix(h ^ k0, g);
}

/* Both have 32 readable bytes behind them. */
static inline bool rs_strtab_same(const char *a, const char *b, size_t len)
{
#if RS_VEC
	return rs_vec_same(a, b, len);
#else
	return !len || !memcmp(a, b, len);
#endif
}

/* t is zeroed before its first use. 0 or -ENOMEM. */
static inline int rs_strtab_init(struct rs_strtab *t)
{
	t->cap = 1024;
	t->slot = calloc(t->cap, sizeof(*t->slot));
	return t->slot ? 0 : -ENOMEM;
}

static inline void rs_strtab_release(struct rs_strtab *t)
{
	free(t->slot);
}

/* Empties the table. first: number of the first string. */
static inline void rs_strtab_begin(struct rs_strtab *t, uint32_t first)
{
	if (!++t->epoch) {
		memset(t->slot, 0, t->cap * sizeof(*t->slot));
		t->epoch = 1;
	}
	t->count = 0;
	t->next = first;
	t->err = 0;
}

/* The string's slot, or the free one where it goes. */
static inline struct rs_strtab_slot *rs_strtab_find(const struct rs_strtab *t,
						    const struct rs_sink *sink, const char *s,
						    size_t len, uint64_t hash)
{
	for (uint32_t i = (uint32_t)hash;; i++) {
		struct rs_strtab_slot *slot = &t->slot[i & (t->cap - 1)];

		if (slot->epoch != t->epoch)
			return slot;
		if (slot->hash == hash && slot->len == len &&
		    rs_strtab_same(sink->base + slot->off, s, len))
			return slot;
	}
}

static __attribute__((noinline, unused)) void rs_strtab_grow(struct rs_strtab *t)
{
	struct rs_strtab_slot *old = t->slot;
	uint32_t n = t->cap;

	t->slot = calloc(2 * (size_t)n, sizeof(*t->slot));
	if (!t->slot) {
		t->slot = old;
		t->err = -ENOMEM;
		return;
	}
	t->cap = 2 * n;
	for (uint32_t i = 0; i < n; i++) {
		if (old[i].epoch != t->epoch)
			continue;
		for (uint32_t j = (uint32_t)old[i].hash;; j++) {
			struct rs_strtab_slot *slot = &t->slot[j & (t->cap - 1)];

			if (slot->epoch != t->epoch) {
				*slot = old[i];
				break;
			}
		}
	}
	free(old);
}

/* Enters the string at offset `off` of the sink into a free slot from rs_strtab_find(); returns its number. */
static inline uint32_t rs_strtab_add(struct rs_strtab *t, struct rs_strtab_slot *slot,
				     uint64_t hash, size_t off, size_t len)
{
	if (t->err) /* no room for more; the payload will not be sent */
		return t->next++;
	*slot = (struct rs_strtab_slot){ hash, off, (uint32_t)len, t->epoch, t->next };
	if (++t->count * 2 > t->cap)
		rs_strtab_grow(t);
	return t->next++;
}

#endif
