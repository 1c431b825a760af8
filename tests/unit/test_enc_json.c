// SPDX-License-Identifier: Apache-2.0
#include <jansson.h>
#include <string.h>

#include "encoder.h"
#include "unit.h"

/* Encoders may read RS_ARENA_PAD bytes behind a text. */
#define PAD8 "\0\0\0\0\0\0\0\0"
#define PAD  PAD8 PAD8 PAD8 PAD8 PAD8 PAD8 PAD8 PAD8
#define TEXT(s)                                                                                    \
	{                                                                                          \
		s PAD, sizeof(s) - 1                                                               \
	}
#define VAL_STR(s)                                                                                 \
	{                                                                                          \
		.type = RS_VAL_STR, .len = sizeof(s) - 1, .str = s PAD                             \
	}

static const struct rs_key dynamic = { .name = TEXT("strange \"key\""), .id = RS_KEY_DYNAMIC };

static void add_spans(struct rs_batch *b, unsigned n)
{
	static const struct rs_val list[] = { { .type = RS_VAL_INT, .i = 1 },
					      { .type = RS_VAL_EMPTY } };
	static const struct rs_attr attrs[] = {
		{ &rs_known_keys[RS_K_HTTP_RESPONSE_STATUS_CODE],
		  { .type = RS_VAL_INT, .i = 503 } },
		{ &rs_known_keys[RS_K_URL_PATH], VAL_STR("/\xff\"\n日本") },
		{ &rs_known_keys[RS_K_ERROR_TYPE], { .type = RS_VAL_BOOL, .b = true } },
		{ &dynamic, { .type = RS_VAL_ARRAY, .len = 2, .arr = list } },
		{ &rs_known_keys[RS_K_HOST_NAME],
		  { .type = RS_VAL_BYTES, .len = 3, .str = "\0\1\2" PAD } },
		{ &rs_known_keys[RS_K_URL_QUERY], { .type = RS_VAL_DOUBLE, .d = 0.5 } },
	};
	static const struct rs_event event = { .time_ns = 7,
					       .name = TEXT("tcp.reset"),
					       .attrs = { attrs, 1, 0 } };
	static const struct rs_link link = { .trace_id = { 9 },
					     .span_id = { 8 },
					     .attrs = { attrs, 1, 0 } };
	static const struct rs_attr resource = { &rs_known_keys[RS_K_SERVICE_NAME],
						 VAL_STR("web") };
	struct rs_resource_spans *rs = rs_batch_add_resource(b);
	struct rs_scope_spans *ss = rs_batch_add_scope(b, rs);

	rs->resource.attrs = (struct rs_attrs){ &resource, 1, 0 };
	for (unsigned i = 0; i < n; i++) {
		struct rs_span *s = rs_batch_add_span(b, ss);

		s->trace_id[15] = 1;
		s->span_id[7] = (uint8_t)(i + 1);
		s->parent_id[7] = (uint8_t)i;
		s->kind = RS_KIND_SERVER;
		s->status = RS_STATUS_ERROR;
		s->start_ns = 1700000000000000000;
		s->end_ns = s->start_ns + i;
		s->name = (struct str)TEXT("GET");
		s->status_msg = (struct str)TEXT("bad");
		s->attrs = (struct rs_attrs){ attrs, 6, 0 };
		s->events = &event;
		s->links = &link;
		s->nevents = s->nlinks = 1;
	}
}

static json_t *get(json_t *o, const char *a, const char *b)
{
	return json_object_get(json_object_get(o, a), b);
}

static void check(json_t *o, unsigned i)
{
	json_t *e = json_array_get(json_object_get(o, "events"), 0);
	json_t *l = json_array_get(json_object_get(o, "links"), 0);

	assert_string_equal(json_string_value(json_object_get(o, "trace_id")),
			    "00000000000000000000000000000001");
	assert_int_equal(json_string_length(json_object_get(o, "span_id")), 16);
	assert_int_equal(json_object_get(o, "parent_span_id") != NULL, i != 0);
	assert_string_equal(json_string_value(json_object_get(o, "kind")), "server");
	assert_int_equal(json_integer_value(json_object_get(o, "start_unix_nano")),
			 1700000000000000000);
	assert_int_equal(json_integer_value(json_object_get(o, "end_unix_nano")),
			 1700000000000000000 + i);
	assert_string_equal(json_string_value(get(o, "status", "code")), "error");
	assert_string_equal(json_string_value(get(o, "status", "message")), "bad");
	assert_int_equal(json_integer_value(get(o, "attributes", "http.response.status_code")),
			 503);
	assert_string_equal(json_string_value(get(o, "attributes", "url.path")),
			    "/\xef\xbf\xbd\"\n日本");
	assert_true(json_is_true(get(o, "attributes", "error.type")));
	assert_int_equal(json_array_size(get(o, "attributes", "strange \"key\"")), 2);
	assert_string_equal(json_string_value(get(o, "attributes", "host.name")), "AAEC");
	assert_true(json_real_value(get(o, "attributes", "url.query")) == 0.5);
	assert_string_equal(json_string_value(json_object_get(e, "name")), "tcp.reset");
	assert_int_equal(json_integer_value(json_object_get(e, "time_unix_nano")), 7);
	assert_int_equal(json_integer_value(get(e, "attributes", "http.response.status_code")),
			 503);
	assert_int_equal(json_string_length(json_object_get(l, "trace_id")), 32);
	assert_string_equal(json_string_value(get(o, "resource", "service.name")), "web");
}

/* Every line is one object, whatever the size of the messages. */
static void test_lines(void **state)
{
	(void)state;
	for (size_t max = 0; max < 8000; max += 1000) {
		struct rs_encoder_opts opts = { .max_payload = max };
		struct rs_encode run = { 0 };
		struct rs_bufpool pool;
		struct rs_encoder *e;
		struct rs_batch b;
		unsigned lines = 0;

		rs_batch_init(&b, 0);
		add_spans(&b, 20);
		assert_int_equal(rs_bufpool_init(&pool, 0), 0);
		assert_int_equal(rs_encoder_new("json", &pool, &opts, &e), 0);
		run.batch = &b;
		while (!rs_encode(e, &run) && run.out.niov) {
			struct str rest = str_of(run.out.iov[0].iov_base, run.out.len), line;

			assert_int_equal(run.out.niov, 1);
			while (rest.len) {
				json_t *o;

				rest = str_cut(rest, '\n', &line);
				o = json_loadb(line.ptr, line.len, JSON_REJECT_DUPLICATES, NULL);
				assert_non_null(o);
				check(o, lines++);
				json_decref(o);
			}
			rs_payload_release(&run.out);
		}
		assert_int_equal(lines, 20);
		assert_true(run.done);
		rs_encoder_free(e);
		rs_bufpool_release(&pool);
		rs_batch_release(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
