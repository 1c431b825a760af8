/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datadog_walk — the way through a payload's chunks and spans, the same in every version of the protocol.
 *
 * A version is a `static const struct dd_writer`; dd_encode() is inlined with it, so that its functions are called
 * directly. Writers take the cursor and return it moved; errors stick in the sinks.
 */
#ifndef RS_ENC_DATADOG_WALK_H
#define RS_ENC_DATADOG_WALK_H

#include "datadog_map.h"

struct dd_writer {
	/* Opens the version's sinks; 0, or -errno and none is open. */
	int (*open)(struct rs_encoder *e, char **ret_p);
	/* All before the first chunk; NULL: no memory. */
	char *(*begin)(void *state, char *p);
	/* All before a chunk's first span, which is mapped already. */
	char *(*chunk)(void *state, char *p, const struct rs_chunk *c);
	/* The span that is mapped. */
	char *(*span)(void *state, char *p, bool first_of_chunk);
	/* 0, -EFBIG: these are more than max bytes until now, -ENOBUFS or -ENOMEM: they are given up for want of memory. */
	int (*check)(const void *state, const char *p, size_t max);
	/* Gives the payload away, or its sinks back. */
	void (*close)(void *state, char *p, struct rs_payload *out);
	void (*abort)(void *state);
};

/* The window's chunks, at *p. 0, or what check() says. */
static inline __attribute__((always_inline)) int
dd_put_window(const struct dd_writer *w, void *state, struct dd_map *m, char **at, size_t max)
{
	char *p = w->begin(state, *at);
	int err = p ? 0 : -ENOMEM;

	for (uint32_t i = 0; !err && i < m->w.nchunk; i++) {
		const struct rs_chunk *c = &m->w.chunk[i];
		uint32_t j = c->first;

		if (!dd_chunk_begin(m, c))
			return -ENOMEM;
		p = w->chunk(state, p, c);
		do {
			if (j != c->first && !dd_map_span(m, &m->w.item[j]))
				return -ENOMEM;
			p = w->span(state, p, j == c->first);
			j = m->w.item[j].next;
		} while (j != RS_CHUNK_END);
		err = w->check(state, p, max);
	}
	*at = p;
	return err;
}

/* The encode function of a version: m is in its state. */
static inline __attribute__((always_inline)) int
dd_encode(const struct dd_writer *w, struct dd_map *m, struct rs_encoder *e, struct rs_encode *run)
{
	for (;;) {
		char *p;
		int err = dd_window(m, run);

		if (err)
			return err;
		if (!m->w.nitem) {
			rs_chunks_taken(&m->w, run, 0, e->opts.max_payload);
			return 0;
		}
		err = w->open(e, &p);
		if (err)
			return err;
		err = dd_put_window(w, e->state, m, &p, e->opts.max_payload);
		if (!err && !m->again) {
			w->close(e->state, p, &run->out);
			rs_chunks_taken(&m->w, run, run->out.len, e->opts.max_payload);
			return 0;
		}
		w->abort(e->state);
		if (err && err != -EFBIG && m->w.nitem == 1)
			return err;
		if (err && !rs_chunks_less(&m->w, run) && run->done)
			return 0;
	}
}

#endif
