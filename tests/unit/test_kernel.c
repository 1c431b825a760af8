// SPDX-License-Identifier: Apache-2.0
/* What of user/kernel/ needs no privilege: options, the kernel's type names, the list of features. */
#include <errno.h>

#include "kernel/kernel.h"
#include "kernel/load.h"
#include "unit.h"

static void test_ring_size(void **state)
{
	static const size_t bad[] = {
		1, 4095, 5000, 12288, ((size_t)1 << 30) + 4096, (size_t)1 << 31
	};
	struct rs_kernel *k = NULL;
	struct rs_kernel_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rs_kernel_opts opts = { .ring_bytes = bad[i] };

		assert_int_equal(rs_kernel_open(&opts, &k, &err), -EINVAL);
		assert_null(k);
		assert_false(err.unsupported);
		assert_has(err.msg, "--ring-size");
	}
}

static void test_btf_names(void **state)
{
	static char blob[] = "\0btf_trace_sock_send_length\0BPF_FUNC_x\0tail";
	struct rs_kernel_btf btf = { blob, sizeof(blob) };

	(void)state;
	assert_true(rs_kernel_btf_has_tp(&btf, "sock_send_length"));
	assert_false(rs_kernel_btf_has_tp(&btf, "sock_send"));
	assert_false(rs_kernel_btf_has_tp(&btf, "send_length"));
	assert_true(rs_kernel_btf_has(&btf, "BPF_FUNC_x"));
	assert_false(rs_kernel_btf_has(&btf, "BPF_FUNC"));
	assert_false(rs_kernel_btf_has(&(struct rs_kernel_btf){ 0 }, "BPF_FUNC_x"));
}

static void test_explain(void **state)
{
	struct rs_kernel_err err;

	(void)state;
	assert_int_equal(rs_kernel_explain(&err, -EPERM, "load", ""), -EPERM);
	assert_true(err.unsupported);
	assert_string_equal(strchr(err.msg, '\n') ? "two lines" : "one line", "one line");
	assert_int_equal(rs_kernel_explain(&err, -ENOMEM, "make a ring", ""), -ENOMEM);
	assert_false(err.unsupported);
	assert_has(err.msg, "--ring-size");
}

static void test_features(void **state)
{
	struct rs_feature f[32];
	size_t n = rs_kernel_features(f, 32);

	(void)state;
	assert_in_range(n, 8, 31);
	for (size_t i = 0; i < n; i++) {
		assert_int_not_equal(f[i].name[0], 0);
		assert_int_not_equal(f[i].detail[0], 0);
	}
	assert_int_equal(rs_kernel_features(f, 3), 3);
	assert_int_equal(rs_kernel_features(f, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring_size),
		cmocka_unit_test(test_btf_names),
		cmocka_unit_test(test_explain),
		cmocka_unit_test(test_features),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
