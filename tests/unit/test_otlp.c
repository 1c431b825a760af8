// SPDX-License-Identifier: Apache-2.0
/* OTLP both ways: the vectors byte by byte at every SIMD level, what readers accept, what they refuse. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "otlp/read.h"
#include "unit.h"

static struct rs_bufpool pool;

static struct str load(const char *name, const char *ext)
{
	char path[256], *buf = malloc(1 << 20);
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "tests/vectors/otlp/%s.%s", name, ext);
	f = fopen(path, "rb");
	assert_non_null(f);
	n = fread(buf, 1, 1 << 20, f);
	fclose(f);
	return str_of(buf, n);
}

/* b by the named encoder, as one malloc'ed string. */
static struct str encode(const char *name, enum rs_simd level, const struct rs_batch *b)
{
	struct rs_encode run = { .batch = b };
	struct rs_encoder *e;
	char *buf;

	assert_int_equal(rs_encoder_new_at(name, level, &pool, NULL, &e), 0);
	assert_int_equal(rs_encode(e, &run), 0);
	assert_true(run.done);
	assert_int_equal(run.out.niov, 1);
	buf = malloc(run.out.len + 1);
	memcpy(buf, run.out.iov[0].iov_base, run.out.len);
	struct str s = str_of(buf, run.out.len);
	rs_payload_release(&run.out);
	rs_encoder_free(e);
	return s;
}

static void vectors(void **st)
{
	static const char *const names[] = { "basic", "anyvalue_all", "unicode_escapes",
					     "links_events_dropped" };

	(void)st;
	for (size_t i = 0; i < 4; i++) {
		struct str pb = load(names[i], "bin"), json = load(names[i], "json");

		for (int from_json = 0; from_json < 2; from_json++) {
			struct rs_read_error why;
			struct rs_batch b;

			rs_batch_init(&b, 0);
			if (from_json)
				assert_int_equal(rs_read_otlp_json(&b, json, &why), 0);
			else
				assert_int_equal(rs_read_otlp_pb(&b, pb, &why), 0);
			assert_int_equal(b.nspans, 1);
			for (enum rs_simd l = 0; l <= rs_simd_best(); l++) {
				struct str out = encode("otlp-proto", l, &b);

				assert_int_equal(out.len, pb.len);
				assert_memory_equal(out.ptr, pb.ptr, pb.len);
				free((char *)out.ptr);
				out = encode("otlp-json", l, &b);
				assert_int_equal(out.len, json.len);
				assert_memory_equal(out.ptr, json.ptr, json.len);
				free((char *)out.ptr);
			}
			rs_batch_release(&b);
		}
		assert_true(rs_read_is_pb(pb));
		assert_false(rs_read_is_pb(json));
		free((char *)pb.ptr);
		free((char *)json.ptr);
	}
}

/* One span around `members`, as JSON. */
static char *span_json(const char *members)
{
	size_t n = strlen(members) + 256;
	char *text = malloc(n);

	snprintf(text, n,
		 "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":"
		 "\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"0102030405060708\"%s%s}]}]}]}",
		 *members ? "," : "", members);
	return text;
}

/* What the encoder makes of members, back as members. */
static void accepted(void **st)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "", "" },
		{ "\"unknown\":{\"a\":[1,{\"b\":null}]},\"name\":\"x\"", "\"name\":\"x\"" },
		{ "\"name\":null,\"attributes\":null,\"kind\":null", "" },
		{ "\"parentSpanId\":\"\"", "" },
		{ "\"parentSpanId\":\"AbCdEf0123456789\"",
		  "\"parentSpanId\":\"abcdef0123456789\"" },
		{ "\"startTimeUnixNano\":5,\"endTimeUnixNano\":\"7\"",
		  "\"startTimeUnixNano\":\"5\",\"endTimeUnixNano\":\"7\"" },
		{ "\"flags\":257,\"kind\":3", "\"kind\":3,\"flags\":257" },
		{ "\"status\":{}", "\"status\":{}" },
		{ "\"status\":{\"code\":2,\"message\":\"m\"}",
		  "\"status\":{\"message\":\"m\",\"code\":2}" },
		{ "\"attributes\":[{\"value\":{\"intValue\":7},\"key\":\"k\"}]",
		  "\"attributes\":[{\"key\":\"k\",\"value\":{\"intValue\":\"7\"}}]" },
		{ "\"attributes\":[{\"key\":\"k\",\"value\":{\"intValue\":\"-9223372036854775808\"}}]",
		  "\"attributes\":[{\"key\":\"k\",\"value\":{\"intValue\":\"-9223372036854775808\"}}]" },
		{ "\"attributes\":[{\"key\":\"k\",\"value\":{\"doubleValue\":\"-Infinity\"}}]",
		  "\"attributes\":[{\"key\":\"k\",\"value\":{\"doubleValue\":\"-Infinity\"}}]" },
		{ "\"attributes\":[{\"key\":\"k\",\"value\":{\"doubleValue\":-0}}]",
		  "\"attributes\":[{\"key\":\"k\",\"value\":{\"doubleValue\":-0.0}}]" },
		{ "\"attributes\":[{\"key\":\"k\",\"value\":{\"bytesValue\":\"-_8\"}}]",
		  "\"attributes\":[{\"key\":\"k\",\"value\":{\"bytesValue\":\"+/8=\"}}]" },
		{ "\"attributes\":[{\"key\":\"k\",\"value\":{\"arrayValue\":{\"values\":[null,{}]}}}]",
		  "\"attributes\":[{\"key\":\"k\",\"value\":{\"arrayValue\":{\"values\":[{},{}]}}}]" },
		{ "\"attributes\":[{\"key\":\"k\"},{\"key\":\"\",\"value\":{\"boolValue\":true}}]",
		  "\"attributes\":[{\"key\":\"k\"}],\"droppedAttributesCount\":1" },
		{ "\"name\":\"\\ud83d\\ude00\\ud83d\"",
		  "\"name\":\"\xf0\x9f\x98\x80\xef\xbf\xbd\"" },
		{ "\"links\":[{\"traceId\":\"00\",\"spanId\":\"\"}],\"droppedLinksCount\":2",
		  "\"droppedLinksCount\":3" },
		{ "\"events\":[{},{\"name\":\"e\",\"timeUnixNano\":\"1\"}]",
		  "\"events\":[{},{\"timeUnixNano\":\"1\",\"name\":\"e\"}]" },
	};

	(void)st;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *in = span_json(rows[i].in), *want = span_json(rows[i].out);
		struct rs_read_error why;
		struct rs_batch b;
		struct str out;

		rs_batch_init(&b, 0);
		assert_int_equal(rs_read_otlp_json(&b, str_c(in), &why), 0);
		out = encode("otlp-json", rs_simd_best(), &b);
		if (!str_eq(out, str_c(want)))
			fail_msg("%s: got %.*s", in, STR_ARG(out));
		free((char *)out.ptr);
		rs_batch_release(&b);
		free(in);
		free(want);
	}
}

static void refused(void **st)
{
	static const struct {
		const char *in, *why;
		size_t col; /* counted from the member */
	} rows[] = {
		{ "\"kind\":\"SPAN_KIND_SERVER\"", "expected a number", 8 },
		{ "\"kind\":2.5", "expected a 32-bit integer", 8 },
		{ "\"kind\":2147483648", "expected a 32-bit integer", 8 },
		{ "\"flags\":4294967296", "expected an unsigned 32-bit integer", 9 },
		{ "\"startTimeUnixNano\":\"1.5\"", "expected an unsigned 64-bit integer", 21 },
		{ "\"startTimeUnixNano\":-1", "expected an unsigned 64-bit integer", 21 },
		{ "\"endTimeUnixNano\":18446744073709551616", "expected an unsigned 64-bit integer",
		  19 },
		{ "\"parentSpanId\":5", "expected a string", 16 },
		{ "\"name\":5", "expected a string", 8 },
		{ "\"attributes\":{}", "expected an array", 14 },
		{ "\"attributes\":[5]", "expected an object", 15 },
		{ "\"attributes\":[{\"value\":{\"intValue\":1e21}}]", "expected a 64-bit integer",
		  36 },
		{ "\"attributes\":[{\"value\":{\"doubleValue\":1E400}}]", "number out of range",
		  39 },
		{ "\"attributes\":[{\"value\":{\"doubleValue\":NaN}}]", "unexpected character",
		  39 },
		{ "\"attributes\":[{\"value\":{\"boolValue\":\"true\"}}]", "expected true or false",
		  37 },
		{ "\"attributes\":[{\"value\":{\"bytesValue\":\"A\"}}]", "base64 of a wrong length",
		  38 },
		{ "\"attributes\":[{\"value\":{\"bytesValue\":\"AA=\"}}]",
		  "base64 of a wrong length", 38 },
		{ "\"attributes\":[{\"value\":{\"bytesValue\":\"A*==\"}}]",
		  "base64 with a character that does not belong there", 38 },
	};

	(void)st;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *in = span_json(rows[i].in);
		struct rs_read_error why = { 0 };
		struct rs_batch b;

		rs_batch_init(&b, 0);
		assert_int_equal(rs_read_otlp_json(&b, str_c(in), &why), -EINVAL);
		assert_string_equal(why.why, rows[i].why);
		assert_int_equal(why.line, 1);
		assert_int_equal(why.col, (size_t)(strstr(in, rows[i].in) - in) + rows[i].col);
		rs_batch_release(&b);
		free(in);
	}
}

/* One bad span alone: ids that are none, in any of the three places, do not refuse the others. */
static void bad_ids(void **st)
{
	static const char *const rows[] = {
		"\"traceId\":\"0123\"",
		"\"spanId\":\"0123\"",
		"\"parentSpanId\":\"0123\"",
		"\"traceId\":\"\"",
		"\"spanId\":\"\"",
		"\"parentSpanId\":\"01234567890123456\"",
		"\"traceId\":\"0102030405060708090a0b0c0d0e0f1x\"",
		"\"spanId\":\"010203040506070x\"",
		"\"parentSpanId\":\"010203040506070x\"",
	};
	static const char pb[] = "\x0a\x24\x12\x22\x12\x20\x0a\x10"
				 "0123456789abcdef\x12\x08"
				 "01234567\x22\x02zz";

	(void)st;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *in = span_json(rows[i]);
		struct rs_read_error why;
		struct rs_batch b;
		const struct rs_span *s;

		rs_batch_init(&b, 0);
		assert_int_equal(rs_read_otlp_json(&b, str_c(in), &why), 0);
		s = b.first->first->first;
		assert_true(i % 3 == 0	 ? s->no_trace_id
			    : i % 3 == 1 ? s->no_span_id
					 : s->no_parent_id);
		rs_batch_reset(&b);
		assert_int_equal(rs_read_otlp_pb(&b, (struct str){ pb, sizeof(pb) - 1 }, &why), 0);
		s = b.first->first->first;
		assert_false(s->no_trace_id || s->no_span_id);
		assert_true(s->no_parent_id);
		rs_batch_release(&b);
		free(in);
	}
}

/* JSON and protobuf read the same enums the same way. */
static void open_enums(void **st)
{
	static const struct {
		const char *json, *pb;
		uint8_t kind;
	} rows[] = {
		{ "\"kind\":-1", "\x30\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0 },
		{ "\"kind\":99", "\x30\x63", 99 },
		{ "\"kind\":300", "\x30\xac\x02", 0 },
	};

	(void)st;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *in = span_json(rows[i].json), pb[32] = "\x0a\x00\x12\x00\x12";
		size_t n = strlen(rows[i].pb);
		struct rs_read_error why;
		struct rs_batch b;

		pb[1] = (char)(n + 4);
		pb[3] = (char)(n + 2);
		pb[5] = (char)n;
		memcpy(pb + 6, rows[i].pb, n);
		rs_batch_init(&b, 0);
		assert_int_equal(rs_read_otlp_json(&b, str_c(in), &why), 0);
		assert_int_equal(b.first->first->first->kind, rows[i].kind);
		rs_batch_reset(&b);
		assert_int_equal(rs_read_otlp_pb(&b, (struct str){ pb, n + 6 }, &why), 0);
		assert_int_equal(b.first->first->first->kind, rows[i].kind);
		rs_batch_release(&b);
		free(in);
	}
}

static void refused_pb(void **st)
{
	static const struct {
		struct str in;
		const char *why;
		size_t at;
	} rows[] = {
		{ { "\x0a", 1 }, "a varint runs past the end of its message", 1 },
		{ { "\x0a\x05", 2 }, "a field runs past the end of its message", 0 },
		{ { "\x0a\x02\x12\x01", 4 }, "a field runs past the end of its message", 2 },
		{ { "\x00", 1 }, "an invalid field number", 0 },
		{ { "\x17", 1 }, "an unknown wire type", 0 },
		{ { "\x13\x0a", 2 }, "a varint runs past the end of its message", 2 },
		{ { "\x13", 1 }, "a group without end", 0 },
		{ { "\x14", 1 }, "the end of a group that was not begun", 0 },
		{ { "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12 },
		  "a varint of more than ten bytes",
		  1 },
	};
	/* Unknown fields, groups, and known fields of another wire type: skipped. */
	static const char odd[] = "\x0a\x0c\x12\x0a\x12\x08\x28\x05\x7b\x08\x01\x7c\x32\x00";
	struct rs_read_error why;
	struct rs_batch b;

	(void)st;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		why = (struct rs_read_error){ 0 };
		rs_batch_init(&b, 0);
		assert_int_equal(rs_read_otlp_pb(&b, rows[i].in, &why), -EINVAL);
		assert_string_equal(why.why, rows[i].why);
		assert_int_equal(why.offset, rows[i].at);
		rs_batch_release(&b);
	}
	rs_batch_init(&b, 0);
	assert_int_equal(rs_read_otlp_pb(&b, str_of(odd, sizeof(odd) - 1), &why), 0);
	assert_int_equal(b.nspans, 1);
	rs_batch_release(&b);
}

/* A value in parts: lists are joined as protobuf's are, another member in between starts anew. */
static void parts(void **st)
{
	/* attribute k: value {array [1]} value {array [2]}, and l: value {array [1], 5, array [2], array [3]} */
	static const char in[] =
		"\x12\x04span"
		"\x4a\x13\x0a\x01k\x12\x06\x2a\x04\x0a\x02\x18\x01\x12\x06\x2a\x04\x0a\x02\x18\x02"
		"\x4a\x19\x0a\x01l\x12\x14\x2a\x04\x0a\x02\x18\x01\x18\x05\x2a\x04\x0a\x02\x18\x02"
		"\x2a\x04\x0a\x02\x18\x03";
	char buf[128] = "\x0a?\x12?\x12?";
	size_t n = sizeof(in) - 1;
	const struct rs_attr *a;
	struct rs_read_error why;
	struct rs_batch b;

	(void)st;
	buf[5] = (char)n;
	buf[3] = (char)(n + 2);
	buf[1] = (char)(n + 4);
	memcpy(buf + 6, in, n);
	rs_batch_init(&b, 0);
	assert_int_equal(rs_read_otlp_pb(&b, str_of(buf, n + 6), &why), 0);
	assert_int_equal(b.first->first->first->attrs.n, 2);
	a = b.first->first->first->attrs.a;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(a[i].val.type, RS_VAL_ARRAY);
		assert_int_equal(a[i].val.len, 2);
		assert_int_equal(a[i].val.arr[0].i, 1 + i);
		assert_int_equal(a[i].val.arr[1].i, 2 + i);
	}
	rs_batch_release(&b);
}

/* Arrays and maps deeper than the limit become the empty value, in the readers and in the encoders. */
static void deep(void **st)
{
	char *text = malloc(65536), *p = text;
	struct rs_read_error why;
	struct rs_batch b;
	struct str json, pb;
	int n = 0;

	(void)st;
	p += snprintf(p, 100, "\"attributes\":[{\"key\":\"k\",\"value\":");
	for (int i = 0; i < RS_READ_DEPTH + 20; i++)
		p += snprintf(p, 100, "{\"arrayValue\":{\"values\":[");
	for (int i = 0; i < RS_READ_DEPTH + 20; i++)
		p += snprintf(p, 100, "]}}");
	snprintf(p, 100, "}]");
	p = span_json(text);
	rs_batch_init(&b, 0);
	assert_int_equal(rs_read_otlp_json(&b, str_c(p), &why), 0);
	json = encode("otlp-json", rs_simd_best(), &b);
	pb = encode("otlp-proto", rs_simd_best(), &b);
	rs_batch_reset(&b);
	assert_int_equal(rs_read_otlp_pb(&b, pb, &why), 0);
	for (const struct rs_val *v = &b.first->first->first->attrs.a[0].val;
	     v->type == RS_VAL_ARRAY; v = v->arr)
		n++;
	assert_int_equal(n, RS_READ_DEPTH);
	free((char *)pb.ptr);
	free((char *)json.ptr);
	rs_batch_release(&b);
	free(p);
	free(text);
}

/* Lengths around every change of a varint's width, where the guess of the last length is wrong. */
static void widths(void **st)
{
	static const size_t lens[] = { 0,     100, 127,	  128, 129,	5,	 16383,
				       16384, 90,  70000, 300, 2097151, 2097152, 1 };
	struct rs_bufpool *pp = &pool;
	struct rs_encoder *pb, *json;
	char *text = malloc(2097152 + RS_ARENA_PAD);

	(void)st;
	memset(text, 'x', 2097152 + RS_ARENA_PAD);
	assert_int_equal(rs_encoder_new("otlp-proto", pp, NULL, &pb), 0);
	assert_int_equal(rs_encoder_new("otlp-json", pp, NULL, &json), 0);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		struct rs_batch b, back;
		struct rs_scope_spans *ss;
		struct rs_span *s;
		struct rs_encode run;
		struct rs_read_error why;
		struct rs_attr a[2] = { 0 };

		rs_batch_init(&b, 0);
		ss = rs_batch_add_scope(&b, rs_batch_add_resource(&b));
		for (int k = 0; k < 2; k++) {
			s = rs_batch_add_span(&b, ss);
			s->trace_id[0] = s->span_id[0] = 1;
			s->name = RS_SPAN_STR("n");
			a[k].key = rs_key(RS_K_URL_FULL);
			a[k].val = (struct rs_val){ .type = RS_VAL_STR,
						    .len = (uint32_t)lens[i],
						    .str = text };
			s->attrs = (struct rs_attrs){ .a = a, .n = 2 };
		}
		run = (struct rs_encode){ .batch = &b };
		while (!rs_encode(pb, &run) && run.out.niov) {
			struct rs_encode again;

			rs_batch_init(&back, 0);
			assert_int_equal(
				rs_read_otlp_pb(&back, str_of(run.out.iov[0].iov_base, run.out.len),
						&why),
				0);
			again = (struct rs_encode){ .batch = &back };
			struct str one = str_of(run.out.iov[0].iov_base, run.out.len);
			assert_int_equal(rs_encode(pb, &again), 0);
			if (!str_eq(one, str_of(again.out.iov[0].iov_base, again.out.len)))
				fail_msg("length %zu: %zu bytes, then %zu", lens[i], one.len,
					 again.out.len);
			rs_payload_release(&again.out);
			again = (struct rs_encode){ .batch = &back };
			assert_int_equal(rs_encode(json, &again), 0);
			rs_payload_release(&again.out);
			rs_batch_release(&back);
			rs_payload_release(&run.out);
		}
		assert_true(run.done);
		assert_int_equal(run.spans + run.skipped[RS_SKIP_TOO_BIG], 2);
		rs_batch_release(&b);
	}
	rs_encoder_free(pb);
	rs_encoder_free(json);
	free(text);
}

static int setup(void **st)
{
	(void)st;
	return rs_bufpool_init(&pool, 0);
}

static int teardown(void **st)
{
	(void)st;
	rs_bufpool_release(&pool);
	return 0;
}

/* A resource and a scope with n spans; `len` bytes in one of the places where their heads can be long. */
static void add_group(struct rs_batch *b, const char *bytes, size_t len, int place, uint32_t n)
{
	static const struct rs_key key = { .name = RS_SPAN_STR("k"), .plain = true };
	struct rs_attr *a = rs_arena_alloc(&b->arena, sizeof(*a));
	struct rs_resource_spans *rs = rs_batch_add_resource(b);
	struct rs_scope_spans *ss = rs_batch_add_scope(b, rs);
	struct str text = str_of(bytes, len);

	*a = (struct rs_attr){ &key, { .type = RS_VAL_STR, .len = (uint32_t)len, .str = bytes } };
	if (place == 0)
		rs->resource.attrs = (struct rs_attrs){ .a = a, .n = 1 };
	else if (place == 1)
		ss->scope.attrs = (struct rs_attrs){ .a = a, .n = 1 };
	else if (place == 2)
		ss->scope.name = text;
	else if (place == 3)
		ss->schema_url = text;
	else
		rs->schema_url = text;
	for (; n; n--) {
		struct rs_span *s = rs_batch_add_span(b, ss);

		s->trace_id[0] = s->span_id[0] = 1;
	}
}

/* Messages of `max` bytes that b becomes: readable, with all their spans, and without empty groups. */
static void encode_small(const char *format, size_t max, const struct rs_batch *b,
			 struct rs_encode *run)
{
	struct rs_encoder_opts opts = { .max_payload = max };
	uint32_t before = 0;
	struct rs_encoder *e;

	*run = (struct rs_encode){ .batch = b };
	assert_int_equal(rs_encoder_new(format, &pool, &opts, &e), 0);
	for (;;) {
		struct rs_read_error why;
		struct rs_batch got;
		struct str s;

		assert_int_equal(rs_encode(e, run), 0);
		if (!run->out.niov)
			break;
		s = str_of(run->out.iov[0].iov_base, run->out.len);
		rs_batch_init(&got, 0);
		assert_int_equal(strcmp(format, "otlp-json") ? rs_read_otlp_pb(&got, s, &why)
							     : rs_read_otlp_json(&got, s, &why),
				 0);
		assert_int_equal(got.nspans, run->spans - before);
		for (const struct rs_resource_spans *rs = got.first; rs; rs = rs->next) {
			assert_non_null(rs->first);
			for (const struct rs_scope_spans *ss = rs->first; ss; ss = ss->next)
				assert_non_null(ss->first);
		}
		before = run->spans;
		rs_batch_release(&got);
		rs_payload_release(&run->out);
	}
	assert_true(run->done);
	rs_encoder_free(e);
}

/* Heads that leave no room cost their own spans at most, and nothing where a message of their own has room. */
static void long_heads(void **st)
{
	static const char *const formats[] = { "otlp-json", "otlp-proto" };
	static const size_t lens[] = { 2000, 3900, 60000, 100000 };
	enum {
		MAX = 5000,
		ROOM = 100000
	};
	char *bytes = malloc(ROOM);

	(void)st;
	memset(bytes, 'x', ROOM);
	for (int f = 0; f < 2; f++) {
		for (int place = 0; place < 5; place++) {
			for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
				uint32_t big = lens[i] > MAX ? 3 : 0;
				struct rs_encode run;
				struct rs_batch b;

				rs_batch_init(&b, 0);
				add_group(&b, bytes, lens[i], place, 1);
				add_group(&b, bytes, 10, 0, 2);
				add_group(&b, bytes, lens[i], place, 2);
				add_group(&b, bytes, 3000, 1, 1);
				encode_small(formats[f], MAX, &b, &run);
				assert_int_equal(run.skipped[RS_SKIP_TOO_BIG], big);
				assert_int_equal(run.spans, b.nspans - big);
				rs_batch_release(&b);
			}
		}
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors),    cmocka_unit_test(accepted),
		cmocka_unit_test(refused),    cmocka_unit_test(bad_ids),
		cmocka_unit_test(open_enums), cmocka_unit_test(refused_pb),
		cmocka_unit_test(deep),	      cmocka_unit_test(widths),
		cmocka_unit_test(parts),      cmocka_unit_test(long_heads),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
