/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datadog_text — the bytes of Datadog's protocols: MessagePack strings within their limits, values of every type as
 * text, links and events as JSON.
 */
#ifndef RS_ENC_DATADOG_TEXT_H
#define RS_ENC_DATADOG_TEXT_H

#include "datadog_keys.h"
#include "wire_json.h"
#include "wire_msgpack.h"

#define DD_MAX_VALUE	25000
#define DD_MAX_RESOURCE 5000
#define DD_MAX_NAME	100 /* service, name, type */

#define dd_val_text    RS_SYM(dd_val_text)
#define dd_put_long    RS_SYM(dd_put_long)
#define dd_close_text  RS_SYM(dd_close_text)
#define dd_links_json  RS_SYM(dd_links_json)
#define dd_events_json RS_SYM(dd_events_json)

/* Any value as text, at most DD_MAX_VALUE bytes. Asks for its room. */
char *dd_val_text(struct rs_sink *s, char *p, const struct rs_val *v);
/* The text that stands 3 bytes behind offset `at` becomes a MessagePack string there. */
char *dd_close_text(struct rs_sink *s, char *p, size_t at);
/* The other values and lengths of dd_put_str() and dd_put_val(). */
char *dd_put_long(struct rs_sink *s, char *p, const struct rs_val *v, size_t max);
/* JSON arrays of less than DD_MAX_VALUE bytes: what does not fit is left out, from the end. */
char *dd_links_json(struct rs_sink *s, char *p, const struct rs_span *span);
char *dd_events_json(struct rs_sink *s, char *p, const struct rs_span *span);

/* Ids and times: big numbers as a rule. */
static inline char *dd_put_u64(char *p, uint64_t v)
{
	uint64_t be = __builtin_bswap64(v);

	if (__builtin_expect(!(v >> 32), 0))
		return rs_mp_uint(p, v);
	*p = (char)0xcf;
	memcpy(p + 1, &be, 8);
	return p + 9;
}

/* An interned name as a MessagePack string. */
#define DD_KEY_ROOM (DD_MAX_KEY + 3)
static inline char *dd_put_key_unchecked(char *p, const struct dd_key *k)
{
	RS_COPY32(p, k->mp);
	if (__builtin_expect(k->mp_len > 32, 0))
		rs_text_copy(p + 32, k->mp + 32, k->mp_len - 32);
	return p + k->mp_len;
}

static inline char *dd_put_key(struct rs_sink *s, char *p, const struct dd_key *k)
{
	return dd_put_key_unchecked(rs_sink_need(s, p, DD_KEY_ROOM), k);
}

/* v, at most RS_TEXT_PIECE bytes, as a MessagePack string; its room (DD_STR_ROOM) has been asked for. */
#define DD_STR_ROOM(len) ((len)*RS_TEXT_RAW_MAX + 8)
static inline char *dd_put_str_unchecked(struct rs_sink *s, char *p, struct str v)
{
	char *body, *end;

	if (__builtin_expect(v.len < 32, 1)) {
		*p = (char)(0xa0 | v.len);
		body = p + 1;
	} else {
		body = rs_mp_str_head(p, v.len);
	}
	end = rs_text_raw_unchecked(body, v);
	if (__builtin_expect(end != body + v.len, 0))
		return RS_SYM(rs_mp_text_moved)(s, end, rs_sink_pos(s, p), (size_t)(body - p));
	return end;
}

/* s as a MessagePack string of at most max bytes. */
static inline char *dd_put_str(struct rs_sink *s, char *p, struct str v, size_t max)
{
	/* So short that repairing it keeps it below the limit. */
	if (__builtin_expect(v.len <= max / RS_TEXT_RAW_MAX, 1))
		return rs_mp_text(s, p, v);
	v = rs_utf8_limit(v, max);
	return dd_put_long(
		s, p, &(struct rs_val){ .type = RS_VAL_STR, .len = (uint32_t)v.len, .str = v.ptr },
		max);
}

/* Any value but DD_VAL_KEY as a MessagePack string. */
static inline char *dd_put_val(struct rs_sink *s, char *p, const struct rs_val *v)
{
	if (__builtin_expect(v->type == RS_VAL_STR && v->len <= DD_MAX_VALUE / RS_TEXT_RAW_MAX, 1))
		return rs_mp_text(s, p, (struct str){ v->str, v->len });
	return dd_put_long(s, p, v, DD_MAX_VALUE);
}

static inline bool dd_is_scalar(uint8_t type)
{
	return type == RS_VAL_STR || type == RS_VAL_BOOL || type == RS_VAL_INT ||
	       type == RS_VAL_DOUBLE;
}

static inline bool dd_is_scalar_array(const struct rs_val *v)
{
	for (uint32_t i = 0; i < v->len; i++) {
		if (!dd_is_scalar(v->arr[i].type))
			return false;
	}
	return true;
}

/* Those that can be sent. */
static inline uint32_t dd_links(const struct rs_span *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nlinks; i++)
		n += rs_link_ok(&s->links[i]);
	return n;
}

static inline uint64_t dd_id(const uint8_t *b)
{
	uint64_t v;

	memcpy(&v, b, 8);
	return __builtin_bswap64(v);
}

/* W3C flags with the bit that says they are known; 0: unknown. */
static inline uint32_t dd_link_flags(const struct rs_link *l)
{
	return l->flags ? (l->flags & 0xff) | 0x80000000u : 0;
}

#endif
