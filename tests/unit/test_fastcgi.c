// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "drive.h"
#include "unit.h"

struct bytes {
	char b[16384];
	size_t n;
};

static void record(struct bytes *to, uint8_t type, struct str content, uint8_t padding)
{
	const char head[8] = {
		1, (char)type, 0, 1, (char)(content.len >> 8), (char)content.len, (char)padding, 0
	};

	memcpy(to->b + to->n, head, sizeof(head));
	if (content.len)
		memcpy(to->b + to->n + 8, content.ptr, content.len);
	memset(to->b + to->n + 8 + content.len, 'p', padding);
	to->n += 8 + content.len + padding;
}

static void pair(struct bytes *to, const char *name, const char *value)
{
	size_t n = strlen(name), v = strlen(value);

	to->b[to->n++] = (char)n;
	if (v < 128) {
		to->b[to->n++] = (char)v;
	} else {
		to->b[to->n++] = (char)(0x80 | v >> 24);
		to->b[to->n++] = (char)(v >> 16);
		to->b[to->n++] = (char)(v >> 8);
		to->b[to->n++] = (char)v;
	}
	memcpy(to->b + to->n, name, n);
	memcpy(to->b + to->n + n, value, v);
	to->n += n + v;
}

#define BEGIN	 ((struct str){ "\0\1\0\0\0\0\0\0", 8 })
#define END	 ((struct str){ "\0\0\0\0\0\0\0\0", 8 })
#define TP	 "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define REQUEST	 "> POST /a.php?q=1 1.1 host=shop.example ua=curl tp=" TP "\n> end 5\n"
#define RESPONSE "< 404\n< end 4\n"

static void request(struct bytes *to, const char *body)
{
	static struct bytes p;
	char long_value[300];

	memset(long_value, 'x', sizeof(long_value) - 1);
	long_value[sizeof(long_value) - 1] = 0;
	p.n = 0;
	pair(&p, "QUERY_STRING", "q=1");
	pair(&p, "REQUEST_METHOD", "POST");
	pair(&p, "HTTP_X_LONG", long_value);
	pair(&p, "REQUEST_URI", "/a.php?q=1");
	pair(&p, "SERVER_PROTOCOL", "HTTP/1.1");
	pair(&p, "EMPTY", "");
	pair(&p, "HTTP_HOST", "shop.example");
	pair(&p, "HTTP_USER_AGENT", "curl");
	pair(&p, "HTTP_TRACEPARENT", TP);
	pair(&p, "HTTP_A_HEADER_THAT_IS_LONGER_THAN_ANY_OF_TRACE_CONTEXT", "1");
	record(to, 1, BEGIN, 0);
	record(to, 4, str_of(p.b, p.n), 3);
	record(to, 4, STR_NONE, 0);
	if (*body)
		record(to, 5, str_c(body), 2);
	record(to, 5, STR_NONE, 0);
}

static void response(struct bytes *to)
{
	record(to, 7, STR("PHP Notice"), 6);
	record(to, 6, STR("Status: 404 Not Found\r\nContent-Type: text/html\r\n\r\nno"), 1);
	record(to, 6, STR("pe"), 0);
	record(to, 6, STR_NONE, 0);
	record(to, 3, END, 0);
}

static void check(struct drive *d, const char *want)
{
	if (strcmp(d->text, want) != 0)
		fail_msg("got:\n%s\nwant:\n%s", d->text, want);
}

static void test_pieces(void **state)
{
	static struct bytes ask, answer;
	struct drive d;

	(void)state;
	request(&ask, "hello");
	response(&answer);
	drive_init(&d);
	for (int twice = 0; twice < 2; twice++) { /* a kept connection */
		drive_send(&d, TO_SERVER, str_of(ask.b, ask.n));
		drive_send(&d, TO_CLIENT, str_of(answer.b, answer.n));
	}
	check(&d, REQUEST RESPONSE REQUEST RESPONSE);
	assert_true(drive_conserved(&d));
	for (size_t cut = 1; cut < ask.n; cut++) {
		drive_again(&d);
		drive_send(&d, TO_SERVER, str_of(ask.b, cut));
		drive_send(&d, TO_SERVER, str_of(ask.b + cut, ask.n - cut));
		check(&d, REQUEST);
	}
	for (size_t cut = 1; cut < answer.n; cut++) {
		drive_again(&d);
		drive_send(&d, TO_SERVER, str_of(ask.b, ask.n));
		drive_send(&d, TO_CLIENT, str_of(answer.b, cut));
		drive_send(&d, TO_CLIENT, str_of(answer.b + cut, answer.n - cut));
		check(&d, REQUEST RESPONSE);
	}
	drive_again(&d);
	for (size_t i = 0; i < ask.n; i++)
		drive_send(&d, TO_SERVER, str_of(ask.b + i, 1));
	for (size_t i = 0; i < answer.n; i++)
		drive_send(&d, TO_CLIENT, str_of(answer.b + i, 1));
	check(&d, REQUEST RESPONSE);
	drive_release(&d);
}

/* Only the first bytes of a segment were captured. */
static void test_cut(void **state)
{
	static struct bytes ask, answer, big;
	static char page[9000];
	struct drive d;

	(void)state;
	request(&ask, "");
	drive_init(&d);
	/* Within PARAMS: what is there, and the rest of the record is passed over. */
	drive_cut(&d, TO_SERVER, str_of(ask.b, 420), (uint32_t)ask.n, STR_NONE);
	assert_true(strncmp(d.text, "> POST /a.php?q=1", 17) == 0);
	assert_has(d.text, "cut");
	/* In the page: its length is in the records. */
	drive_again(&d);
	memset(page, 'x', sizeof(page));
	record(&big, 6, STR("Content-Type: text/html\r\n\r\n"), 0);
	answer.n = big.n;
	memcpy(answer.b, big.b, big.n);
	record(&answer, 6, str_of(page, sizeof(page)), 0);
	drive_send(&d, TO_SERVER, str_of(ask.b, ask.n));
	drive_cut(&d, TO_CLIENT, str_of(answer.b, 100), (uint32_t)answer.n, STR_NONE);
	big.n = 0;
	record(&big, 3, END, 0);
	drive_send(&d, TO_CLIENT, str_of(big.b, big.n));
	assert_has(d.text, "< 200\n< end 9000\n");
	drive_release(&d);
}

static void test_odd(void **state)
{
	static struct bytes b;
	struct drive d;

	(void)state;
	drive_init(&d);
	/* No output at all: the end alone. */
	request(&b, "");
	drive_send(&d, TO_SERVER, str_of(b.b, b.n));
	b.n = 0;
	record(&b, 3, END, 0);
	drive_send(&d, TO_CLIENT, str_of(b.b, b.n));
	assert_has(d.text, "< end 0 aborted\n");
	/* Neither a role nor a length that FastCGI has. */
	drive_again(&d);
	b.n = 0;
	record(&b, 1, (struct str){ "\0\7\0\0\0\0\0\0", 8 }, 0);
	drive_send(&d, TO_SERVER, str_of(b.b, b.n));
	check(&d, "");
	/* A pair longer than its record; a name longer than anything. */
	drive_again(&d);
	b.n = 0;
	record(&b, 1, BEGIN, 0);
	record(&b, 4, (struct str){ "\x0e\4REQUEST_METHODPOST\5\xff\xff\xff\xffname", 29 }, 0);
	record(&b, 4, STR_NONE, 0);
	drive_send(&d, TO_SERVER, str_of(b.b, b.n));
	check(&d, "> POST cut\n");
	drive_release(&d);
}

/* Any bytes: an end is reached, nothing outside is read. */
static void test_damaged(void **state)
{
	static struct bytes ask, answer;
	uint32_t seed = 1;
	struct drive d;

	(void)state;
	request(&ask, "hello");
	response(&answer);
	drive_init(&d);
	for (int i = 0; i < 3000; i++) {
		static struct bytes a, b;

		a = ask;
		b = answer;
		for (int k = 0; k < 3; k++) {
			seed = seed * 1103515245u + 12345u;
			a.b[(seed >> 8) % (k ? a.n : 16)] = (char)(seed >> 24);
			b.b[(seed >> 4) % b.n] = (char)(seed >> 20);
		}
		drive_again(&d);
		drive_send(&d, TO_SERVER, str_of(a.b, a.n - seed % 50));
		drive_send(&d, TO_CLIENT, str_of(b.b, b.n));
		drive_send(&d, TO_SERVER, str_of(ask.b, ask.n));
		drive_close(&d, RS_CLOSE_ALL);
		assert_true(drive_conserved(&d));
	}
	drive_release(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_odd),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests_name("fastcgi", tests, NULL, NULL);
}
