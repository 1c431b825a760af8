// SPDX-License-Identifier: Apache-2.0
/* Event scripts and recordings: what is read, what is refused and how it is said. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "source/record.h"
#include "source/script.h"
#include "unit.h"

struct seen {
	unsigned n, stop_at;
	struct rs_ev_open open;
	_Alignas(8) char data[8][sizeof(struct rs_ev_data) + RS_CAP_MAX];
	unsigned ndata;
	struct rs_ev_close close;
	struct rs_ev_fact fact;
	struct rs_ev_proc proc;
	FILE *to;
};

static int take(void *arg, const struct rs_ev_hdr *ev)
{
	struct seen *s = arg;

	assert_true(rs_record_valid(ev, ev->len));
	s->n++;
	if (ev->type == RS_EV_OPEN)
		memcpy(&s->open, ev, sizeof(s->open));
	else if (ev->type == RS_EV_DATA)
		memcpy(s->data[s->ndata++ % 8], ev, ev->len);
	else if (ev->type == RS_EV_CLOSE)
		memcpy(&s->close, ev, sizeof(s->close));
	else if (ev->type == RS_EV_FACT)
		memcpy(&s->fact, ev, sizeof(s->fact));
	else
		memcpy(&s->proc, ev, sizeof(s->proc));
	if (s->to)
		assert_int_equal(rs_tev_write(s->to, ev), 0);
	return s->stop_at && s->n == s->stop_at;
}

static int read_text(const char *text, struct seen *s, char *err, size_t err_len)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	int rc;

	assert_non_null(f);
	rc = rs_script_read(f, take, s, err, err_len);
	fclose(f);
	return rc;
}

#define DATA(s, i) ((const struct rs_ev_data *)(const void *)(s)->data[i])

static void test_fields(void **state)
{
	static const char text[] =
		"{\"t\":5,\"type\":\"open\",\"conn\":9,\"pid\":10,\"tid\":11,\"comm\":\"a-name-that-is-too-long\",\"role\":\"server\","
		"\"family\":\"inet6\",\"local\":\"[::1]:80\",\"peer\":\"[fe80::2]:1234\",\"unknown\":[1]}\n"
		"\n"
		"{\"t\":6,\"type\":\"data\",\"conn\":9,\"pid\":10,\"dir\":\"in\",\"text\":\"a\\u0000b\",\"seq\":4294967295}\n"
		"{\"t\":7,\"type\":\"data\",\"conn\":9,\"dir\":\"in\",\"hex\":\"00fF\",\"len\":10}\n"
		"{\"t\":8,\"type\":\"data\",\"conn\":9,\"dir\":\"out\",\"len\":100,\"tid\":3}\n"
		"{\"t\":9,\"type\":\"fact\",\"conn\":9,\"fact\":\"reset_out\",\"value\":3}\n"
		"{\"t\":9,\"type\":\"proc\",\"pid\":10,\"event\":\"signal\",\"signal\":11}\n"
		"{\"t\":10,\"type\":\"close\",\"conn\":9}";
	struct seen s = { 0 };
	char err[200] = "";

	(void)state;
	assert_int_equal(read_text(text, &s, err, sizeof(err)), 0);
	assert_int_equal(s.n, 7);
	assert_int_equal(s.open.family, RS_FAMILY_INET6);
	assert_int_equal(s.open.role, RS_ROLE_SERVER);
	assert_int_equal(s.open.lport, 80);
	assert_int_equal(s.open.rport, 1234);
	assert_int_equal(s.open.laddr[15], 1);
	assert_int_equal(s.open.raddr[0], 0xfe);
	assert_string_equal(s.open.comm, "a-name-that-is-");
	assert_int_equal(DATA(&s, 0)->cap, 3);
	assert_memory_equal(DATA(&s, 0)->data, "a\0b", 3);
	assert_int_equal(DATA(&s, 0)->tid, 10);
	assert_int_equal(DATA(&s, 0)->seq, 4294967295u);
	assert_int_equal(DATA(&s, 1)->off, 3);
	assert_int_equal(DATA(&s, 1)->seq, 2); /* 2^32 - 1 + 3, wrapped */
	assert_int_equal(DATA(&s, 1)->cap, 2);
	assert_int_equal(DATA(&s, 1)->len, 10);
	assert_memory_equal(DATA(&s, 1)->data, "\0\xff", 2);
	assert_int_equal(DATA(&s, 2)->off, 0);
	assert_int_equal(DATA(&s, 2)->len, 100);
	assert_int_equal(DATA(&s, 2)->cap, 0);
	assert_int_equal(DATA(&s, 2)->h.flags, RS_EVF_NODATA);
	assert_int_equal(s.fact.fact, RS_FACT_RESET_OUT);
	assert_int_equal(s.proc.signal, 11);
	assert_int_equal(s.close.how, RS_CLOSE_ALL);
}

/* A text longer than a record becomes several, without a seam. */
static void test_long_text(void **state)
{
	size_t n = 2 * RS_CAP_MAX + 100;
	char *text = malloc(n + 200), err[200] = "";
	struct seen s = { 0 };
	int head = sprintf(
		text,
		"{\"t\":1,\"type\":\"data\",\"conn\":1,\"dir\":\"in\",\"len\":%zu,\"text\":\"",
		n + 50);

	(void)state;
	memset(text + head, 'y', n);
	strcpy(text + head + n, "\"}");
	assert_int_equal(read_text(text, &s, err, sizeof(err)), 0);
	assert_int_equal(s.ndata, 3);
	assert_int_equal(DATA(&s, 1)->off, RS_CAP_MAX);
	assert_int_equal(DATA(&s, 1)->len, RS_CAP_MAX);
	assert_int_equal(DATA(&s, 2)->off, 2 * RS_CAP_MAX);
	assert_int_equal(DATA(&s, 2)->cap, 100);
	assert_int_equal(DATA(&s, 2)->len, 150);
	free(text);
}

static void test_refused(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{ "{\"t\":1,", "line 2: column" },
		{ "[]", "line 2: column 1" },
		{ "{\"type\":\"close\",\"conn\":1}", "line 2: no \"t\"" },
		{ "{\"t\":1,\"conn\":1}", "line 2: no \"type\"" },
		{ "{\"t\":1,\"type\":\"opne\",\"conn\":1}",
		  "line 2: \"type\": one of open, data, close, fact, proc" },
		{ "{\"t\":-1,\"type\":\"close\",\"conn\":1}", "line 2: \"t\": an integer from 0" },
		{ "{\"t\":1.5,\"type\":\"close\",\"conn\":1}", "line 2: \"t\": an integer" },
		{ "{\"t\":1,\"type\":\"close\"}", "line 2: no \"conn\"" },
		{ "{\"t\":1,\"type\":\"data\",\"conn\":1,\"text\":\"x\"}", "line 2: no \"dir\"" },
		{ "{\"t\":1,\"type\":\"data\",\"conn\":1,\"dir\":\"in\"}", "line 2: no bytes" },
		{ "{\"t\":1,\"type\":\"data\",\"conn\":1,\"dir\":\"in\",\"hex\":\"0\"}",
		  "line 2: \"hex\": an odd number" },
		{ "{\"t\":1,\"type\":\"data\",\"conn\":1,\"dir\":\"in\",\"hex\":\"0g\"}",
		  "line 2: \"hex\": digit 2" },
		{ "{\"t\":1,\"type\":\"data\",\"conn\":1,\"dir\":\"in\",\"text\":\"abc\",\"len\":2}",
		  "line 2: \"len\"" },
		{ "{\"t\":1,\"type\":\"open\",\"conn\":1,\"local\":\"1.2.3.4\"}",
		  "line 2: \"local\": an address and port" },
		{ "{\"t\":1,\"type\":\"open\",\"conn\":1,\"local\":\"::1:80\"}",
		  "line 2: \"local\": '::1' is not an address" },
		{ "{\"t\":1,\"type\":\"fact\",\"conn\":1,\"fact\":\"\"}",
		  "line 2: \"fact\": one of" },
		{ "{\"t\":1,\"type\":\"close\",\"conn\":1} {}", "line 2: one object" },
		{ "{\"t\":1,\"type\":\"proc\",\"pid\":1,\"event\":\"signal\",\"signal\":256}",
		  "line 2: \"signal\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct seen s = { 0 };
		char text[512], err[256] = "";

		snprintf(text, sizeof(text), "{\"t\":1,\"type\":\"close\",\"conn\":1}\n%s\n",
			 cases[i].line);
		assert_int_equal(read_text(text, &s, err, sizeof(err)), -EBADMSG);
		if (strncmp(err, cases[i].says, strlen(cases[i].says)))
			fail_msg("%s\nsays: %s\nnot:  %s", cases[i].line, err, cases[i].says);
		assert_int_equal(s.n, 1); /* what came before is kept */
	}
}

static void test_stop(void **state)
{
	struct seen s = { .stop_at = 1 };
	char err[200] = "";

	(void)state;
	assert_int_equal(
		read_text(
			"{\"t\":1,\"type\":\"close\",\"conn\":1}\n{\"t\":1,\"type\":\"close\",\"conn\":1}\n",
			&s, err, sizeof(err)),
		-ECANCELED);
	assert_int_equal(s.n, 1);
}

/* What is written comes back; every truncation and every flipped byte is refused or read, never worse. */
static void test_tev(void **state)
{
	static const char text[] =
		"{\"t\":1,\"type\":\"open\",\"conn\":1,\"local\":\"1.2.3.4:5\"}\n"
		"{\"t\":2,\"type\":\"data\",\"conn\":1,\"dir\":\"in\",\"text\":\"abc\"}\n"
		"{\"t\":3,\"type\":\"close\",\"conn\":1}\n";
	struct seen s = { 0 }, back = { 0 };
	char *file = NULL, err[256] = "";
	size_t size = 0;
	int64_t wall = 0;
	FILE *f = open_memstream(&file, &size);

	(void)state;
	assert_int_equal(rs_tev_write_header(f, -77), 0);
	s.to = f;
	assert_int_equal(read_text(text, &s, err, sizeof(err)), 0);
	fclose(f);
	f = fmemopen(file, size, "r");
	assert_int_equal(rs_tev_read(f, &wall, take, &back, err, sizeof(err)), 0);
	fclose(f);
	assert_int_equal(wall, -77);
	assert_int_equal(back.n, 3);
	assert_memory_equal(&back.open, &s.open, sizeof(s.open));
	assert_memory_equal(back.data[0], s.data[0], sizeof(struct rs_ev_data) + 3);
	for (size_t cut = 1; cut < size; cut++) {
		struct seen part = { 0 };
		int rc;

		f = fmemopen(file, cut, "r");
		rc = rs_tev_read(f, &wall, take, &part, err, sizeof(err));
		fclose(f);
		assert_true(rc == 0 || rc == -EBADMSG);
		assert_true(rc == 0 || err[0]);
		assert_true(part.n <= 3);
	}
	for (size_t at = 0; at < size; at++) {
		struct seen part = { 0 };

		file[at] ^= (char)0xff;
		f = fmemopen(file, size, "r");
		rs_tev_read(f, &wall, take, &part, err, sizeof(err));
		fclose(f);
		file[at] ^= (char)0xff;
	}
	free(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),	cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_stop),
		cmocka_unit_test(test_tev),
	};

	return cmocka_run_group_tests_name("script", tests, NULL, NULL);
}
