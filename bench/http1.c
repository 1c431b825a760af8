// SPDX-License-Identifier: Apache-2.0
/*
 * What HTTP/1 costs: ns per message, in the parser alone, through l7 (stream, detection, flip), and per span
 * described; beside it one pass of memchr over the lines of the same bytes, which no parser can beat by much.
 * Best of several rounds: other work on the machine only adds. Usage: bench/http1 [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>

#include "best.h"
#include "base/clock.h"
#include "conn/l7.h"
#include "proto/exchange.h"
#include "proto/http1.h"
#include "trace/build.h"

#define PER_ROUND 2000 /* about as long as other work leaves one alone */

static const char curl_get[] =
	"GET /api/v1/items?id=42 HTTP/1.1\r\n"
	"Host: shop.example:8080\r\n"
	"User-Agent: curl/7.88.1\r\n"
	"Accept: */*\r\n"
	"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
	"X-Forwarded-For: 203.0.113.7\r\n"
	"Content-Type: application/json\r\n"
	"\r\n";
static const char browser_get[] =
	"GET /static/app.js HTTP/1.1\r\n"
	"Host: www.example.com\r\n"
	"Connection: keep-alive\r\n"
	"sec-ch-ua: \"Chromium\";v=\"124\", \"Google Chrome\";v=\"124\", \"Not-A.Brand\";v=\"99\"\r\n"
	"sec-ch-ua-mobile: ?0\r\n"
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36\r\n"
	"sec-ch-ua-platform: \"Linux\"\r\n"
	"Accept: */*\r\n"
	"Sec-Fetch-Site: same-origin\r\n"
	"Sec-Fetch-Mode: no-cors\r\n"
	"Sec-Fetch-Dest: script\r\n"
	"Referer: https://www.example.com/\r\n"
	"Accept-Encoding: gzip, deflate, br, zstd\r\n"
	"Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n"
	"Cookie: session=4bf92f3577b34da6a3ce929d0e0e4736; theme=dark; consent=all; _ga=GA1.1.1234567890.1700000000\r\n"
	"\r\n";
static const char nginx_ok[] = "HTTP/1.1 200 OK\r\n"
			       "Server: nginx/1.22.1\r\n"
			       "Date: Mon, 30 Nov 2026 11:03:04 GMT\r\n"
			       "Content-Type: text/plain\r\n"
			       "Content-Length: 16\r\n"
			       "Last-Modified: Mon, 30 Nov 2026 10:00:00 GMT\r\n"
			       "Connection: keep-alive\r\n"
			       "ETag: \"656b0f10-400\"\r\n"
			       "Accept-Ranges: bytes\r\n"
			       "\r\n0123456789abcdef";

static volatile uint64_t sink;

static void on_msg(void *arg, const struct rs_msg *m)
{
	(void)arg;
	sink += m->nfields;
}

static double scan_lines(struct str text, int n)
{
	uint64_t t = rs_clock_mono();

	for (int i = 0; i < n; i++) {
		struct str s = text;

		while (s.len) {
			s = str_from(s, str_find(s, '\n') + 1);
			sink++;
		}
		__asm__ volatile("" ::"r"(text.ptr) : "memory");
	}
	return (double)(rs_clock_mono() - t) / n;
}

static double parse(struct str text, bool request, int n)
{
	static _Alignas(16) char state[4096];
	enum rs_ev_dir dir = request ? RS_DIR_IN : RS_DIR_OUT;
	const struct rs_proto_ops *ops = &rs_proto_http1;
	uint64_t t;

	memset(state, 0, sizeof(state));
	t = rs_clock_mono();
	for (int i = 0; i < n; i++) {
		struct str in = text;
		struct rs_msg m;
		size_t used;
		enum rs_parse r;

		while ((r = ops->parse(state, dir, RS_ROLE_SERVER, in, &used, &m)) == RS_PARSE_OK ||
		       r == RS_PARSE_SKIP)
			in = str_from(in, used);
		sink += m.nfields;
	}
	return (double)(rs_clock_mono() - t) / n;
}

struct side {
	struct rs_ev_data *ev;
	uint32_t len;
};

static struct side make(struct str text, enum rs_ev_dir dir)
{
	struct side s = { calloc(1, sizeof(*s.ev) + text.len), (uint32_t)text.len };

	if (!s.ev)
		abort();
	s.ev->h = (struct rs_ev_hdr){ RS_EV_DATA, 0, (uint32_t)(sizeof(*s.ev) + text.len), 1 };
	s.ev->len = s.ev->cap = s.len;
	s.ev->dir = (uint8_t)dir;
	memcpy(s.ev->data, text.ptr, text.len);
	return s;
}

/* Requests and responses on one connection; split: each head in two records. ns per message. */
static double through_l7(struct str request, struct str response, bool split, int n)
{
	struct rs_counters counters = { 0 };
	struct rs_l7_env env = { .counters = &counters };
	struct side half[4];
	uint32_t pieces = 0;
	struct rs_l7 l7;
	uint64_t t;

	if (rs_l7_env_init(&env))
		abort();
	rs_l7_init(&l7);
	for (int d = 0; d < 2; d++) {
		struct str text = d ? response : request;
		size_t first = split ? 100 : text.len;

		half[pieces++] = make(str_at(text, 0, first), d ? RS_DIR_OUT : RS_DIR_IN);
		if (split)
			half[pieces++] = make(str_from(text, first), d ? RS_DIR_OUT : RS_DIR_IN);
	}
	t = rs_clock_mono();
	for (int i = 0; i < n; i++) {
		for (uint32_t k = 0; k < pieces; k++) {
			rs_l7_data(&l7, &env, half[k].ev, on_msg, NULL);
			half[k].ev->off += split ? half[k].len + half[k ^ 1].len : half[k].len;
			if (split && i == 0 && k % 2 == 0)
				half[k + 1].ev->off = half[k].len;
		}
	}
	t = rs_clock_mono() - t;
	for (uint32_t k = 0; k < pieces; k++)
		free(half[k].ev);
	rs_l7_release(&l7, &env);
	rs_l7_env_release(&env);
	if (counters.v[RS_C_PROTO_RESPONSES] != (uint64_t)n)
		abort();
	return (double)t / n / 2;
}

static double describe(struct str request, struct str response, enum rs_ev_role role, int n)
{
	static _Alignas(16) char state[4096];
	static struct rs_build b;
	struct rs_conn_info conn = { .family = RS_FAMILY_INET, .l4 = RS_L4_TCP };
	struct rs_exchange x = { .ops = &rs_proto_http1, .conn = &conn, .role = (uint8_t)role };
	struct rs_arena arena;
	struct rs_msg m;
	size_t used;
	uint64_t t;

	memset(state, 0, sizeof(state));
	rs_conn_set_addr(&conn, &conn.local, STR("10.0.0.1"));
	rs_conn_set_addr(&conn, &conn.peer, STR("10.0.0.9"));
	conn.local.port = 80;
	conn.peer.port = 40000;
	x.ops->parse(state, RS_DIR_IN, RS_ROLE_SERVER, request, &used, &m);
	memcpy(x.req, m.fields, sizeof(x.req));
	x.nreq = m.nfields;
	x.ops->parse(state, RS_DIR_OUT, RS_ROLE_SERVER, response, &used, &m);
	memcpy(x.resp, m.fields, sizeof(x.resp));
	x.nresp = m.nfields;
	x.has_response = x.request_done = true;
	rs_arena_init(&arena, 1 << 20, 0);
	t = rs_clock_mono();
	for (int i = 0; i < n; i++) {
		struct rs_span span = { 0 };

		if (i % 256 == 0)
			rs_arena_reset(&arena);
		rs_build_init(&b, &span, &arena);
		x.ops->describe(&x, &b);
		sink += b.n;
	}
	t = rs_clock_mono() - t;
	rs_arena_release(&arena);
	return (double)t / n;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		const char *text;
		bool request;
	} heads[] = {
		{ "curl request", curl_get, true },
		{ "browser request", browser_get, true },
		{ "nginx response", nginx_ok, false },
	};
	int rounds = argc > 1 ? atoi(argv[1]) : 200;
	double whole = 0, split = 0, server = 0, client = 0;

	printf("%-28s %6s %9s %9s %7s\n", "ns per message", "bytes", "http1", "memchr", "ratio");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct str text = str_c(heads[i].text);
		double p = 0, s = 0;

		for (int k = 0; k < rounds; k++) {
			BEST(p, parse(text, heads[i].request, PER_ROUND));
			BEST(s, scan_lines(text, PER_ROUND));
		}
		printf("%-28s %6zu %9.1f %9.1f %7.2f\n", heads[i].name, text.len, p, s, p / s);
	}
	for (int k = 0; k < rounds; k++) {
		BEST(whole, through_l7(str_c(curl_get), str_c(nginx_ok), false, PER_ROUND));
		BEST(split, through_l7(str_c(curl_get), str_c(nginx_ok), true, PER_ROUND));
		BEST(server, describe(str_c(curl_get), str_c(nginx_ok), RS_ROLE_SERVER, PER_ROUND));
		BEST(client, describe(str_c(curl_get), str_c(nginx_ok), RS_ROLE_CLIENT, PER_ROUND));
	}
	printf("%-35s %9.1f\n", "l7, a message a record", whole);
	printf("%-35s %9.1f\n", "l7, a message in two records", split);
	printf("%-35s %9.1f\n", "describe, server span", server);
	printf("%-35s %9.1f\n", "describe, client span", client);
	return 0;
}
