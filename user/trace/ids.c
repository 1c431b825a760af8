// SPDX-License-Identifier: Apache-2.0
#include "ids.h"

#include <sys/random.h>

#include "base/clock.h"

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static uint64_t next(struct rs_ids *ids)
{
	uint64_t *s = ids->s, r = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return r;
}

static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = (*x += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

void rs_ids_init(struct rs_ids *ids, uint64_t seed)
{
	if (seed == 0 && getrandom(ids->s, sizeof(ids->s), 0) == (ssize_t)sizeof(ids->s))
		return;
	/* An interrupted or early-boot getrandom: the clock is better than a constant. */
	if (seed == 0)
		seed = rs_clock_mono() ^ (uint64_t)rs_clock_wall_offset();
	for (int i = 0; i < 4; i++)
		ids->s[i] = splitmix(&seed);
}

void rs_ids_trace(struct rs_ids *ids, uint8_t ret[16])
{
	uint64_t lo;

	rs_ids_put(ret, next(ids));
	do
		lo = next(ids);
	while (!lo);
	rs_ids_put(ret + 8, lo);
}

void rs_ids_span(struct rs_ids *ids, uint8_t ret[8])
{
	uint64_t v;

	do
		v = next(ids);
	while (!v);
	rs_ids_put(ret, v);
}
