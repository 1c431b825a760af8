// SPDX-License-Identifier: Apache-2.0
/* HTTP/1 through l7: every case whole, byte by byte and split at every point; the outcome is the same. */
#include <stdio.h>

#include "drive.h"
#include "unit.h"

/* '>' or '<' first, then the bytes; then "close" pieces by an empty text. */
struct piece {
	enum drive_side side;
	const char *text; /* NULL: the end */
};

#define Q(text)                                                                                    \
	{                                                                                          \
		TO_SERVER, text                                                                    \
	}
#define A(text)                                                                                    \
	{                                                                                          \
		TO_CLIENT, text                                                                    \
	}

struct http_case {
	const char *name;
	struct piece p[8];
	bool close; /* the connection is closed at the end */
	const char *want;
};

static const struct http_case cases[] = {
	{ "get",
	  { Q("GET /x HTTP/1.1\r\nHost: a\r\n\r\n"),
	    A("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") },
	  false,
	  "> GET /x 1.1 host=a\n> end 0\n< 200 1.1\n< end 5\n" },
	{ "keep-alive",
	  { Q("GET /1 HTTP/1.1\r\n\r\n"), A("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"),
	    Q("GET /2 HTTP/1.1\r\n\r\n"),
	    A("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") },
	  false,
	  "> GET /1 1.1\n> end 0\n< 200 1.1\n< end 1\n> GET /2 1.1\n> end 0\n< 404 1.1\n< end 0\n" },
	{ "all the fields",
	  { Q("GET / HTTP/1.1\r\nhOST:a:80\r\nUser-Agent: \t curl/8 (x) \t\r\nForwarded: for=1.2.3.4\r\n"
	      "X-Forwarded-For: 1.2.3.4, 5.6.7.8\r\nX-Forwarded-Host: h\r\nX-Forwarded-Proto: https\r\n"
	      "Hostess: no\r\nHos: no\r\nTracestat: no\r\nX-Forwarded-Forx: no\r\n"
	      "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
	      "Tracestate: a=b\r\ntracestate: c=d\r\nB3 :0\r\nuber-trace-id:1:2:0:1\r\nSentry-Trace: s\r\n"
	      "X-Datadog-Trace-Id: 7\r\nBaggage: \ta=b \r\nbag: no\r\n\r\n"),
	    A("HTTP/1.1 204 No Content\r\ntraceparent: not in a response\r\n\r\n") },
	  false,
	  "> GET / 1.1 host=a:80 ua=curl/8 (x) fwd=for=1.2.3.4 xff=1.2.3.4, 5.6.7.8 xfh=h xfp=https "
	  "tp=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ts=a=b ts=c=d b3=0 uber=1:2:0:1 "
	  "sentry=s dd=7 baggage=a=b\n> end 0\n"
	  "< 204 1.1\n< end 0\n" },
	{ "pipelined",
	  { Q("GET /1 HTTP/1.1\r\n\r\nHEAD /2 HTTP/1.1\r\n\r\nPOST /3 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
	      "GET /4 HTTP/1.1\r\n\r\n"),
	    A("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"
	      "HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n") },
	  false,
	  "> GET /1 1.1\n> end 0\n> HEAD /2 1.1\n> end 0\n> POST /3 1.1\n> end 3\n> GET /4 1.1\n> end 0\n"
	  "< 200 1.1\n< end 1\n< 200 1.1\n< end 0\n< 201 1.1\n< end 2\n< 304 1.1\n< end 0\n" },
	{ "chunked with extensions and trailers",
	  { Q("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b;c=\"d\"\r\nhello\r\n0010 \r\n"
	      "0123456789abcdef\r\n000;x\r\nTrailer: 1\r\nOther: 2\r\n\r\n"),
	    A("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\nA\r\n0\r\n\r\n01234\r\n0\r\n\r\n") },
	  false,
	  "> POST / 1.1\n> end 21\n< 200 1.1\n< end 10\n" },
	{ "chunked wins over length",
	  { Q("POST / HTTP/1.1\r\nContent-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
	      "GET /2 HTTP/1.1\r\n\r\n") },
	  false,
	  "> POST / 1.1\n> end 1\n> GET /2 1.1\n> end 0\n" },
	{ "equal lengths are one",
	  { Q("POST / HTTP/1.1\r\nContent-Length: 2, 2\r\nContent-Length: 02\r\n\r\nabGET /2 HTTP/1.1\r\n\r\n") },
	  false,
	  "> POST / 1.1\n> end 2\n> GET /2 1.1\n> end 0\n" },
	{ "unequal lengths are none",
	  { Q("POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabGET /2 HTTP/1.1\r\n\r\n"),
	    A("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n") },
	  false,
	  "> POST / 1.1\n> end 21 cut\n< 400 1.1\n< end 0\n" },
	{ "negative length is none",
	  { Q("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
	    A("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n") },
	  false,
	  "> POST / 1.1\n> end 0 cut\n< 400 1.1\n< end 0\n" },
	{ "coded request without chunked",
	  { Q("POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\nabc"),
	    A("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n") },
	  false,
	  "> POST / 1.1\n> end 3 cut\n< 400 1.1\n< end 0\n" },
	{ "coded response without chunked: until close",
	  { Q("GET / HTTP/1.1\r\n\r\n"),
	    A("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabcdef") },
	  true,
	  "> GET / 1.1\n> end 0\n< 200 1.1\n< end 6\n" },
	{ "http/1.0, until close",
	  { Q("GET / HTTP/1.0\r\n\r\n"), A("HTTP/1.0 200 OK\r\nServer: x\r\n\r\nhello world") },
	  true,
	  "> GET / 1.0\n> end 0\n< 200 1.0\n< end 11\n" },
	{ "http/1.0, keep-alive",
	  { Q("GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
	    A("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n1"),
	    Q("GET /2 HTTP/1.0\r\n\r\n"), A("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n2") },
	  true,
	  "> GET /1 1.0\n> end 0\n< 200 1.0\n< end 1\n> GET /2 1.0\n> end 0\n< 200 1.0\n< end 1\n" },
	{ "interim responses, expect",
	  { Q("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"),
	    A("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
	    Q("body"), A("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n") },
	  false,
	  "> PUT / 1.1\n< interim 100 1.1\n< interim 103 1.1\n> end 4\n< 201 1.1\n< end 0\n" },
	{ "expect refused, the body is not sent",
	  { Q("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"),
	    A("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n") },
	  true,
	  "> PUT / 1.1\n< 417 1.1\n< end 0\n> end 0 aborted\n" },
	{ "answer before the request's end",
	  { Q("POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\nabc"),
	    A("HTTP/1.1 413 Too much\r\nContent-Length: 2\r\n\r\nno"),
	    Q("defGET /2 HTTP/1.1\r\n\r\n"), A("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") },
	  false,
	  "> POST / 1.1\n< 413 1.1\n< end 2\n> end 6\n> GET /2 1.1\n> end 0\n< 200 1.1\n< end 0\n" },
	{ "upgrade",
	  { Q("GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
	    A("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x05hello"),
	    Q("GET /no HTTP/1.1\r\n\r\n"), A("HTTP/1.1 200 OK\r\n\r\n") },
	  true,
	  "> GET /ws 1.1\n> end 0\n< 101 1.1 websocket tunnel\n< end 0\n" },
	{ "connect",
	  { Q("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"),
	    A("HTTP/1.1 200 Connection established\r\nContent-Length: 9\r\n\r\n"),
	    Q("\x16\x03\x01"), A("HTTP/1.1 200 OK\r\n\r\n") },
	  true,
	  "> CONNECT a.example:443 1.1 host=a.example:443\n> end 0\n< 200 1.1 tunnel\n< end 0\n" },
	{ "connect refused",
	  { Q("CONNECT a:1 HTTP/1.1\r\n\r\n"),
	    A("HTTP/1.1 407 Auth\r\nContent-Length: 2\r\n\r\nno"),
	    Q("CONNECT a:1 HTTP/1.1\r\n\r\n"), A("HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n") },
	  false,
	  "> CONNECT a:1 1.1\n> end 0\n< 407 1.1\n< end 2\n> CONNECT a:1 1.1\n> end 0\n< 502 1.1\n< end 0\n" },
	{ "empty lines before a start line",
	  { Q("\r\n\nGET /1 HTTP/1.1\r\n\r\n\r\nGET /2 HTTP/1.1\r\n\r\n"),
	    A("\r\nHTTP/1.1 204 No\r\n\r\n\n\nHTTP/1.1 204 No\r\n\r\n") },
	  false,
	  "> GET /1 1.1\n> end 0\n> GET /2 1.1\n> end 0\n< 204 1.1\n< end 0\n< 204 1.1\n< end 0\n" },
	{ "bare line feeds",
	  { Q("POST /1 HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n2\nab\n0\n\nGET /2 HTTP/1.1\n\n"),
	    A("HTTP/1.1 200 OK\nContent-Length: 1\n\nxHTTP/1.1 200\n\n") },
	  true,
	  "> POST /1 1.1 host=a\n> end 2\n> GET /2 1.1\n> end 0\n< 200 1.1\n< end 1\n< 200 1.1\n< end 0\n" },
	{ "folded lines",
	  { Q("GET / HTTP/1.1\r\nUser-Agent: one\r\n two\r\n\tthree\r\nX: y\r\n Host: no\r\nHost: a\r\n"
	      "Content-Length:\r\n 2\r\n\r\nabGET /2 HTTP/1.1\r\n\r\n") },
	  false,
	  "> GET / 1.1 ua=one\\x0d\\x0a two\\x0d\\x0a\\x09three host=a\n> end 2\n> GET /2 1.1\n> end 0\n" },
	{ "odd but readable",
	  { Q("GET /a b?c HTTP/1.1\r\nHost : a\r\nno colon\r\n: no name\r\nX-\xc3\xa9: \xff\r\n\r\n"
	      "M-SEARCH * HTTP/1.1\r\nhost:\r\n\r\nget http://h/p HTTP/1.1\r\n\r\n"),
	    A("HTTP/1.1 599\r\nContent-Length : 1\r\n\r\nxHTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n") },
	  false,
	  "> GET /a b?c 1.1 host=a\n> end 0\n> M-SEARCH * 1.1 host=\n> end 0\n> get http://h/p 1.1\n> end 0\n"
	  "< 599 1.1\n< end 1\n< 200 1.1\n< end 0\n" },
	{ "client aborts in its body",
	  { Q("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc") },
	  true,
	  "> POST / 1.1\n> end 3 aborted\n" },
	{ "client aborts in a chunk",
	  { Q("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n8\r\nde") },
	  true,
	  "> POST / 1.1\n> end 5 aborted\n" },
	{ "client aborts between chunks",
	  { Q("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n") },
	  true,
	  "> POST / 1.1\n> end 3 aborted\n" },
	{ "server crashes in its head",
	  { Q("GET / HTTP/1.1\r\n\r\n"), A("HTTP/1.1 200 OK\r\nContent-Le") },
	  true,
	  "> GET / 1.1\n> end 0\n< 200 1.1 cut\n< end 0 cut aborted\n" },
	{ "server crashes in its status line",
	  { Q("GET / HTTP/1.1\r\n\r\n"), A("HTTP/1.1 2") },
	  true,
	  "> GET / 1.1\n> end 0\n" },
	{ "server crashes in its body",
	  { Q("GET / HTTP/1.1\r\n\r\n"), A("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf") },
	  true,
	  "> GET / 1.1\n> end 0\n< 200 1.1\n< end 4 aborted\n" },
	{ "no answer", { Q("GET / HTTP/1.1\r\n\r\n") }, true, "> GET / 1.1\n> end 0\n" },
	{ "an answer whose request was not seen",
	  { A("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), Q("GET / HTTP/1.1\r\n\r\n"),
	    A("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") },
	  false,
	  "< 200 1.1\n< end 2\n> GET / 1.1\n> end 0\n< 200 1.1\n< end 2\n" },
	{ "an answer to a HEAD not seen",
	  { A("HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n"), Q("GET / HTTP/1.1\r\n\r\n"),
	    A("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") },
	  false,
	  "< 200 1.1\n< end 0 cut\n> GET / 1.1\n> end 0\n< 200 1.1\n< end 2\n" },
	{ "no length and the connection goes on",
	  { Q("GET /1 HTTP/1.1\r\n\r\n"), A("HTTP/1.1 200 OK\r\n\r\nbody"),
	    Q("GET /2 HTTP/1.1\r\n\r\n"), A("HTTP/1.1 204 No\r\n\r\n") },
	  false,
	  "> GET /1 1.1\n> end 0\n< 200 1.1\n< end 4 cut\n> GET /2 1.1\n> end 0\n< 204 1.1\n< end 0\n" },
};

/* What is recognised depends on where records begin. */
static const struct http_case whole_cases[] = {
	{ "not http",
	  { Q("\x16\x03\x01\x02\x03 GET / HTTP/1.1\r\n"), A("SSH-2.0-OpenSSH\r\n") },
	  true,
	  "" },
	{ "nearly http",
	  { Q("OPTIONS rtsp://a RTSP/1.0\r\n\r\n"), A("RTSP/1.0 200 OK\r\n\r\n"),
	    Q("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") },
	  true,
	  "" },
	{ "the middle of a body first",
	  { A("the rest of a download"), A("GET x HTTP/9"), Q("GET / HTTP/1.1\r\n\r\n"),
	    A("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") },
	  false,
	  "> GET / 1.1\n> end 0\n< 200 1.1 resync\n< end 2\n" },
};

static void check(const struct http_case *c, struct drive *d, const char *how)
{
	if (c->close)
		drive_close(d, RS_CLOSE_ALL);
	if (strcmp(d->text, c->want) != 0) {
		print_error("%s, %s:\n%s--- wanted:\n%s", c->name, how, d->text, c->want);
		fail();
	}
	rs_l7_release(&d->l7, &d->env);
	if (!drive_conserved(d)) {
		print_error("%s, %s: the counters do not add up\n", c->name, how);
		fail();
	}
	assert_int_equal(d->counters.v[RS_C_STREAM_HELD], 0);
	drive_again(d);
}

static void feed_whole(const struct http_case *c, struct drive *d)
{
	for (const struct piece *p = c->p; p->text; p++)
		drive_send(d, p->side, str_c(p->text));
	check(c, d, "whole");
}

static void feed_steps(const struct http_case *c, struct drive *d, size_t step)
{
	char how[64];

	for (const struct piece *p = c->p; p->text; p++) {
		struct str s = str_c(p->text);

		for (size_t at = 0; at < s.len; at += step)
			drive_send(d, p->side, str_at(s, at, step));
	}
	snprintf(how, sizeof(how), "%zu bytes at a time", step);
	check(c, d, how);
}

static void feed_split(const struct http_case *c, struct drive *d)
{
	for (const struct piece *cut = c->p; cut->text; cut++) {
		for (size_t at = 1; at < strlen(cut->text); at++) {
			char how[64];

			for (const struct piece *p = c->p; p->text; p++) {
				struct str s = str_c(p->text);

				if (p == cut)
					drive_send(d, p->side, str_at(s, 0, at));
				drive_send(d, p->side, p == cut ? str_from(s, at) : s);
			}
			snprintf(how, sizeof(how), "piece %zu split at %zu", (size_t)(cut - c->p),
				 at);
			check(c, d, how);
		}
	}
}

static void test_cases(void **state)
{
	(void)state;
	for (int client = 0; client < 2; client++) {
		struct drive d;

		drive_init(&d);
		d.client = client;
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			feed_whole(&cases[i], &d);
			for (size_t step = 1; step < 9; step++)
				feed_steps(&cases[i], &d, step);
			feed_split(&cases[i], &d);
		}
		for (size_t i = 0; i < sizeof(whole_cases) / sizeof(whole_cases[0]); i++)
			feed_whole(&whole_cases[i], &d);
		drive_release(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
