// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/utf8.h"
#include "export/text.h"
#include "unit.h"

#define MS 1000000ull

/* A batch under construction, and a file that text is written to. */
struct fixture {
	struct rs_batch b;
	struct rs_text *t;
	int fd;
	char *out; /* what has been written so far */
};

static struct fixture *setup(bool color, int width)
{
	struct fixture *f = calloc(1, sizeof(*f));

	setenv("TZ", "UTC", 1);
	tzset();
	f->fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	assert_true(f->fd >= 0);
	f->t = rs_text_new(&(struct rs_text_opts){ .fd = f->fd, .color = color, .width = width });
	assert_non_null(f->t);
	rs_batch_init(&f->b, 0);
	return f;
}

static const char *written(struct fixture *f)
{
	off_t n = lseek(f->fd, 0, SEEK_END);

	free(f->out);
	f->out = calloc(1, (size_t)n + 1);
	assert_int_equal(pread(f->fd, f->out, (size_t)n, 0), n);
	return f->out;
}

static void teardown(struct fixture *f)
{
	rs_text_free(f->t);
	rs_batch_release(&f->b);
	close(f->fd);
	free(f->out);
	free(f);
}

static struct rs_attr *attr(struct rs_span *s, struct rs_arena *a, enum rs_known_key k)
{
	if (!s->attrs.a)
		s->attrs.a = rs_arena_alloc(a, 16 * sizeof(struct rs_attr));
	((struct rs_attr *)s->attrs.a)[s->attrs.n].key = rs_key(k);
	return (struct rs_attr *)&s->attrs.a[s->attrs.n++];
}

static void attr_str(struct fixture *f, struct rs_span *s, enum rs_known_key k, const char *v)
{
	attr(s, &f->b.arena, k)->val =
		(struct rs_val){ .type = RS_VAL_STR, .len = (uint32_t)strlen(v), .str = v };
}

static void attr_int(struct fixture *f, struct rs_span *s, enum rs_known_key k, int64_t v)
{
	attr(s, &f->b.arena, k)->val = (struct rs_val){ .type = RS_VAL_INT, .i = v };
}

/* A span of its own resource, from start to end ms. */
static struct rs_span *span(struct fixture *f, const char *service, uint8_t trace, uint8_t id,
			    uint8_t parent, enum rs_span_kind kind, unsigned start, unsigned end,
			    const char *path, int code)
{
	struct rs_resource_spans *rs = rs_batch_add_resource(&f->b);
	struct rs_span *s = rs_batch_add_span(&f->b, rs_batch_add_scope(&f->b, rs));
	struct rs_attr *a = rs_arena_alloc(&f->b.arena, sizeof(*a));

	a->key = rs_key(RS_K_SERVICE_NAME);
	a->val = (struct rs_val){ .type = RS_VAL_STR,
				  .len = (uint32_t)strlen(service),
				  .str = service };
	rs->resource.attrs = (struct rs_attrs){ a, 1, 0 };
	s->trace_id[0] = trace;
	s->span_id[7] = id;
	s->parent_id[7] = parent;
	s->kind = (uint8_t)kind;
	s->start_ns = 3600000 * MS + start * MS;
	s->end_ns = 3600000 * MS + end * MS;
	s->name = STR("NAME");
	attr_str(f, s, RS_K_HTTP_REQUEST_METHOD, "GET");
	attr_str(f, s, RS_K_URL_PATH, path);
	if (code)
		attr_int(f, s, RS_K_HTTP_RESPONSE_STATUS_CODE, code);
	return s;
}

static void send_batch(struct fixture *f, uint64_t now)
{
	assert_int_equal(rs_text_batch(f->t, &f->b, now), 0);
	rs_batch_reset(&f->b);
}

/* Children come first, and in other batches; the lines stand under their parents. */
static void test_tree(void **state)
{
	struct fixture *f = setup(false, 0);

	(void)state;
	span(f, "db", 1, 4, 3, RS_KIND_SERVER, 4, 5, "/d", 200);
	span(f, "node", 1, 3, 2, RS_KIND_CLIENT, 3, 6, "/c", 200);
	send_batch(f, 1);
	assert_string_equal(written(f), "");
	span(f, "other", 2, 9, 0, RS_KIND_SERVER, 1, 2, "/o", 404);
	span(f, "node", 1, 5, 2, RS_KIND_CLIENT, 2, 3, "/b", 500);
	span(f, "node", 1, 2, 0, RS_KIND_SERVER, 0, 10, "/a", 200);
	send_batch(f, 2);
	assert_string_equal(
		written(f),
		"01:00:00.000  10.0ms  ← node                 GET /a                                       200\n"
		"01:00:00.002  1.00ms  └ → node               GET /b                                       500\n"
		"01:00:00.003  3.00ms  └ → node               GET /c                                       200\n"
		"01:00:00.004  1.00ms    └ ← db               GET /d                                       200\n"
		"01:00:00.001  1.00ms  ← other                GET /o                                       404\n");
	teardown(f);
}

/* A parent that never comes: the spans are shown after a while, or at the end. */
static void test_without_root(void **state)
{
	struct fixture *f = setup(false, 0);

	(void)state;
	span(f, "a", 1, 2, 7, RS_KIND_SERVER, 0, 1, "/x", 200);
	send_batch(f, 5);
	assert_int_equal(rs_text_tick(f->t, RS_TEXT_HOLD_NS), 0);
	assert_string_equal(written(f), "");
	assert_int_equal(rs_text_tick(f->t, RS_TEXT_HOLD_NS + 6), 0);
	assert_has(written(f), "GET /x");
	span(f, "a", 1, 3, 7, RS_KIND_SERVER, 0, 1, "/y", 200);
	send_batch(f, 7);
	assert_null(strstr(written(f), "GET /y"));
	assert_int_equal(rs_text_flush(f->t), 0);
	assert_has(written(f), "GET /y");
	teardown(f);
}

/* A client's URL without a path: only OPTIONS asks for no resource of the server's (RFC 9112 3.2.4). */
static void test_asterisk(void **state)
{
	static const char *const rows[][2] = { { "OPTIONS", " OPTIONS * " }, { "GET", " GET / " } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture *f = setup(false, 0);
		struct rs_span *s = span(f, "a", 1, 2, 0, RS_KIND_CLIENT, 0, 1, "", 200);

		((struct rs_attr *)s->attrs.a)[0].val.str = rows[i][0];
		((struct rs_attr *)s->attrs.a)[0].val.len = (uint32_t)strlen(rows[i][0]);
		attr_str(f, s, RS_K_URL_FULL, "http://shop.example");
		send_batch(f, 1);
		assert_has(written(f), rows[i][1]);
		teardown(f);
	}
}

static unsigned lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* Spans that name each other as parents, or themselves: each is shown once. */
static void test_rings(void **state)
{
	struct fixture *f = setup(false, 0);

	(void)state;
	span(f, "a", 1, 1, 2, RS_KIND_SERVER, 0, 1, "/a", 200);
	span(f, "a", 1, 2, 3, RS_KIND_SERVER, 0, 1, "/b", 200);
	span(f, "a", 1, 3, 1, RS_KIND_SERVER, 0, 1, "/c", 200);
	span(f, "a", 1, 4, 4, RS_KIND_SERVER, 0, 1, "/d", 200);
	span(f, "a", 1, 4, 1, RS_KIND_SERVER, 0, 1, "/e", 200); /* an id twice */
	send_batch(f, 1);
	rs_text_flush(f->t);
	assert_int_equal(lines(written(f)), 5);
	teardown(f);
}

/* Far more than is held, in one endless trace, in many, and as a deep chain: nothing is lost. */
static void test_bounds(void **state)
{
	struct fixture *f = setup(false, 80);

	(void)state;
	for (unsigned i = 0; i < 3 * RS_TEXT_SPANS; i++) {
		struct rs_span *s = span(f, "a", 1, 0, 0, RS_KIND_SERVER, 0, 1, "/a", 200);
		uint32_t id = i + 1, parent = i + 2;

		if (i % 2)
			memcpy(s->trace_id + 2, &id, 4);
		memcpy(s->span_id, &id, 4);
		memcpy(s->parent_id, &parent, 4);
		if (i % 1000 == 999)
			send_batch(f, i);
	}
	send_batch(f, 9);
	rs_text_flush(f->t);
	assert_int_equal(lines(written(f)), 3 * RS_TEXT_SPANS);
	teardown(f);
}

/* Nothing that a peer sends reaches the terminal as a command. */
static void test_hostile(void **state)
{
	struct fixture *f = setup(false, 0);
	struct rs_event e = { .name = STR("ev\x1b]0;x\x07") };
	struct rs_span *s;
	struct str rest;

	(void)state;
	s = span(f, "s\x1b[2J", 1, 1, 0, RS_KIND_CLIENT, 0, 1,
		 "/\x1b[31m\r\n\xff\xc2\x9b\xe2\x80\xae", 0);
	attr_str(f, s, RS_K_ERROR_TYPE, "bad\nline");
	s->status = RS_STATUS_ERROR;
	attr_str(f, s, RS_K_SERVER_ADDRESS, "h\x1bost");
	s->events = &e;
	s->nevents = 1;
	s->status_msg = STR("\x7f");
	send_batch(f, 1);
	assert_int_equal(lines(written(f)), 2);
	assert_has(f->out, " ERR  h\\x1bost\n");
	assert_has(f->out, "! bad\\x0aline, \\x7f, ev\\x1b]0;x\\x07\n");
	for (rest = str_c(f->out); rest.len;) {
		uint32_t cp = 0;
		size_t n = rs_utf8_decode(rest, &cp);

		assert_true(n && (cp == '\n' ||
				  (cp >= 0x20 && !(cp >= 0x7f && cp < 0xa0) && cp != 0x202e)));
		rest = str_from(rest, n);
	}
	teardown(f);
}

/* No line is wider than the terminal. */
static void test_widths(void **state)
{
	(void)state;
	for (int width = 70; width < 220; width += 3) {
		struct fixture *f = setup(false, width);
		struct str rest, line;

		for (uint8_t i = 1; i < 30; i++) {
			struct rs_span *s = span(
				f, "日本語-service-with-a-long-name", 1, i, i - 1, RS_KIND_CLIENT,
				i, 1000,
				"/日本語/a/path/that/goes/on/and/on/and/on/and/on/for/ever/"
				"and/ever/and/ever/and/ever/and/ever/and/ever/and/ever/and/ever",
				200);

			attr_str(f, s, RS_K_SERVER_ADDRESS,
				 "2001:db8:1111:2222:3333:4444:5555:6666");
			attr_int(f, s, RS_K_SERVER_PORT, 65535);
		}
		send_batch(f, 1);
		assert_int_equal(lines(written(f)), 29);
		for (rest = str_c(f->out); rest.len;) {
			rest = str_cut(rest, '\n', &line);
			if (rs_utf8_width(line) > width)
				fail_msg("%d: %.*s", width, STR_ARG(line));
		}
		teardown(f);
	}
}

static void test_color(void **state)
{
	struct fixture *f = setup(true, 100);

	(void)state;
	span(f, "a", 1, 1, 0, RS_KIND_SERVER, 0, 1, "/a", 503)->status = RS_STATUS_ERROR;
	send_batch(f, 1);
	assert_has(written(f), "\033[31m503\033[0m");
	teardown(f);
}

/* The first error is what is returned from then on. */
static void test_full_disk(void **state)
{
	struct fixture *f = setup(false, 0);
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(dup2(fd, f->fd), f->fd);
	span(f, "a", 1, 1, 0, RS_KIND_SERVER, 0, 1, "/a", 200);
	assert_int_equal(rs_text_batch(f->t, &f->b, 1), -ENOSPC);
	assert_int_equal(rs_text_tick(f->t, 2), -ENOSPC);
	assert_int_equal(rs_text_flush(f->t), -ENOSPC);
	close(fd);
	teardown(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),	  cmocka_unit_test(test_without_root),
		cmocka_unit_test(test_asterisk),  cmocka_unit_test(test_rings),
		cmocka_unit_test(test_bounds),	  cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_widths),	  cmocka_unit_test(test_color),
		cmocka_unit_test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
