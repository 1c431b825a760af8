/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_value — attribute values as plain JSON: {"k":[1,"a",null]}, for protocols that have no types of their own.
 *
 * Bytes become base64 text, the empty value null, numbers that JSON does not have text ("NaN", "Infinity").
 */
#ifndef RS_ENC_JSON_VALUE_H
#define RS_ENC_JSON_VALUE_H

#include "trace/span.h"
#include "wire_json.h"

#define rs_json_value RS_SYM(rs_json_value)
#define rs_json_map   RS_SYM(rs_json_map)
#define rs_json_quote RS_SYM(rs_json_quote)
#define rs_value_text RS_SYM(rs_value_text)

/* Where to stop early: the caller throws away or cuts a text that got longer. */
struct rs_json_limit {
	size_t stop; /* offset in the sink; no further element is begun behind it */
	size_t text; /* bytes of a source text at most */
};
#define RS_JSON_NO_LIMIT (&(const struct rs_json_limit){ SIZE_MAX, SIZE_MAX })

/* Both ask for their room, and leave RS_SINK_FIXED behind. The map is of attributes: those without a name are left out. */
char *rs_json_value(struct rs_sink *s, char *p, const struct rs_val *v,
		    const struct rs_json_limit *max);
char *rs_json_map(struct rs_sink *s, char *p, const struct rs_attr *a, uint32_t n,
		  const struct rs_json_limit *max);

/* What was written since offset `at`, valid JSON, becomes the inside of a JSON string. */
char *rs_json_quote(struct rs_sink *s, char *p, size_t at);

/* The inside of a JSON string: texts as they are, other values as text (true, 1, base64, JSON; empty: nothing). */
char *rs_value_text(struct rs_sink *s, char *p, const struct rs_val *v,
		    const struct rs_json_limit *max);

#endif
