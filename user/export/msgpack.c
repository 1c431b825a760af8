// SPDX-License-Identifier: Apache-2.0
#include "msgpack.h"

#include <string.h>

static size_t length(const struct rs_walk *m)
{
	size_t n = 0;

	for (int i = 0; i < m->niov; i++)
		n += m->iov[i].iov_len;
	return n;
}

static uint8_t byte(struct rs_walk *m)
{
	size_t at = m->at;

	for (int i = 0; i < m->niov; i++) {
		if (at < m->iov[i].iov_len) {
			m->at++;
			return ((const uint8_t *)m->iov[i].iov_base)[at];
		}
		at -= m->iov[i].iov_len;
	}
	m->bad = true;
	return 0;
}

static uint32_t number(struct rs_walk *m, int bytes)
{
	uint32_t v = 0;

	while (bytes--)
		v = v << 8 | byte(m);
	return v;
}

static void over(struct rs_walk *m, size_t n)
{
	if (n > length(m) - m->at)
		m->bad = true;
	else
		m->at += n;
}

bool rs_walk_array_head(struct rs_walk *m, uint32_t *ret_n)
{
	uint8_t c = byte(m);

	if ((c & 0xf0) == 0x90)
		*ret_n = c & 0xf;
	else if (c == 0xdc || c == 0xdd)
		*ret_n = number(m, c == 0xdc ? 2 : 4);
	else
		m->bad = true;
	return !m->bad;
}

bool rs_walk_map_head(struct rs_walk *m, uint32_t *ret_n)
{
	uint8_t c = byte(m);

	if ((c & 0xf0) == 0x80)
		*ret_n = c & 0xf;
	else if (c == 0xde || c == 0xdf)
		*ret_n = number(m, c == 0xde ? 2 : 4);
	else
		m->bad = true;
	return !m->bad;
}

bool rs_walk_small(struct rs_walk *m, uint32_t *ret)
{
	uint8_t c = byte(m);

	if (c < 0x80)
		*ret = c;
	else if (c == 0xcc)
		*ret = byte(m);
	else
		m->bad = true;
	return !m->bad;
}

/* Over one value's own bytes; the number of values inside it. */
static uint64_t skip_one(struct rs_walk *m)
{
	uint8_t c = byte(m);

	if (c < 0x80 || c >= 0xe0)
		return 0;
	if (c < 0x90)
		return 2 * (uint64_t)(c & 0xf);
	if (c < 0xa0)
		return c & 0xf;
	if (c < 0xc0) {
		over(m, c & 0x1f);
		return 0;
	}
	switch (c) {
	case 0xc0:
	case 0xc2:
	case 0xc3:
		return 0;
	case 0xc4:
	case 0xd9:
		over(m, number(m, 1));
		return 0;
	case 0xc5:
	case 0xda:
		over(m, number(m, 2));
		return 0;
	case 0xc6:
	case 0xdb:
		over(m, number(m, 4));
		return 0;
	case 0xcc:
	case 0xd0:
		over(m, 1);
		return 0;
	case 0xcd:
	case 0xd1:
		over(m, 2);
		return 0;
	case 0xca:
	case 0xce:
	case 0xd2:
		over(m, 4);
		return 0;
	case 0xcb:
	case 0xcf:
	case 0xd3:
		over(m, 8);
		return 0;
	case 0xdc:
		return number(m, 2);
	case 0xdd:
		return number(m, 4);
	case 0xde:
		return 2 * (uint64_t)number(m, 2);
	case 0xdf:
		return 2 * (uint64_t)number(m, 4);
	default: /* extensions: nobody here writes them */
		m->bad = true;
		return 0;
	}
}

bool rs_walk_skip(struct rs_walk *m)
{
	uint64_t left = 1;

	while (left && !m->bad)
		left += skip_one(m) - 1;
	return !m->bad;
}

void rs_walk_copy(const struct rs_walk *m, size_t from, size_t to, char *out)
{
	for (int i = 0; i < m->niov && from < to; i++) {
		size_t n = m->iov[i].iov_len, k;

		if (from >= n) {
			from -= n;
			to -= n;
			continue;
		}
		k = to < n ? to - from : n - from;
		memcpy(out, (const char *)m->iov[i].iov_base + from, k);
		out += k;
		from = 0;
		to -= to < n ? to : n;
	}
}
