// SPDX-License-Identifier: Apache-2.0
/*
 * One direction of HTTP/1 through the parser, whole and in pieces. First byte: bit 0 direction, bit 1
 * role, bits 2-3 kinds of the requests waiting, bits 4-7 size of the pieces; the rest are the stream's bytes.
 *
 * Checked: what is used is there; fields lie in the input; zero steps come to an end; the same messages
 * at the same places however the stream is cut.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "proto/http1.h"

struct log {
	size_t n;
	uint64_t hash;
	size_t end; /* bytes of the stream used up */
	bool invalid;
};

static void mix(struct log *l, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		l->hash = (l->hash ^ ((const uint8_t *)p)[i]) * 0x100000001b3u;
}

static void note(struct log *l, const struct rs_msg *m, uint64_t at, struct str in, size_t used)
{
	uint64_t facts[5] = { at, used, m->type, m->flags, m->body_size };

	FUZZ_CHECK(m->nfields <= RS_MSG_FIELDS);
	l->n++;
	mix(l, facts, sizeof(facts));
	for (unsigned i = 0; i < m->nfields; i++) {
		struct str v = m->fields[i].value;

		FUZZ_CHECK(!v.len || (v.ptr >= in.ptr && v.ptr + v.len <= in.ptr + used));
		mix(l, &m->fields[i].id, sizeof(m->fields[i].id));
		mix(l, v.ptr, v.len);
		mix(l, &v.len, sizeof(v.len));
	}
}

static void prepare(void *state, enum rs_ev_dir dir, enum rs_ev_role role, unsigned kinds)
{
	static const char *const requests[] = {
		"GET / HTTP/1.1\r\n\r\n",
		"HEAD / HTTP/1.1\r\n\r\n",
		"CONNECT / HTTP/1.1\r\n\r\n",
	};
	enum rs_ev_dir other = dir == RS_DIR_IN ? RS_DIR_OUT : RS_DIR_IN;
	struct rs_msg m;
	size_t used;

	if ((dir == RS_DIR_OUT) == (role == RS_ROLE_CLIENT))
		return;
	for (unsigned i = 0; i < kinds; i++) {
		struct str in = str_c(requests[i]);

		rs_proto_http1.parse(state, other, role, in, &used, &m);
		rs_proto_http1.parse(state, other, role, STR_NONE, &used, &m);
	}
}

static struct log feed(struct str bytes, enum rs_ev_dir dir, enum rs_ev_role role, unsigned kinds,
		       size_t piece)
{
	void *state = calloc(1, rs_proto_http1.state_size);
	struct log l = { 0 };
	uint64_t skip = 0;
	unsigned still = 0;
	size_t given = 0;

	FUZZ_CHECK(state);
	prepare(state, dir, role, kinds);
	while (!l.invalid) {
		/* A copy of exactly what the parser may look at. */
		size_t n = given - l.end;
		char *copy = malloc(n ? n : 1);
		struct str in = { copy, n };
		size_t used = 0;
		struct rs_msg m;
		enum rs_parse r;

		FUZZ_CHECK(copy);
		if (n)
			memcpy(copy, bytes.ptr + l.end, n);
		r = skip ? RS_PARSE_NEED_MORE
			 : rs_proto_http1.parse(state, dir, role, in, &used, &m);
		if (r == RS_PARSE_OK) {
			FUZZ_CHECK(used <= n);
			note(&l, &m, l.end, in, used);
			l.end += used;
		} else if (r == RS_PARSE_SKIP) {
			skip = used > n ? used - n : 0;
			l.end += used > n ? n : used;
		} else if (r == RS_PARSE_INVALID) {
			l.invalid = true;
		} else if (given < bytes.len) {
			size_t more = bytes.len - given < piece ? bytes.len - given : piece;
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes;
	enum rs_ev_dir dir;
	enum rs_ev_role role;
	struct log a, b;
	unsigned kinds;

	if (!size)
		return 0;
	dir = data[0] & 1 ? RS_DIR_OUT : RS_DIR_IN;
	role = data[0] & 2 ? RS_ROLE_CLIENT : RS_ROLE_SERVER;
	kinds = data[0] >> 2 & 3;
	bytes = str_of((const char *)data + 1, size - 1);
	a = feed(bytes, dir, role, kinds, bytes.len);
	b = feed(bytes, dir, role, kinds, (data[0] >> 4) + 1u);
	FUZZ_CHECK(a.n == b.n && a.hash == b.hash && a.invalid == b.invalid);
	FUZZ_CHECK(a.end == b.end);
	return 0;
}
