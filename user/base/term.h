/* SPDX-License-Identifier: Apache-2.0 */
/* term — what kind of terminal, if any, is on the other side of a file descriptor. */
#ifndef RS_BASE_TERM_H
#define RS_BASE_TERM_H

#include <stdbool.h>

/* Escape sequences, or empty strings where colours are off: print them without asking. */
struct rs_style {
	const char *bold, *dim, *red, *green, *yellow, *blue, *magenta, *cyan, *reset;
};

/* --color. */
enum rs_color {
	RS_COLOR_AUTO,
	RS_COLOR_ALWAYS,
	RS_COLOR_NEVER,
};

/* Are colours wanted on fd? AUTO: on a terminal that is not "dumb", unless NO_COLOR is set. */
bool rs_term_color(int fd, enum rs_color mode);
void rs_style_init(struct rs_style *st, bool color);
/* Is fd a terminal whose cursor can be moved? */
bool rs_term_moves(int fd);
/* Columns, or 0 when fd is no terminal: there is no limit then. */
int rs_term_width(int fd);
/* Lines, or 0 when fd is no terminal. */
int rs_term_height(int fd);

#endif
