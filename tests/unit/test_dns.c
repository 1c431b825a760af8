// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "meta/dns.h"
#include "shared/events.h"
#include "unit.h"

#define S 1000000000ull

/* www.example.com A?: an alias to edge.example.net, which has two addresses; names are compressed. */
static const char two[] = "\x12\x34\x81\x80\0\1\0\3\0\0\0\0"
			  "\3wWw\7eXample\3com\0\0\1\0\1"
			  "\xc0\x0c\0\5\0\1\0\0\1\x2c\0\x12\4edge\7example\3net\0"
			  "\xc0\x2d\0\1\0\1\0\0\0\x3c\0\4\x0a\1\2\3"
			  "\xc0\x2d\0\1\0\1\0\0\0\x3c\0\4\x0a\1\2\4";
#define TWO str_of(two, sizeof(two) - 1)

static const char six[] =
	"\0\1\x80\0\0\1\0\1\0\0\0\0"
	"\2v6\4test\0\0\x1c\0\1"
	"\xc0\x0c\0\x1c\0\1\0\1\x51\x80\0\x10\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\7";
#define SIX str_of(six, sizeof(six) - 1)

static void test_answers(void **state)
{
	struct rs_dns_answer a;

	(void)state;
	assert_true(rs_dns_parse(TWO, &a));
	assert_string_equal(a.name, "www.example.com");
	assert_int_equal(a.len, 15);
	assert_int_equal(a.n, 2);
	assert_int_equal(a.a[0].family, RS_FAMILY_INET);
	assert_memory_equal(a.a[1].addr, "\x0a\1\2\4", 4);
	assert_int_equal(a.a[1].ttl, 60);
	assert_true(rs_dns_parse(SIX, &a));
	assert_int_equal(a.a[0].family, RS_FAMILY_INET6);
	assert_int_equal(a.a[0].ttl, 86400);
	assert_int_equal(a.a[0].addr[15], 7);
}

/* Cut anywhere, an answer is none; with any byte changed it is read or refused. */
static void test_cut_and_changed(void **state)
{
	struct rs_dns_answer a;

	(void)state;
	for (size_t n = 0; n < TWO.len; n++) {
		char *copy = malloc(n + 1); /* so that a read beyond its end shows */

		memcpy(copy, two, n);
		assert_false(rs_dns_parse(str_of(copy, n), &a));
		free(copy);
	}
	for (size_t i = 0; i < TWO.len; i++) {
		for (unsigned v = 0; v < 256; v++) {
			char copy[sizeof(two) - 1];

			memcpy(copy, two, sizeof(copy));
			copy[i] = (char)v;
			if (rs_dns_parse(str_of(copy, sizeof(copy)), &a))
				assert_in_range(a.n, 1, RS_DNS_ADDRS);
		}
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *what;
		size_t at;
		char byte;
	} c[] = {
		{ "a question", 2, 1 },		  { "an error", 3, (char)0x83 },
		{ "two questions", 5, 2 },	  { "no answers", 7, 0 },
		{ "a blank in a name", 14, ' ' }, { "type MX", 30, 15 },
		{ "class CHAOS", 32, 3 },
	};
	struct rs_dns_answer a;
	char copy[sizeof(two) - 1];

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		memcpy(copy, two, sizeof(copy));
		copy[c[i].at] = c[i].byte;
		if (rs_dns_parse(str_of(copy, sizeof(copy)), &a))
			fail_msg("%s is taken", c[i].what);
	}
	/* A name that points at itself. */
	assert_false(rs_dns_parse(STR("\0\1\x80\0\0\1\0\1\0\0\0\0\xc0\x0c\0\1\0\1"), &a));
}

static struct str found(struct rs_dns *d, uint32_t netns, const char *addr, uint64_t now,
			struct rs_dns_name **ret)
{
	uint8_t a[16] = { 0 };

	memcpy(a, addr, 4);
	*ret = rs_dns_find(d, netns, RS_FAMILY_INET, a, now);
	return rs_dns_text(*ret);
}

static void test_names(void **state)
{
	struct rs_counters n = { 0 };
	struct rs_dns_name *name, *late;
	char other[sizeof(two) - 1];
	struct rs_dns d;

	(void)state;
	rs_dns_init(&d, 8, 8, &n);
	rs_dns_message(&d, 1, TWO, S);
	rs_dns_message(&d, 1, STR("nonsense"), S);
	assert_int_equal(n.v[RS_C_DNS_ANSWERS], 1);
	assert_true(str_eq(found(&d, 1, "\x0a\1\2\3", S, &name), STR("www.example.com")));
	/* Another namespace, another address. */
	assert_int_equal(found(&d, 2, "\x0a\1\2\3", S, &late).len, 0);
	assert_int_equal(found(&d, 1, "\x0a\1\2\5", S, &late).len, 0);
	/* TTL 60 s; kept for as long as the least time, then not. */
	assert_int_equal(found(&d, 1, "\x0a\1\2\3", 60 * S, &late).len, 15);
	rs_dns_put(&d, late);
	assert_int_equal(found(&d, 1, "\x0a\1\2\3", 61 * S, &late).len, 0);
	/* The newest name counts; who holds the old one keeps it. */
	memcpy(other, two, sizeof(other));
	memcpy(other + 13, "api", 3);
	rs_dns_message(&d, 1, str_of(other, sizeof(other)), 62 * S);
	assert_true(str_eq(found(&d, 1, "\x0a\1\2\4", 63 * S, &late), STR("api.example.com")));
	assert_true(str_eq(rs_dns_text(name), STR("www.example.com")));
	rs_dns_put(&d, late);
	rs_dns_put(&d, name);
	rs_dns_put(&d, NULL);
	rs_dns_release(&d);
}

/* However many come, there are as many as there is room for, and none of the names is lost. */
static void test_bounds(void **state)
{
	struct rs_counters n = { 0 };
	struct rs_dns_name *held[4];
	char m[sizeof(two) - 1];
	struct rs_dns d;

	(void)state;
	rs_dns_init(&d, 5, 8, &n);
	memcpy(m, two, sizeof(m));
	for (int i = 0; i < 1000; i++) {
		m[13] = (char)('a' + i % 26);
		m[14] = (char)('a' + i / 26 % 26);
		m[sizeof(m) - 1] = (char)i;
		m[sizeof(m) - 2] = (char)(i >> 8);
		rs_dns_message(&d, (uint32_t)i % 3, str_of(m, sizeof(m)), S);
		assert_in_range(d.entries.in_use, 1, 5);
		if (i < 4) {
			uint8_t a[16] = { 10, 1, (uint8_t)(i >> 8), (uint8_t)i };

			held[i] = rs_dns_find(&d, (uint32_t)i % 3, RS_FAMILY_INET, a, S);
			assert_non_null(held[i]);
		}
	}
	assert_true(n.v[RS_C_DNS_EVICTED] > 900);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(held[i]->text[0], 'a' + i);
		rs_dns_put(&d, held[i]);
	}
	assert_in_range(d.names.in_use, 1, 5);
	rs_dns_release(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers), cmocka_unit_test(test_cut_and_changed),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_names),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
