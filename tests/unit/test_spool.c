// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/spool.h"
#include "unit.h"

struct seen {
	uint64_t id[4096];
	uint32_t spans[4096];
	int n;
	uint64_t dropped[4096];
	int ndropped;
};

static void found(void *arg, uint64_t id, uint8_t form, uint32_t spans)
{
	struct seen *s = arg;

	assert_int_equal(form, 3);
	s->id[s->n] = id;
	s->spans[s->n++] = spans;
}

static void dropped(void *arg, uint64_t id)
{
	struct seen *s = arg;

	s->dropped[s->ndropped++] = id;
}

static struct seen seen;
static char dir[64];
static struct rs_bufpool pool;

static struct rs_spool *open_spool(uint64_t max)
{
	const struct rs_spool_opts o = { dir, "x", max, found, dropped, &seen };
	struct rs_spool *s = NULL;
	char err[256] = "";

	seen.n = seen.ndropped = 0;
	if (rs_spool_open(&o, &s, err, sizeof(err)))
		fail_msg("%s", err);
	return s;
}

static uint64_t add(struct rs_spool *s, char c, size_t len)
{
	struct rs_payload pl = { .pool = &pool, .niov = 2, .len = len };
	uint64_t id = 0;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(rs_bufpool_get(&pool, len, &pl.buf[i]), 0);
		memset(pl.buf[i]->data, c, len);
		pl.iov[i] = (struct iovec){ pl.buf[i]->data, i ? len - len / 3 : len / 3 };
	}
	assert_int_equal(rs_spool_add(s, 3, (uint32_t)c, &pl, &id), 0);
	rs_payload_release(&pl);
	return id;
}

static void expect(struct rs_spool *s, uint64_t id, char c, size_t len)
{
	struct rs_payload pl;

	assert_int_equal(rs_spool_read(s, id, &pool, &pl), 0);
	assert_int_equal(pl.len, len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(((char *)pl.iov[0].iov_base)[i], c);
	rs_payload_release(&pl);
}

/* Number of segments, and the name of one. */
static int files(char *name, size_t size)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	while ((e = readdir(d))) {
		if (!strstr(e->d_name, ".seg"))
			continue;
		snprintf(name, size, "%s/%s", dir, e->d_name);
		n++;
	}
	closedir(d);
	return n;
}

static void survives(void **st)
{
	struct rs_spool *s = open_spool(1 << 20);
	uint64_t a = add(s, 'a', 1000), b = add(s, 'b', 50000), c = add(s, 'c', 1);
	char name[400];

	(void)st;
	assert_int_equal(seen.n, 0);
	expect(s, b, 'b', 50000);
	expect(s, a, 'a', 1000);
	rs_spool_ack(s, b);
	rs_spool_close(s);
	s = open_spool(1 << 20);
	assert_int_equal(seen.n, 2);
	assert_int_equal(seen.id[0], a);
	assert_int_equal(seen.id[1], c);
	assert_int_equal(seen.spans[1], 'c');
	expect(s, a, 'a', 1000);
	expect(s, c, 'c', 1);
	b = add(s, 'd', 10); /* into a segment of its own */
	rs_spool_ack(s, a);
	rs_spool_ack(s, c);
	assert_int_equal(files(name, sizeof(name)), 1);
	expect(s, b, 'd', 10);
	rs_spool_ack(s, b);
	rs_spool_close(s);
	assert_int_equal(files(name, sizeof(name)), 0);
}

static void one_user(void **st)
{
	const struct rs_spool_opts o = { dir, "x", 1 << 20, found, dropped, &seen };
	struct rs_spool *s = open_spool(1 << 20), *other;
	char err[256];

	(void)st;
	assert_int_equal(rs_spool_open(&o, &other, err, sizeof(err)), -EBUSY);
	rs_spool_close(s);
}

static void bounded(void **st)
{
	struct rs_spool *s = open_spool(1 << 20);
	struct rs_payload none;
	uint64_t first = 0, last = 0;
	char name[400];
	int ndropped;

	(void)st;
	for (int i = 0; i < 100; i++) {
		last = add(s, 'x', 60000);
		first = first ? first : last;
		assert_true(rs_spool_bytes(s) <= 1 << 20);
	}
	assert_true(seen.ndropped > 50);
	assert_int_equal(seen.dropped[0], first);
	ndropped = seen.ndropped;
	assert_int_equal(rs_spool_read(s, first, &pool, &none), -ENOENT);
	expect(s, last, 'x', 60000);
	rs_spool_close(s);
	s = open_spool(1 << 20);
	assert_int_equal(ndropped + seen.n, 100);
	for (int i = 0; i < seen.n; i++)
		rs_spool_ack(s, seen.id[i]);
	rs_spool_close(s);
	assert_int_equal(files(name, sizeof(name)), 0);
}

/* Whatever byte of the file is damaged, and wherever it ends: no crash, and what is whole is found. */
static void damage(void **st)
{
	struct rs_spool *s = open_spool(1 << 20);
	char name[400], all[1024];
	ssize_t size;
	int fd;

	(void)st;
	add(s, 'a', 100);
	rs_spool_ack(s, add(s, 'b', 100));
	add(s, 'c', 100);
	rs_spool_close(s);
	assert_int_equal(files(name, sizeof(name)), 1);
	fd = open(name, O_RDWR);
	size = read(fd, all, sizeof(all));
	close(fd);
	assert_in_range(size, 300, 1000);
	for (ssize_t at = 0; at < 2 * size; at++) {
		ssize_t len = at < size ? size : at - size;

		if (at < size)
			all[at] ^= 0x55;
		fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
		assert_int_equal(write(fd, all, (size_t)len), len);
		close(fd);
		if (at < size)
			all[at] ^= 0x55;
		s = open_spool(1 << 20);
		assert_true(seen.n <= 3);
		for (int i = 0; i < seen.n; i++) {
			struct rs_payload pl;
			int rc = rs_spool_read(s, seen.id[i], &pool, &pl);

			assert_true(rc == 0 || rc == -EBADMSG);
			if (!rc)
				rs_payload_release(&pl);
			rs_spool_ack(s, seen.id[i]);
		}
		rs_spool_close(s);
	}
}

static int setup(void **st)
{
	(void)st;
	snprintf(dir, sizeof(dir), "/tmp/ringspan-spool-XXXXXX");
	return mkdtemp(dir) ? rs_bufpool_init(&pool, 0) : -1;
}

static int teardown(void **st)
{
	char name[400];

	(void)st;
	while (files(name, sizeof(name)))
		unlink(name);
	snprintf(name, sizeof(name), "%s/x.lock", dir);
	unlink(name);
	rmdir(dir);
	rs_bufpool_release(&pool);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(survives, setup, teardown),
		cmocka_unit_test_setup_teardown(one_user, setup, teardown),
		cmocka_unit_test_setup_teardown(bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(damage, setup, teardown),
	};

	return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}
