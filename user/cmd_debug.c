// SPDX-License-Identifier: Apache-2.0
/*
 * debug dump — one process's messages as the running agent understands them, now. What it prints comes from
 * agent_dump.c, a line of JSON each; text for people is made of that here.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "base/term.h"
#include "base/utf8.h"
#include "cmd.h"
#include "status/control.h"

#define LINE_MAX_BYTES (1 << 20)

struct printer {
	bool json, ended;
	struct rs_style style;
	char *line; /* what has come of one */
	size_t len;
	char error[256];
	long long lines, left_out;
};

static const char *str_at_key(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static long long num(const json_t *o, const char *key)
{
	return (long long)json_integer_value(json_object_get(o, key));
}

static void put(const char *text)
{
	char clean[1024];

	rs_utf8_clean(clean, sizeof(clean), str_c(text), 0);
	fputs(clean, stdout);
}

static void put_attributes(const json_t *attrs)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)attrs, key, v)
	{
		char *text =
			json_is_string(v) ? NULL : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

		putchar(' ');
		put(key);
		putchar('=');
		put(text ? text : json_string_value(v) ? json_string_value(v) : "");
		free(text);
	}
}

/* The clock's time of a moment, to the microsecond. */
static void put_time(long long unix_ns)
{
	time_t s = (time_t)(unix_ns / 1000000000);
	char clock[16] = "";
	struct tm tm;

	if (localtime_r(&s, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	printf("%s.%06lld", clock, unix_ns % 1000000000 / 1000);
}

static void put_line(struct printer *p, const json_t *o)
{
	const char *type = str_at_key(o, "type"), *dir = str_at_key(o, "dir");
	const json_t *flags = json_object_get(o, "flags"), *flag;
	size_t i;

	put_time(num(o, "time_unix_nano"));
	printf(" %10lld %s %s%-12s%s", num(o, "conn"),
	       !strcmp(dir, "in")    ? "\xe2\x86\x90"
	       : !strcmp(dir, "out") ? "\xe2\x86\x92"
				     : " ",
	       p->style.bold, type, p->style.reset);
	if (*str_at_key(o, "protocol")) {
		putchar(' ');
		put(str_at_key(o, "protocol"));
	}
	if (!strcmp(type, "data"))
		printf(" %lld bytes at %lld, %lld captured (%s)", num(o, "bytes"), num(o, "offset"),
		       num(o, "captured"), str_at_key(o, "source"));
	if (json_object_get(o, "body_size"))
		printf(" body of %lld bytes", num(o, "body_size"));
	json_array_foreach(flags, i, flag) printf(" [%s]", json_string_value(flag));
	/* Who talks to whom is said where a request begins. */
	if (!strcmp(type, "request") || !strcmp(type, "open")) {
		printf(" %s - %s", str_at_key(o, "local"), str_at_key(o, "peer"));
		put_attributes(json_object_get(o, "attributes"));
	} else if (!strcmp(type, "response") || !strcmp(type, "response_end")) {
		const json_t *attrs = json_object_get(o, "attributes");
		const char *const keys[] = { "http.response.status_code",
					     "rpc.response.status_code", "error.type" };

		for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
			json_t *one = json_object_get(attrs, keys[i]), *alone;

			if (!one)
				continue;
			alone = json_object();
			json_object_set(alone, keys[i], one);
			put_attributes(alone);
			json_decref(alone);
		}
	}
	putchar('\n');
}

static void on_line(struct printer *p, struct str line)
{
	json_t *o = json_loadb(line.ptr, line.len, 0, NULL);

	if (*str_at_key(o, "error")) {
		snprintf(p->error, sizeof(p->error), "%s", str_at_key(o, "error"));
	} else if (!strcmp(str_at_key(o, "type"), "end")) {
		p->ended = true;
		p->lines = num(o, "lines");
		p->left_out = num(o, "left_out");
	} else if (!strcmp(str_at_key(o, "type"), "begin") && !p->json) {
		; /* for scripts that wait for it */
	} else if (p->json) {
		printf("%.*s\n", STR_ARG(line));
	} else if (json_is_object(o)) {
		put_line(p, o);
	}
	json_decref(o);
}

static bool on_bits(void *arg, const char *bits, size_t len)
{
	struct printer *p = arg;

	while (len) {
		const char *end = memchr(bits, '\n', len);
		size_t n = end ? (size_t)(end - bits) : len;

		if (p->len + n > LINE_MAX_BYTES)
			return false;
		memcpy(p->line + p->len, bits, n);
		p->len += n;
		bits += n + (end != NULL);
		len -= n + (end != NULL);
		if (end) {
			on_line(p, str_of(p->line, p->len));
			p->len = 0;
		}
	}
	return fflush(stdout) == 0 && !p->ended;
}

static int dump(const struct rs_config *cfg)
{
	struct printer p = { .json = cfg->json, .line = malloc(LINE_MAX_BYTES) };
	char request[64], err[512];
	int rc;

	if (!p.line) {
		rs_error("out of memory");
		return RS_EXIT_FAILED;
	}
	rs_style_init(&p.style, rs_term_color(STDOUT_FILENO, (enum rs_color)cfg->color));
	snprintf(request, sizeof(request), "dump %u %llu", cfg->pids.v[0],
		 (unsigned long long)cfg->seconds);
	rc = rs_control_listen(cfg->socket, request, (unsigned)cfg->seconds + 5, on_bits, &p, err,
			       sizeof(err));
	free(p.line);
	if (!rc && *p.error)
		rs_error("%s", p.error);
	else if (!rc && !p.ended && !ferror(stdout))
		rs_error("the agent on %s has ended, or does not know this request", cfg->socket);
	else if (rc)
		rs_error("%s", err);
	else if (!p.lines)
		rs_info("nothing seen of process %u in %llu s; `ringspan status --pid %u` may say why",
			cfg->pids.v[0], (unsigned long long)cfg->seconds, cfg->pids.v[0]);
	else if (p.left_out)
		rs_warn("%lld lines left out: more than could be shown", p.left_out);
	return rc || *p.error || (!p.ended && !ferror(stdout)) ? RS_EXIT_FAILED : RS_EXIT_OK;
}

int rs_cmd_debug(struct rs_config *cfg)
{
	if (cfg->nargs != 1 || strcmp(cfg->args[0], "dump"))
		rs_error("debug: what? there is: ringspan debug dump --pid PID");
	else if (cfg->pids.n != 1)
		rs_error("debug dump: of which process? give one --pid PID");
	else
		return dump(cfg);
	return RS_EXIT_USAGE;
}
