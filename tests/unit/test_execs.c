// SPDX-License-Identifier: Apache-2.0
/* What was seen of programs when they were executed. */
#include <string.h>
#include <unistd.h>

#include "discover/facts.h"
#include "meta/execs.h"
#include "unit.h"

static void test_found(void **state)
{
	uint32_t me = (uint32_t)getpid();
	const struct rs_exec *e;
	struct rs_execs x;

	(void)state;
	rs_execs_init(&x);
	assert_null(rs_execs_find(&x, me, 0));
	rs_execs_note(&x, me, 7, true, true);
	e = rs_execs_find(&x, me, 7);
	assert_non_null(e);
	assert_has(e->exe, "test_execs");
	assert_int_equal(e->uid, geteuid());
	assert_int_equal(e->cgroup[0], '/');
	assert_ptr_equal(rs_execs_find(&x, me, 0), e);
	assert_null(rs_execs_find(&x, me, 8)); /* the number's next owner */
	assert_null(rs_execs_find(&x, me + 1, 7));
	rs_execs_release(&x);
	assert_null(rs_execs_find(&x, me, 7));
}

static void test_newest_and_oldest(void **state)
{
	uint32_t me = (uint32_t)getpid(), gone = UINT32_MAX - 1;
	struct rs_execs x;

	(void)state;
	rs_execs_init(&x);
	rs_execs_note(&x, gone, 1, true, true);
	assert_string_equal(rs_execs_find(&x, gone, 1)->exe, "");
	assert_int_equal(rs_execs_find(&x, gone, 1)->uid, RS_FACTS_NO_UID);
	rs_execs_note(&x, me, 1, false, false);
	rs_execs_note(&x, me, 2, false,
		      false); /* it executes another program, or another has its number */
	assert_null(rs_execs_find(&x, me, 1));
	assert_non_null(rs_execs_find(&x, me, 2));
	for (int i = 0; i < RS_EXECS - 2; i++)
		rs_execs_note(&x, me, 3, false, false);
	assert_null(rs_execs_find(&x, gone, 1)); /* its place is another's */
	rs_execs_release(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_newest_and_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
