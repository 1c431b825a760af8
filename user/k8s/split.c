// SPDX-License-Identifier: Apache-2.0
#include "split.h"

#include <stdlib.h>

#define KEEP (64 * 1024) /* bytes kept for the next stream */

void rs_split_begin(struct rs_split *s, enum rs_split_mode mode)
{
	char *buf = s->buf;
	size_t cap = s->cap;

	if (cap > KEEP) {
		free(buf);
		buf = NULL;
		cap = 0;
	}
	*s = (struct rs_split){ .mode = mode, .buf = buf, .cap = cap, .too_big = s->too_big };
}

void rs_split_release(struct rs_split *s)
{
	free(s->buf);
	*s = (struct rs_split){ 0 };
}

static bool append(struct rs_split *s, struct str bytes)
{
	size_t cap = s->cap ? s->cap : 8192;
	char *p;

	while (cap < s->len + bytes.len)
		cap *= 2;
	if (cap > RS_SPLIT_MAX)
		return false;
	if (cap != s->cap) {
		p = realloc(s->buf, cap);
		if (!p)
			return false;
		s->buf = p;
		s->cap = cap;
	}
	memcpy(s->buf + s->len, bytes.ptr, bytes.len);
	s->len += bytes.len;
	return true;
}

static bool key_is(const struct rs_split *s, struct str key)
{
	return str_eq(str_of(s->key, s->nkey), key);
}

/* A container opens: does it begin what is collected? */
static void opens(struct rs_split *s, char c)
{
	if (!s->collecting) {
		if (s->mode == RS_SPLIT_WATCH && s->depth == 0) {
			s->collecting = true;
			s->kind = RS_SPLIT_ITEM;
		} else if (s->mode == RS_SPLIT_LIST && s->depth == 2 && s->in_items) {
			s->collecting = true;
			s->kind = RS_SPLIT_ITEM;
		} else if (s->mode == RS_SPLIT_LIST && s->depth == 1 && c == '{' &&
			   key_is(s, STR("metadata"))) {
			s->collecting = true;
			s->kind = RS_SPLIT_METADATA;
		}
		s->start_depth = s->depth;
		s->len = 0;
		s->over = false;
	}
	if (s->mode == RS_SPLIT_LIST && s->depth == 1) {
		s->in_items = c == '[' && key_is(s, STR("items"));
		s->list |= s->in_items || (c == '{' && key_is(s, STR("metadata")));
	}
	s->depth++;
}

/* Text directly in the list is a key or a short value: the last one before a container is its key. */
static void in_text(struct rs_split *s, char c)
{
	if (s->escaped) {
		s->escaped = false;
	} else if (c == '\\') {
		s->escaped = true;
	} else if (c == '"') {
		s->in_string = false;
	} else if (s->depth == 1 && s->mode == RS_SPLIT_LIST && s->nkey < sizeof(s->key)) {
		s->key[s->nkey++] = c;
	}
}

bool rs_split_feed(struct rs_split *s, struct str bytes, rs_split_fn fn, void *arg)
{
	size_t from = 0; /* of what is collected, in these bytes */

	for (size_t i = 0; i < bytes.len; i++) {
		char c = bytes.ptr[i];

		if (s->in_string) {
			in_text(s, c);
			continue;
		}
		switch (c) {
		case '"':
			s->in_string = true;
			s->nkey = 0;
			break;
		case '{':
		case '[':
			if (!s->collecting)
				from = i;
			opens(s, c);
			break;
		case '}':
		case ']':
			if (!s->depth)
				return false;
			s->depth--;
			if (!s->collecting || s->depth != s->start_depth)
				break;
			s->collecting = false;
			s->over |= !append(s, str_at(bytes, from, i + 1 - from));
			if (s->over)
				s->too_big++;
			else if (!fn(arg, s->kind, str_of(s->buf, s->len)))
				return false;
			break;
		default:
			/* Between a watch's objects is nothing but space. */
			if (s->mode == RS_SPLIT_WATCH && !s->depth && (unsigned char)c > ' ')
				return false;
		}
	}
	if (s->collecting && !s->over)
		s->over = !append(s, str_from(bytes, from));
	return true;
}

bool rs_split_whole(const struct rs_split *s)
{
	return !s->depth && !s->in_string && (s->list || s->mode != RS_SPLIT_LIST);
}
