// SPDX-License-Identifier: Apache-2.0
/*
 * bench/replay — what user space costs per request: records through the real pipeline, on one core, with
 * no kernel and no disk in the way. replay [FILE.tev | REQUESTS] [ENCODER]
 *
 * A recording (`ringspan record`) is read into memory first; without one, REQUESTS requests (default
 * 250,000) are made up in the shape of the live bench: nginx answers 1 KB with keep-alive, 16 connections,
 * both ends traced, the first 512 bytes of each message captured. The first tenth warms up; the rest is
 * timed and its allocations are counted. With ENCODER each batch is encoded too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "encoder.h"
#include "measure.h"
#include "pipeline.h"
#include "source/tev.h"

struct records {
	char *data;
	size_t len, cap;
	uint64_t count;
};

static int keep(void *arg, const struct rs_ev_hdr *ev)
{
	struct records *r = arg;
	size_t n = (ev->len + 7u) & ~7u;

	if (r->len + n > r->cap) {
		r->cap = r->cap ? r->cap * 2 : 1 << 20;
		r->data = realloc(r->data, r->cap);
		if (!r->data)
			return -1;
	}
	memcpy(r->data + r->len, ev, ev->len);
	memset(r->data + r->len + ev->len, 0, n - ev->len);
	r->len += n;
	r->count++;
	return 0;
}

#define CONNS	 16
#define CAPTURED 512

struct end {
	uint64_t off[2];
	uint32_t seq[2];
};

static int add_data(struct records *r, struct end *e, uint64_t conn, uint32_t pid, unsigned dir,
		    uint64_t t, const char *text, size_t len)
{
	struct {
		struct rs_ev_data ev;
		char data[CAPTURED];
	} rec = { .ev = {
			  .h = { .type = RS_EV_DATA, .ts_ns = t },
			  .conn = conn,
			  .off = e->off[dir],
			  .len = (uint32_t)len,
			  .cap = len < CAPTURED ? (uint32_t)len : CAPTURED,
			  .tgid = pid,
			  .tid = pid,
			  .seq = e->seq[dir],
			  .dir = (uint8_t)dir,
		  } };

	rec.ev.h.len = (uint32_t)sizeof(rec.ev) + rec.ev.cap;
	memcpy(rec.data, text, rec.ev.cap);
	e->off[dir] += len;
	e->seq[dir] += (uint32_t)len;
	return keep(r, &rec.ev.h);
}

static int add_open(struct records *r, uint64_t conn, uint32_t pid, unsigned role, uint16_t lport,
		    uint16_t rport)
{
	struct rs_ev_open ev = { .h = { .type = RS_EV_OPEN, .len = sizeof(ev), .ts_ns = 1000 },
				 .conn = conn,
				 .tgid = pid,
				 .tid = pid,
				 .family = RS_FAMILY_INET,
				 .l4 = RS_L4_TCP,
				 .role = (__u8)role,
				 .lport = lport,
				 .rport = rport,
				 .laddr = { 127, 0, 0, 1 },
				 .raddr = { 127, 0, 0, 1 } };

	snprintf(ev.comm, sizeof(ev.comm), "%s", role == RS_ROLE_SERVER ? "nginx" : "wrk");
	return keep(r, &ev.h);
}

static int make_up(struct records *r, uint64_t requests)
{
	static struct end server[CONNS], client[CONNS];
	char response[2048];
	uint64_t t = 1000000;
	int len = snprintf(
		response, sizeof(response),
		"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 30 Nov 2026 11:00:00 GMT\r\n"
		"Content-Type: text/plain\r\nContent-Length: 1024\r\n"
		"Last-Modified: Mon, 30 Nov 2026 10:59:00 GMT\r\nConnection: keep-alive\r\n"
		"ETag: \"6a1c0f4c-400\"\r\nAccept-Ranges: bytes\r\n\r\n");

	memset(response + len, 'x', 1024);
	len += 1024;
	for (unsigned c = 0; c < CONNS; c++) {
		if (add_open(r, 2 * c + 1, 1000, RS_ROLE_SERVER, 8080, (uint16_t)(40000 + c)) ||
		    add_open(r, 2 * c + 2, 2000, RS_ROLE_CLIENT, (uint16_t)(40000 + c), 8080))
			return -1;
	}
	for (uint64_t i = 0; i < requests; i++) {
		unsigned c = i % CONNS;
		char request[256];
		int n = snprintf(
			request, sizeof(request),
			"GET /1k.txt?number=%lu HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: bench\r\n\r\n",
			(unsigned long)i);

		if (add_data(r, &client[c], 2 * c + 2, 2000, RS_DIR_OUT, t, request, (size_t)n) ||
		    add_data(r, &server[c], 2 * c + 1, 1000, RS_DIR_IN, t + 5000, request,
			     (size_t)n) ||
		    add_data(r, &server[c], 2 * c + 1, 1000, RS_DIR_OUT, t + 20000, response,
			     (size_t)len) ||
		    add_data(r, &client[c], 2 * c + 2, 2000, RS_DIR_IN, t + 30000, response,
			     (size_t)len))
			return -1;
		t += 40000;
	}
	return 0;
}

struct sums {
	struct rs_encoder *enc;
	uint64_t spans, bytes;
};

static void flush(void *arg, const struct rs_batch *b)
{
	struct sums *s = arg;
	struct rs_encode run = { .batch = b };

	s->spans += b->nspans;
	while (s->enc && !rs_encode(s->enc, &run) && run.out.niov) {
		s->bytes += run.out.len;
		rs_payload_release(&run.out);
	}
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	struct records r = { 0 };
	struct rs_pipeline *pl = calloc(1, sizeof(*pl));
	struct rs_pipeline_opts opts = { .seed = 1, .request_timeout_ns = 60000000000ull };
	struct rs_bufpool pool;
	struct sums sums = { 0 };
	uint64_t requests = 250000, done = 0, spans0 = 0, next_tick = 0;
	double begin = 0;
	int err = 0;

	if (argc > 1 && strtoul(argv[1], NULL, 10) == 0) {
		FILE *f = fopen(argv[1], "rb");
		char why[256] = "cannot be opened";

		if (!f || rs_tev_read(f, &opts.wall_offset, keep, &r, why, sizeof(why))) {
			fprintf(stderr, "bench/replay: %s: %s\n", argv[1], why);
			return 1;
		}
		fclose(f);
	} else {
		requests = argc > 1 ? strtoul(argv[1], NULL, 10) : requests;
		err = make_up(&r, requests);
	}
	if (err || !pl || rs_pipeline_init(pl, &opts) || rs_bufpool_init(&pool, 64 << 20)) {
		fprintf(stderr, "bench/replay: no memory\n");
		return 1;
	}
	if (argc > 2 && rs_encoder_new(argv[2], &pool, NULL, &sums.enc)) {
		fprintf(stderr, "bench/replay: no encoder '%s'\n", argv[2]);
		return 1;
	}
	pl->flush = flush;
	pl->arg = &sums;
	for (size_t at = 0; at < r.len; done++) {
		const struct rs_ev_hdr *ev = (const void *)(r.data + at);

		if (done == r.count / 10) {
			spans0 = sums.spans;
			heap.counting = true;
			begin = cpu_seconds();
		}
		rs_pipeline_event(pl, ev);
		if (ev->ts_ns >= next_tick) {
			rs_pipeline_tick(pl, ev->ts_ns);
			next_tick = ev->ts_ns + 100000000;
		}
		at += (ev->len + 7u) & ~7u;
	}
	rs_pipeline_flush(pl);
	heap.counting = false;

	double seconds = cpu_seconds() - begin;
	double spans = (double)(sums.spans - spans0), records = (double)(r.count - r.count / 10);

	printf("%lu records, %lu spans; after warm-up: %.0f ns per record, %.0f ns per span, %.0f ns per request with "
	       "both ends traced, %.0f spans/s on one core, %lu allocations\n",
	       (unsigned long)r.count, (unsigned long)sums.spans, seconds / records * 1e9,
	       seconds / spans * 1e9, seconds / spans * 2e9, spans / seconds, heap.calls);
	if (sums.enc)
		printf("with %s: %.0f bytes per span\n", argv[2],
		       (double)sums.bytes / (double)sums.spans);
	rs_encoder_free(sums.enc);
	rs_pipeline_release(pl);
	rs_bufpool_release(&pool);
	free(pl);
	free(r.data);
	return heap.calls ? 1 : 0;
}
