/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text_screen — spans as lines on a file descriptor, in columns. Nothing is written before the buffer is full or
 * flushed. The first error sticks in `err`: after it nothing is written any more.
 */
#ifndef RS_EXPORT_TEXT_SCREEN_H
#define RS_EXPORT_TEXT_SCREEN_H

#include <time.h>

#include "base/term.h"
#include "text_span.h"

#define RS_TEXT_OUT (64 * 1024)

/* Widths; 0: the column is left out (peer, bar) or has no limit (request, peer). */
struct rs_text_columns {
	int service, request, peer, bar;
};

struct rs_text_screen {
	int fd, width; /* width: columns; 0: no limit */
	struct rs_style style;
	struct rs_text_columns col;
	time_t second; /* of clock[] */
	char clock[16];
	int err; /* 0 or -errno */
	size_t len;
	char out[RS_TEXT_OUT];
};

void rs_text_screen_init(struct rs_text_screen *t, int fd, bool color, int width);
/* Terminals change their size. */
void rs_text_screen_fit(struct rs_text_screen *t);
/* The columns' names. */
void rs_text_screen_header(struct rs_text_screen *t);
/* level: of parents above it. from, to: the trace's start and end, for the bar; to 0: no bar. */
void rs_text_screen_line(struct rs_text_screen *t, const struct rs_text_span *h, int level,
			 uint64_t from, uint64_t to);
/* Writes what is in the buffer. */
void rs_text_screen_flush(struct rs_text_screen *t);

#endif
