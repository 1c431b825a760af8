// SPDX-License-Identifier: Apache-2.0
/* Windows of held bytes against a plain buffer, and at their limits. */
#include <errno.h>

#include "conn/stream.h"
#include "unit.h"

static uint32_t in_use(const struct rs_windows *w)
{
	uint32_t n = 0;

	for (int i = 0; i < RS_WINDOW_CLASSES; i++)
		n += w->pool[i].in_use;
	return n;
}

/* Random holds and drops, seeded; a plain buffer says what must be held. */
static void test_like_a_plain_buffer(void **state)
{
	static char model[RS_WINDOW_MAX], bytes[RS_WINDOW_MAX];
	struct rs_stream s = { 0 };
	struct rs_windows w;
	uint32_t seed = 1;
	size_t len = 0;

	(void)state;
	rs_windows_init(&w);
	for (int i = 0; i < 20000; i++) {
		size_t n;

		seed = seed * 1664525u + 1013904223u;
		n = (seed >> 8) % (i % 50 == 0 ? RS_WINDOW_MAX : i % 5 ? 200 : 5000);
		if (seed >> 31) {
			memset(bytes, (int)(i & 0xff), n);
			if (n > RS_WINDOW_MAX - len) {
				assert_int_equal(rs_stream_hold(&s, &w, str_of(bytes, n)),
						 -EMSGSIZE);
			} else {
				assert_int_equal(rs_stream_hold(&s, &w, str_of(bytes, n)), 0);
				memcpy(model + len, bytes, n);
				len += n;
			}
		} else {
			rs_stream_drop(&s, &w, n);
			n = n < len ? n : len;
			len -= n;
			memmove(model, model + n, len);
		}
		assert_int_equal(rs_stream_held(&s).len, len);
		assert_memory_equal(rs_stream_held(&s).ptr, model, len);
		assert_int_equal(in_use(&w), len ? 1 : 0);
	}
	rs_stream_drop(&s, &w, SIZE_MAX);
	assert_null(s.win);
	assert_int_equal(in_use(&w), 0);
	rs_windows_release(&w);
}

static void test_a_larger_class_helps_out(void **state)
{
	struct rs_stream s[3] = { 0 };
	struct rs_windows w;

	(void)state;
	rs_windows_init(&w);
	w.pool[0].max = 1;
	w.pool[1].max = 1;
	w.pool[2].max = 0;
	assert_int_equal(rs_stream_hold(&s[0], &w, STR("one")), 0);
	assert_int_equal(rs_stream_hold(&s[1], &w, STR("two")), 0);
	assert_true(s[1].win->cap > s[0].win->cap);
	assert_int_equal(rs_stream_hold(&s[2], &w, STR("three")), -ENOMEM);
	/* Nothing has changed for those who hold something. */
	assert_int_equal(rs_stream_hold(&s[0], &w, str_of((char[8000]){ 0 }, 8000)), -ENOMEM);
	assert_true(str_eq(rs_stream_held(&s[0]), STR("one")));
	rs_stream_drop(&s[1], &w, 3);
	assert_int_equal(rs_stream_hold(&s[0], &w, STR(" more")), 0);
	assert_true(str_eq(rs_stream_held(&s[0]), STR("one more")));
	rs_stream_drop(&s[0], &w, 8);
	rs_windows_release(&w);
}

static void test_nothing(void **state)
{
	struct rs_stream s = { 0 };
	struct rs_windows w;

	(void)state;
	rs_windows_init(&w);
	assert_int_equal(rs_stream_hold(&s, &w, STR_NONE), 0);
	assert_null(s.win);
	rs_stream_drop(&s, &w, 5);
	assert_int_equal(rs_stream_held(&s).len, 0);
	rs_windows_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_a_plain_buffer),
		cmocka_unit_test(test_a_larger_class_helps_out),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
