/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans — the workloads that encoders are measured with.
 *
 * A        100 client spans of one trace: GET, a URL of 330 characters, a path in CJK and emoji
 * A-ascii  the same with an ASCII path
 * A-esc    A, and in every span a Java stack trace of 4 KB, a different one each: else the branch predictor
 *          learns the one by heart
 * B-0ev …  100 traces of one span: a dozen tags and four numbers, no event, one, ten, or an exception with
 *          a stack trace of 3 to 4 KB; with two links or none
 *
 * Attribute names are ringspan's where it has them; the others are interned in the batch.
 */
#ifndef RS_BENCH_SPANS_H
#define RS_BENCH_SPANS_H

#include <stdio.h>
#include <stdlib.h>

#include "trace/keys.h"

static const char *const bench_workloads[] = {
	"A",	 "A-ascii",  "A-esc",	 "B-0ev",     "B-1ev",	  "B-10ev",
	"B-exc", "B-0ev-2l", "B-1ev-2l", "B-10ev-2l", "B-exc-2l",
};
#define BENCH_WORKLOADS (sizeof(bench_workloads) / sizeof(bench_workloads[0]))

struct bench_maker {
	struct rs_batch *b;
	struct rs_keys keys;
	uint64_t rnd;
	struct rs_attr attrs[32];
	uint32_t n;
};

static uint64_t bench_rnd(struct bench_maker *m)
{
	m->rnd ^= m->rnd << 13;
	m->rnd ^= m->rnd >> 7;
	m->rnd ^= m->rnd << 17;
	return m->rnd;
}

static void *bench_alloc(struct bench_maker *m, size_t size)
{
	void *p = rs_arena_alloc(&m->b->arena, size);

	if (!p) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	return p;
}

static struct str bench_str(struct bench_maker *m, const char *s)
{
	return rs_arena_str(&m->b->arena, str_c(s));
}

static void bench_attr(struct bench_maker *m, const char *key, struct rs_val v)
{
	m->attrs[m->n++] = (struct rs_attr){ rs_keys_get(&m->keys, &m->b->arena, str_c(key)), v };
}

static void bench_text(struct bench_maker *m, const char *key, const char *text)
{
	struct str s = bench_str(m, text);

	bench_attr(m, key,
		   (struct rs_val){ .type = RS_VAL_STR, .len = (uint32_t)s.len, .str = s.ptr });
}

static void bench_int(struct bench_maker *m, const char *key, int64_t i)
{
	bench_attr(m, key, (struct rs_val){ .type = RS_VAL_INT, .i = i });
}

static struct rs_attrs bench_attrs(struct bench_maker *m)
{
	struct rs_attr *a = bench_alloc(m, m->n * sizeof(*a));
	struct rs_attrs as = { .a = a, .n = m->n };

	memcpy(a, m->attrs, m->n * sizeof(*a));
	m->n = 0;
	return as;
}

/* A Java stack trace of about `len` bytes; every call makes another one. */
static void bench_trace(struct bench_maker *m, char *out, size_t len)
{
	static const char *const words[] = { "org",	"spring",     "framework", "web",
					     "servlet", "Dispatcher", "Handler",   "Adapter",
					     "invoke",	"doFilter",   "apache",	   "catalina",
					     "core",	"Async",      "process",   "Executor",
					     "run",	"Proxy" };
	size_t n = (size_t)snprintf(out, len,
				    "java.lang.IllegalStateException: \"order %u\" is closed\n",
				    (unsigned)(bench_rnd(m) % 100000));
	unsigned line;

	while (n + 160 < len) {
		n += (size_t)snprintf(out + n, 8, "\tat ");
		for (unsigned i = 0, k = 3 + (unsigned)(bench_rnd(m) % 5); i < k; i++)
			n += (size_t)snprintf(
				out + n, 24, "%s%s", i ? "." : "",
				words[bench_rnd(m) % (sizeof(words) / sizeof(words[0]))]);
		line = (unsigned)(bench_rnd(m) % 2000);
		n += (size_t)snprintf(out + n, 40, "(%s.java:%u)\n", words[bench_rnd(m) % 18],
				      line);
	}
}

static void bench_ids(struct bench_maker *m, struct rs_span *s, bool new_trace)
{
	static uint8_t trace[16];

	for (int i = 0; i < 16 && new_trace; i++)
		trace[i] = (uint8_t)bench_rnd(m);
	memcpy(s->trace_id, trace, 16);
	for (int i = 0; i < 8; i++) {
		s->span_id[i] = (uint8_t)bench_rnd(m);
		s->parent_id[i] = (uint8_t)bench_rnd(m);
	}
	s->start_ns = 1700000000000000000u + bench_rnd(m) % 1000000000;
	s->end_ns = s->start_ns + bench_rnd(m) % 50000000;
}

static void bench_span_a(struct bench_maker *m, struct rs_span *s, int i, const char *kind)
{
	char url[512], path[64], trace[4200];
	size_t n = (size_t)snprintf(url, sizeof(url), "https://example.com/search?i=%d&q=", i);

	bench_ids(m, s, i == 0);
	s->name = bench_str(m, "GET");
	s->kind = RS_KIND_CLIENT;
	for (int k = 0; k < 300; k++)
		url[n++] = (char)('a' + bench_rnd(m) % 26);
	url[n] = 0;
	bench_text(m, "http.request.method", "GET");
	bench_text(m, "url.full", url);
	snprintf(path, sizeof(path),
		 strcmp(kind, "A-ascii") ? "/商品/%d/日本語-💥" : "/goods/%d/english-boom", i);
	bench_text(m, "url.path", path);
	bench_text(m, "server.address", "example.com");
	bench_int(m, "server.port", 443);
	bench_int(m, "http.response.status_code", 200);
	if (!strcmp(kind, "A-esc")) {
		bench_trace(m, trace, sizeof(trace));
		bench_text(m, "exception.stacktrace", trace);
	}
	s->attrs = bench_attrs(m);
}

static void bench_span_b(struct bench_maker *m, struct rs_span *s, const char *kind)
{
	static const char *const tags[][2] = {
		{ "component", "netty" },
		{ "span.kind", "server" },
		{ "http.method", "GET" },
		{ "http.url", "http://localhost:8080/api/orders" },
		{ "http.hostname", "localhost" },
		{ "http.route", "/api/orders" },
		{ "peer.ipv4", "127.0.0.1" },
		{ "thread.name", "netty-worker-1" },
		{ "language", "jvm" },
		{ "runtime-id", "6b3c3f4e-8d5d-4a3e-9c0a-0f6d2a1b7c11" },
		{ "env", "production" },
		{ "version", "1.4.2" },
	};
	int nevents = strstr(kind, "10ev")			   ? 10
		      : strstr(kind, "1ev") || strstr(kind, "exc") ? 1
								   : 0;
	int nlinks = strstr(kind, "-2l") ? 2 : 0;
	struct rs_event *events = bench_alloc(m, 10 * sizeof(*events));
	struct rs_link *links = bench_alloc(m, 2 * sizeof(*links));
	char text[4000];

	bench_ids(m, s, true);
	s->name = bench_str(m, "netty.request");
	s->kind = RS_KIND_SERVER;
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		bench_text(m, tags[i][0], tags[i][1]);
	bench_int(m, "http.status_code", 200);
	bench_int(m, "thread.id", 42);
	bench_int(m, "peer.port", (int64_t)(1024 + bench_rnd(m) % 60000));
	bench_int(m, "process_id", 12345);
	s->attrs = bench_attrs(m);
	memset(events, 0, 10 * sizeof(*events));
	memset(links, 0, 2 * sizeof(*links));
	for (int i = 0; i < nevents; i++) {
		events[i].time_ns = s->start_ns + (uint64_t)i * 1000;
		if (strstr(kind, "exc")) {
			events[i].name = bench_str(m, "exception");
			bench_text(m, "exception.type", "java.lang.IllegalStateException");
			bench_text(m, "exception.message", "order is closed");
			bench_trace(m, text, 3000 + bench_rnd(m) % 1000);
			bench_text(m, "exception.stacktrace", text);
		} else {
			events[i].name = bench_str(m, "cache.lookup");
			snprintf(text, 64, "order-%u", (unsigned)(bench_rnd(m) % 100000));
			bench_text(m, "cache.key", text);
			bench_int(m, "cache.size", (int64_t)(bench_rnd(m) % 100000));
		}
		events[i].attrs = bench_attrs(m);
	}
	for (int i = 0; i < nlinks; i++) {
		for (int k = 0; k < 16; k++)
			links[i].trace_id[k] = (uint8_t)bench_rnd(m);
		for (int k = 0; k < 8; k++)
			links[i].span_id[k] = (uint8_t)bench_rnd(m);
		links[i].flags = 1;
		bench_text(m, "link.kind", "follows_from");
		links[i].attrs = bench_attrs(m);
	}
	s->events = events;
	s->links = links;
	s->nevents = (uint32_t)nevents;
	s->nlinks = (uint32_t)nlinks;
}

/* b: initialised; n spans of the workload; other seeds make other spans of the same sizes. */
static __attribute__((unused)) void bench_batch(struct rs_batch *b, const char *kind, int n,
						uint64_t seed)
{
	static struct bench_maker m;
	struct rs_resource_spans *rs;
	struct rs_scope_spans *ss;

	m = (struct bench_maker){ .b = b, .rnd = seed * 0x9e3779b97f4a7c15u + 1 };
	rs_keys_init(&m.keys);
	rs = rs_batch_add_resource(b);
	bench_text(&m, "service.name", "shop-frontend");
	bench_text(&m, "service.version", "1.4.2");
	bench_text(&m, "service.instance.id", "6b3c3f4e-8d5d-4a3e-9c0a-0f6d2a1b7c11");
	bench_text(&m, "telemetry.sdk.name", "ringspan");
	bench_text(&m, "telemetry.sdk.version", "0.1.0");
	bench_text(&m, "host.name", "node-17.example.com");
	bench_int(&m, "process.pid", 12345);
	rs->resource.attrs = bench_attrs(&m);
	ss = rs_batch_add_scope(b, rs);
	ss->scope.name = bench_str(&m, "ringspan");
	ss->scope.version = bench_str(&m, "0.1.0");
	for (int i = 0; i < n; i++) {
		struct rs_span *s = rs_batch_add_span(b, ss);

		if (kind[0] == 'A')
			bench_span_a(&m, s, i, kind);
		else
			bench_span_b(&m, s, kind);
	}
}

#endif
