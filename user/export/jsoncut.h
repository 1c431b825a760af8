/* SPDX-License-Identifier: Apache-2.0 */
/* jsoncut — where values end in JSON that our own encoders wrote (well-formed, no space): to cut messages. */
#ifndef RS_EXPORT_JSONCUT_H
#define RS_EXPORT_JSONCUT_H

#include "base/str.h"

/* The end of a string whose opening quote is at i. */
static inline size_t rs_jsoncut_string(struct str s, size_t i)
{
	for (i++; i < s.len && s.ptr[i] != '"'; i++)
		i += s.ptr[i] == '\\';
	return i + 1;
}

/* The end of any value at i; our own JSON: well-formed. */
static inline size_t rs_jsoncut_value(struct str s, size_t i)
{
	int depth = 0;

	for (; i < s.len; i++) {
		char ch = s.ptr[i];

		if (ch == '"')
			i = rs_jsoncut_string(s, i) - 1;
		else if (ch == '{' || ch == '[')
			depth++;
		else if (ch == '}' || ch == ']')
			depth--;
		if (depth == 0 && (ch == '"' || ch == '}' || ch == ']'))
			return i + 1;
	}
	return s.len;
}

#endif
