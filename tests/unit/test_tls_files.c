// SPDX-License-Identifier: Apache-2.0
/* tls/system and kernel/uprobe: which files may be TLS libraries, and which are one file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/uprobe.h"
#include "tls/system.h"
#include "unit.h"

static void test_names(void **state)
{
	(void)state;
	assert_true(rs_tls_promising("/usr/lib/x86_64-linux-gnu/libssl.so.3"));
	assert_true(rs_tls_promising("libgnutls.so.30.34.3"));
	assert_true(rs_tls_promising("/tmp/libnetty_tcnative_linux_x86_64.so"));
	assert_true(rs_tls_promising("/x/libconscrypt_openjdk_jni.so"));
	assert_false(rs_tls_promising("/opt/ssl/lib/libz.so.1"));
	assert_false(rs_tls_promising("libcrypto.so.3"));
}

static void make(const char *root, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/usr/lib/%s", root, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

struct seen {
	unsigned n;
	char last[256];
};

static void on_file(void *arg, int fd, const char *path)
{
	struct seen *s = arg;

	assert_true(fcntl(fd, F_GETFD) >= 0);
	s->n++;
	snprintf(s->last, sizeof(s->last), "%s", path);
}

static void test_system(void **state)
{
	char root[] = "/tmp/rs-system-XXXXXX", path[256], cmd[256];
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct rs_tls_system s = { 0 };
	struct seen seen = { 0 };

	(void)state;
	assert_non_null(mkdtemp(root));
	rs_tls_system(&s, root, on_file, &seen);
	assert_int_equal(seen.n, 0);
	assert_false(rs_tls_system_changed(&s, root));
	snprintf(path, sizeof(path), "%s/usr", root);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/usr/lib", root);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_true(rs_tls_system_changed(&s, root));
	make(root, "libssl.so.3");
	make(root, "libz.so.1");
	make(root, "openssl.cnf");
	rs_tls_system(&s, root, on_file, &seen);
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.last, "/usr/lib/libssl.so.3");
	assert_false(rs_tls_system_changed(&s, root));
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_true(rs_tls_system_changed(&s, root));
	snprintf(cmd, sizeof(cmd), "rm -r %s", root);
	assert_int_equal(system(cmd), 0);
}

static void test_same(void **state)
{
	const struct rs_uprobe_file a = { .dev = 7, .ino = 8, .size = 9, .changed = { 1, 2 } };
	struct rs_uprobe_file b = a, layer = a, other;

	(void)state;
	assert_true(rs_uprobe_same_file(&a, false, &b));
	b.changed.tv_nsec = 3; /* a link was made to it; or its number is another file's now */
	assert_true(rs_uprobe_same_file(&a, true, &b));
	assert_false(rs_uprobe_same_file(&a, false, &b));
	b = a;
	b.dev = 6;
	assert_false(rs_uprobe_same_file(&a, true, &b));
	/* In layers the number alone says nothing. */
	layer.dev = 0;
	other = layer;
	assert_true(rs_uprobe_same_file(&layer, true, &other));
	other.size++;
	assert_false(rs_uprobe_same_file(&layer, true, &other));
	assert_false(rs_uprobe_same_file(&layer, false, &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_system),
		cmocka_unit_test(test_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
