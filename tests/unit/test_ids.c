// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>

#include "trace/ids.h"
#include "unit.h"

static bool any(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i])
			return true;
	}
	return false;
}

static void test_ids(void **state)
{
	struct rs_ids a, b, r1, r2;
	uint8_t t1[16], t2[16], s1[8], s2[8];

	(void)state;
	rs_ids_init(&a, 7);
	rs_ids_init(&b, 7);
	for (int i = 0; i < 1000; i++) {
		rs_ids_trace(&a, t1);
		rs_ids_trace(&b, t2);
		rs_ids_span(&a, s1);
		rs_ids_span(&b, s2);
		assert_memory_equal(t1, t2, 16);
		assert_memory_equal(s1, s2, 8);
		assert_true(any(t1, 16) && any(s1, 8));
	}
	rs_ids_init(&r1, 0);
	rs_ids_init(&r2, 0);
	rs_ids_trace(&r1, t1);
	rs_ids_trace(&r2, t2);
	assert_memory_not_equal(t1, t2, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests_name("ids", tests, NULL, NULL);
}
