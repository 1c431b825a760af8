/* SPDX-License-Identifier: Apache-2.0 */
/* view_parts — what the files of view share: reading members of the snapshot, writing lines. */
#ifndef RS_STATUS_VIEW_PARTS_H
#define RS_STATUS_VIEW_PARTS_H

#include <jansson.h>

#include "base/human.h"
#include "base/utf8.h"
#include "view.h"

/* -- members, whatever they are: 0, "" and false for what is missing or of another type -- */

static inline uint64_t view_num(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

/* In `cols` columns (0: any) and safe for a terminal. */
static inline const char *view_text(const json_t *o, const char *key, char *buf, size_t size,
				    int cols)
{
	const json_t *v = json_object_get(o, key);

	rs_utf8_clean(buf, size, str_of(json_string_value(v), json_string_length(v)), cols);
	return buf;
}

#define TEXT(o, key, cols) view_text(o, key, (char[512]){ 0 }, 512, cols)

static inline bool view_is(const json_t *o, const char *key, const char *value)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s && !strcmp(s, value);
}

/* Of a member of all objects in a list. */
static inline uint64_t view_sum(const json_t *list, const char *key)
{
	uint64_t total = 0;
	size_t i;
	json_t *o;

	json_array_foreach(list, i, o) total += view_num(o, key);
	return total;
}

#define COUNT(n)    rs_human_count((char[RS_HUMAN]){ 0 }, n)
#define BYTES(n)    rs_human_bytes((char[RS_HUMAN]){ 0 }, n)
#define DURATION(n) rs_human_duration((char[RS_HUMAN]){ 0 }, n)

#define VIEW_ARROW "\xe2\x86\xb3 " /* ↳: what belongs to the line above */

/* -- lines -- */

#define VIEW_INDENT 12 /* columns of a line's title */

/* One line of facts with dots between them; what does not fit goes on under the first one. */
struct rs_view_line {
	FILE *out;
	const struct rs_view *v;
	int at;
	bool first;
};

void rs_view_begin(struct rs_view_line *f, FILE *out, const struct rs_view *v, const char *title);
/* color: a member of v->style, or "". The caller ends the line. */
void rs_view_fact(struct rs_view_line *f, const char *color, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Words from column `indent` on, where the line is already; ends the line. */
void rs_view_prose(FILE *out, const struct rs_view *v, const char *color, int indent,
		   const char *words);

/* -- parts of the screen; o: the snapshot -- */

void rs_view_losses(FILE *out, const struct rs_view *v, const json_t *o);
void rs_view_ledger(FILE *out, const struct rs_view *v, const json_t *o);
/* Rates and quantiles since the snapshot before, or since the start when there is none. */
void rs_view_services(FILE *out, const struct rs_view *v, const json_t *o);
void rs_view_processes(FILE *out, const struct rs_view *v, const json_t *o);
void rs_view_protocols(FILE *out, const struct rs_view *v, const json_t *o);

#endif
