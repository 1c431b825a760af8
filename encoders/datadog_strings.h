/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datadog_strings — strings written once per payload and then by number: what v0.5 and v1 share.
 *
 * A string that is interned (datadog_keys.h) has its number in its struct dd_key; all others are in a table (strtab.h).
 * Only one that was interned while this payload was being written can be in both.
 *
 * Each function writes a new string to the sink as MessagePack, or nothing when it is there already.
 * *ret_at is its number, *ret_new says whether it was written. After a sink's error both mean nothing.
 */
#ifndef RS_ENC_DATADOG_STRINGS_H
#define RS_ENC_DATADOG_STRINGS_H

#include "datadog_map.h"

#define DD_TAGS 512

struct dd_strings {
	struct rs_strtab tab;
	struct dd_keys *keys;
	/* Where in the payload `epoch` a context's tags were written for a shape, as numbers alone. */
	struct dd_tags {
		uint32_t epoch, ctx, shape, len;
		size_t off;
	} tags[DD_TAGS];
};

/* With the map whose keys it numbers; v1: as dd_map_init() has it. 0, or -errno and nothing is held. */
static inline int dd_strings_init(struct dd_strings *t, struct dd_map *m, bool v1,
				  size_t max_payload)
{
	int err = dd_map_init(m, v1, max_payload);

	t->keys = &m->keys;
	if (err)
		return err;
	err = rs_strtab_init(&t->tab);
	if (err)
		dd_map_release(m);
	return err;
}

static inline void dd_strings_release(struct dd_strings *t, struct dd_map *m)
{
	dd_map_release(m);
	rs_strtab_release(&t->tab);
}

/* A new payload. Numbers start at 0. */
static inline void dd_strings_begin(struct dd_strings *t)
{
	rs_strtab_begin(&t->tab, 0);
	t->keys->epoch = t->tab.epoch;
}

/* Is this text written, in this payload? */
static inline bool dd_is_written(const struct dd_strings *t, const struct dd_key *k)
{
	return k->epoch == t->tab.epoch;
}

static inline uint32_t dd_number_key(struct dd_strings *t, struct dd_key *k)
{
	k->epoch = t->tab.epoch;
	k->at = t->tab.next++;
	return k->at;
}

/* Is it known to be no string of this payload's table? What was interned before the payload began is not in there. */
static inline bool dd_is_key_alone(const struct dd_strings *t, const struct dd_key *k)
{
	return __builtin_expect(k->born != t->tab.epoch, 1);
}

/* Cold: looks for an interned text in the table, as it may have been written before it was interned. */
static __attribute__((noinline, unused)) bool dd_key_late(struct dd_strings *t,
							  const struct rs_sink *s, struct dd_key *k)
{
	const struct rs_strtab_slot *slot = rs_strtab_find(
		&t->tab, s, k->name.ptr, k->name.len, rs_strtab_hash(k->name.ptr, k->name.len));

	if (slot->epoch != t->tab.epoch)
		return false;
	k->epoch = slot->epoch;
	k->at = slot->at;
	return true;
}

/* An interned text. */
static inline char *dd_str_key(struct dd_strings *t, struct rs_sink *s, char *p, struct dd_key *k,
			       uint32_t *ret_at, bool *ret_new)
{
	*ret_new = false;
	if (__builtin_expect(!dd_is_written(t, k), 0)) {
		if (dd_is_key_alone(t, k) || !dd_key_late(t, s, k)) {
			p = dd_put_key(s, p, k);
			dd_number_key(t, k);
			*ret_new = true;
		}
	}
	*ret_at = k->at;
	return p;
}

/*
 * Cold: a string that was written before it could be looked up, because it had to be rendered, cut or repaired
 * first. It stands at offset `at`, header included; it goes away again when it is known.
 */
static __attribute__((noinline, unused)) char *dd_str_written(struct dd_strings *t,
							      struct rs_sink *s, char *p, size_t at,
							      uint32_t *ret_at, bool *ret_new)
{
	struct rs_strtab_slot *slot;
	struct dd_key *k;
	unsigned char c;
	struct str text;
	size_t head;
	uint64_t hash;

	p = rs_sink_need(s, p, 16);
	*ret_at = 0;
	*ret_new = false;
	if (s->err)
		return p;
	c = (unsigned char)s->base[at];
	head = c < 0xc0 ? 1 : c == 0xd9 ? 2 : c == 0xda ? 3 : 5;
	text = (struct str){ s->base + at + head, rs_sink_pos(s, p) - at - head };
	hash = rs_strtab_hash(text.ptr, text.len);
	k = dd_key_find(t->keys, text, hash);
	if (k && !dd_is_written(t, k) && (dd_is_key_alone(t, k) || !dd_key_late(t, s, k))) {
		*ret_at = dd_number_key(t, k);
		*ret_new = true;
		return p;
	}
	if (k) {
		*ret_at = k->at;
		return s->base + at;
	}
	slot = rs_strtab_find(&t->tab, s, text.ptr, text.len, hash);
	*ret_new = slot->epoch != t->tab.epoch;
	if (!*ret_new) {
		*ret_at = slot->at;
		return s->base + at;
	}
	*ret_at = rs_strtab_add(&t->tab, slot, hash, at + head, text.len);
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

/* A text that is so short that no repair makes it too long; hash is its rs_strtab_hash(). */
static inline char *dd_str_short(struct dd_strings *t, struct rs_sink *s, char *p, struct str v,
				 uint64_t hash, uint32_t *ret_at, bool *ret_new)
{
	struct dd_key *k = dd_key_find(t->keys, v, hash);
	struct rs_strtab_slot *slot;
	size_t at, end;
	char *body;

	if (k)
		return dd_str_key(t, s, p, k, ret_at, ret_new);
	p = rs_sink_need(s, p, 16);
	at = rs_sink_pos(s, p);
	*ret_at = 0;
	*ret_new = false;
	if (__builtin_expect(s->err, 0))
		return p;
	slot = rs_strtab_find(&t->tab, s, v.ptr, v.len, hash);
	if (slot->epoch == t->tab.epoch) {
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
	*ret_at = rs_strtab_add(&t->tab, slot, hash, end - v.len, v.len);
	return p;
}

/* A text of at most max bytes. */
static inline char *dd_str(struct dd_strings *t, struct rs_sink *s, char *p, struct str v,
			   size_t max, uint32_t *ret_at, bool *ret_new)
{
	size_t at;

	if (__builtin_expect(v.len <= max / RS_TEXT_RAW_MAX && v.len <= RS_TEXT_PIECE, 1))
		return dd_str_short(t, s, p, v, rs_strtab_hash(v.ptr, v.len), ret_at, ret_new);
	p = rs_sink_need(s, p, 16);
	at = rs_sink_pos(s, p);
	return dd_str_written(t, s, dd_put_str(s, p, v, max), at, ret_at, ret_new);
}

/* Any value, as text. */
static inline char *dd_str_val(struct dd_strings *t, struct rs_sink *s, char *p,
			       const struct rs_val *v, uint32_t *ret_at, bool *ret_new)
{
	size_t at;

	if (__builtin_expect(v->type == RS_VAL_STR, 1))
		return dd_str(t, s, p, (struct str){ v->str, v->len }, DD_MAX_VALUE, ret_at,
			      ret_new);
	p = rs_sink_need(s, p, 16);
	at = rs_sink_pos(s, p);
	return dd_str_written(t, s, dd_put_val(s, p, v), at, ret_at, ret_new);
}

/* -- texts that come again in the same place ----------------------------------------------------- */

/* How often in a row, before one is worth being interned. */
#define DD_MEMO_SEEN 3

/* The text of the memo, if it is v. */
static inline struct dd_key *dd_memo_key(const struct dd_memo *memo, struct str v)
{
	struct dd_key *k = memo->text;

	return k && dd_same(k->name, v) ? k : NULL;
}

/* Cold: the text in the place of `memo`, number `at` in this payload, was there before. */
static __attribute__((noinline, unused)) void
dd_memo_learn(struct dd_strings *t, struct dd_memo *memo, struct str v, uint32_t at)
{
	struct dd_key *k;

	if (++memo->seen < DD_MEMO_SEEN)
		return;
	memo->seen = 0;
	k = dd_key_of_name(t->keys, v);
	if (!k || !k->as_is)
		return;
	k->epoch = t->tab.epoch;
	k->at = at;
	memo->text = k;
}

/* Another text than the memo's, of at most max bytes. */
static __attribute__((noinline, unused)) char *dd_str_memo(struct dd_strings *t, struct rs_sink *s,
							   char *p, struct dd_memo *memo,
							   struct str v, size_t max,
							   uint32_t *ret_at, bool *ret_new)
{
	uint64_t hash;

	if (v.len > DD_MAX_KEY || v.len > max / RS_TEXT_RAW_MAX)
		return dd_str(t, s, p, v, max, ret_at, ret_new);
	hash = rs_strtab_hash(v.ptr, v.len);
	p = dd_str_short(t, s, p, v, hash, ret_at, ret_new);
	if (memo->hash == hash && !s->err) {
		dd_memo_learn(t, memo, v, *ret_at);
	} else {
		memo->hash = hash;
		memo->seen = 0;
	}
	return p;
}

/*
 * The context's tags, without those that the span has itself; `put` writes one, and is inlined. Once all their strings
 * are known they are numbers, and are copied from where they stood last.
 */
static inline __attribute__((always_inline)) char *
dd_put_ctx(const struct dd_map *m, struct dd_strings *t, struct rs_sink *s, char *p, void *state,
	   char *(*put)(void *state, char *p, struct dd_ctx_tag *tag))
{
	struct dd_tags *w = &t->tags[(m->ctx->no + m->sh->no * 61) % DD_TAGS];
	uint32_t next = t->tab.next;
	size_t off = rs_sink_pos(s, p), len;

	if (w->epoch == t->tab.epoch && w->ctx == m->ctx->no && w->shape == m->sh->no) {
		p = rs_sink_need(s, p, w->len);
		if (s->err)
			return p;
		memcpy(p, s->base + w->off, w->len);
		return p + w->len;
	}
	DD_EACH_CTX_TAG(m, tag)
	p = put(state, p, tag);
	len = rs_sink_pos(s, p) - off;
	if (!s->err && t->tab.next == next && len <= RS_SINK_NEED_MAX)
		*w = (struct dd_tags){ t->tab.epoch, m->ctx->no, m->sh->no, (uint32_t)len, off };
	return p;
}

#endif
