/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8 — bytes of unknown origin made fit for a terminal or for JSON: valid UTF-8, nothing a terminal
 * obeys. What programs and peers send us is shown, never believed.
 */
#ifndef RS_BASE_UTF8_H
#define RS_BASE_UTF8_H

#include "str.h"

/* The code point at the front of s (not empty); returns its bytes, or 0 where UTF-8 is not valid. */
size_t rs_utf8_decode(struct str s, uint32_t *ret_cp);

/* Columns of a text that rs_utf8_clean() made. */
int rs_utf8_width(struct str s);

/*
 * Copies s to dst (size > 0, NUL-terminated, cut between characters), at most max_cols columns wide
 * (0: no limit; what is cut ends in "…"). Control characters and the invisible ones that change a line's
 * direction are shown as \xNN or \u{N}, invalid bytes as U+FFFD. Returns the bytes written.
 */
size_t rs_utf8_clean(char *dst, size_t size, struct str s, int max_cols);

#endif
