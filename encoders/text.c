// SPDX-License-Identifier: Apache-2.0
#include "text.h"

static char *put_bad(char *p)
{
	memcpy(p, "\xef\xbf\xbd", 3);
	return p + 3;
}

char *RS_SYM(rs_text_raw_any)(char *p, const char *src, size_t len, bool final)
{
	const unsigned char *s = (const unsigned char *)src;

	while (len) {
		size_t n;

		switch (rs_utf8_next(s, len, &n)) {
		case RS_UTF8_OK:
			memcpy(p, s, 4);
			p += n;
			break;
		case RS_UTF8_CUT:
			if (final)
				return p;
			/* fallthrough */
		case RS_UTF8_BAD:
			p = put_bad(p);
			break;
		}
		s += n;
		len -= n;
	}
	return p;
}

/* What follows the backslash for a byte that needs one; 'u': the long form; 0: stands literally. */
static const char escapes[256] = {
	[0x00 ... 0x07] = 'u',
	['\b'] = 'b',
	['\t'] = 't',
	['\n'] = 'n',
	[0x0b] = 'u',
	['\f'] = 'f',
	['\r'] = 'r',
	[0x0e ... 0x1f] = 'u',
	['"'] = '"',
	['\\'] = '\\',
};

static char *put_escape(char *p, unsigned char c)
{
	p[0] = '\\';
	p[1] = escapes[c];
	if (escapes[c] != 'u')
		return p + 2;
	memcpy(p + 2, "00", 2);
	p[4] = (char)('0' + (c >> 4));
	p[5] = "0123456789abcdef"[c & 15];
	return p + 6;
}

char *RS_SYM(rs_text_json_any)(char *p, const char *src, size_t len, bool final)
{
	const unsigned char *s = (const unsigned char *)src;

	while (len) {
		size_t n;

		if (escapes[*s]) {
			p = put_escape(p, *s);
			s++;
			len--;
			continue;
		}
		switch (rs_utf8_next(s, len, &n)) {
		case RS_UTF8_OK:
			memcpy(p, s, 4);
			p += n;
			break;
		case RS_UTF8_CUT:
			if (final)
				return p;
			/* fallthrough */
		case RS_UTF8_BAD:
			p = put_bad(p);
			break;
		}
		s += n;
		len -= n;
	}
	return p;
}

char *RS_SYM(rs_text_raw_long)(struct rs_sink *sink, char *p, const char *s, size_t len)
{
	while (len) {
		struct str piece = rs_utf8_limit((struct str){ s, len }, RS_TEXT_PIECE);

		s += piece.len;
		len -= piece.len;
		p = rs_sink_need(sink, p, piece.len * RS_TEXT_RAW_MAX);
		p = RS_SYM(rs_text_raw_any)(p, piece.ptr, piece.len, !len);
	}
	return p;
}

char *RS_SYM(rs_text_json_long)(struct rs_sink *sink, char *p, const char *s, size_t len)
{
	while (len) {
		struct str piece = rs_utf8_limit((struct str){ s, len }, RS_TEXT_PIECE);

		s += piece.len;
		len -= piece.len;
		p = rs_sink_need(sink, p, piece.len * RS_TEXT_JSON_MAX);
		p = RS_SYM(rs_text_json_any)(p, piece.ptr, piece.len, !len);
	}
	return p;
}
