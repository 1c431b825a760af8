// SPDX-License-Identifier: Apache-2.0
/*
 * One direction of FastCGI, whole and in pieces. First byte: bit 0 direction, bits 1-7 size of the pieces; the rest are
 * the stream's bytes. Checked: what is used is there; fields lie in the input, or are static; the same messages at
 * the same places however the stream is cut.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "proto/proto.h"

struct log {
	size_t n, at;
	uint64_t hash;
	bool invalid;
};

static void mix(struct log *l, const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		l->hash = (l->hash ^ ((const uint8_t *)p)[i]) * 0x100000001b3u;
}

static void note(struct log *l, const struct rs_msg *m)
{
	uint64_t facts[4] = { l->at, m->type, m->flags, m->body_size };

	FUZZ_CHECK(m->nfields <= RS_MSG_FIELDS);
	l->n++;
	mix(l, facts, sizeof(facts));
	for (unsigned i = 0; i < m->nfields; i++) {
		mix(l, &m->fields[i].id, sizeof(m->fields[i].id));
		mix(l, m->fields[i].value.ptr, m->fields[i].value.len);
	}
}

static void run(const uint8_t *data, size_t size, enum rs_ev_dir dir, size_t piece, struct log *l)
{
	void *state = calloc(1, rs_protos[RS_PROTO_fastcgi]->state_size);
	size_t have = piece < size ? piece : size, idle = 0;

	FUZZ_CHECK(state);
	while (l->at < size) {
		/* Exactly allocated: reads beyond it are seen. */
		char *copy = malloc(have - l->at + 1);
		struct rs_msg m = { 0 };
		enum rs_parse r;
		size_t used = 0;

		memcpy(copy, data + l->at, have - l->at);
		r = rs_protos[RS_PROTO_fastcgi]->parse(state, dir, RS_ROLE_SERVER,
						       str_of(copy, have - l->at), &used, &m);
		if (r == RS_PARSE_OK) {
			FUZZ_CHECK(used <= have - l->at);
			note(l, &m);
		}
		free(copy);
		if (r == RS_PARSE_INVALID) {
			l->invalid = true;
			break;
		}
		if (r == RS_PARSE_NEED_MORE) {
			if (have == size)
				break;
			have = size - have < piece ? size : have + piece;
			continue;
		}
		idle = used ? 0 : idle + 1;
		FUZZ_CHECK(idle < 4);
		l->at += used;
		if (l->at >= size)
			break;
		if (have < l->at)
			have = l->at;
	}
	free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct log whole = { 0 }, pieces = { 0 };
	enum rs_ev_dir dir;

	if (size < 2 || size > 4096)
		return 0;
	dir = data[0] & 1 ? RS_DIR_OUT : RS_DIR_IN;
	run(data + 1, size - 1, dir, size, &whole);
	run(data + 1, size - 1, dir, (size_t)(data[0] >> 1) + 1, &pieces);
	FUZZ_CHECK(whole.n == pieces.n && whole.hash == pieces.hash &&
		   whole.invalid == pieces.invalid);
	return 0;
}
