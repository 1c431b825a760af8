// SPDX-License-Identifier: Apache-2.0
/* Containers of base/ against naive models. */
#include <errno.h>

#include "base/arena.h"
#include "base/digits.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/str.h"
#include "unit.h"

static uint32_t rnd(uint32_t *s)
{
	*s = *s * 1664525u + 1013904223u;
	return *s >> 8;
}

/* Random puts, gets and dels of few keys, some of which share a home, against an array. */
static void test_map(void **state)
{
	enum {
		KEYS = 300
	};
	static char vals[2][KEYS];
	void *model[KEYS] = { 0 };
	uint32_t seed = 1, count = 0, pos = 0, seen = 0;
	struct rs_map m;

	(void)state;
	rs_map_init(&m, KEYS);
	assert_null(rs_map_get(&m, 5));
	assert_null(rs_map_del(&m, 5));
	for (int i = 0; i < 200000; i++) {
		uint32_t k = rnd(&seed) % KEYS;
		uint64_t key = (uint64_t)k << 32 | (k & 3);

		switch (rnd(&seed) % 3) {
		case 0:
			count += !model[k];
			model[k] = &vals[rnd(&seed) & 1][k];
			assert_int_equal(rs_map_put(&m, key, model[k]), 0);
			break;
		case 1:
			count -= model[k] != NULL;
			assert_ptr_equal(rs_map_del(&m, key), model[k]);
			model[k] = NULL;
			break;
		default:
			assert_ptr_equal(rs_map_get(&m, key), model[k]);
		}
		assert_int_equal(m.count, count);
	}
	while (rs_map_next(&m, &pos))
		seen++;
	assert_int_equal(seen, count);
	rs_map_release(&m);
}

static void test_map_bound(void **state)
{
	struct rs_map m;
	int v;

	(void)state;
	rs_map_init(&m, 100);
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(rs_map_put(&m, i, &v), 0);
	assert_int_equal(rs_map_put(&m, 100, &v), -ENOSPC);
	assert_int_equal(rs_map_put(&m, 50, &v), 0); /* replacing needs no room */
	rs_map_del(&m, 3);
	assert_int_equal(rs_map_put(&m, 100, &v), 0);
	rs_map_release(&m);
}

static void test_arena(void **state)
{
	struct rs_arena a;
	char big[5000];
	size_t held;

	(void)state;
	memset(big, 'x', sizeof(big));
	rs_arena_init(&a, 1024, 16384);
	assert_int_equal(a.held, 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 8; i++) {
			struct str s = rs_arena_str(&a, str_of(big, 100 + (size_t)i));
			volatile char sum = 0;

			assert_int_equal(s.len, 100 + i);
			assert_int_equal((uintptr_t)s.ptr % 8, 0);
			for (size_t k = 0; k < RS_ARENA_PAD; k++)
				sum += s.ptr[s.len + k]; /* readable: AddressSanitizer watches */
			(void)sum;
		}
		assert_non_null(rs_arena_alloc(&a, 4000)); /* larger than a chunk */
		assert_non_null(rs_arena_alloc(&a, 8));
		rs_arena_reset(&a);
		if (round == 0)
			held = a.held;
		assert_int_equal(a.held, held); /* a warm arena neither grows nor shrinks */
	}
	assert_null(rs_arena_alloc(&a, 20000)); /* over the limit */
	assert_null(rs_arena_alloc(&a, SIZE_MAX));
	assert_non_null(rs_arena_alloc(&a, 8)); /* a refusal spoils nothing */
	rs_arena_release(&a);
}

static void test_pool(void **state)
{
	struct rs_pool p;
	void *obj[1000], *last;

	(void)state;
	rs_pool_init(&p, 100, 1000);
	for (int i = 0; i < 1000; i++) {
		obj[i] = rs_pool_get(&p);
		assert_non_null(obj[i]);
		memset(obj[i], i, 100);
	}
	assert_null(rs_pool_get(&p));
	for (int i = 0; i < 1000; i++) {
		for (int k = 0; k < 100; k++)
			assert_int_equal(((uint8_t *)obj[i])[k], (uint8_t)i);
	}
	last = obj[999];
	rs_pool_put(&p, last);
	assert_ptr_equal(rs_pool_get(&p), last); /* last in, first out */
	for (int i = 0; i < 1000; i++)
		rs_pool_put(&p, obj[i]);
	rs_pool_put(&p, NULL);
	assert_int_equal(p.in_use, 0);
	assert_int_equal(p.high, 1000);
	rs_pool_release(&p);
}

static void test_str(void **state)
{
	struct str head, rest;
	uint64_t v = 77;

	(void)state;
	rest = str_cut(STR("a,b"), ',', &head);
	assert_true(str_eq(head, STR("a")) && str_eq(rest, STR("b")));
	rest = str_cut(STR("ab"), ',', &head);
	assert_true(str_eq(head, STR("ab")) && rest.len == 0);
	assert_true(str_eq(str_trim(STR(" \t x \t")), STR("x")));
	assert_int_equal(str_trim(STR("  ")).len, 0);
	assert_true(str_ieq(STR("HoSt"), STR("host")) && !str_ieq(STR("host"), STR("hos")));
	assert_true(str_eq(str_at(STR("abc"), 1, 1), STR("b")));
	assert_int_equal(str_at(STR("abc"), 9, 9).len, 0);
	assert_true(str_u64(STR("18446744073709551615"), &v) && v == UINT64_MAX);
	assert_false(str_u64(STR("18446744073709551616"), &v));
	assert_false(str_u64(STR(""), &v) || str_u64(STR("+1"), &v) || str_u64(STR("1 "), &v));
	assert_true(v == UINT64_MAX); /* untouched on failure */
}

static void test_digits(void **state)
{
	static const char
		lower[] = "0123456789abcdef",
		url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	static const struct {
		struct str in, out;
	} rows[] = {
		{ STR(""), STR("") },
		{ STR("a%20b%2C"), STR("a b,") },
		{ STR("%c3%BC"), STR("\xc3\xbc") },
		{ STR("%"), STR("%") },
		{ STR("100%"), STR("100%") },
		{ STR("%4"), STR("%4") },
		{ STR("%%41"), STR("%A") },
		{ STR("%g1%1g"), STR("%g1%1g") },
		{ STR("%2541"), STR("%41") },
	};
	char out[16];

	(void)state;
	for (int c = 0; c < 256; c++) {
		const char *at = c ? strchr(lower, c) : NULL, *b = c ? strchr(url, c) : NULL;
		int low = at ? (int)(at - lower) : -1;
		int any = c >= 'A' && c <= 'F' ? c - 'A' + 10 : low;

		assert_int_equal(rs_hex_lower_digit((char)c), low);
		assert_int_equal(rs_hex_digit((char)c), any);
		assert_int_equal(rs_hex_byte((char[2]){ (char)c, '7' }),
				 any < 0 ? -1 : any << 4 | 7);
		assert_int_equal(rs_hex_byte((char[2]){ '7', (char)c }),
				 any < 0 ? -1 : 7 << 4 | any);
		assert_int_equal(rs_base64_digit((char)c), b	      ? (int)(b - url)
							   : c == '+' ? 62
							   : c == '/' ? 63
								      : -1);
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = rs_percent_decode(rows[i].in, out, sizeof(out));

		assert_true(str_eq(str_of(out, n), rows[i].out));
	}
	assert_int_equal(rs_percent_decode(STR("%41%42%43"), out, 2), 2);
	assert_memory_equal(out, "AB", 2);
	assert_int_equal(rs_percent_decode(STR("abc"), out, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_digits),	  cmocka_unit_test(test_map),
		cmocka_unit_test(test_map_bound), cmocka_unit_test(test_arena),
		cmocka_unit_test(test_pool),	  cmocka_unit_test(test_str),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
