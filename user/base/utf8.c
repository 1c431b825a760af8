// SPDX-License-Identifier: Apache-2.0
#include "utf8.h"

#include <stdio.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define ELLIPSIS    "\xe2\x80\xa6" /* U+2026 */

size_t rs_utf8_decode(struct str s, uint32_t *ret_cp)
{
	const unsigned char *p = (const unsigned char *)s.ptr;
	uint32_t cp, least;
	size_t n;

	if (p[0] < 0x80) {
		*ret_cp = p[0];
		return 1;
	}
	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		n = 2;
		cp = p[0] & 0x1f;
		least = 0x80;
	} else if ((p[0] & 0xf0) == 0xe0) {
		n = 3;
		cp = p[0] & 0x0f;
		least = 0x800;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		n = 4;
		cp = p[0] & 0x07;
		least = 0x10000;
	} else {
		return 0;
	}
	if (s.len < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (p[i] & 0x3f);
	}
	/* overlong, surrogate, beyond Unicode */
	if (cp < least || (cp >= 0xd800 && cp <= 0xdfff) || cp > 0x10ffff)
		return 0;
	*ret_cp = cp;
	return n;
}

struct range {
	uint32_t first, last;
};

static bool in(const struct range *r, size_t n, uint32_t cp)
{
	for (size_t i = 0; i < n; i++) {
		if (cp >= r[i].first && cp <= r[i].last)
			return true;
	}
	return false;
}

#define IN(table, cp) in(table, sizeof(table) / sizeof((table)[0]), cp)

/* Columns a terminal gives a code point: 0 (combining), 1 or 2 (East Asian wide, emoji). */
static int cp_width(uint32_t cp)
{
	/* Blocks, not every character: enough to keep columns straight (Unicode 15 EastAsianWidth). */
	static const struct range zero[] = {
		{ 0x0300, 0x036f },   { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x064b, 0x065f },
		{ 0x0e34, 0x0e3a },   { 0x0e47, 0x0e4e }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff },
		{ 0x200b, 0x200d },   { 0x20d0, 0x20ff }, { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f },
		{ 0xe0100, 0xe01ef },
	};
	static const struct range wide[] = {
		{ 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x2e80, 0x303e },
		{ 0x3041, 0x33ff },   { 0x3400, 0x4dbf },   { 0x4e00, 0x9fff },
		{ 0xa000, 0xa4cf },   { 0xa960, 0xa97f },   { 0xac00, 0xd7a3 },
		{ 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },
		{ 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff },
		{ 0x1f900, 0x1f9ff }, { 0x1fa70, 0x1faff }, { 0x20000, 0x3fffd },
	};

	if (cp < 0x300)
		return 1;
	return IN(zero, cp) ? 0 : IN(wide, cp) ? 2 : 1;
}

/* What a terminal would act on, or what would make the text read differently than it is. */
static bool unsafe(uint32_t cp)
{
	static const struct range bad[] = {
		{ 0x00, 0x1f },	    { 0x7f, 0x9f },	{ 0x061c, 0x061c },
		{ 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 },
		{ 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
	};

	if (cp >= 0x20 && cp < 0x7f)
		return false;
	return IN(bad, cp);
}

int rs_utf8_width(struct str s)
{
	int w = 0;

	while (s.len) {
		uint32_t cp = 0;
		size_t n = rs_utf8_decode(s, &cp);

		w += n ? cp_width(cp) : 1;
		s = str_from(s, n ? n : 1);
	}
	return w;
}

size_t rs_utf8_clean(char *dst, size_t size, struct str s, int max_cols)
{
	size_t at = 0, cut = 0; /* cut: where an ellipsis can still stand */
	bool can_cut = size >= sizeof(ELLIPSIS);
	int cols = 0;

	while (s.len) {
		char shown[16];
		uint32_t cp = 0;
		size_t n = rs_utf8_decode(s, &cp), len;
		int w;

		if (!n) {
			n = 1;
			len = sizeof(REPLACEMENT) - 1;
			w = 1;
			memcpy(shown, REPLACEMENT, len);
		} else if (unsafe(cp)) {
			w = snprintf(shown, sizeof(shown), cp < 0x100 ? "\\x%02x" : "\\u{%x}", cp);
			len = (size_t)w;
		} else {
			len = n;
			w = cp_width(cp);
			memcpy(shown, s.ptr, len);
		}
		if ((max_cols && cols + w > max_cols) || at + len >= size) {
			if (can_cut) {
				memcpy(dst + cut, ELLIPSIS, sizeof(ELLIPSIS) - 1);
				at = cut + sizeof(ELLIPSIS) - 1;
			}
			break;
		}
		memcpy(dst + at, shown, len);
		at += len;
		cols += w;
		s = str_from(s, n);
		/* One column and three bytes are left here for the ellipsis. */
		if ((!max_cols || cols < max_cols) && at + sizeof(ELLIPSIS) <= size)
			cut = at;
	}
	dst[at] = 0;
	return at;
}
