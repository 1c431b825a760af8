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

static void put(uint8_t *p, uint64_t v)
{
	for (int i = 7; i >= 0; i--, v >>= 8)
		p[i] = (uint8_t)v;
}

void rs_ids_trace(struct rs_ids *ids, uint8_t ret[16])
{
	uint64_t lo;

	put(ret, next(ids));
	do
		lo = next(ids);
	while (!lo);
	put(ret + 8, lo);
}

void rs_ids_span(struct rs_ids *ids, uint8_t ret[8])
{
	uint64_t v;

	do
		v = next(ids);
	while (!v);
	put(ret, v);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Lower-case hex only; false when a digit is wrong. *ret_any: some byte is not zero. */
static bool unhex(struct str s, uint8_t *out, size_t n, bool *ret_any)
{
	*ret_any = false;
	if (s.len != 2 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		int hi = hex_digit(s.ptr[2 * i]), lo = hex_digit(s.ptr[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return false;
		out[i] = (uint8_t)(hi << 4 | lo);
		*ret_any |= out[i] != 0;
	}
	return true;
}

bool rs_traceparent_parse(struct str header, struct rs_wire_ctx *ret)
{
	struct str h = str_trim(header);
	struct rs_wire_ctx c;
	uint8_t version, flags;
	bool any;

	if (h.len < 55 || h.ptr[2] != '-' || h.ptr[35] != '-' || h.ptr[52] != '-')
		return false;
	if (!unhex(str_at(h, 0, 2), &version, 1, &any) || version == 0xff)
		return false;
	/* A later version may add fields, behind another dash. */
	if (version == 0 ? h.len != 55 : h.len > 55 && h.ptr[55] != '-')
		return false;
	if (!unhex(str_at(h, 3, 32), c.trace_id, 16, &any) || !any)
		return false;
	if (!unhex(str_at(h, 36, 16), c.span_id, 8, &any) || !any)
		return false;
	if (!unhex(str_at(h, 53, 2), &flags, 1, &any))
		return false;
	c.flags = flags & (RS_TRACE_SAMPLED | RS_TRACE_RANDOM);
	*ret = c;
	return true;
}

static bool key_char(char c, bool first)
{
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
		return true;
	return !first && (c == '_' || c == '-' || c == '*' || c == '/' || c == '@');
}

static bool member_valid(struct str m)
{
	struct str key, value = str_cut(m, '=', &key);

	if (key.len == m.len || !key.len || key.len > 256 || !value.len || value.len > 256)
		return false;
	for (size_t i = 0; i < key.len; i++) {
		if (!key_char(key.ptr[i], i == 0))
			return false;
	}
	for (size_t i = 0; i < value.len; i++) {
		if (value.ptr[i] < 0x20 || value.ptr[i] > 0x7e || value.ptr[i] == '=')
			return false;
	}
	return true;
}

bool rs_tracestate_valid(struct str header)
{
	unsigned members = 0;

	while (header.len) {
		struct str m;

		header = str_cut(header, ',', &m);
		m = str_trim(m);
		if (!m.len)
			continue;
		if (!member_valid(m) || ++members > 32)
			return false;
	}
	return members > 0;
}
