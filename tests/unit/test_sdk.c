// SPDX-License-Identifier: Apache-2.0
/* What a process publishes, read from this very process. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "meta/proc.h"
#include "meta/sdk.h"
#include "unit.h"

static size_t put_kv(char *to, const char *key, const char *text)
{
	size_t k = strlen(key), v = strlen(text), n = 0;

	to[n++] = 0x0a;
	to[n++] = (char)(k + v + 6);
	to[n++] = 0x0a;
	to[n++] = (char)k;
	memcpy(to + n, key, k);
	n += k;
	to[n++] = 0x12;
	to[n++] = (char)(v + 2);
	to[n++] = 0x0a;
	to[n++] = (char)v;
	memcpy(to + n, text, v);
	return n + v;
}

/* resource { service.name = "shop", n = 7, x = "y" }, and attributes */
static size_t context(char *to)
{
	static const char number[] = "\x0a\x07\x0a\x01n\x12\x02\x18\x07";
	char resource[128];
	size_t n = put_kv(resource, "service.name", "shop");

	memcpy(resource + n, number, sizeof(number) - 1);
	n += sizeof(number) - 1;
	n += put_kv(resource + n, "x", "y");
	to[0] = 0x0a;
	to[1] = (char)n;
	memcpy(to + 2, resource, n);
	memcpy(to + 2 + n, "\x12\x02zz", 4); /* attributes: not looked into */
	return n + 6;
}

static void collect(void *arg, struct str key, struct str value)
{
	char *text = arg;

	sprintf(text + strlen(text), "%.*s=%.*s;", STR_ARG(key), STR_ARG(value));
}

static void test_parse(void **state)
{
	char buf[256], text[256] = "";
	size_t n = context(buf);

	(void)state;
	assert_true(rs_sdk_parse(str_of(buf, n), collect, text));
	assert_string_equal(text, "service.name=shop;x=y;");
	/* Cut anywhere, in memory of just that size; any byte replaced. */
	for (size_t len = 0; len < n; len++) {
		for (size_t at = 0; at < len; at++) {
			char *copy = malloc(len), got[8192] = "";

			assert_non_null(copy);
			memcpy(copy, buf, len);
			copy[at] = (char)(len * 37 + at);
			rs_sdk_parse(str_of(copy, len), collect, got);
			free(copy);
		}
	}
}

static void test_maps(void **state)
{
	static const struct {
		const char *line;
		bool present;
		uint64_t header;
	} cases[] = {
		{ "7f0000001000-7f0000002000 r--p 00000000 00:01 7 /memfd:OTEL_CTX (deleted)", true,
		  0x7f0000001000 },
		{ "7f0000001000-7f0000002000 r--p 00000000 00:00 0    [anon:OTEL_CTX]", true,
		  0x7f0000001000 },
		{ "7f0000001000-7f0000002000 rw-s 00000000 00:01 7 [anon_shmem:OTEL_CTX]", true,
		  0x7f0000001000 },
		{ "7f0000001000-7f0000002000 r--p 00000000 08:01 7 /opt/opentelemetry-javaagent.jar",
		  true, 0 },
		{ "7f0000001000-7f0000002000 r--p 00000000 08:01 7 /usr/lib/libc.so.6", false, 0 },
		{ "7f0000001000-7f0000002000 rw-p 00000000 00:00 0 ", false, 0 },
		{ "7f0000001000-7f0000002000 rw-p 00000000 00:00 0 [heap]", false, 0 },
		{ "", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rs_sdk sdk = { 0 };

		rs_sdk_map_line(&sdk, str_c(cases[i].line));
		assert_int_equal(sdk.present, cases[i].present);
		assert_int_equal(sdk.header, cases[i].header);
	}
}

static void test_own_process(void **state)
{
	struct {
		char signature[8];
		uint32_t version, size;
		uint64_t published, payload;
	} * h;
	char data[256], buf[256];
	struct rs_sdk sdk;
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);

	(void)state;
	assert_true(fd >= 0 && ftruncate(fd, 4096) == 0);
	h = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(h != MAP_FAILED);
	close(fd);
	assert_int_equal(rs_sdk_find((uint32_t)getpid(), &sdk), 0);
	assert_true(sdk.present);
	assert_int_equal(sdk.header, (uintptr_t)h);
	assert_int_equal(rs_sdk_read((uint32_t)getpid(), &sdk, buf, sizeof(buf)),
			 0); /* nothing there yet */
	memcpy(h->signature, "OTEL_CTX", 8);
	h->version = 2;
	h->size = (uint32_t)context(data);
	h->payload = (uintptr_t)data;
	assert_int_equal(rs_sdk_read((uint32_t)getpid(), &sdk, buf, sizeof(buf)),
			 0); /* being written */
	h->published = 1;
	assert_int_equal(rs_sdk_read((uint32_t)getpid(), &sdk, buf, sizeof(buf)), h->size);
	assert_memory_equal(buf, data, h->size);
	h->payload = 8; /* nobody's memory */
	assert_int_equal(rs_sdk_read((uint32_t)getpid(), &sdk, buf, sizeof(buf)), 0);
	munmap(h, 4096);
}

/* A program takes a moment until it publishes: it is looked at again then, also if another one was there before it. */
static void test_looked_at_again(void **state)
{
	struct rs_counters n = { 0 };
	struct rs_procs procs;
	struct rs_proc *p;

	(void)state;
	rs_procs_init(&procs, 4, true, NULL, &n);
	p = rs_procs_get(&procs, (uint32_t)getpid(), 0, 0, STR("sh"));
	assert_non_null(p);
	for (int program = 0; program < 2; program++) {
		void *h;
		int fd;

		for (int i = 0; i < 20; i++)
			rs_procs_tick(&procs, p);
		assert_false(p->published);
		rs_procs_exec(&procs, p, STR("app"));
		for (int i = 0; i < 20; i++) /* it is not ready yet, and nothing comes of it */
			rs_procs_tick(&procs, p);
		assert_false(p->published);
		fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
		assert_true(fd >= 0 && ftruncate(fd, 4096) == 0);
		h = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		assert_true(h != MAP_FAILED);
		close(fd);
		assert_ptr_equal(rs_procs_get(&procs, p->tgid, 0, 0, STR_NONE), p);
		for (int i = 0; i < 20; i++)
			rs_procs_tick(&procs, p);
		assert_true(p->published && p->sdk);
		munmap(h, 4096);
		rs_procs_exec(&procs, p, STR("sh"));
	}
	rs_procs_release(&procs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_own_process),
		cmocka_unit_test(test_looked_at_again),
	};

	return cmocka_run_group_tests_name("sdk", tests, NULL, NULL);
}
