/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser — one direction of a protocol through its parse(), cut into pieces. Checked: what is used is there, zero steps
 * come to an end, and (fuzz_cuts_agree) the same messages come at the same places however the stream is cut.
 */
#ifndef RS_TESTS_FUZZ_PARSER_H
#define RS_TESTS_FUZZ_PARSER_H

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "proto/proto.h"

struct fuzz_stream {
	const struct rs_proto_ops *ops;
	struct str bytes;
	enum rs_ev_dir dir;
	enum rs_ev_role role;
	bool borrowed; /* fields lie in the input; else they may be static text too */
	/* What the other direction said before; NULL: nothing. */
	void (*prepare)(void *state, const struct fuzz_stream *s);
	unsigned arg; /* of prepare */
};

struct fuzz_log {
	size_t n; /* messages */
	uint64_t hash;
	size_t end; /* bytes of the stream used up */
	bool invalid;
};

static inline void fuzz_mix(struct fuzz_log *l, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		l->hash = (l->hash ^ ((const uint8_t *)p)[i]) * 0x100000001b3u;
}

static inline void fuzz_note(struct fuzz_log *l, const struct fuzz_stream *s,
			     const struct rs_msg *m, struct str in, size_t used)
{
	uint64_t facts[5] = { l->end, used, m->type, m->flags, m->body_size };

	FUZZ_CHECK(used <= in.len);
	FUZZ_CHECK(m->nfields <= RS_MSG_FIELDS);
	l->n++;
	fuzz_mix(l, facts, sizeof(facts));
	for (unsigned i = 0; i < m->nfields; i++) {
		struct str v = m->fields[i].value;

		FUZZ_CHECK(!s->borrowed || !v.len ||
			   (v.ptr >= in.ptr && v.ptr + v.len <= in.ptr + used));
		fuzz_mix(l, &m->fields[i].id, sizeof(m->fields[i].id));
		fuzz_mix(l, v.ptr, v.len);
		fuzz_mix(l, &v.len, sizeof(v.len));
	}
}

static inline struct fuzz_log fuzz_feed(const struct fuzz_stream *s, size_t piece)
{
	void *state = calloc(1, s->ops->state_size);
	struct fuzz_log l = { 0 };
	uint64_t skip = 0;
	unsigned still = 0;
	size_t given = 0;

	FUZZ_CHECK(state);
	if (s->prepare)
		s->prepare(state, s);
	while (!l.invalid) {
		/* A copy of exactly what the parser may look at. */
		size_t n = given - l.end;
		char *copy = malloc(n ? n : 1);
		struct str in = { copy, n };
		struct rs_msg m = { 0 };
		size_t used = 0;
		enum rs_parse r;

		FUZZ_CHECK(copy);
		if (n)
			memcpy(copy, s->bytes.ptr + l.end, n);
		r = skip ? RS_PARSE_NEED_MORE
			 : s->ops->parse(state, s->dir, s->role, in, &used, &m);
		if (r == RS_PARSE_OK) {
			fuzz_note(&l, s, &m, in, used);
			l.end += used;
		} else if (r == RS_PARSE_SKIP) {
			skip = used > n ? used - n : 0;
			l.end += used > n ? n : used;
		} else if (r == RS_PARSE_INVALID) {
			l.invalid = true;
		} else if (given < s->bytes.len) {
			size_t left = s->bytes.len - given, more = left < piece ? left : piece;
			size_t gone = skip < more ? (size_t)skip : more;

			given += more;
			skip -= gone;
			l.end += gone;
			used = 1;
		} else {
			free(copy);
			break;
		}
		still = used ? 0 : still + 1;
		FUZZ_CHECK(still < 4);
		free(copy);
	}
	free(state);
	return l;
}

static inline void fuzz_cuts_agree(const struct fuzz_stream *s, size_t piece)
{
	struct fuzz_log a = fuzz_feed(s, s->bytes.len), b = fuzz_feed(s, piece);

	FUZZ_CHECK(a.n == b.n && a.hash == b.hash && a.invalid == b.invalid && a.end == b.end);
}

#endif
