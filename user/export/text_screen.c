// SPDX-License-Identifier: Apache-2.0
#include "text_screen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/human.h"
#include "base/utf8.h"

#define MAX_LEVEL 12 /* deeper spans are not indented further */

#define IN_ARROW   "\xe2\x86\x90" /* ← */
#define OUT_ARROW  "\xe2\x86\x92" /* → */
#define BRANCH	   "\xe2\x94\x94" /* └ */
#define DASH	   "\xe2\x80\x94" /* — */
#define BLOCK	   "\xe2\x96\x88" /* █ */
#define HALF_BLOCK "\xe2\x96\x8c" /* ▌ */

void rs_text_screen_flush(struct rs_text_screen *t)
{
	size_t at = 0;

	while (at < t->len && !t->err) {
		ssize_t n = write(t->fd, t->out + at, t->len - at);

		if (n >= 0) {
			at += (size_t)n;
		} else if (errno == EAGAIN) {
			/* Somebody made the terminal non-blocking. */
			struct pollfd p = { .fd = t->fd, .events = POLLOUT };

			poll(&p, 1, -1);
		} else if (errno != EINTR) {
			t->err = -errno;
		}
	}
	t->len = 0;
}

static void put(struct rs_text_screen *t, const char *s, size_t n)
{
	if (n > RS_TEXT_OUT - t->len)
		rs_text_screen_flush(t);
	memcpy(t->out + t->len, s, n);
	t->len += n;
}

static void puts_(struct rs_text_screen *t, const char *s)
{
	put(t, s, strlen(s));
}

static void pad(struct rs_text_screen *t, int n)
{
	static const char blank[] =
		"                                                                ";

	for (; n > 0; n -= (int)sizeof(blank) - 1)
		put(t, blank, n < (int)sizeof(blank) - 1 ? (size_t)n : sizeof(blank) - 1);
}

/* s in `cols` columns, cut or padded; 0: as it is. */
static void cell(struct rs_text_screen *t, const char *s, int cols)
{
	char buf[1024];
	size_t n = rs_utf8_clean(buf, sizeof(buf), str_c(s), cols);

	put(t, buf, n);
	if (cols)
		pad(t, cols - rs_utf8_width(str_of(buf, n)));
}

static void choose_columns(struct rs_text_columns *c, int width)
{
	/* Time, duration, status and the gaps between take 27 columns. */
	if (!width)
		*c = (struct rs_text_columns){ .service = 22, .request = 44, .peer = 0 };
	else if (width < 100)
		*c = (struct rs_text_columns){ .service = 18, .peer = -1 };
	else if (width < 140)
		*c = (struct rs_text_columns){ .service = 20, .peer = 21 };
	else
		*c = (struct rs_text_columns){ .service = 24, .peer = 22, .bar = 20 };
	if (!width)
		return;
	c->request = width - 27 - c->service - (c->peer > 0 ? c->peer + 2 : 0) -
		     (c->bar ? c->bar + 2 : 0);
	if (c->request < 12)
		c->request = 12;
}

void rs_text_screen_init(struct rs_text_screen *t, int fd, bool color, int width)
{
	*t = (struct rs_text_screen){ .fd = fd, .width = width };
	rs_style_init(&t->style, color);
	choose_columns(&t->col, width);
}

void rs_text_screen_fit(struct rs_text_screen *t)
{
	int width = t->width ? rs_term_width(t->fd) : 0;

	if (width && width != t->width) {
		t->width = width;
		choose_columns(&t->col, width);
	}
}

static void put_clock(struct rs_text_screen *t, uint64_t ns)
{
	time_t second = (time_t)(ns / 1000000000);
	char ms[8];
	struct tm tm;

	if (second != t->second || !t->clock[0]) {
		if (!localtime_r(&second, &tm))
			memset(&tm, 0, sizeof(tm));
		snprintf(t->clock, sizeof(t->clock), "%02u:%02u:%02u", (unsigned)tm.tm_hour % 24u,
			 (unsigned)tm.tm_min % 60u, (unsigned)tm.tm_sec % 61u);
		t->second = second;
	}
	snprintf(ms, sizeof(ms), ".%03u", (unsigned)(ns / 1000000 % 1000));
	puts_(t, t->style.dim);
	puts_(t, t->clock);
	puts_(t, ms);
	puts_(t, t->style.reset);
}

static const char *arrow(const struct rs_text_span *h)
{
	switch (h->kind) {
	case RS_KIND_SERVER:
	case RS_KIND_CONSUMER:
		return IN_ARROW;
	case RS_KIND_CLIENT:
	case RS_KIND_PRODUCER:
		return OUT_ARROW;
	default:
		return "-";
	}
}

/* Two columns for each level, the last one a branch. Returns the columns. */
static int put_indent(struct rs_text_screen *t, int level, bool branch)
{
	int cols = 2 * (level < MAX_LEVEL ? level : MAX_LEVEL);

	if (cols > t->col.service - 8)
		cols = (t->col.service - 8) & ~1;
	if (!cols)
		return 0;
	pad(t, cols - 2);
	puts_(t, t->style.dim);
	puts_(t, branch ? BRANCH " " : "  ");
	puts_(t, t->style.reset);
	return cols;
}

static void put_service(struct rs_text_screen *t, const struct rs_text_span *h, int level)
{
	int used = put_indent(t, level, true);
	bool in = h->kind == RS_KIND_SERVER || h->kind == RS_KIND_CONSUMER;

	puts_(t, in ? t->style.green : t->style.blue);
	puts_(t, arrow(h));
	puts_(t, " ");
	cell(t, h->service, t->col.service - used - 2);
	puts_(t, t->style.reset);
}

static void put_status(struct rs_text_screen *t, const struct rs_text_span *h)
{
	char code[8] = "ERR";

	if (h->code)
		snprintf(code, sizeof(code), "%3u", h->code);
	if (!h->code && !h->error) {
		puts_(t, t->style.dim);
		puts_(t, h->ok ? " OK" : "  " DASH);
		puts_(t, t->style.reset);
		return;
	}
	puts_(t, h->error || h->code >= 500 ? t->style.red : h->code >= 400 ? t->style.yellow : "");
	puts_(t, code);
	puts_(t, t->style.reset);
}

/* When in the trace the span was, as a bar. */
static void put_bar(struct rs_text_screen *t, const struct rs_text_span *h, uint64_t from,
		    uint64_t to)
{
	double scale = to > from ? (double)t->col.bar / (double)(to - from) : 0;
	int start = (int)((double)(h->start_ns - from) * scale);
	int end = (int)((double)(h->end_ns - from) * scale + 0.5);

	if (start >= t->col.bar)
		start = t->col.bar - 1;
	puts_(t, h->error ? t->style.red : t->style.cyan);
	pad(t, start);
	if (end <= start)
		puts_(t, HALF_BLOCK);
	for (int i = start; i < end; i++)
		puts_(t, BLOCK);
	puts_(t, t->style.reset);
}

void rs_text_screen_line(struct rs_text_screen *t, const struct rs_text_span *h, int level,
			 uint64_t from, uint64_t to)
{
	char duration[RS_HUMAN];
	bool bar = t->col.bar && to;

	put_clock(t, h->start_ns);
	rs_human_duration(duration, h->end_ns - h->start_ns);
	pad(t, 8 - rs_utf8_width(str_c(duration)));
	puts_(t, duration);
	puts_(t, "  ");
	put_service(t, h, level);
	puts_(t, " ");
	cell(t, h->request,
	     t->width || rs_utf8_width(str_c(h->request)) < t->col.request ? t->col.request : 0);
	puts_(t, " ");
	put_status(t, h);
	if (t->col.peer >= 0 && (*h->peer || bar)) {
		puts_(t, "  ");
		puts_(t, t->style.dim);
		cell(t, h->peer, bar || t->width ? t->col.peer : 0);
		puts_(t, t->style.reset);
	}
	if (bar) {
		puts_(t, "  ");
		put_bar(t, h, from, to);
	}
	/* No blanks at a line's end. */
	while (t->len && t->out[t->len - 1] == ' ')
		t->len--;
	puts_(t, "\n");
	if (!*h->note)
		return;
	pad(t, 22);
	put_indent(t, level, false);
	puts_(t, h->error ? t->style.red : t->style.yellow);
	puts_(t, "! ");
	puts_(t, h->note);
	puts_(t, t->style.reset);
	puts_(t, "\n");
}

void rs_text_screen_header(struct rs_text_screen *t)
{
	puts_(t, t->style.bold);
	cell(t, "TIME", 12);
	puts_(t, "    TOOK  ");
	cell(t, "SERVICE", t->col.service);
	puts_(t, " ");
	cell(t, "REQUEST", t->col.request);
	puts_(t, " ");
	puts_(t, t->col.peer >= 0 ? "     PEER" : "");
	puts_(t, t->style.reset);
	puts_(t, "\n");
}
