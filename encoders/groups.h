/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups — a message for protocols that nest spans as a batch does: under their scopes, and these under their
 * resources.
 *
 * A scope is opened with its resource, if that is not open yet, and both are taken back when none of its spans gets into
 * the message: no message has groups without spans. Heads that leave no room for a span are thus like a span that is too
 * big: they begin the next message, or alone in one, their spans are left out and counted.
 */
#ifndef RS_ENC_GROUPS_H
#define RS_ENC_GROUPS_H

#include "encoder.h"

/* Written behind the spans, where room is not asked for: a longer one counts as too big. */
#define RS_SCHEMA_URL_MAX 4096

_Static_assert(2 * RS_SCHEMA_URL_MAX * 6 + 4 * RS_SINK_FIXED <= RS_SINK_NEED_MAX,
	       "a message that is full can be closed");

struct rs_groups {
	char *(*open_resource)(struct rs_encoder *e, char *p, const struct rs_resource_spans *rs);
	char *(*close_resource)(struct rs_encoder *e, char *p, const struct rs_resource_spans *rs);
	char *(*open_scope)(struct rs_encoder *e, char *p, const struct rs_scope_spans *ss);
	char *(*close_scope)(struct rs_encoder *e, char *p, const struct rs_scope_spans *ss);
	char *(*put)(struct rs_encoder *e, char *p, const struct rs_cursor *at);
};

/* What was opened from `mark` on did not fit, with its spans from `at` on. */
static inline char *rs_groups_no_room(struct rs_encode *run, struct rs_sink *s, size_t mark,
				      struct rs_cursor at, uint32_t n, bool *full)
{
	int err = s->err;

	if (n || err != -EFBIG) {
		run->at = at;
		*full = true;
	} else {
		for (; at.span; at.span = at.span->next) {
			enum rs_skip skip = rs_span_check(at.span);

			run->skipped[skip == RS_SKIP_NONE ? RS_SKIP_TOO_BIG : skip]++;
		}
	}
	return rs_sink_rollback(s, mark);
}

/* All that fits, n: its spans. The sink is open; what `g` does is inlined. */
static inline __attribute__((always_inline)) char *
rs_put_groups(struct rs_encoder *e, struct rs_encode *run, struct rs_sink *s, char *p, uint32_t *n,
	      bool *full, const struct rs_groups *g)
{
	for (const struct rs_resource_spans *rs = rs_first_resource(run); rs && !*full;
	     rs = rs->next) {
		bool open = false;

		for (const struct rs_scope_spans *ss = rs_first_scope(run, rs); ss && !*full;
		     ss = ss->next) {
			size_t mark = rs_sink_pos(s, p);
			uint32_t before = *n;

			if (rs->schema_url.len > RS_SCHEMA_URL_MAX ||
			    ss->schema_url.len > RS_SCHEMA_URL_MAX)
				p = rs_sink_fail(s, -EFBIG);
			if (!open)
				p = g->open_resource(e, p, rs);
			p = g->open_scope(e, p, ss);
			if (__builtin_expect(s->err, 0)) {
				struct rs_cursor at = { rs, ss, rs_first_span(run, ss) };

				p = rs_groups_no_room(run, s, mark, at, *n, full);
				continue;
			}
			p = rs_put_spans(e, run, s, p, rs, ss, n, full, g->put);
			if (*n == before) {
				p = rs_sink_rollback(s, mark);
				continue;
			}
			p = g->close_scope(e, p, ss);
			open = true;
		}
		if (open)
			p = g->close_resource(e, p, rs);
	}
	return p;
}

/* The end of the message, of n spans. was: the run before it. */
static inline int rs_end_groups(struct rs_encode *run, const struct rs_encode *was,
				struct rs_sink *s, char *p, uint32_t n, bool full)
{
	if (s->err || (full && !n)) {
		int err = s->err ? s->err : -ENOBUFS;

		if (s->err)
			*run = *was;
		rs_sink_abort(s);
		return err;
	}
	run->done = !full;
	if (n || !run->batch->nspans)
		rs_sink_close(s, p, &run->out);
	else
		rs_sink_abort(s);
	return 0;
}

#endif
