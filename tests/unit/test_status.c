// SPDX-License-Identifier: Apache-2.0
#include <jansson.h>
#include <stdlib.h>

#include "status/status.h"
#include "status/view.h"
#include "unit.h"

static void fake(struct rs_status *s)
{
	struct rs_status_process *p;
	struct rs_status_protocol *proto;
	struct rs_status_exporter *e;
	struct rs_status_probe *probe;

	rs_status_init(s);
	s->version = "9.9";
	s->command = "run";
	s->kernel = "6.18";
	s->pid = 42;
	s->uptime_ns = 192000000000;
	s->state = RS_STATE_CAPTURING;
	s->backend = "socket";
	s->connections = 3;
	s->last_record_age_ns = 200000000;
	probe = rs_status_add_probe(s);
	probe->name = "tp_btf/sock_send_length";
	probe->purpose = "bytes sent";
	probe = rs_status_add_probe(s);
	probe->name = "tp_btf/tcp_retransmit_skb";
	probe->purpose = "retransmits";
	probe->state = RS_PROBE_FAILED;
	probe->reason = "no such tracepoint";
	p = rs_status_add_process(s);
	p->pid = 7;
	p->comm = "a\tb\x1b[2J";
	p->why_not = "no TLS library is known in it";
	p->traced = true;
	p = rs_status_add_process(s);
	p->pid = 9;
	p->comm = "cron";
	p->why_not = "excluded by ringspan.yaml:3";
	p = rs_status_add_process(s);
	p->pid = 8;
	p->comm = "nginx";
	p->service = rs_status_str(s, STR("web"));
	p->requests = p->spans = 1234;
	proto = rs_status_add_protocol(s);
	proto->name = "http1";
	proto->requests = proto->spans = 1234;
	e = rs_status_add_exporter(s);
	e->name = "file";
	e->target = "/x";
	e->state = RS_EXPORT_FAILING;
	e->last_error = "No space left on device";
	e->last_error_age_ns = 1000000;
	s->kernel_counters[RS_BPFC_RECORDS] = 1000;
	s->kernel_counters[RS_BPFC_RING_FULL] = 10;
	s->user.v[RS_C_SOURCE_RECORDS] = 1000;
	s->user.v[RS_C_SOURCE_PASSED] = 999;
	s->rss_bytes = 1 << 20;
}

static struct str to_json(struct rs_status *s)
{
	size_t len;
	char *json = rs_status_json(s, &len);

	assert_non_null(json);
	return str_of(json, len);
}

static char *render(struct rs_view *v, struct str json)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(v ? rs_view_text(v, json, out) : rs_view_dump(json, out), 0);
	fclose(out);
	return text;
}

static void test_text(void **state)
{
	struct rs_status s;
	struct rs_view v;
	struct str json;
	char *text;

	(void)state;
	fake(&s);
	json = to_json(&s);
	rs_view_init(&v, false, 0);
	text = render(&v, json);
	assert_has(text, "ringspan 9.9  run, pid 42, up 3m12s, kernel 6.18\n");
	assert_has(text,
		   "capturing · socket backend · 1 probes · 1 missing · last record 200ms ago\n");
	assert_has(text, "last span never\n");
	assert_has(
		text,
		"     10   0.99%  kernel.ring_full: records lost because the ring buffer was full\n");
	assert_has(text, "↳ raise --ring-size or give the agent more CPU\n");
	assert_has(text, "failing · file to /x · 0 sent · last success never\n");
	assert_has(text, "↳ 1.00ms ago: No space left on device\n");
	assert_has(text, "tp_btf/tcp_retransmit_skb (retransmits): no such tracepoint\n");
	assert_has(
		text,
		"  nginx                  8       0     1,234     1,234      -  web\n"
		"  a\\x09b\\x1b[2J          7       0         0         0      -  no TLS library");
	assert_has(text, "… and 1 that are not traced; --pid, --comm or --dump says why\n");
	assert_null(strstr(text, "cron"));
	assert_has(
		text,
		"  source         1,000       999         -         -         -  1 unaccounted\n");
	assert_null(strchr(text, '\x1b'));
	free(text);

	/* A second later there are rates. */
	free((char *)json.ptr);
	s.uptime_ns += 1000000000;
	s.protocols->requests += 250;
	json = to_json(&s);
	text = render(&v, json);
	assert_has(text, "1,484 requests (250/s)");
	free(text);
	free((char *)json.ptr);
	rs_view_release(&v);
	rs_status_release(&s);
}

/* At every width no line is longer than the terminal where it could be broken. */
static void test_width(void **state)
{
	struct rs_status s;
	struct str json, rest, line;
	struct rs_view v;

	(void)state;
	fake(&s);
	json = to_json(&s);
	for (int width = 80; width < 200; width += 7) {
		char *text;

		rs_view_init(&v, false, width);
		text = render(&v, json);
		for (rest = str_c(text); rest.len;) {
			int w = 0;

			rest = str_cut(rest, '\n', &line);
			for (size_t i = 0; i < line.len; i++)
				w += (line.ptr[i] & 0xc0) != 0x80;
			if (w > width)
				fail_msg("%d columns: %.*s", width, STR_ARG(line));
		}
		free(text);
		rs_view_release(&v);
	}
	free((char *)json.ptr);
	rs_status_release(&s);
}

static void test_dump(void **state)
{
	struct rs_status s;
	struct str json;
	char *text;

	(void)state;
	fake(&s);
	json = to_json(&s);
	text = render(NULL, json);
	assert_has(text, "agent\t9.9\trun\t42\t192000000000\t6.18\tcapturing\t\n"
			 "capture\tsocket\t3\t200000000\t\n"
			 "probe\ttp_btf/sock_send_length\tattached\tbytes sent\t\n");
	assert_has(text, "process\t8\tnginx\tweb\t0\t1234\t1234\t0\t\t\t\t0\t\n");
	assert_has(text, "process\t7\ta\\x09b\\x1b[2J\t");
	assert_has(text, "ledger\tkernel\tring_full\tdropped\t10\n");
	assert_has(
		text,
		"exporter\tfile\t/x\tfailing\t0\t0\t0\t\tNo space left on device\t1000000\t\t0\t0\t0\t0\t0\t0\n");
	free(text);
	free((char *)json.ptr);
	rs_status_release(&s);
}

static void test_json_keys(void **state)
{
	static const char *const keys[] = {
		"version",   "command", "pid",	     "uptime_ns", "kernel",
		"state",     "reason",	"capture",   "processes", "processes_left_out",
		"protocols", "ledger",	"exporters", "usage"
	};
	struct rs_status s;
	struct str json;
	json_t *o;

	(void)state;
	fake(&s);
	json = to_json(&s);
	assert_int_equal(json.ptr[json.len - 1], '\n');
	o = json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES, NULL);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_non_null(json_object_get(o, keys[i]));
	assert_null(json_object_get(o, "last_span_age_ns"));
	assert_int_equal(json_array_size(json_object_get(o, "ledger")), RS_BPFC_COUNT + RS_C_COUNT);
	json_decref(o);
	free((char *)json.ptr);
	rs_status_release(&s);
}

static void test_summary(void **state)
{
	uint64_t kernel[RS_BPFC_COUNT] = { 0 };
	struct rs_counters user = { 0 };
	char buf[256];

	(void)state;
	user.v[RS_C_TRACE_SPANS] = 1500;
	user.v[RS_C_TRACE_SERVER] = 1000;
	user.v[RS_C_TRACE_CLIENT] = 500;
	user.v[RS_C_STREAM_UNKNOWN] = 77; /* no remedy, no loss */
	assert_string_equal(rs_status_summary(buf, sizeof(buf), &user, NULL, 0),
			    "1,500 spans (1,000 received, 500 sent); nothing lost");
	user.v[RS_C_TRACE_ERRORS] = 3;
	kernel[RS_BPFC_RING_FULL] = 12;
	assert_string_equal(
		rs_status_summary(buf, sizeof(buf), &user, kernel, 10000000000),
		"1,500 spans (1,000 received, 500 sent) in 10.0s, 100.0 requests/s, 3 with an error; "
		"lost: 12 kernel.ring_full (raise --ring-size or give the agent more CPU)");
	for (size_t size = 1; size < sizeof(buf); size++)
		assert_true(strlen(rs_status_summary(buf, size, &user, kernel, 1)) < size);
}

/* A snapshot is bounded; what is left out is counted. */
static void test_full(void **state)
{
	struct rs_status s;
	uint32_t n = 0;

	(void)state;
	rs_status_init(&s);
	while (rs_status_add_process(&s))
		n++;
	assert_true(n > 10000);
	assert_int_equal(s.processes_left_out, 1);
	rs_status_release(&s);
}

/* Whatever answers on the socket, the client neither crashes nor obeys. */
static void test_strange_answers(void **state)
{
	static const char *const strange[] = {
		"",
		"x",
		"[]",
		"1",
		"null",
		"{}",
		"{\"processes\":3,\"ledger\":{},\"capture\":[]}",
		"{\"processes\":[1,null,{\"pid\":\"x\",\"comm\":3}],\"usage\":1}",
		"{\"ledger\":[{\"kind\":\"dropped\",\"value\":5},{\"stage\":7}]}",
		"{\"version\":\"\\u001b[2J\",\"pid\":-1}",
	};
	struct rs_status s;
	struct str json;
	struct rs_view v;
	unsigned seed = 1;
	char *copy;

	(void)state;
	rs_view_init(&v, false, 80);
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		char *text = NULL;
		size_t len;
		FILE *out = open_memstream(&text, &len);

		rs_view_text(&v, str_c(strange[i]), out);
		rs_view_dump(str_c(strange[i]), out);
		fclose(out);
		assert_null(strchr(text, '\x1b'));
		free(text);
	}
	fake(&s);
	json = to_json(&s);
	copy = malloc(json.len);
	for (int i = 0; i < 2000; i++) {
		FILE *out = fopen("/dev/null", "w");

		memcpy(copy, json.ptr, json.len);
		for (int k = 0; k < 3; k++)
			copy[rand_r(&seed) % json.len] = (char)rand_r(&seed);
		rs_view_text(&v, str_of(copy, json.len), out);
		rs_view_dump(str_of(copy, json.len), out);
		fclose(out);
	}
	free(copy);
	free((char *)json.ptr);
	rs_view_release(&v);
	rs_status_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_dump),
		cmocka_unit_test(test_json_keys),
		cmocka_unit_test(test_summary),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_strange_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
