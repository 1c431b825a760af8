/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datadog_strings — strings written once per payload (strtab.h): what v0.5 and v1 share.
 *
 * Each function writes a new string to the sink as MessagePack, or nothing when it is there already.
 * *ret_at is its number, *ret_new says whether it was written. After a sink's error both mean nothing.
 */
#ifndef RS_ENC_DATADOG_STRINGS_H
#define RS_ENC_DATADOG_STRINGS_H

#include "datadog_map.h"
#include "strtab.h"

/*
 * Cold: a string that was written before it could be looked up, because it had to be rendered, cut or repaired
 * first. It stands at offset `at`, header included; it goes away again when it is known.
 */
static __attribute__((noinline, unused)) char *dd_str_written(struct rs_strtab *t,
							      struct rs_sink *s, char *p, size_t at,
							      uint32_t *ret_at, bool *ret_new)
{
	struct rs_strtab_slot *slot;
	unsigned char c;
	size_t head, len;
	uint64_t hash;

	p = rs_sink_need(s, p, 16);
	*ret_at = 0;
	*ret_new = false;
	if (s->err)
		return p;
	c = (unsigned char)s->base[at];
	head = c < 0xc0 ? 1 : c == 0xd9 ? 2 : c == 0xda ? 3 : 5;
	len = rs_sink_pos(s, p) - at - head;
	hash = rs_strtab_hash(s->base + at + head, len);
	slot = rs_strtab_find(t, s, s->base + at + head, len, hash);
	*ret_new = slot->epoch != t->epoch;
	if (!*ret_new) {
		*ret_at = slot->at;
		return s->base + at;
	}
	*ret_at = rs_strtab_add(t, slot, hash, at + head, len);
	return p;
}

/* Copies v if it is ASCII; false: it is not, or cannot be told. */
static inline bool dd_copy_ascii(char *p, struct str v)
{
#if RS_VEC
	for (size_t i = 0; i < v.len; i += RS_VEC) {
		rs_vec x = rs_vec_load(v.ptr + i);
		uint32_t odd = rs_vec_mask(x);

		rs_vec_store(p + i, x);
		if (v.len - i < RS_VEC)
			odd = rs_vec_first(odd, v.len - i);
		if (__builtin_expect(odd, 0))
			return false;
	}
	return true;
#else
	(void)p;
	return !v.len;
#endif
}

/* A text of at most max bytes. */
static inline char *dd_str(struct rs_strtab *t, struct rs_sink *s, char *p, struct str v,
			   size_t max, uint32_t *ret_at, bool *ret_new)
{
	struct rs_strtab_slot *slot;
	size_t at, end;
	uint64_t hash;
	char *body;

	p = rs_sink_need(s, p, 16);
	at = rs_sink_pos(s, p);
	*ret_at = 0;
	*ret_new = false;
	if (__builtin_expect(s->err, 0))
		return p;
	if (v.len > max / RS_TEXT_RAW_MAX || v.len > RS_TEXT_PIECE)
		return dd_str_written(t, s, dd_put_str(s, p, v, max), at, ret_at, ret_new);
	hash = rs_strtab_hash(v.ptr, v.len);
	slot = rs_strtab_find(t, s, v.ptr, v.len, hash);
	if (slot->epoch == t->epoch) {
		*ret_at = slot->at;
		return p;
	}
	p = rs_sink_need(s, p, DD_STR_ROOM(v.len));
	if (__builtin_expect(s->err, 0))
		return p;
	body = v.len < 32 ? (*p = (char)(0xa0 | v.len), p + 1) : rs_mp_str_head(p, v.len);
	if (__builtin_expect(!dd_copy_ascii(body, v), 0)) {
		p = dd_put_str_unchecked(s, p, v);
		if (s->err)
			return p;
		/* Repaired: what was looked up is not what was written. */
		end = rs_sink_pos(s, p);
		if (end - at < v.len || memcmp(p - v.len, v.ptr, v.len))
			return dd_str_written(t, s, p, at, ret_at, ret_new);
	} else {
		p = body + v.len;
		end = rs_sink_pos(s, p);
	}
	*ret_new = true;
	*ret_at = rs_strtab_add(t, slot, hash, end - v.len, v.len);
	return p;
}

/* Any value, as text. */
static inline char *dd_str_val(struct rs_strtab *t, struct rs_sink *s, char *p,
			       const struct rs_val *v, uint32_t *ret_at, bool *ret_new)
{
	size_t at;

	if (__builtin_expect(v->type == RS_VAL_STR, 1))
		return dd_str(t, s, p, (struct str){ v->str, v->len }, DD_MAX_VALUE, ret_at,
			      ret_new);
	p = rs_sink_need(s, p, 16);
	at = rs_sink_pos(s, p);
	*ret_at = 0;
	*ret_new = false;
	return dd_str_written(t, s, dd_put_val(s, p, v), at, ret_at, ret_new);
}

/* An interned name or text: looked up once per payload. */
static inline char *dd_str_key(struct rs_strtab *t, struct rs_sink *s, char *p,
			       const struct dd_key *key, uint32_t *ret_at, bool *ret_new)
{
	struct dd_key *k =
		(struct dd_key *)key; /* its place in the table is not part of its value */
	struct rs_strtab_slot *slot;

	*ret_at = k->at;
	*ret_new = false;
	if (__builtin_expect(k->epoch == t->epoch, 1))
		return p;
	p = rs_sink_need(s, p, 16);
	if (__builtin_expect(s->err, 0))
		return p;
	slot = rs_strtab_find(t, s, k->name.ptr, k->name.len, k->hash);
	*ret_new = slot->epoch != t->epoch;
	if (*ret_new) {
		p = dd_put_key(s, p, k);
		if (s->err)
			return p;
		*ret_at = rs_strtab_add(t, slot, k->hash, rs_sink_pos(s, p) - k->name.len,
					k->name.len);
	} else {
		*ret_at = slot->at;
	}
	k->epoch = t->epoch;
	k->at = *ret_at;
	return p;
}

#endif
