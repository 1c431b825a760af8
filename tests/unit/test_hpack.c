// SPDX-License-Identifier: Apache-2.0
/*
 * Header compression: the examples of RFC 7541 appendix C, errors, and nghttp2's encoder: what it writes is
 * read, from the start, from the middle and after losses, where each field is right or unknown.
 */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/hpack.h"
#include "unit.h"

#define FIELDS 32

struct got {
	unsigned n;
	struct {
		struct str name, value;
	} f[FIELDS];
	char text[65536];
	size_t len;
};

static struct str own(struct got *g, struct str s)
{
	char *to = g->text + g->len;

	if (!s.ptr)
		return s;
	assert_true(g->len + s.len <= sizeof(g->text));
	memcpy(to, s.ptr, s.len);
	g->len += s.len;
	return str_of(to, s.len);
}

static bool on_field(void *arg, const struct rs_hpack_field *f)
{
	struct got *g = arg;

	assert_true(g->n < FIELDS);
	g->f[g->n].name = own(g, f->name);
	g->f[g->n++].value = own(g, f->value);
	return g->n % 2;
}

struct fixture {
	struct rs_pool small, large;
	struct rs_hpack h;
	struct got got;
	char scratch[65536];
};

static struct fixture *fixture(bool whole)
{
	struct fixture *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	rs_pool_init(&x->small, RS_HPACK_BLOCK(RS_HPACK_SMALL), 2);
	rs_pool_init(&x->large, RS_HPACK_BLOCK(RS_HPACK_LARGE), 1);
	rs_hpack_init(&x->h, whole, &x->small, &x->large);
	return x;
}

static void end(struct fixture *x)
{
	rs_hpack_release(&x->h);
	assert_int_equal(x->small.in_use, 0);
	assert_int_equal(x->large.in_use, 0);
	rs_pool_release(&x->small);
	rs_pool_release(&x->large);
	free(x);
}

static bool decode(struct fixture *x, struct str block)
{
	struct rs_hpack_mem mem = { x->scratch, x->scratch + sizeof(x->scratch) };
	/* Exactly as large as the block: a read behind it is found. */
	char *copy = malloc(block.len ? block.len : 1);
	bool ok;

	assert_non_null(copy);
	memcpy(copy, block.ptr, block.len);
	x->got.n = 0;
	x->got.len = 0;
	ok = rs_hpack_decode(&x->h, str_of(copy, block.len), &mem, on_field, &x->got);
	free(copy);
	return ok;
}

static size_t unhex(const char *hex, char *to)
{
	size_t n = 0;
	unsigned v;

	for (; *hex; hex += hex[0] == ' ' ? 1 : 2) {
		if (hex[0] != ' ') {
			assert_int_equal(sscanf(hex, "%2x", &v), 1);
			to[n++] = (char)v;
		}
	}
	return n;
}

/* "name: value" lines; "?" for what is not known. */
static const char *as_text(const struct got *g, char *to, size_t size)
{
	size_t n = 0;

	to[0] = 0;
	for (unsigned i = 0; i < g->n; i++)
		n += (size_t)snprintf(to + n, size - n, "%.*s: %.*s\n",
				      g->f[i].name.ptr ? (int)g->f[i].name.len : 1,
				      g->f[i].name.ptr ? g->f[i].name.ptr : "?",
				      g->f[i].value.ptr ? (int)g->f[i].value.len : 1,
				      g->f[i].value.ptr ? g->f[i].value.ptr : "?");
	return to;
}

struct vector {
	const char *hex, *want; /* want NULL: not valid */
	uint32_t size;		/* of the table afterwards */
	bool fresh;		/* with a table of its own */
	uint16_t max;		/* and as small as this; 0: the default */
};

#define DATE1 "date: Mon, 21 Oct 2013 20:13:21 GMT\n"
#define DATE2 "date: Mon, 21 Oct 2013 20:13:22 GMT\n"
#define WHERE "location: https://www.example.com\n"
#define GET1  ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n"
#define GET3                                                                                       \
	":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value\n"
#define COOKIE                                                                                     \
	":status: 200\ncache-control: private\n" DATE2 WHERE                                       \
	"content-encoding: gzip\nset-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n"

static const struct vector vectors[] = {
	/* C.2 */
	{ "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
	  "custom-key: custom-header\n", 55, true, 0 },
	{ "040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path\n", 0, true, 0 },
	{ "1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret\n", 0, true, 0 },
	{ "82", ":method: GET\n", 0, true, 0 },
	/* C.3 */
	{ "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", GET1, 57, true, 0 },
	{ "8286 84be 5808 6e6f 2d63 6163 6865", GET1 "cache-control: no-cache\n", 110, false, 0 },
	{ "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", GET3, 164,
	  false, 0 },
	/* C.4 */
	{ "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", GET1, 57, true, 0 },
	{ "8286 84be 5886 a8eb 1064 9cbf", GET1 "cache-control: no-cache\n", 110, false, 0 },
	{ "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", GET3, 164, false, 0 },
	/* C.5, with a table of 256 bytes */
	{ "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32"
	  "3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
	  ":status: 302\ncache-control: private\n" DATE1 WHERE, 222, true, 256 },
	{ "4803 3330 37c1 c0bf", ":status: 307\ncache-control: private\n" DATE1 WHERE, 222, false,
	  0 },
	{ "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970"
	  "7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61"
	  "6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
	  COOKIE, 215, false, 0 },
	/* C.6 */
	{ "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad"
	  "1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
	  ":status: 302\ncache-control: private\n" DATE1 WHERE, 222, true, 256 },
	{ "4883 640e ffc1 c0bf", ":status: 307\ncache-control: private\n" DATE1 WHERE, 222, false,
	  0 },
	{ "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2"
	  "e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
	  COOKIE, 215, false, 0 },
	/* Index 0, beyond the table, of a name beyond it; a length that is too long; the last byte is missing. */
	{ "80", NULL, 0, true, 0 },
	{ "be", NULL, 0, true, 0 },
	{ "7f00 0161", NULL, 0, true, 0 },
	{ "4003 6162", NULL, 0, true, 0 },
	{ "82ff ffff ffff ff0f", NULL, 0, true, 0 },
	/* Huffman code: padding of eight bits, of zeros, and the symbol that stands for the end. */
	{ "0481 ff", NULL, 0, true, 0 },
	{ "0481 18", NULL, 0, true, 0 },
	{ "0484 ffff ffff", NULL, 0, true, 0 },
	{ "0481 1f", ":path: a\n", 0, true, 0 },
	{ "0480", ":path: \n", 0, true, 0 },
	/* An entry that is larger than the table empties it; so does a table of 0 bytes. */
	{ "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", GET1, 57, true, 64 },
	{ "4003 6162 6330 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030 3030"
	  "3030 3030 3030 3030 3030 3030 3030 3030",
	  "abc: 000000000000000000000000000000000000000000000000\n", 0, false, 0 },
	{ "4003 6162 6301 64 20 3fe1 1f be", NULL, 0, true, 0 },
};

static void test_vectors(void **state)
{
	struct fixture *x = NULL;
	char bytes[512], text[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *v = &vectors[i];
		size_t n = unhex(v->hex, bytes);

		if (v->fresh) {
			if (x)
				end(x);
			x = fixture(true);
		}
		if (v->max)
			x->h.max = v->max;
		if (decode(x, str_of(bytes, n)) != (v->want != NULL))
			fail_msg("%s: %s", v->hex, v->want ? "refused" : "taken");
		if (!v->want)
			continue;
		assert_string_equal(as_text(&x->got, text, sizeof(text)), v->want);
		assert_int_equal(x->h.size, v->size);
	}
	end(x);
}

/* In the middle: what was inserted before is unknown, what is inserted now is found by its index. */
static void test_middle(void **state)
{
	static const struct {
		const char *hex, *want;
	} steps[] = {
		{ "82 be 87 bf", ":method: GET\n?: ?\n:scheme: https\n?: ?\n" },
		{ "4003 616263 0178", "abc: x\n" },
		{ "be bf", "abc: x\n?: ?\n" },
		{ "7f00 0179", "?: y\n" }, /* index 63: its name was said before */
		{ "be bf c0", "?: y\nabc: x\n?: ?\n" },
		{ "7e 017a", "?: z\n" },     /* the name of the one without a name */
		{ "7f01 0177", "abc: w\n" }, /* index 64 */
		{ "be bf c0 c1", "abc: w\n?: z\n?: y\nabc: x\n" },
		{ "20 3fe1 1f 4003 616263 0176 be",
		  "abc: v\nabc: v\n" }, /* emptied: now all is known */
	};
	struct fixture *x = fixture(false);
	char bytes[64], text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		assert_true(decode(x, str_of(bytes, unhex(steps[i].hex, bytes))));
		assert_string_equal(as_text(&x->got, text, sizeof(text)), steps[i].want);
	}
	assert_false(decode(x, STR("\xbf")));
	rs_hpack_lose(&x->h);
	assert_true(decode(x, STR("\xbe")));
	assert_string_equal(as_text(&x->got, text, sizeof(text)), "?: ?\n");
	end(x);
}

static uint32_t rnd(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static struct str random_text(uint32_t *seed, char *to, size_t max, bool name)
{
	size_t n = rnd(seed) % max + (name ? 1 : 0);

	for (size_t i = 0; i < n; i++)
		to[i] = (char)(name	       ? 'a' + rnd(seed) % 4
			       : rnd(seed) % 8 ? ' ' + rnd(seed) % 94
					       : rnd(seed) % 256);
	return str_of(to, n);
}

struct run {
	uint32_t seed, table;
	bool whole;   /* else the first blocks are not seen */
	bool losses;  /* blocks are missed now and then */
	unsigned nth; /* sizes of the table change */
};

/* nghttp2 encodes random fields; each must be read as it was, or be unknown where that may be. */
static unsigned compare(const struct run *r)
{
	static const char *const known[] = { ":method",	     ":path",  ":status",
					     "content-type", "cookie", "x-b3-flags" };
	struct fixture *x = fixture(r->whole);
	bool whole = r->whole, full = r->whole;
	uint32_t seed = r->seed;
	nghttp2_hd_deflater *d;
	unsigned unknown = 0;

	assert_int_equal(nghttp2_hd_deflate_new(&d, r->table), 0);
	if (r->table >
	    4096) /* the encoder may, because SETTINGS said so; it tells in its first block */
		assert_int_equal(nghttp2_hd_deflate_change_table_size(d, r->table), 0);
	for (unsigned block = 0; block < 300; block++) {
		nghttp2_nv nv[FIELDS];
		char text[FIELDS][2][256];
		uint8_t out[32768];
		unsigned n = 1 + rnd(&seed) % 8;
		bool seen = r->whole || block > 20;
		ssize_t len;

		if (r->nth && block % r->nth == r->nth - 1)
			nghttp2_hd_deflate_change_table_size(
				d, rnd(&seed) % 3 ? rnd(&seed) % r->table : 0);
		for (unsigned i = 0; i < n; i++) {
			struct str name, value;

			if (rnd(&seed) % 2)
				name = str_c(
					known[rnd(&seed) % (sizeof(known) / sizeof(known[0]))]);
			else
				name = random_text(&seed, text[i][0], rnd(&seed) % 20 ? 2 : 200,
						   true);
			value = random_text(&seed, text[i][1], rnd(&seed) % 3 ? 3 : 250, false);
			nv[i] = (nghttp2_nv){ (uint8_t *)name.ptr, (uint8_t *)value.ptr, name.len,
					      value.len,
					      rnd(&seed) % 5 ? NGHTTP2_NV_FLAG_NONE
							     : NGHTTP2_NV_FLAG_NO_INDEX };
		}
		len = nghttp2_hd_deflate_hd(d, out, sizeof(out), nv, n);
		assert_true(len > 0);
		if (seen && r->losses && rnd(&seed) % 16 == 0) {
			rs_hpack_lose(&x->h);
			full = false;
			continue;
		}
		if (!seen)
			continue;
		assert_true(decode(x, str_of((char *)out, (size_t)len)));
		full |= !x->h.partial;
		assert_int_equal(x->got.n, n);
		for (unsigned i = 0; i < n; i++) {
			struct str name = x->got.f[i].name, value = x->got.f[i].value;

			if (!name.ptr || !value.ptr) {
				assert_false(whole && !r->losses);
				unknown++;
			}
			if (name.ptr)
				assert_true(
					str_eq(name, str_of((char *)nv[i].name, nv[i].namelen)));
			if (value.ptr)
				assert_true(
					str_eq(value, str_of((char *)nv[i].value, nv[i].valuelen)));
		}
	}
	nghttp2_hd_deflate_del(d);
	end(x);
	return unknown;
}

static void test_nghttp2(void **state)
{
	static const uint32_t tables[] = { 4096, 128, 1000, 16384, 65536 };
	unsigned unknown = 0;

	(void)state;
	for (uint32_t i = 0; i < 60; i++) {
		struct run r = { .seed = i,
				 .table = tables[i % 5],
				 .whole = i % 3 != 0,
				 .losses = i % 4 == 3,
				 .nth = i % 7 ? 0 : 10 };
		unsigned n = compare(&r);

		if (r.whole && !r.losses)
			assert_int_equal(n, 0);
		unknown += n;
	}
	assert_true(unknown > 100); /* it did come to that */
}

/* Without memory for a table nothing is found in it, and nothing is wrong. */
static void test_no_memory(void **state)
{
	struct rs_hpack_mem mem;
	char scratch[256], text[256], bytes[64];
	struct rs_pool none;
	struct rs_hpack h;
	struct got *g = calloc(1, sizeof(*g));

	(void)state;
	assert_non_null(g);
	rs_pool_init(&none, RS_HPACK_BLOCK(RS_HPACK_SMALL), 0);
	rs_hpack_init(&h, true, &none, &none);
	mem = (struct rs_hpack_mem){ scratch, scratch + sizeof(scratch) };
	assert_true(rs_hpack_decode(&h, str_of(bytes, unhex("4003 616263 0178 be 82", bytes)), &mem,
				    on_field, g));
	assert_string_equal(as_text(g, text, sizeof(text)), "abc: x\n?: ?\n:method: GET\n");
	rs_hpack_release(&h);
	rs_pool_release(&none);
	free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_middle),
		cmocka_unit_test(test_nghttp2),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
