// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "wire_json.h"
#include "unit.h"

static void doubles(void **st)
{
	static const struct {
		double d;
		const char *want;
	} rows[] = {
		{ 0.0, "0.0" },
		{ -0.0, "-0.0" },
		{ 1, "1.0" },
		{ -1.25, "-1.25" },
		{ 0.1, "0.1" },
		{ 0.3, "0.3" },
		{ 1e15, "1000000000000000.0" },
		{ 1e16, "1e+16" },
		{ 123456789012345680.0, "1.2345678901234568e+17" },
		{ 1e300, "1e+300" },
		{ 0.0001, "0.0001" },
		{ 0.00001, "1e-05" },
		{ 5e-324, "5e-324" },
		{ 2.2250738585072014e-308, "2.2250738585072014e-308" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" },
		{ 5.684341886080802e-14, "5.684341886080802e-14" },
		{ 9007199254740993.0, "9007199254740992.0" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ NAN, "\"NaN\"" },
		{ INFINITY, "\"Infinity\"" },
		{ -INFINITY, "\"-Infinity\"" },
	};
	uint64_t x = 1;

	(void)st;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char buf[64];

		*rs_json_double(buf, rows[i].d) = 0;
		assert_string_equal(buf, rows[i].want);
	}
	for (int i = 0; i < 20000; i++) {
		char buf[64];
		double d, back;

		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		memcpy(&d, &x, 8);
		if (!isfinite(d))
			continue;
		*rs_json_double(buf, d) = 0;
		assert_true(strlen(buf) <= RS_JSON_DOUBLE_MAX);
		back = strtod(buf, NULL);
		assert_memory_equal(&back, &d, 8);
	}
}

/* One bad span alone: the others go out, the reason is counted. */
static void bad_spans(void **st)
{
	static const struct rs_attr attrs[] = {
		{ &rs_known_keys[RS_K_SERVER_PORT], { .type = RS_VAL_INT, .i = -443 } },
	};
	struct rs_bufpool pool;
	struct rs_encoder *e;
	struct rs_encode run;
	struct rs_batch b;
	struct rs_scope_spans *ss;

	(void)st;
	rs_batch_init(&b, 0);
	ss = rs_batch_add_scope(&b, rs_batch_add_resource(&b));
	for (int i = 0; i < 5; i++) {
		struct rs_span *s = rs_batch_add_span(&b, ss);

		s->trace_id[0] = s->span_id[7] = (uint8_t)(i + 1);
		s->name = RS_SPAN_STR("GET \"/\"");
		s->start_ns = 10;
		s->end_ns = 20;
		s->attrs = (struct rs_attrs){ .a = attrs, .n = 1 };
		if (i == 1)
			s->end_ns = 9;
		if (i == 2)
			s->no_trace_id = true;
		if (i == 3)
			memset(s->span_id, 0, 8);
	}
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	assert_int_equal(rs_encoder_new("otlp-json", &pool, NULL, &e), 0);
	run = (struct rs_encode){ .batch = &b };
	assert_int_equal(rs_encode(e, &run), 0);
	assert_int_equal(run.spans, 2);
	assert_int_equal(run.skipped[RS_SKIP_BAD_TIME], 1);
	assert_int_equal(run.skipped[RS_SKIP_NO_TRACE_ID], 1);
	assert_int_equal(run.skipped[RS_SKIP_NO_SPAN_ID], 1);
	assert_int_equal(run.out.niov, 1);
	static const char want[] =
		"{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":["
		"{\"traceId\":\"01000000000000000000000000000000\",\"spanId\":\"0000000000000001\","
		"\"name\":\"GET \\\"/\\\"\",\"startTimeUnixNano\":\"10\",\"endTimeUnixNano\":\"20\","
		"\"attributes\":[{\"key\":\"server.port\",\"value\":{\"intValue\":\"-443\"}}]},"
		"{\"traceId\":\"05000000000000000000000000000000\",\"spanId\":\"0000000000000005\","
		"\"name\":\"GET \\\"/\\\"\",\"startTimeUnixNano\":\"10\",\"endTimeUnixNano\":\"20\","
		"\"attributes\":[{\"key\":\"server.port\",\"value\":{\"intValue\":\"-443\"}}]}]}]}]}";
	assert_int_equal(run.out.len, sizeof(want) - 1);
	assert_memory_equal(run.out.iov[0].iov_base, want, sizeof(want) - 1);
	rs_payload_release(&run.out);
	assert_true(run.done);
	assert_int_equal(rs_encode(e, &run), 0);
	assert_int_equal(run.out.niov, 0);
	rs_encoder_free(e);
	rs_bufpool_release(&pool);
	rs_batch_release(&b);
}

/* Messages end before max_payload; a span that is bigger alone is left out. */
static void splits(void **st)
{
	static char big[300000 + RS_ARENA_PAD];
	struct rs_encoder_opts opts = { .max_payload = 200000 };
	struct rs_bufpool pool;
	struct rs_encoder *e;
	struct rs_encode run;
	struct rs_batch b;
	int messages = 0;

	(void)st;
	memset(big, 'x', sizeof(big));
	rs_batch_init(&b, 0);
	for (int r = 0; r < 3; r++) {
		struct rs_resource_spans *rs = rs_batch_add_resource(&b);

		for (int k = 0; k < 2; k++) {
			struct rs_scope_spans *ss = rs_batch_add_scope(&b, rs);

			for (int i = 0; i < 5; i++) {
				struct rs_span *s = rs_batch_add_span(&b, ss);

				s->trace_id[0] = s->span_id[7] = 1;
				s->name = str_of(big, r == 1 && i == 2 ? 300000 : 40000);
			}
		}
	}
	assert_int_equal(rs_bufpool_init(&pool, 0), 0);
	assert_int_equal(rs_encoder_new("otlp-json", &pool, &opts, &e), 0);
	run = (struct rs_encode){ .batch = &b };
	for (;;) {
		assert_int_equal(rs_encode(e, &run), 0);
		if (!run.out.niov)
			break;
		assert_true(run.out.len <= 201000);
		messages++;
		rs_payload_release(&run.out);
	}
	assert_int_equal(run.spans, 28);
	assert_int_equal(run.skipped[RS_SKIP_TOO_BIG], 2);
	assert_true(messages >= 7);
	rs_encoder_free(e);
	assert_int_equal(pool.in_use, 0);
	rs_bufpool_release(&pool);
	rs_batch_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doubles),
		cmocka_unit_test(bad_spans),
		cmocka_unit_test(splits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
