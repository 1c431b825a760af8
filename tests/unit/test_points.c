// SPDX-License-Identifier: Apache-2.0
/* tls/elf, tls/points, tls/maps: a small library with OpenSSL's names (tests/fuzz/corpus/elf), and bytes that are none. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <string.h>
#include <unistd.h>

#include "shared/config.h"
#include "tls/maps.h"
#include "tls/points.h"
#include "unit.h"

static int seed_of(const char *path)
{
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	return fd;
}

static int seed(void)
{
	return seed_of("tests/fuzz/corpus/elf/openssl");
}

static int memory(const void *p, size_t n)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_true(fd >= 0 && write(fd, p, n) == (ssize_t)n);
	return fd;
}

static void test_elf(void **state)
{
	struct rs_elf_sym sym[] = { { .name = "SSL_read" },
				    { .name = "SSL_peek" },
				    { .name = "SSL_write" } };
	int fd = seed();
	struct rs_elf_bytes f;
	struct rs_elf *e;

	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	assert_int_equal(rs_elf_open(fd, &e), 0);
	assert_false(rs_elf_is_executable(e));
	assert_int_equal(rs_elf_symbols(e, sym, 3), 2);
	assert_true(sym[0].va && sym[0].size && sym[2].va);
	assert_int_equal(sym[1].va, 0);
	/* .eh_frame_hdr knows the same function, from inside too */
	f = rs_elf_function(e, sym[0].va + sym[0].size - 1);
	assert_int_equal(f.va, sym[0].va);
	assert_true(f.len >= sym[0].size);
	assert_memory_equal(f.ptr, rs_elf_code(e, sym[0].va, 16).ptr, 16);
	assert_int_equal(rs_elf_offset(e, UINT64_MAX), UINT64_MAX);
	assert_int_equal(rs_elf_code(e, UINT64_MAX, 16).len, 0);
	assert_int_equal(rs_elf_function(e, 0).len, 0);
	assert_int_equal(rs_elf_section(e, ".none").len, 0);
	rs_elf_close(e);
	close(fd);
}

/* The local functions are found though the library is stripped; each return is behind a call. */
static void test_openssl(void **state)
{
	static struct rs_tls_points p;
	unsigned enter = 0, leave = 0, out = 0;
	int fd = seed();
	struct rs_elf *e;

	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	assert_int_equal(rs_elf_open(fd, &e), 0);
	assert_int_equal(rs_tls_marks(e), 1u << RS_TLS_LIB_openssl);
	assert_int_equal(rs_tls_find(RS_TLS_LIB_gnutls, e, &p), -ENOENT);
	assert_int_equal(rs_tls_find(RS_TLS_LIB_openssl, e, &p), 0);
	for (size_t i = 0; i < p.n; i++) {
		enter += p.v[i].prog == RS_UPROBE_rs_tls_enter;
		leave += p.v[i].prog == RS_UPROBE_rs_text;
		out += (p.v[i].at.cookie & RS_TLS_COOKIE_OUT) != 0;
		if (p.v[i].prog != RS_UPROBE_rs_tls_forget)
			assert_true(p.v[i].at.cookie & RS_TLS_COOKIE_COUNTP);
	}
	assert_int_equal(enter, 2);
	assert_true(leave >= 2);
	assert_true(out >= 2);
	rs_elf_close(e);
	close(fd);
}

static size_t of_kind(const struct rs_tls_points *p, uint64_t cookie)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++)
		n += p->v[i].at.cookie == cookie;
	return n;
}

/* Both ways to mangle names; the methods that only say no are none, nor is what makes decrypters. */
static void test_rustls(void **state)
{
	static char whole[65536];
	static struct rs_tls_points p;
	int fd = seed_of("tests/fuzz/corpus/elf/rustls");
	ssize_t n = read(fd, whole, sizeof(whole));
	struct rs_elf *e;
	char *at;

	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	assert_true(n > 0);
	assert_int_equal(rs_elf_open(fd, &e), 0);
	assert_int_equal(rs_tls_marks(e), 1u << RS_TLS_LIB_rustls);
	assert_int_equal(rs_tls_find(RS_TLS_LIB_rustls, e, &p), 0);
	assert_int_equal(of_kind(&p, RS_TEXT_SEALS), 2);
	assert_in_range(of_kind(&p, RS_TEXT_OPENED), 2, 4);
	assert_int_equal(of_kind(&p, RS_TEXT_MADE), 2);
	assert_int_equal(p.dear, 1);
	rs_elf_close(e);
	close(fd);
	/* A release that works otherwise. */
	at = memmem(whole, (size_t)n, "encrypted_payload_len", 21);
	while (at) {
		memcpy(at, "something_else_of_it_", 21);
		at = memmem(whole, (size_t)n, "encrypted_payload_len", 21);
	}
	fd = memory(whole, (size_t)n);
	assert_int_equal(rs_elf_open(fd, &e), 0);
	assert_int_equal(rs_tls_find(RS_TLS_LIB_rustls, e, &p), -EOPNOTSUPP);
	assert_string_equal(p.what, "of a release before 0.23");
	rs_elf_close(e);
	close(fd);
}

/* NSS is known by its name, and by that alone. */
static void test_nss(void **state)
{
	static char whole[65536];
	static struct rs_tls_points p;
	int fd = seed();
	ssize_t n = read(fd, whole, sizeof(whole));
	char *at = memmem(whole, (size_t)n, "SSL_write_ex", 12);
	struct rs_elf *e;

	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	close(fd);
	assert_non_null(at);
	memcpy(at, "SSL_ImportFD", 12);
	fd = memory(whole, (size_t)n);
	assert_int_equal(rs_elf_open(fd, &e), 0);
	assert_true(rs_tls_marks(e) & 1u << RS_TLS_LIB_nss);
	assert_int_equal(rs_tls_find(RS_TLS_LIB_nss, e, &p), -EOPNOTSUPP);
	assert_string_equal(p.name, "nss");
	assert_has(p.what, "handshakes only");
	rs_elf_close(e);
	close(fd);
}

/* Cut anywhere, and with any byte changed: an error or less, never more. */
static void test_broken(void **state)
{
	static uint8_t whole[65536], copy[65536];
	static struct rs_tls_points p;
	int fd = seed();
	ssize_t n = read(fd, whole, sizeof(whole));

	(void)state;
	close(fd);
	assert_true(n > 0);
	for (ssize_t i = 0; i < n; i += 13) {
		for (int how = 0; how < 2; how++) {
			size_t len = how ? (size_t)n : (size_t)i;
			struct rs_elf *e;

			memcpy(copy, whole, (size_t)n);
			if (how)
				copy[i] ^= 0xff;
			fd = memory(copy, len);
			if (rs_elf_open(fd, &e) == 0) {
				if (rs_tls_find(RS_TLS_LIB_openssl, e, &p) == 0) {
					for (size_t k = 0; k < p.n; k++)
						assert_true(p.v[k].at.offset < len);
				}
				rs_elf_close(e);
			}
			close(fd);
		}
	}
}

static void test_maps(void **state)
{
	static const struct {
		const char *line, *path;
		uint64_t start, ino;
		bool deleted;
	} cases[] = {
		{ "7f00-7f10 r-xp 00000000 08:01 42    /usr/lib/libssl.so.3\n",
		  "/usr/lib/libssl.so.3", 0x7f00, 42, false },
		{ "7f00-7f10 r-xp 00000000 08:01 42    /a b/lib ssl.so (deleted)\n",
		  "/a b/lib ssl.so", 0x7f00, 42, true },
		{ "7f00-7f10 r--p 00000000 08:01 42    /usr/lib/libssl.so.3\n", NULL, 0, 0, false },
		{ "7f00-7f10 r-xp 00000000 00:00 0\n", NULL, 0, 0, false },
		{ "7f00-7f10 r-xp 00000000 00:00 0     [vdso]\n", NULL, 0, 0, false },
		{ "7f00-7f10 rwxs 00000000 00:01 9     anon_inode:[x]\n", NULL, 0, 0, false },
		{ "", NULL, 0, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rs_mapped m;
		char line[128];

		strcpy(line, cases[i].line);
		if (!cases[i].path) {
			assert_false(rs_maps_line(line, &m));
			continue;
		}
		assert_true(rs_maps_line(line, &m));
		assert_string_equal(m.path, cases[i].path);
		assert_int_equal(m.start, cases[i].start);
		assert_int_equal(m.ino, cases[i].ino);
		assert_int_equal(m.deleted, cases[i].deleted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elf),    cmocka_unit_test(test_openssl),
		cmocka_unit_test(test_rustls), cmocka_unit_test(test_nss),
		cmocka_unit_test(test_broken), cmocka_unit_test(test_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
