// SPDX-License-Identifier: Apache-2.0
/* What answers mean: Retry-After, each protocol's table, messages cut in two. */
#include <stdio.h>
#include <stdlib.h>

#include "export/exporter.h"
#include "export/msgpack.h"
#include "unit.h"

#define S 1000000000ull

static void retry_after(void **st)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} t[] = {
		{ "0", 0 },
		{ "120", 120 * S },
		{ " 1.5 ", 1500000000 },
		{ "", RS_HTTP_NO_WAIT },
		{ "soon", RS_HTTP_NO_WAIT },
		{ "-1", RS_HTTP_NO_WAIT },
		{ "12x", RS_HTTP_NO_WAIT },
		{ "99999999999", RS_HTTP_NO_WAIT },
		{ "Thu, 01 Jan 1970 00:16:50 GMT", 10 * S }, /* now is 1000 */
		{ "Thu, 01 Jan 1970 00:00:10 GMT", 0 },
	};

	(void)st;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_int_equal(rs_http_retry_after(str_c(t[i].text), 1000), t[i].ns);
}

struct fake {
	struct rs_exporter e;
	struct rs_config cfg;
	struct rs_item item;
	struct rs_send send;
};

static struct fake *fake(const char *exporter)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->e.ops = rs_exporter_find(str_c(exporter));
	assert_non_null(f->e.ops);
	rs_config_init(&f->cfg, RS_CMD_run);
	f->e.cfg = &f->cfg;
	rs_arena_init(&f->e.mem, 4096, 0);
	if (f->e.ops->state_size) {
		f->e.state = rs_arena_alloc(&f->e.mem, f->e.ops->state_size);
		assert_non_null(f->e.state);
		memset(f->e.state, 0, f->e.ops->state_size);
	}
	f->item.spans = 10;
	f->send.e = &f->e;
	f->send.item = &f->item;
	f->send.grpc_status = -1;
	f->send.req.status = 200;
	f->send.req.retry_after_ns = RS_HTTP_NO_WAIT;
	return f;
}

static void release(struct fake *f)
{
	rs_arena_release(&f->e.mem);
	rs_config_release(&f->cfg);
	free(f);
}

static struct rs_verdict verdict(struct fake *f)
{
	struct rs_verdict v = { 0 };

	f->e.ops->verdict(&f->send, &v);
	return v;
}

static void http_codes(void **st)
{
	static const struct {
		const char *exporter;
		long status;
		enum rs_verdict_kind kind;
	} t[] = {
		{ "otlp-http", 200, RS_V_DONE },  { "otlp-http", 202, RS_V_DONE },
		{ "otlp-http", 301, RS_V_DROP },  { "otlp-http", 400, RS_V_DROP },
		{ "otlp-http", 408, RS_V_DROP },  { "otlp-http", 413, RS_V_SPLIT },
		{ "otlp-http", 429, RS_V_RETRY }, { "otlp-http", 500, RS_V_DROP },
		{ "otlp-http", 502, RS_V_RETRY }, { "otlp-http", 503, RS_V_RETRY },
		{ "otlp-http", 504, RS_V_RETRY }, { "otlp-http-json", 503, RS_V_RETRY },
		{ "zipkin", 202, RS_V_DONE },	  { "zipkin", 429, RS_V_RETRY },
		{ "datadog", 200, RS_V_DONE },	  { "datadog", 400, RS_V_DROP },
		{ "datadog", 404, RS_V_DROP },	  { "datadog", 408, RS_V_RETRY },
		{ "datadog", 413, RS_V_SPLIT },	  { "datadog", 429, RS_V_RETRY },
		{ "datadog", 500, RS_V_RETRY },	  { "sentry", 200, RS_V_DONE },
		{ "sentry", 413, RS_V_DROP },	  { "sentry", 429, RS_V_DROP },
		{ "sentry", 500, RS_V_DROP },	  { "sentry", 503, RS_V_DROP },
	};

	(void)st;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct fake *f = fake(t[i].exporter);

		f->send.req.status = t[i].status;
		assert_int_equal(verdict(f).kind, t[i].kind);
		/* Without an answer all try again. */
		f->send.req.rc = CURLE_GOT_NOTHING;
		assert_int_equal(verdict(f).kind, RS_V_RETRY);
		release(f);
	}
}

static void waits(void **st)
{
	struct fake *f = fake("otlp-http");
	struct rs_verdict v;

	(void)st;
	f->send.req.status = 503;
	f->send.req.retry_after_ns = 7 * S;
	v = verdict(f);
	assert_int_equal(v.wait_ns, 7 * S);
	f->send.req.rc = CURLE_WRITE_ERROR;
	f->send.req.too_big = true;
	assert_int_equal(verdict(f).kind, RS_V_DROP);
	release(f);
}

static void partial_success(void **st)
{
	static char pb[] = "\x0a\x09\x08\x04\x12\x05"
			   "oh no";
	static char json[] =
		"{\"partialSuccess\":{\"rejectedSpans\":\"4\",\"errorMessage\":\"oh no\"}}";
	static char warning[] = "\x0a\x07\x12\x05"
				"hm hm";
	struct fake *f = fake("otlp-http");
	struct rs_verdict v;

	(void)st;
	f->send.req.body = pb;
	f->send.req.body_len = sizeof(pb) - 1;
	v = verdict(f);
	assert_int_equal(v.kind, RS_V_DONE);
	assert_int_equal(v.rejected, 4);
	assert_has(v.why, "oh no");
	f->send.req.body = warning;
	f->send.req.body_len = sizeof(warning) - 1;
	v = verdict(f);
	assert_int_equal(v.kind, RS_V_DONE);
	assert_int_equal(v.rejected, 0);
	assert_has(v.why, "hm hm");
	/* What cannot be read is success all the same: it is a 200. */
	f->send.req.body_len = 3;
	v = verdict(f);
	assert_int_equal(v.kind, RS_V_DONE);
	assert_int_equal(v.rejected, 0);
	release(f);
	f = fake("otlp-http-json");
	f->send.req.body = json;
	f->send.req.body_len = sizeof(json) - 1;
	v = verdict(f);
	assert_int_equal(v.rejected, 4);
	assert_has(v.why, "oh no");
	release(f);
}

static void grpc_codes(void **st)
{
	static const bool retried[] = { 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0 };

	(void)st;
	for (int code = 0; code <= 17; code++) {
		struct fake *f = fake("otlp-grpc");
		char text[8];
		struct rs_verdict v;

		snprintf(text, sizeof(text), "%d", code);
		f->e.ops->header(&f->send, STR("Grpc-Status"), str_c(text));
		f->e.ops->header(&f->send, STR("grpc-message"), STR("50%25 of %e2%82%ac"));
		v = verdict(f);
		assert_int_equal(v.kind, code == 0		      ? RS_V_DONE
					 : code < 17 && retried[code] ? RS_V_RETRY
								      : RS_V_DROP);
		if (code)
			assert_has(v.why, "50% of \xe2\x82\xac");
		release(f);
	}
}

static void grpc_retry_info(void **st)
{
	/* Status { code 8, message "busy", details { RetryInfo { 2.5 s } } } in base64, padded and not. */
	static const char *const details[] = {
		"CAgSBGJ1c3kaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIAhCAyrXuAQ==",
		"CAgSBGJ1c3kaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIAhCAyrXuAQ",
	};
	struct fake *f = fake("otlp-grpc");
	struct rs_verdict v;

	(void)st;
	f->e.ops->header(&f->send, STR("grpc-status"), STR("8"));
	assert_int_equal(verdict(f).kind, RS_V_DROP);
	for (int i = 0; i < 2; i++) {
		f->e.ops->header(&f->send, STR("grpc-status-details-bin"), str_c(details[i]));
		v = verdict(f);
		assert_int_equal(v.kind, RS_V_RETRY);
		assert_int_equal(v.wait_ns, 2500000000u);
	}
	f->e.ops->header(&f->send, STR("grpc-message"),
			 STR("grpc: received message larger than max (5 vs. 4)"));
	f->send.grpc_details_len = 0;
	assert_int_equal(verdict(f).kind, RS_V_SPLIT);
	release(f);
}

static void grpc_without_status(void **st)
{
	static const struct {
		CURLcode rc;
		long http;
		const char *error;
		enum rs_verdict_kind kind;
	} t[] = {
		{ CURLE_OK, 401, "", RS_V_DROP },
		{ CURLE_OK, 404, "", RS_V_DROP },
		{ CURLE_OK, 429, "", RS_V_RETRY },
		{ CURLE_OK, 503, "", RS_V_RETRY },
		{ CURLE_OK, 200, "", RS_V_DROP }, /* no trailers: UNKNOWN */
		{ CURLE_COULDNT_CONNECT, 0, "no", RS_V_RETRY },
		{ CURLE_HTTP2_STREAM, 0,
		  "HTTP/2 stream 1 was not closed cleanly: REFUSED_STREAM (err 7)", RS_V_RETRY },
		{ CURLE_HTTP2_STREAM, 0, "HTTP/2 stream 1 was not closed cleanly: CANCEL (err 8)",
		  RS_V_RETRY },
		{ CURLE_HTTP2_STREAM, 0,
		  "HTTP/2 stream 1 was not closed cleanly: INTERNAL_ERROR (err 2)", RS_V_DROP },
		{ CURLE_HTTP2_STREAM, 0,
		  "HTTP/2 stream 1 was not closed cleanly: ENHANCE_YOUR_CALM (err 11)", RS_V_DROP },
	};

	(void)st;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct fake *f = fake("otlp-grpc");

		f->send.req.rc = t[i].rc;
		f->send.req.status = t[i].http;
		snprintf(f->send.req.error, sizeof(f->send.req.error), "%s", t[i].error);
		assert_int_equal(verdict(f).kind, t[i].kind);
		release(f);
	}
}

static void sentry_limits(void **st)
{
	static const struct {
		const char *header;
		bool limited;
	} t[] = {
		{ "60:transaction:project:reason", false },
		{ "60:span:organization", true },
		{ "60::organization", true },
		{ "60:error;span:key", true },
		{ " 120:error:project:reason, 0.5:session:foo, 30::bar", true },
		{ "120:invalid:invalid, 4711:foo;bar;baz;security:project", false },
		{ "x:span:key", false },
		{ "", false },
	};

	(void)st;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct fake *f = fake("sentry");

		f->e.ops->header(&f->send, STR("X-Sentry-Rate-Limits"), str_c(t[i].header));
		/* An hour of the machine's time is more than has passed since. */
		assert_int_equal(f->e.ops->refuse(&f->e, 1), t[i].limited);
		release(f);
	}
}

/* Five traces of three spans. */
static void make_batch(struct rs_batch *b)
{
	struct rs_scope_spans *ss;

	rs_batch_init(b, 0);
	ss = rs_batch_add_scope(b, rs_batch_add_resource(b));
	for (int i = 0; i < 15; i++) {
		struct rs_span *s = rs_batch_add_span(b, ss);

		memset(s->trace_id, 1 + i / 3, sizeof(s->trace_id));
		s->span_id[7] = (uint8_t)(1 + i);
		s->start_ns = 1700000000000000000u;
		s->end_ns = s->start_ns + 1000;
		s->name = rs_arena_str(&b->arena, STR("GET"));
	}
}

static void split_all(struct fake *f, struct rs_payload *pl, uint32_t spans, uint8_t form,
		      uint32_t *ret_parts)
{
	struct rs_item it = { .data = *pl, .spans = spans, .form = form };
	struct rs_payload half[2] = { 0 };
	uint32_t n[2];

	if (spans < 2 || !f->e.ops->split(&f->e, &it, half, n)) {
		++*ret_parts;
		rs_payload_release(pl);
		return;
	}
	assert_int_equal(n[0] + n[1], spans);
	assert_true(n[0] > 0 && n[1] > 0);
	rs_payload_release(pl);
	split_all(f, &half[0], n[0], form, ret_parts);
	split_all(f, &half[1], n[1], form, ret_parts);
}

static void splits(void **st)
{
	static const struct {
		const char *exporter, *encoder;
		uint8_t form;
		uint32_t parts;
	} t[] = {
		{ "otlp-http", "otlp-proto", 0, 15 },	  { "otlp-http-json", "otlp-json", 0, 15 },
		{ "otlp-grpc", "otlp-proto", 0, 15 },	  { "zipkin", "zipkin", 0, 15 },
		{ "datadog", "datadog-v0.4-json", 0, 5 }, { "datadog", "datadog-v0.4", 1, 5 },
		{ "datadog", "datadog-v0.5", 2, 5 },	  { "datadog", "datadog-v1", 3, 1 },
	};

	(void)st;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct fake *f = fake(t[i].exporter);
		struct rs_encode run;
		struct rs_encoder *enc;
		struct rs_batch b;
		uint32_t parts = 0;

		make_batch(&b);
		assert_int_equal(rs_bufpool_init(&f->e.pool, 0), 0);
		assert_int_equal(rs_encoder_new(t[i].encoder, &f->e.pool, NULL, &enc), 0);
		run = (struct rs_encode){ .batch = &b };
		f->e.form = t[i].form;
		assert_int_equal(rs_encode(enc, &run), 0);
		assert_int_equal(run.spans, 15);
		split_all(f, &run.out, 15, t[i].form, &parts);
		assert_int_equal(parts, t[i].parts);
		/* What cannot be split is not made again. */
		assert_true(parts > 1 || f->e.form != t[i].form);
		rs_encoder_free(enc);
		assert_int_equal(f->e.pool.in_use, 0);
		rs_bufpool_release(&f->e.pool);
		rs_batch_release(&b);
		release(f);
	}
}

static void walks(void **st)
{
	/* [1, "ab", {1: [nil, 2.0]}, bin(2)], cut in every place. */
	static char all[] = "\x94\x01\xa2"
			    "ab\x81\x01\x92\xc0\xcb\x00\x00\x00\x00\x00\x00\x00\x00\xc4\x02xy";
	const size_t len = sizeof(all) - 1;

	(void)st;
	for (size_t cut = 0; cut <= len; cut++) {
		struct iovec iov[2] = { { all, cut }, { all + cut, len - cut } };
		struct rs_walk w = { .iov = iov, .niov = 2 };
		char copy[sizeof(all)] = { 0 };

		assert_true(rs_walk_skip(&w));
		assert_int_equal(w.at, len);
		rs_walk_copy(&w, 1, len, copy);
		assert_memory_equal(copy, all + 1, len - 1);
		/* Cut off: an error, not a crash. */
		w = (struct rs_walk){ .iov = iov, .niov = 1 };
		assert_int_equal(rs_walk_skip(&w), cut == len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retry_after),
		cmocka_unit_test(http_codes),
		cmocka_unit_test(waits),
		cmocka_unit_test(partial_success),
		cmocka_unit_test(grpc_codes),
		cmocka_unit_test(grpc_retry_info),
		cmocka_unit_test(grpc_without_status),
		cmocka_unit_test(sentry_limits),
		cmocka_unit_test(splits),
		cmocka_unit_test(walks),
	};

	return cmocka_run_group_tests_name("http_verdicts", tests, NULL, NULL);
}
