// SPDX-License-Identifier: Apache-2.0
/*
 * What HTTP/2 costs: ns per header block in our HPACK and in nghttp2's inflater, on what nghttp2's encoder writes;
 * ns per stream (request and response, four messages) through l7 and through the whole of the pipeline to a span, with
 * 1, 8, 32 and 100 streams open at once. Best of several rounds: other work on the machine only adds.
 * Usage: bench/http2 [ROUNDS]
 */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>

#include "best.h"
#include "base/clock.h"
#include "pipeline.h"
#include "proto/hpack.h"

#define STREAMS 1000 /* of a connection */

#define NV(name, value)                                                                            \
	{                                                                                          \
		(uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1, 0      \
	}

static volatile uint64_t sink;

static size_t request_block(nghttp2_hd_deflater *d, uint8_t *to, size_t max, unsigned n)
{
	char path[64];
	nghttp2_nv nv[] = {
		NV(":method", "GET"),
		NV(":scheme", "http"),
		NV(":authority", "shop.example:8080"),
		NV(":path", ""),
		NV("user-agent",
		   "Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Firefox/115.0"),
		NV("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
		NV("accept-encoding", "gzip, deflate, br"),
		NV("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
	};

	nv[3].valuelen = (size_t)snprintf(path, sizeof(path), "/api/v1/items/%u?page=2", n);
	nv[3].value = (uint8_t *)path;
	return (size_t)nghttp2_hd_deflate_hd(d, to, max, nv, sizeof(nv) / sizeof(nv[0]));
}

static size_t response_block(nghttp2_hd_deflater *d, uint8_t *to, size_t max)
{
	nghttp2_nv nv[] = {
		NV(":status", "200"),
		NV("server", "nginx/1.22.1"),
		NV("date", "Mon, 30 Nov 2026 11:03:04 GMT"),
		NV("content-type", "application/json"),
		NV("content-length", "1024"),
		NV("etag", "\"656b0f10-400\""),
	};

	return (size_t)nghttp2_hd_deflate_hd(d, to, max, nv, sizeof(nv) / sizeof(nv[0]));
}

struct blocks {
	uint8_t bytes[STREAMS][512];
	size_t len[STREAMS];
	size_t sum;
};

static void make(struct blocks *b, bool request)
{
	nghttp2_hd_deflater *d;

	if (nghttp2_hd_deflate_new(&d, 4096))
		abort();
	b->sum = 0;
	for (unsigned i = 0; i < STREAMS; i++) {
		b->len[i] = request ? request_block(d, b->bytes[i], sizeof(b->bytes[i]), i)
				    : response_block(d, b->bytes[i], sizeof(b->bytes[i]));
		b->sum += b->len[i];
	}
	nghttp2_hd_deflate_del(d);
}

static bool on_field(void *arg, const struct rs_hpack_field *f)
{
	(void)arg;
	sink += f->value.len;
	return false;
}

static double ours(const struct blocks *b)
{
	static char scratch[65536];
	struct rs_pool small, large;
	struct rs_hpack h;
	uint64_t t;

	rs_pool_init(&small, RS_HPACK_BLOCK(RS_HPACK_SMALL), 1);
	rs_pool_init(&large, RS_HPACK_BLOCK(RS_HPACK_LARGE), 1);
	rs_hpack_init(&h, true, &small, &large);
	t = rs_clock_mono();
	for (unsigned i = 0; i < STREAMS; i++) {
		struct rs_hpack_mem mem = { scratch, scratch + sizeof(scratch) };

		if (!rs_hpack_decode(&h, str_of((const char *)b->bytes[i], b->len[i]), &mem,
				     on_field, NULL))
			abort();
	}
	t = rs_clock_mono() - t;
	rs_hpack_release(&h);
	rs_pool_release(&small);
	rs_pool_release(&large);
	return (double)t / STREAMS;
}

static double theirs(const struct blocks *b)
{
	nghttp2_hd_inflater *inf;
	uint64_t t;

	if (nghttp2_hd_inflate_new(&inf))
		abort();
	t = rs_clock_mono();
	for (unsigned i = 0; i < STREAMS; i++) {
		const uint8_t *at = b->bytes[i];
		size_t left = b->len[i];
		int flags = 0;

		while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
			nghttp2_nv nv;
			ssize_t n = nghttp2_hd_inflate_hd2(inf, &nv, &flags, at, left, 1);

			if (n < 0)
				abort();
			at += n;
			left -= (size_t)n;
			if (flags & NGHTTP2_HD_INFLATE_EMIT)
				sink += nv.valuelen;
		}
		nghttp2_hd_inflate_end_headers(inf);
	}
	t = rs_clock_mono() - t;
	nghttp2_hd_inflate_del(inf);
	return (double)t / STREAMS;
}

/* Records of one connection, one after the other. */
struct records {
	char *data;
	size_t len, cap;
	uint64_t off[2], now;
};

static void put(struct records *r, enum rs_ev_dir dir, unsigned type, unsigned flags, uint32_t id,
		const void *content, size_t len)
{
	size_t n = sizeof(struct rs_ev_data) + 9 + len, size = (n + 7) & ~(size_t)7;
	struct rs_ev_data *ev;

	if (r->len + size > r->cap) {
		r->cap = r->cap ? r->cap * 2 : 1 << 20;
		r->data = realloc(r->data, r->cap);
		if (!r->data)
			abort();
	}
	ev = (struct rs_ev_data *)(void *)(r->data + r->len);
	*ev = (struct rs_ev_data){ .h = { RS_EV_DATA, 0, (uint32_t)n, r->now += 1000 },
				   .conn = 1,
				   .off = r->off[dir],
				   .len = (uint32_t)(9 + len),
				   .cap = (uint32_t)(9 + len),
				   .tgid = 1,
				   .tid = 1,
				   .dir = (uint8_t)dir };
	memcpy(ev->data,
	       (const uint8_t[]){ (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len,
				  (uint8_t)type, (uint8_t)flags, (uint8_t)(id >> 24),
				  (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id },
	       9);
	if (len)
		memcpy(ev->data + 9, content, len);
	r->off[dir] += 9 + len;
	r->len += size;
}

/* STREAMS requests of which `open` wait for their answers at any time; answers of 1 KB. */
static struct records traffic(const struct blocks *requests, const struct blocks *responses,
			      unsigned open)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static char body[1024];
	struct records r = { 0 };
	struct rs_ev_data *ev;

	put(&r, RS_DIR_IN, 4, 0, 0, NULL, 0);
	ev = (struct rs_ev_data *)(void *)r.data; /* the preface instead of that frame */
	ev->len = ev->cap = sizeof(preface) - 1;
	ev->h.len = (uint32_t)(sizeof(*ev) + ev->len);
	memcpy(ev->data, preface, ev->len);
	r.off[RS_DIR_IN] = ev->len;
	r.len = (ev->h.len + 7) & ~7u;
	put(&r, RS_DIR_IN, 4, 0, 0, NULL, 0);
	put(&r, RS_DIR_OUT, 4, 0, 0, NULL, 0);
	for (unsigned i = 0; i < STREAMS + open; i++) {
		if (i < STREAMS)
			put(&r, RS_DIR_IN, 1, 5, 2 * i + 1, requests->bytes[i], requests->len[i]);
		if (i >= open) {
			unsigned k = i - open;

			put(&r, RS_DIR_OUT, 1, 4, 2 * k + 1, responses->bytes[k],
			    responses->len[k]);
			put(&r, RS_DIR_OUT, 0, 1, 2 * k + 1, body, sizeof(body));
		}
	}
	return r;
}

static void on_msg(void *arg, const struct rs_msg *m)
{
	(void)arg;
	sink += m->nfields;
}

static double through_l7(const struct records *r)
{
	struct rs_counters counters = { 0 };
	struct rs_l7_env env = { .counters = &counters };
	struct rs_l7 l7;
	uint64_t t;

	if (rs_l7_env_init(&env))
		abort();
	rs_l7_init(&l7);
	t = rs_clock_mono();
	for (size_t at = 0; at < r->len;) {
		const struct rs_ev_data *ev = (const void *)(r->data + at);

		rs_l7_data(&l7, &env, ev, on_msg, NULL);
		at += (ev->h.len + 7) & ~7u;
	}
	t = rs_clock_mono() - t;
	rs_l7_release(&l7, &env);
	rs_l7_env_release(&env);
	if (counters.v[RS_C_PROTO_RESPONSES] != STREAMS)
		abort();
	return (double)t / STREAMS;
}

static void on_flush(void *arg, const struct rs_batch *b)
{
	(void)arg;
	sink += b->nspans;
}

static double through_pipeline(const struct records *r)
{
	static struct rs_pipeline pl;
	struct rs_pipeline_opts opts = { .seed = 1 };
	uint64_t t;

	if (rs_pipeline_init(&pl, &opts))
		abort();
	pl.flush = on_flush;
	t = rs_clock_mono();
	for (size_t at = 0; at < r->len;) {
		const struct rs_ev_hdr *ev = (const void *)(r->data + at);

		rs_pipeline_event(&pl, ev);
		at += (ev->len + 7) & ~7u;
	}
	t = rs_clock_mono() - t;
	rs_pipeline_finish(&pl);
	if (pl.n.v[RS_C_TRACE_SPANS] != STREAMS)
		abort();
	rs_pipeline_release(&pl);
	return (double)t / STREAMS;
}

int main(int argc, char **argv)
{
	static const unsigned open[] = { 1, 8, 32, 100 };
	static struct blocks requests, responses;
	int rounds = argc > 1 ? atoi(argv[1]) : 100;

	make(&requests, true);
	make(&responses, false);
	printf("%-28s %6s %9s %9s %7s\n", "ns per header block", "bytes", "hpack", "nghttp2",
	       "ratio");
	for (int i = 0; i < 2; i++) {
		const struct blocks *b = i ? &responses : &requests;
		double o = 0, t = 0;

		for (int k = 0; k < rounds; k++) {
			BEST(o, ours(b));
			BEST(t, theirs(b));
		}
		printf("%-28s %6.1f %9.1f %9.1f %7.2f\n", i ? "response" : "request",
		       (double)b->sum / STREAMS, o, t, o / t);
	}
	printf("\n%-28s %16s %9s %7s\n", "ns per stream", "l7", "pipeline", "of 1");
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		struct records r = traffic(&requests, &responses, open[i]);
		static double first;
		double l = 0, p = 0;

		for (int k = 0; k < rounds; k++) {
			BEST(l, through_l7(&r));
			BEST(p, through_pipeline(&r));
		}
		if (!first)
			first = p;
		printf("%3u open at once %28.1f %9.1f %7.2f\n", open[i], l, p, p / first);
		free(r.data);
	}
	return sink == 0;
}
