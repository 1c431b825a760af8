// SPDX-License-Identifier: Apache-2.0
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "status/services.h"
#include "status/status.h"
#include "status/view.h"
#include "unit.h"

static void buckets_cover_all_times(void **state)
{
	(void)state;
	assert_int_equal(rs_latency_bucket(0), 0);
	assert_int_equal(rs_latency_bucket(UINT64_MAX), RS_LATENCY_BUCKETS - 1);
	for (unsigned b = 0; b < RS_LATENCY_BUCKETS - 1; b++) {
		uint64_t end = rs_latency_end(b);

		assert_int_equal(rs_latency_bucket(end - 1), b);
		assert_int_equal(rs_latency_bucket(end), b + 1);
		/* The error that the header promises. */
		if (b >= 8)
			assert_true(end - rs_latency_end(b - 1) <= rs_latency_end(b - 1) / 8);
	}
	assert_true(rs_latency_end(RS_LATENCY_BUCKETS - 2) > 1800ull * 1000000000);
}

static const struct rs_service *row(const struct rs_services *s, const char *name, bool client)
{
	const struct rs_service *r;
	uint32_t pos = 0;

	while ((r = rs_services_next(s, &pos))) {
		if (r->client == client && str_eq(str_of(r->name, r->nname), str_c(name)))
			return r;
	}
	return NULL;
}

static void rows_are_bounded(void **state)
{
	struct rs_services s;
	char name[200];
	uint32_t pos = 0;
	uint64_t spans = 0, rows = 0;
	const struct rs_service *r;

	(void)state;
	rs_services_init(&s);
	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "service-%d", i);
		rs_service_count(rs_services_row(&s, str_c(name), i & 1), 1000000, i % 10 == 0);
	}
	rs_service_count(rs_services_row(&s, STR_NONE, false), 1, false);
	memset(name, 'x', sizeof(name));
	rs_service_count(rs_services_row(&s, str_of(name, sizeof(name)), true), 1, true);
	while ((r = rs_services_next(&s, &pos))) {
		spans += r->spans;
		rows++;
	}
	assert_int_equal(spans, 2002);
	assert_int_equal(rows, RS_SERVICES + 2);
	assert_int_equal(row(&s, "service-7", true)->spans, 1);
	assert_null(row(&s, "service-7", false));
	assert_true(row(&s, "", false)->spans > 700);
	rs_services_release(&s);
	rs_services_release(&(struct rs_services){ 0 });
}

/* A snapshot of two processes with their services. */
static char *snapshot(struct rs_services *sv, uint64_t uptime_ns)
{
	const struct rs_service *r;
	struct rs_status_process *p;
	struct rs_status s;
	uint32_t pos = 0;
	size_t len;
	char *json;

	rs_status_init(&s);
	s.pid = 1;
	s.uptime_ns = uptime_ns;
	p = rs_status_add_process(&s);
	*p = (struct rs_status_process){
		.pid = 10, .comm = "nginx", .service = "web", .pod = "shop/web-1"
	};
	p = rs_status_add_process(&s);
	*p = (struct rs_status_process){ .pid = 20, .comm = "node", .service = "api" };
	while ((r = rs_services_next(sv, &pos)))
		rs_status_add_service(&s)->row = r;
	json = rs_status_json(&s, &len);
	rs_status_release(&s);
	return json;
}

static char *screen(struct rs_view *v, const char *json)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_int_equal(rs_view_text(v, str_c(json), out), 0);
	fclose(out);
	return text;
}

/* The second screen shows the rate and the latencies since the first one, sorted as asked. */
static void screens_show_what_is_new(void **state)
{
	struct rs_services s;
	struct rs_view v;
	char *json, *text;

	(void)state;
	rs_services_init(&s);
	for (int i = 0; i < 1000; i++)
		rs_service_count(rs_services_row(&s, STR("web"), false), 1000000, false);
	json = snapshot(&s, 10000000000);
	rs_view_init(&v, false, 0);
	text = screen(&v, json);
	assert_has(
		text,
		"← web                               1,000     100.0        -   1.02ms   1.02ms\n");
	free(text);
	free(json);
	for (int i = 0; i < 100; i++) {
		rs_service_count(rs_services_row(&s, STR("web"), false), i < 90 ? 10000 : 50000000,
				 i >= 95);
		rs_service_count(rs_services_row(&s, STR("api"), true), 100000, false);
	}
	rs_service_count(rs_services_row(&s, STR("api"), true), 100000, false);
	json = snapshot(&s, 12000000000);
	text = screen(&v, json);
	assert_has(
		text,
		"← web                               1,100      50.0        5   11.0µs   53.2ms\n");
	assert_has(
		text,
		"→ api                                 101      50.5        -    104µs    104µs\n");
	assert_true(strstr(text, "→ api") < strstr(text, "← web"));
	free(text);
	v.sort = RS_SORT_NAME;
	text = screen(&v, json); /* the same again: nothing is new */
	assert_true(strstr(text, "→ api") < strstr(text, "← web"));
	free(text);
	free(json);
	rs_view_release(&v);
	rs_services_release(&s);
}

static void filters(void **state)
{
	static const uint32_t pid = 10;
	static const struct {
		struct rs_view_filter f;
		bool web, api;
	} cases[] = {
		{ { .pids = &pid, .npids = 1 }, true, false },
		{ { .comms = { "node" }, .ncomms = 1 }, false, true },
		{ { .service = "a*" }, false, true },
		{ { .pod = "web-*" }, true, false },
		{ { .pod = "shop/*" }, true, false },
		{ { .pod = "other/*" }, false, false },
		{ { .pids = &pid, .npids = 1, .service = "api" }, false, false },
	};
	struct rs_services s;
	char *json;

	(void)state;
	rs_services_init(&s);
	rs_service_count(rs_services_row(&s, STR("web"), false), 1000, false);
	rs_service_count(rs_services_row(&s, STR("api"), false), 1000, false);
	json = snapshot(&s, 1000000000);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len;
		char *some = rs_view_filter(&cases[i].f, str_c(json), &len);
		json_t *o = json_loads(some, 0, NULL);

		assert_true(rs_view_filters(&cases[i].f));
		assert_int_equal(json_array_size(json_object_get(o, "processes")),
				 cases[i].web + cases[i].api);
		assert_int_equal(json_array_size(json_object_get(o, "services")),
				 cases[i].web + cases[i].api);
		assert_int_equal(strstr(some, "\"nginx\"") != NULL, cases[i].web);
		assert_int_equal(strstr(some, "\"node\"") != NULL, cases[i].api);
		json_decref(o);
		free(some);
	}
	assert_false(rs_view_filters(&(struct rs_view_filter){ 0 }));
	assert_null(rs_view_filter(&cases[0].f, STR("x"), &(size_t){ 0 }));
	free(json);
	rs_services_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_cover_all_times),
		cmocka_unit_test(rows_are_bounded),
		cmocka_unit_test(screens_show_what_is_new),
		cmocka_unit_test(filters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
