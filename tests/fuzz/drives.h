/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drives — what is played on a connection's two ends (tests/lib/drive.h), whole, byte by byte and in pieces of up to 40
 * bytes. Checked: in = out + dropped, nothing is left in any pool, and, where the parsers were not led astray, the same
 * messages come out however it was cut.
 */
#ifndef RS_TESTS_FUZZ_DRIVES_H
#define RS_TESTS_FUZZ_DRIVES_H

#include <stdio.h>
#include <string.h>

#include "drive.h"
#include "fuzz.h"

/*
 * play: plays `in` and closes; first: the input's first byte, of which bit 0 is the drive's client; max: bytes of a piece,
 * 0: whole. Returns whether nothing was lost or cut. in_step: were all beginnings of messages known?
 */
static inline void fuzz_drives(const uint8_t *data, size_t size,
			       bool (*play)(struct drive *d, struct str in, uint8_t first,
					    size_t max),
			       bool (*in_step)(const struct drive *d))
{
	static const size_t max[] = { 0, 1, 40 };
	struct drive d[3];
	bool whole = false;

	if (!size)
		return;
	for (int i = 0; i < 3; i++) {
		drive_init(&d[i]);
		d[i].client = data[0] & 1;
		whole = play(&d[i], str_of((const char *)data + 1, size - 1), data[0], max[i]);
		FUZZ_CHECK(drive_left_nothing(&d[i]));
	}
	for (int i = 1; i < 3 && whole && in_step(&d[0]); i++) {
		if (d[i].len == d[0].len && memcmp(d[i].text, d[0].text, d[0].len) == 0)
			continue;
		fprintf(stderr, "whole:\n%s--- in pieces:\n%s", d[0].text, d[i].text);
		FUZZ_CHECK(false);
	}
	for (int i = 0; i < 3; i++)
		drive_release(&d[i]);
}

#endif
