// SPDX-License-Identifier: Apache-2.0
/*
 * What answers on the agent's socket, as `ringspan status` shows it. First byte: the terminal's width.
 * Checked: whatever it says, nothing but UTF-8 without control characters goes to the terminal.
 */
#include <stdlib.h>

#include "base/utf8.h"
#include "fuzz.h"
#include "status/view.h"

static void check(const char *text, size_t len, bool tabs)
{
	struct str rest = str_of(text, len);

	while (rest.len) {
		uint32_t cp = 0;
		size_t n = rs_utf8_decode(rest, &cp);

		FUZZ_CHECK(n && (cp == '\n' || (tabs && cp == '\t') ||
				 (cp >= 0x20 && (cp < 0x7f || cp > 0x9f))));
		rest = str_from(rest, n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str json = str_of((const char *)data + 1, size - 1);
	char error[64] = "", *text = NULL;
	struct rs_view v;
	size_t len = 0;
	FILE *out;

	if (!size)
		return 0;
	rs_view_init(&v, false, data[0]);
	for (int i = 0; i < 3; i++) {
		out = open_memstream(&text, &len);
		if (!out)
			abort();
		/* Twice: the second time there is a snapshot before. */
		if (i < 2)
			rs_view_text(&v, json, out);
		else
			rs_view_dump(json, out);
		fclose(out);
		check(text, len, i == 2);
		free(text);
		text = NULL;
	}
	if (rs_view_error(json, error, sizeof(error)))
		check(error, strlen(error), false);
	rs_view_release(&v);
	return 0;
}
