// SPDX-License-Identifier: Apache-2.0
/* proto/tls: real handshakes (tests/fuzz/corpus/tls), whole, in pieces and cut. */
#include <stdio.h>
#include <stdlib.h>

#include "proto/tls.h"
#include "unit.h"

struct flights {
	uint8_t *data;
	size_t len;
};

/* A file is a row of: direction (0: the client's), length (2 bytes), records. */
static struct flights load(const char *name)
{
	struct flights f = { malloc(65536), 0 };
	char path[128];
	FILE *in;

	snprintf(path, sizeof(path), "tests/fuzz/corpus/tls/%s", name);
	in = fopen(path, "rb");
	assert_non_null(in);
	f.len = fread(f.data, 1, 65536, in);
	fclose(in);
	return f;
}

struct end {
	struct rs_tls_handshake h;
	struct rs_tls_facts facts;
	uint64_t off[2], t;
	enum rs_tls_progress last;
};

/* Feeds all, `step` bytes at a time; stops when the handshake is over. */
static void feed(struct end *e, const struct flights *f, size_t step, bool server)
{
	size_t at = 0;

	memset(e, 0, sizeof(*e));
	e->last = RS_TLS_MORE;
	while (at + 3 <= f->len) {
		enum rs_ev_dir dir = (f->data[at] == 0) == server ? RS_DIR_IN : RS_DIR_OUT;
		size_t n = (size_t)f->data[at + 1] << 8 | f->data[at + 2];

		at += 3;
		e->t += 1000;
		for (size_t i = 0; i < n; i += step) {
			size_t part = n - i < step ? n - i : step;
			struct str bytes = { (const char *)f->data + at + i, part };

			e->last =
				rs_tls_feed(&e->h, &e->facts, dir, e->off[dir], bytes, part, e->t);
			e->off[dir] += part;
			if (e->last != RS_TLS_MORE)
				return;
		}
		at += n;
	}
}

static const struct {
	const char *file;
	uint16_t version, cipher;
	bool resumed, h2;
	const char *alpn;
	uint64_t done;
} cases[] = {
	{ "tls13", 0x0304, 0x1302, false, true, "", 3000 },
	{ "tls12", 0x0303, 0xc02c, false, false, "http/1.1", 4000 },
	{ "resumed", 0x0303, 0xc02c, true, false, "http/1.1", 3000 },
};

static void check(const struct end *e, unsigned i)
{
	assert_int_equal(e->last, RS_TLS_DONE);
	assert_int_equal(e->facts.version, cases[i].version);
	assert_int_equal(e->facts.cipher, cases[i].cipher);
	assert_int_equal(e->facts.resumed, cases[i].resumed);
	assert_int_equal(e->facts.offers_h2, cases[i].h2);
	assert_string_equal(e->facts.server_name, "shop.example");
	assert_string_equal(e->facts.alpn, cases[i].alpn);
	assert_int_equal(e->facts.done_ns, cases[i].done);
}

static void test_split(void **state)
{
	struct end *e = malloc(sizeof(*e));

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct flights f = load(cases[i].file);

		for (size_t step = 1; step < 1500; step += step < 64 ? 1 : 37) {
			feed(e, &f, step, step & 1);
			check(e, i);
		}
		free(f.data);
	}
	free(e);
}

/* A hello that is cut anywhere, its rest not captured: nothing is made up, what the server says holds. */
static void test_cut(void **state)
{
	struct flights f = load("tls13");
	size_t n = (size_t)f.data[1] << 8 | f.data[2], next = 3 + n;
	size_t sn = (size_t)f.data[next + 1] << 8 | f.data[next + 2];
	struct end *e = malloc(sizeof(*e));

	(void)state;
	for (size_t cut = 5; cut < n; cut++) {
		memset(e, 0, sizeof(*e));
		e->last = rs_tls_feed(&e->h, &e->facts, RS_DIR_OUT, 0,
				      (struct str){ (const char *)f.data + 3, cut }, n, 1000);
		assert_int_equal(e->last, RS_TLS_MORE);
		e->last =
			rs_tls_feed(&e->h, &e->facts, RS_DIR_IN, 0,
				    (struct str){ (const char *)f.data + next + 3, sn }, sn, 2000);
		if (cut > 5) { /* before, it does not say who is who */
			assert_int_equal(e->facts.version, 0x0304);
			assert_int_equal(e->facts.cipher, 0x1302);
		}
		assert_true(!e->facts.server_name[0] ||
			    strcmp(e->facts.server_name, "shop.example") == 0);
	}
	free(e);
	free(f.data);
}

static void test_lost(void **state)
{
	struct flights f = load("tls12");
	struct end *e = calloc(1, sizeof(*e));
	struct str junk = STR("GET / HTTP/1.1\r\n\r\n");

	(void)state;
	/* a jump */
	assert_int_equal(rs_tls_feed(&e->h, &e->facts, RS_DIR_IN, 100, junk, junk.len, 1),
			 RS_TLS_LOST);
	/* no TLS */
	assert_int_equal(rs_tls_feed(&e->h, &e->facts, RS_DIR_IN, 0, junk, junk.len, 1),
			 RS_TLS_LOST);
	assert_false(e->facts.hello);
	free(e);
	free(f.data);
}

static void test_begins(void **state)
{
	static const char hello[] = "\x16\x03\x01\x02\x00\x01", data[] = "\x17\x03\x03\x00\x50";

	(void)state;
	assert_true(rs_tls_begins(str_of(hello, 6), false));
	assert_true(rs_tls_begins(str_of(hello, 5), false));
	assert_false(rs_tls_begins(str_of(hello, 4), false));
	assert_false(rs_tls_begins(str_of(data, 5), false));
	assert_true(rs_tls_begins(str_of(data, 5), true));
	assert_false(rs_tls_begins(str_of("\x16\x03\x01\x02\x00\x0b", 6), false));
	assert_false(rs_tls_begins(str_of("\x17\x03\x03\xff\xff", 5), true));
	assert_false(rs_tls_begins(str_of("GET / ", 6), true));
}

static void test_names(void **state)
{
	(void)state;
	assert_true(str_eq(rs_tls_version_name(0x0304), STR("1.3")));
	assert_int_equal(rs_tls_version_name(0x0305).len, 0);
	assert_true(str_eq(rs_tls_cipher_name(0x1301), STR("TLS_AES_128_GCM_SHA256")));
	assert_int_equal(rs_tls_cipher_name(0).len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split), cmocka_unit_test(test_cut),
		cmocka_unit_test(test_lost),  cmocka_unit_test(test_begins),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
