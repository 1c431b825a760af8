// SPDX-License-Identifier: Apache-2.0
/* l7: what a connection's records say when bytes are missing, late, long, or of another protocol. */
#include <stdlib.h>

#include "alloc_count.h"
#include "drive.h"
#include "unit.h"

static int setup(void **state)
{
	struct drive *d = malloc(sizeof(*d));

	assert_non_null(d);
	drive_init(d);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct drive *d = *state;

	rs_l7_release(&d->l7, &d->env);
	assert_true(drive_conserved(d));
	assert_int_equal(d->counters.v[RS_C_STREAM_HELD], 0);
	drive_release(d);
	free(d);
	return 0;
}

static void ask(struct drive *d, const char *text)
{
	drive_send(d, TO_SERVER, str_c(text));
}

static void answer(struct drive *d, const char *text)
{
	drive_send(d, TO_CLIENT, str_c(text));
}

static void want(struct drive *d, const char *text)
{
	assert_string_equal(d->text, text);
	d->len = 0;
	d->text[0] = 0;
}

#define OK2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void test_times_and_seq(void **state)
{
	struct drive *d = *state;

	d->times = true;
	d->seq[RS_DIR_IN] = 0xfffffff0;
	d->seq[RS_DIR_OUT] = 1000;
	ask(d, "GET /1 HTTP/1.1\r\n");			   /* 1: seq 0xfffffff0 */
	ask(d, "\r\nGET /2 HTTP/1.1\r\n\r\nPOST /3");	   /* 2 */
	ask(d, " HTTP/1.1\r\nContent-Length: 3\r\n\r\na"); /* 3 */
	answer(d, "HTTP/1.1 204 No\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na"); /* 4 */
	answer(d, "bc");								   /* 5 */
	ask(d, "bc");									   /* 6 */
	answer(d, "d");									   /* 7 */
	want(d, "> GET /1 1.1 1-2 4294967280 102\n"
		"> end 0 2-2 0 102\n"
		"> GET /2 1.1 2-2 3 102\n"
		"> end 0 2-2 0 102\n"
		"> POST /3 1.1 2-3 22 103\n"
		"< 204 1.1 4-4 1000 104\n"
		"< end 0 4-4 0 104\n"
		"< 200 1.1 4-4 1019 104\n"
		"> end 3 6-6 0 106\n"
		"< end 4 7-7 0 107\n");
}

static void test_close_delimited_ends_with_its_last_byte(void **state)
{
	struct drive *d = *state;

	d->times = true;
	ask(d, "GET / HTTP/1.0\r\n\r\n");
	answer(d, "HTTP/1.0 200 OK\r\n\r\nab");
	answer(d, "cd");
	drive_close(d, RS_CLOSE_IN); /* the client's half */
	drive_close(d, RS_CLOSE_ALL);
	want(d,
	     "> GET / 1.0 1-1 0 101\n> end 0 1-1 0 101\n< 200 1.0 2-2 0 102\n< end 4 3-3 0 103\n");
}

static void test_broken_off_ends_with_the_close(void **state)
{
	struct drive *d = *state;

	d->times = true;
	ask(d, "GET / HTTP/1.1\r\n\r\n");
	answer(d, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab");
	d->now = 50;
	drive_close(d, RS_CLOSE_ALL);
	drive_close(d, RS_CLOSE_ALL);
	want(d,
	     "> GET / 1.1 1-1 0 101\n> end 0 1-1 0 101\n< 200 1.1 2-2 0 102\n< end 2 aborted 50-50 0 102\n");
}

static void test_long_body_is_skipped(void **state)
{
	struct drive *d = *state;
	const char *head = "HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n";
	uint32_t n = (uint32_t)strlen(head);

	d->times = true;
	ask(d, "GET /100m HTTP/1.1\r\n\r\n");
	answer(d, head);
	assert_int_equal(d->policies, 1);
	assert_int_equal(d->policy.stop, 0);
	assert_int_equal(d->policy.skip_until[RS_DIR_OUT], n + 104857600u);
	assert_int_equal(d->policy.skip_until[RS_DIR_IN], 0);
	for (int i = 0; i < 99; i++)
		drive_cut(d, TO_CLIENT, STR_NONE, 1048576, STR_NONE);
	want(d, "> GET /100m 1.1 1-1 0 101\n> end 0 1-1 0 101\n< 200 1.1 2-2 0 102\n");
	drive_lose(d, TO_CLIENT, 48576);
	drive_cut(d, TO_CLIENT, STR_NONE, 1000000, STR_NONE);
	want(d, "< end 104857600 102-102 0 202\n");
	ask(d, "GET /2 HTTP/1.1\r\n\r\n");
	answer(d, OK2);
	want(d,
	     "> GET /2 1.1 103-103 0 203\n> end 0 103-103 0 203\n< 200 1.1 104-104 0 204\n< end 2 104-104 0 204\n");
	assert_int_equal(d->counters.v[RS_C_STREAM_LOST], 0);
}

static void test_one_write_with_a_body_not_captured(void **state)
{
	struct drive *d = *state;

	ask(d, "GET / HTTP/1.1\r\n\r\n");
	drive_cut(d, TO_CLIENT, STR("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\nabc"),
		  41 + 5000, STR("12345678"));
	want(d, "> GET / 1.1\n> end 0\n< 200 1.1\n< end 5000\n");
	assert_int_equal(d->counters.v[RS_C_STREAM_LOST], 0);
}

/* Size lines of chunks are in what was not captured; the last chunk is in the tail. */
static void test_last_chunk_in_the_tail(void **state)
{
	struct drive *d = *state;
	struct str head = STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc");

	for (int i = 0; i < 2; i++) {
		ask(d, "GET / HTTP/1.1\r\n\r\n");
		drive_cut(d, TO_CLIENT, head, 9000, STR("z\r\n0\r\n\r\n"));
		want(d, "> GET / 1.1\n> end 0\n< 200 1.1\n< end ?\n");
	}
	/* One chunk: everything after its data is in the tail, nothing is missing. */
	ask(d, "GET / HTTP/1.1\r\n\r\n");
	drive_cut(d, TO_CLIENT, head, (uint32_t)head.len + 13 + 7, STR("z\r\n0\r\n\r\n"));
	want(d, "> GET / 1.1\n> end 0\n< 200 1.1\n< end 16\n");
	/* No end in the tail: a later write brings it, alone or at its end. */
	ask(d, "GET / HTTP/1.1\r\n\r\n");
	drive_cut(d, TO_CLIENT, head, 9000, STR("abcdef\r\n"));
	answer(d, "0\r\n\r\n");
	want(d, "> GET / 1.1\n> end 0\n< 200 1.1\n< end ?\n");
	ask(d, "GET / HTTP/1.1\r\n\r\n");
	drive_cut(d, TO_CLIENT, head, 9000, STR("abcdefgh"));
	drive_cut(d, TO_CLIENT, STR("x"), 9000, STR("z\r\n0\r\n\r\n"));
	want(d, "> GET / 1.1\n> end 0\n< 200 1.1\n< end ?\n");
	/* The last chunk is read in two pieces. */
	ask(d, "GET / HTTP/1.1\r\n\r\n");
	drive_cut(d, TO_CLIENT, head, 9000, STR("abcd\r\n0\r"));
	answer(d, "\n\r");
	answer(d, "\n");
	want(d, "> GET / 1.1\n> end 0\n< 200 1.1\n< end ?\n");
	/* Never: the next request says so. */
	ask(d, "GET /a HTTP/1.1\r\n\r\n");
	drive_cut(d, TO_CLIENT, head, 9000, STR("abcdefgh"));
	ask(d, "GET /b HTTP/1.1\r\n\r\n");
	want(d, "> GET /a 1.1\n> end 0\n< 200 1.1\n< end ? cut\n> GET /b 1.1\n> end 0\n");
}

static void test_cut_heads(void **state)
{
	struct drive *d = *state;

	/* The request's head: a tail that looks like its end, the answer, or nothing but the close. */
	drive_cut(d, TO_SERVER, STR("GET /a HTTP/1.1\r\nHost: h\r\nCookie: aaaa"), 9000,
		  STR("aaaa\r\n\r\n"));
	want(d, "> GET /a 1.1 host=h cut\n> end 0 cut\n");
	answer(d, OK2);
	want(d, "< 200 1.1\n< end 2\n");
	drive_cut(d, TO_SERVER, STR("POST /a HTTP/1.1\r\nHost: h\r\nCookie: aaaa"), 9000,
		  STR("aaaa\r\n\r\n"));
	want(d, "> POST /a 1.1 host=h cut\n");
	answer(d, OK2);
	want(d, "> end 0 cut\n< 200 1.1\n< end 2\n");
	/* A target of which not all was captured is not what was asked for. */
	drive_cut(d, TO_SERVER, STR("GET /long?a=b"), 900, STR("aaaa\r\n\r\n"));
	answer(d, OK2);
	want(d, "< 200 1.1\n< end 2\n");
	drive_again(d);
	/* The response's head. */
	ask(d, "GET /b HTTP/1.1\r\n\r\n");
	drive_cut(d, TO_CLIENT, STR("HTTP/1.1 500 Oh\r\nContent-Length: 3\r\nSet-Cookie: x"), 9000,
		  STR("abcdefgh"));
	ask(d, "GET /c HTTP/1.1\r\n\r\n");
	want(d, "> GET /b 1.1\n> end 0\n< 500 1.1 cut\n< end 0 cut\n> GET /c 1.1\n> end 0\n");
	drive_cut(d, TO_CLIENT, STR("HTTP/1.1 304 Not"), 9000, STR("abcd\r\n\r\n"));
	want(d, "< 304 1.1 cut\n< end 0 cut\n");
	ask(d, "GET /d HTTP/1.1\r\n\r\n");
	drive_cut(d, TO_CLIENT, STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b"), 9000,
		  STR("\r\n0\r\n\r\n"));
	want(d, "> GET /d 1.1\n> end 0\n< 200 1.1 cut\n< end ? cut\n");
	ask(d, "GET /e HTTP/1.1\r\n\r\n");
	drive_cut(d, TO_CLIENT, STR("HTTP/1.1 200 OK\r\n"), 9000, STR("abcdefgh"));
	drive_close(d, RS_CLOSE_ALL);
	want(d, "> GET /e 1.1\n> end 0\n< 200 1.1 cut\n< end 0 cut\n");
	/* Interim: what follows is looked for. */
	drive_again(d);
	ask(d, "GET /f HTTP/1.1\r\n\r\n");
	drive_cut(d, TO_CLIENT, STR("HTTP/1.1 103 Early\r\nLink: <"), 9000, STR("abcdefgh"));
	answer(d, OK2);
	want(d, "> GET /f 1.1\n> end 0\n< interim 103 1.1 cut\n< 200 1.1 resync\n< end 2\n");
	/* An upgrade stays one. */
	ask(d, "GET /g HTTP/1.1\r\n\r\n");
	drive_cut(d, TO_CLIENT, STR("HTTP/1.1 101 Sw\r\nLink: <"), 9000, STR("abcdefgh"));
	want(d, "> GET /g 1.1\n> end 0\n< 101 1.1 cut tunnel\n< end 0\n");
	assert_int_equal(d->policy.stop, 1);
}

static void test_lost_records(void **state)
{
	struct drive *d = *state;

	/* Inside a body of known length nothing is lost. */
	ask(d, "GET /0 HTTP/1.1\r\n\r\n");
	answer(d, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab");
	drive_lose(d, TO_CLIENT, 5);
	answer(d, "xyz");
	want(d, "> GET /0 1.1\n> end 0\n< 200 1.1\n< end 10\n");
	/* A whole response. */
	ask(d, "GET /1 HTTP/1.1\r\n\r\n");
	drive_lose(d, TO_CLIENT, strlen(OK2));
	ask(d, "GET /2 HTTP/1.1\r\n\r\n");
	answer(d, OK2);
	want(d, "> GET /1 1.1\n> end 0\n> GET /2 1.1\n> end 0\n< 200 1.1 resync\n< end 2\n");
	/* A whole request. */
	drive_lose(d, TO_SERVER, 19);
	answer(d, OK2);
	ask(d, "GET /4 HTTP/1.1\r\n\r\n");
	answer(d, OK2);
	want(d, "< 200 1.1\n< end 2\n> GET /4 1.1 resync\n> end 0\n< 200 1.1\n< end 2\n");
	/* The middle of a head. */
	ask(d, "GET /5 HTTP/1.1\r\nHost: a");
	drive_lose(d, TO_SERVER, 10);
	ask(d, "b\r\n\r\n");
	want(d, "> GET /5 1.1 cut\n");
	answer(d, OK2);
	want(d, "> end 5 cut\n< 200 1.1\n< end 2\n");
	/* From the middle of one message to the middle of the next. */
	ask(d, "POST /6 HTTP/1.1\r\nContent-Length: 4\r\n\r\nab");
	drive_lose(d, TO_SERVER, 20);
	ask(d, "rest of body GET of {}GET /8 HTTP/1.1\r\n\r\n");
	want(d, "> POST /6 1.1\n> end 4\n> GET /8 1.1 resync\n> end 0\n");
	answer(d, OK2 "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na");
	drive_lose(d, TO_CLIENT, 30);
	answer(d, "body HTTP/1.x H HTTP HTTP/1.1 20");
	answer(d, "4 No\r\n\r\n");
	want(d, "< 200 1.1\n< end 2\n< 200 1.1\n< end 3\n< 204 1.1 resync\n< end 0\n");
	assert_true(d->counters.v[RS_C_STREAM_LOST] > 0);
	assert_true(d->counters.v[RS_C_STREAM_OUT_OF_STEP] > 0);
}

static void test_late_records(void **state)
{
	struct drive *d = *state;

	ask(d, "GET /1 HTTP/1.1\r\n\r\n");
	d->off[RS_DIR_IN] = 0;
	ask(d, "GET /1 HTTP/1.1\r\n\r\n");
	d->off[RS_DIR_IN] = 10;
	ask(d, "/1.1\r\n\r\n\r\nGET /2 HTTP/1.1\r\n\r\n"); /* 9 bytes known, the rest new */
	want(d, "> GET /1 1.1\n> end 0\n> GET /2 1.1\n> end 0\n");
	assert_int_equal(d->counters.v[RS_C_STREAM_LATE], 19 + 9);
}

static void test_unknown_protocol_is_stopped(void **state)
{
	struct drive *d = *state;

	for (int i = 0; i < 8; i++) {
		assert_int_equal(d->policies, 0);
		drive_send(d, i % 2 ? TO_CLIENT : TO_SERVER, STR("\x16\x03\x01 whatever"));
	}
	assert_int_equal(d->policies, 1);
	assert_int_equal(d->policy.stop, 1);
	assert_int_equal(d->counters.v[RS_C_PROTO_UNKNOWN], 1);
	ask(d, "GET /1 HTTP/1.1\r\n\r\n");
	want(d, "");
	/* One that goes on in one direction is looked at for longer. */
	drive_again(d);
	for (int i = 0; i < 200; i++)
		drive_cut(d, TO_CLIENT, STR("download"), 65536, STR("download"));
	ask(d, "GET /1 HTTP/1.1\r\n\r\n");
	want(d, "> GET /1 1.1\n> end 0\n");
	drive_again(d);
	for (int i = 0; i < 300; i++)
		answer(d, "\x01download");
	assert_int_equal(d->policies, 1);
	/* Bytes that cannot be read say nothing. */
	drive_again(d);
	for (int i = 0; i < 3000; i++)
		drive_cut(d, i & 1 ? TO_CLIENT : TO_SERVER, STR_NONE, 65536, STR_NONE);
	ask(d, "GET /1 HTTP/1.1\r\n\r\n");
	want(d, "> GET /1 1.1\n> end 0\n");
	assert_int_equal(d->policies, 0);
}

static void test_tunnel_is_stopped(void **state)
{
	struct drive *d = *state;

	ask(d, "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n");
	answer(d, "HTTP/1.1 101 Sw\r\n\r\n\x81\x02hi");
	want(d, "> GET /ws 1.1\n> end 0\n< 101 1.1 tunnel\n< end 0\n");
	assert_int_equal(d->policy.stop, 1);
	ask(d, "GET /1 HTTP/1.1\r\n\r\n");
	drive_close(d, RS_CLOSE_ALL);
	want(d, "");
	assert_int_equal(d->counters.v[RS_C_PROTO_TUNNEL], 1);
}

/* What looks like HTTP for a moment only, again and again, is given up in the end. */
static void test_failures_are_bounded(void **state)
{
	struct drive *d = *state;

	for (int i = 0; i < 16; i++) {
		assert_int_equal(d->counters.v[RS_C_PROTO_REINFERRED], i);
		ask(d, "POST /1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
		for (int k = 0; k < 64; k++)
			ask(d, "zzz");
	}
	assert_int_equal(d->counters.v[RS_C_PROTO_GAVE_UP], 1);
	assert_int_equal(d->policy.stop, 1);
	ask(d, "GET /1 HTTP/1.1\r\n\r\n");
	assert_int_equal(d->messages, 16);
}

static void test_longest_heads(void **state)
{
	struct drive *d = *state;
	size_t n = RS_HEAD_MAX + 1000;
	char *text = malloc(n), *p = text;

	assert_non_null(text);
	/* A target of 8 KB, then lines up to the limit. */
	p = stpcpy(p, "GET /");
	p = mempcpy(p, memset(p, 'a', 8191), 8191);
	p = stpcpy(p, " HTTP/1.1\r\n");
	while (p < text + RS_HEAD_MAX - 200)
		p = stpcpy(p, "X-Header: some value that fills the head with something\r\n");
	p = stpcpy(p, "Host: h\r\n\r\n");
	for (size_t step = 1; step <= 5000; step = step * 7 + 3) {
		for (size_t at = 0; at < (size_t)(p - text); at += step)
			drive_send(d, TO_SERVER,
				   str_at(str_of(text, (size_t)(p - text)), at, step));
		assert_int_equal(d->messages, 2);
		assert_has(d->text, "a 1.1 host=h\n> end 0\n");
		answer(d, OK2);
		assert_int_equal(d->messages, 4);
		assert_null(strstr(d->text, "cut"));
		drive_again(d);
	}
	/* Longer: cut there, and in step again with the answer. */
	memset(text, 'b', n);
	memcpy(text, "GET / HTTP/1.1\r\nHost: h\r\nX: ", 28);
	drive_send(d, TO_SERVER, str_of(text, n));
	want(d, "> GET / 1.1 host=h cut\n");
	answer(d, OK2);
	ask(d, "GET /2 HTTP/1.1\r\n\r\n");
	want(d, "> end 1000 cut\n< 200 1.1\n< end 2\n> GET /2 1.1\n> end 0\n");
	assert_int_equal(d->counters.v[RS_C_STREAM_LOST], 0);
	/* A start line may be as long as a head: as the first message and behind another, in pieces of any size. */
	drive_again(d);
	memset(text, 'c', 20000);
	memcpy(text, "GET /", 5);
	for (size_t step = 100; step <= 4096; step = step * 6) {
		for (int again = 0; again < 2; again++) {
			for (size_t at = 0; at < 20000; at += step)
				drive_send(d, TO_SERVER, str_at(str_of(text, 20000), at, step));
			ask(d, " HTTP/1.1\r\nHost: h\r\n\r\n");
			assert_int_equal(d->messages, 2 + 4 * again);
			answer(d, OK2);
			assert_int_equal(d->messages, 4 + 4 * again);
			assert_null(strstr(d->text, "cut"));
		}
		drive_again(d);
	}
	/* Longer than that: its method and much of its target. */
	memset(text, 'd', n);
	memcpy(text, "GET /", 5);
	drive_send(d, TO_SERVER, str_of(text, n));
	ask(d, " HTTP/1.1\r\n\r\n");
	answer(d, OK2);
	assert_int_equal(d->messages, 4);
	assert_has(d->text, "cut\n> end");
	ask(d, "GET /2 HTTP/1.1\r\n\r\n");
	assert_int_equal(d->messages, 6);
	free(text);
}

static void test_deep_pipelines(void **state)
{
	struct drive *d = *state;

	/* Any number of one kind. */
	for (int i = 0; i < 100000; i++)
		ask(d, "GET / HTTP/1.1\r\n\r\n");
	ask(d, "HEAD / HTTP/1.1\r\n\r\n");
	for (int i = 0; i < 100001; i++)
		answer(d, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(d->messages, 4 * 100001);
	assert_null(strstr(d->text, "cut"));
	/* Kinds in turn: what is not remembered is said to be so. */
	drive_again(d);
	for (int i = 0; i < 20; i++)
		ask(d, i % 2 ? "HEAD / HTTP/1.1\r\n\r\n" : "GET / HTTP/1.1\r\n\r\n");
	d->len = 0;
	for (int i = 0; i < 20; i++)
		answer(d, i % 2 ? "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" : OK2);
	assert_int_equal(d->messages, 80);
	assert_has(d->text, "< 200 1.1 cut\n< end 2 cut\n");
	assert_int_equal(memcmp(d->text, "< 200 1.1\n< end 2\n< 200 1.1\n< end 0\n", 36), 0);
}

/* A client's threads: one reads the answer before the other's send is over. */
static void test_answer_recorded_before_its_request(void **state)
{
	struct drive *d = *state;

	d->client = true;
	ask(d, "GET /0 HTTP/1.1\r\n\r\n");
	answer(d, OK2);
	answer(d, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
	ask(d, "GET /1 HTTP/1.1\r\n\r\n");
	answer(d, "cd");
	want(d,
	     "> GET /0 1.1\n> end 0\n< 200 1.1\n< end 2\n< 200 1.1\n> GET /1 1.1\n> end 0\n< end 4\n");
	answer(d, "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n");
	ask(d, "HEAD /2 HTTP/1.1\r\n\r\n");
	want(d, "< 200 1.1\n< end 0 cut\n> HEAD /2 1.1\n> end 0\n");
	ask(d, "HEAD /3 HTTP/1.1\r\n\r\n");
	answer(d, "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n");
	want(d, "> HEAD /3 1.1\n> end 0\n< 200 1.1\n< end 0\n");
}

static void test_windows_run_out(void **state)
{
	struct drive *d = *state;

	ask(d, "GET /0 HTTP/1.1\r\n\r\n");
	for (int i = 0; i < RS_WINDOW_CLASSES; i++)
		d->env.windows.pool[i].max = d->env.windows.pool[i].made = 0;
	ask(d, "GET /1 HT");
	ask(d, "TP/1.1\r\n\r\n");
	ask(d, "GET /2 HTTP/1.1\r\n\r\n");
	want(d, "> GET /0 1.1\n> end 0\n> GET /2 1.1 resync\n> end 0\n");
	assert_int_equal(d->counters.v[RS_C_STREAM_NO_WINDOW], 9);
}

static void test_state_runs_out(void **state)
{
	struct drive *d = *state;

	d->env.state[RS_PROTO_http2].max = 0; /* HTTP/1's is in the connection */
	drive_send(d, TO_SERVER, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"));
	want(d, "");
	assert_int_equal(d->counters.v[RS_C_PROTO_NO_STATE], 1);
	assert_int_equal(d->policy.stop, 1);
}

/* An idle connection is small, and a warm one asks for no memory. */
static void test_memory(void **state)
{
	struct drive *d = *state;
	struct rs_ev_data *ev = malloc(sizeof(*ev) + 4096);
	const char *pieces[] = { "GET /1 HTTP/1.1\r\nHo", "st: a\r\n\r\n" };
	uint64_t before = 0;

	assert_non_null(ev);
	assert_true(sizeof(struct rs_l7) <= 280);
	assert_true(rs_protos[RS_PROTO_http1]->state_size <= RS_L7_OWN);
	for (int i = 0; i < 1000; i++) {
		if (i == 10)
			before = alloc_count();
		d->len = 0;
		for (int k = 0; k < 4; k++) {
			const char *text = k < 2    ? pieces[k]
					   : k == 2 ? OK2
						    : "HTTP/1.1 100 Continue\r\n";
			enum rs_ev_dir dir = k < 2 ? RS_DIR_IN : RS_DIR_OUT;
			uint32_t n = (uint32_t)strlen(text);

			*ev = (struct rs_ev_data){
				.h = { RS_EV_DATA, 0, sizeof(*ev) + n, 1 },
				.off = d->off[dir],
				.len = n,
				.cap = n,
				.dir = (uint8_t)dir,
			};
			memcpy(ev->data, text, n);
			drive_record(d, ev);
			d->off[dir] += n;
		}
		drive_close(d, RS_CLOSE_ALL);
		drive_again(d);
	}
	assert_int_equal(alloc_count(), before);
	free(ev);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_times_and_seq),
		T(test_close_delimited_ends_with_its_last_byte),
		T(test_broken_off_ends_with_the_close),
		T(test_long_body_is_skipped),
		T(test_one_write_with_a_body_not_captured),
		T(test_last_chunk_in_the_tail),
		T(test_cut_heads),
		T(test_lost_records),
		T(test_late_records),
		T(test_unknown_protocol_is_stopped),
		T(test_tunnel_is_stopped),
		T(test_failures_are_bounded),
		T(test_longest_heads),
		T(test_deep_pipelines),
		T(test_answer_recorded_before_its_request),
		T(test_windows_run_out),
		T(test_state_runs_out),
		T(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
