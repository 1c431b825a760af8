// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

#include "utf8.h"

static enum rs_log_level max_level = RS_LOG_INFO;

/* A ring of what was said: written at `said` modulo its size. */
static char tail[RS_LOG_TAIL];
static size_t said;

static void keep(const char *text)
{
	for (; *text; text++)
		tail[said++ % sizeof(tail)] = *text;
}

size_t rs_log_tail(char *buf, size_t size)
{
	size_t n = said < sizeof(tail) ? said : sizeof(tail), from;

	n = n < size ? n : size;
	from = said - n;
	/* A line that has lost its beginning is left out. */
	while (from && n && tail[(from - 1) % sizeof(tail)] != '\n') {
		from++;
		n--;
	}
	for (size_t i = 0; i < n; i++)
		buf[i] = tail[(from + i) % sizeof(tail)];
	return n;
}

void rs_log_set_level(enum rs_log_level level)
{
	max_level = level;
}

void rs_log(enum rs_log_level level, const char *fmt, ...)
{
	static const char *const word[] = { "error: ", "warning: ", "", "debug: " };
	char text[2048], line[2048];
	va_list ap;

	if (level > max_level)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* File names and the like are shown, not obeyed by the terminal. */
	rs_utf8_clean(line, sizeof(line), str_c(text), 0);
	fprintf(stderr, "ringspan: %s%s\n", word[level], line);
	keep(word[level]);
	keep(line);
	keep("\n");
}
