// SPDX-License-Identifier: Apache-2.0
#include "term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool rs_term_moves(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && !(term && !strcmp(term, "dumb"));
}

bool rs_term_color(int fd, enum rs_color mode)
{
	const char *no = getenv("NO_COLOR");

	if (mode != RS_COLOR_AUTO)
		return mode == RS_COLOR_ALWAYS;
	return rs_term_moves(fd) && !(no && *no);
}

void rs_style_init(struct rs_style *st, bool color)
{
	static const struct rs_style on = {
		.bold = "\033[1m",
		.dim = "\033[2m",
		.red = "\033[31m",
		.green = "\033[32m",
		.yellow = "\033[33m",
		.blue = "\033[34m",
		.magenta = "\033[35m",
		.cyan = "\033[36m",
		.reset = "\033[0m",
	};
	static const struct rs_style off = { "", "", "", "", "", "", "", "", "" };

	*st = color ? on : off;
}

int rs_term_width(int fd)
{
	struct winsize ws;

	if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &ws) || ws.ws_col < 20)
		return 0;
	return ws.ws_col;
}

int rs_term_height(int fd)
{
	struct winsize ws;

	return isatty(fd) && !ioctl(fd, TIOCGWINSZ, &ws) ? ws.ws_row : 0;
}
