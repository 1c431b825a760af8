/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text — spans as lines for people: one line each, indented under its parent.
 *
 * Children end before their parents, so the spans of a trace are held back until its root comes, for
 * RS_TEXT_HOLD_NS at most, and are then printed in order. What must be remembered of a span is made into
 * text when it comes; nothing of a batch is kept. Bounded: RS_TEXT_SPANS spans are held at once; beyond
 * it the oldest trace is printed as it is.
 *
 * Traced data is shown, not obeyed: control characters become visible, invalid UTF-8 becomes U+FFFD.
 * Writes go to a file descriptor, through a buffer that is emptied at the end of each call. Errors
 * stick: after the first one nothing is written any more. Not thread-safe.
 */
#ifndef RS_EXPORT_TEXT_H
#define RS_EXPORT_TEXT_H

#include <stdint.h>

#include "trace/span.h"

#define RS_TEXT_SPANS	4096 /* spans held back at most */
#define RS_TEXT_TRACE	512  /* of one trace */
#define RS_TEXT_HOLD_NS 1000000000u

struct rs_text;

struct rs_text_opts {
	int fd;
	bool color;
	int width;   /* columns; 0: no limit, lines are as long as they must be */
	bool header; /* print the columns' names first */
};

/* NULL without memory. */
struct rs_text *rs_text_new(const struct rs_text_opts *opts);
/* Prints nothing any more; NULL is fine. */
void rs_text_free(struct rs_text *t);

/* Takes a batch's spans; now_ns: CLOCK_MONOTONIC. 0, or -errno of the output. */
int rs_text_batch(struct rs_text *t, const struct rs_batch *b, uint64_t now_ns);
/* Prints what has been held for too long. 0 or -errno. Call a few times a second. */
int rs_text_tick(struct rs_text *t, uint64_t now_ns);
/* Prints everything that is held. 0 or -errno. */
int rs_text_flush(struct rs_text *t);

#endif
