// SPDX-License-Identifier: Apache-2.0
/*
 * bench/replay — what user space costs per request: records through the real pipeline, on one core, with
 * no kernel and no disk in the way. replay [FILE.tev | REQUESTS [ENCODER [CONNECTIONS PROCESSES]]]
 *
 * A recording (`ringspan record`) is read into memory first; without one, REQUESTS requests (default
 * 250,000) are made up in the shape of the live bench: nginx answers 1 KB with keep-alive, CONNECTIONS
 * connections (16) in turn, 16 requests at a time, both ends traced, the first 512 bytes of each message captured;
 * of PROCESSES (2) one in ten asks, the others answer. The first tenth (at least two turns of all connections) warms up; the
 * rest is timed and its allocations are counted. With ENCODER (not `none`) each batch is encoded too.
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

#define CAPTURED 512
#define AT_ONCE	 16 /* requests under way */

/* What is made up. */
struct shape {
	uint64_t requests;
	uint32_t conns, procs;
};

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

/* One end of a connection: its socket, and whose it is. */
static uint64_t cookie(uint32_t c, unsigned role)
{
	return 2 * c + (role == RS_ROLE_SERVER ? 1 : 2);
}

static uint32_t pid_of(const struct shape *sh, uint32_t c, unsigned role)
{
	uint32_t clients = sh->procs < 20 ? 1 : sh->procs / 10;

	return role == RS_ROLE_CLIENT ? 2000 + c % clients : 10000 + c % (sh->procs - clients);
}

static int make_up(struct records *r, const struct shape *sh)
{
	struct end *server = calloc(sh->conns, sizeof(*server));
	struct end *client = calloc(sh->conns, sizeof(*client));
	char response[2048], request[AT_ONCE][256];
	uint64_t t = 1000000;
	int err = !server || !client;
	int len = snprintf(
		response, sizeof(response),
		"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 30 Nov 2026 11:00:00 GMT\r\n"
		"Content-Type: text/plain\r\nContent-Length: 1024\r\n"
		"Last-Modified: Mon, 30 Nov 2026 10:59:00 GMT\r\nConnection: keep-alive\r\n"
		"ETag: \"6a1c0f4c-400\"\r\nAccept-Ranges: bytes\r\n\r\n");

	memset(response + len, 'x', 1024);
	len += 1024;
	for (uint32_t c = 0; !err && c < sh->conns; c++) {
		uint16_t port = (uint16_t)(20000 + c % 40000);
		uint16_t to = (uint16_t)(8000 + pid_of(sh, c, RS_ROLE_SERVER) % 10000);

		err = add_open(r, cookie(c, RS_ROLE_SERVER), pid_of(sh, c, RS_ROLE_SERVER),
			       RS_ROLE_SERVER, to, port) ||
		      add_open(r, cookie(c, RS_ROLE_CLIENT), pid_of(sh, c, RS_ROLE_CLIENT),
			       RS_ROLE_CLIENT, port, to);
	}
	/* A group of requests is sent, then received and answered one by one, then the answers are received. */
	for (uint64_t i = 0; !err && i < sh->requests; i += AT_ONCE, t += AT_ONCE * 40000ull) {
		for (unsigned step = 0; !err && step < 3; step++) {
			for (unsigned k = 0; !err && k < AT_ONCE; k++) {
				uint32_t c = (uint32_t)((i + k) % sh->conns);
				uint64_t at = t + step * 320000 + k * 20000;
				size_t n;

				if (step == 0)
					snprintf(
						request[k], sizeof(request[k]),
						"GET /1k.txt?number=%lu HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: bench\r\n\r\n",
						(unsigned long)(i + k));
				n = strlen(request[k]);
				if (step == 0)
					err = add_data(r, &client[c], cookie(c, RS_ROLE_CLIENT),
						       pid_of(sh, c, RS_ROLE_CLIENT), RS_DIR_OUT,
						       at, request[k], n);
				else if (step == 1)
					err = add_data(r, &server[c], cookie(c, RS_ROLE_SERVER),
						       pid_of(sh, c, RS_ROLE_SERVER), RS_DIR_IN, at,
						       request[k], n) ||
					      add_data(r, &server[c], cookie(c, RS_ROLE_SERVER),
						       pid_of(sh, c, RS_ROLE_SERVER), RS_DIR_OUT,
						       at + 10000, response, (size_t)len);
				else
					err = add_data(r, &client[c], cookie(c, RS_ROLE_CLIENT),
						       pid_of(sh, c, RS_ROLE_CLIENT), RS_DIR_IN, at,
						       response, (size_t)len);
			}
		}
	}
	free(server);
	free(client);
	return err;
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

/* The ring, and the records that came in one period of it. */
#define PERIOD 400
struct drain {
	char ring[8 << 20];
	size_t pos; /* in ring: of what comes next */
	const char *first;
	uint32_t count;
	char others[4 << 20];
};

/* The next records come; meanwhile other programs have had the processor, and its caches. */
static void fill(struct drain *d, const struct records *r, size_t *at)
{
	size_t end = *at;

	for (d->count = 0; d->count < PERIOD && end < r->len; d->count++)
		end += (((const struct rs_ev_hdr *)(r->data + end))->len + 7u) & ~7u;
	if (d->pos + end - *at > sizeof(d->ring))
		d->pos = 0;
	d->first = memcpy(d->ring + d->pos, r->data + *at, end - *at);
	d->pos += end - *at;
	*at = end;
	for (size_t i = 0; i < sizeof(d->others); i += 64)
		d->others[i]++;
}

static const struct rs_ev_hdr *after(const struct rs_ev_hdr *ev)
{
	return (const void *)((const char *)ev + ((ev->len + 7u) & ~7u));
}

/* As the ring's reader does. */
static void take(struct rs_pipeline *pl, const struct drain *d, uint64_t *next_tick)
{
	const struct rs_ev_hdr *ev = (const void *)d->first, *next = ev;
	uint32_t seen = 0;

	for (uint32_t i = 0; i < d->count; i++, ev = after(ev)) {
		for (; seen <= i + RS_PL_AHEAD && seen < d->count; seen++) {
			rs_pipeline_ahead(pl, next);
			next = after(next);
			__builtin_prefetch(next);
		}
		rs_pipeline_event(pl, ev);
		if (ev->ts_ns < *next_tick)
			continue;
		rs_pipeline_tick(pl, ev->ts_ns);
		*next_tick = ev->ts_ns + 100000000;
	}
}

int main(int argc, char **argv)
{
	struct records r = { 0 };
	struct rs_pipeline *pl = calloc(1, sizeof(*pl));
	struct rs_pipeline_opts opts = { .seed = 1, .request_timeout_ns = 60000000000ull };
	struct rs_bufpool pool;
	struct sums sums = { 0 };
	struct shape sh = { 250000, 16, 2 };
	static struct drain drain;
	uint64_t done = 0, timed = 0, spans0 = 0, next_tick = 0, warm;
	double begin, seconds = 0;
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
		sh.requests = argc > 1 ? strtoul(argv[1], NULL, 10) : sh.requests;
		sh.conns = argc > 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : sh.conns;
		sh.procs = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : sh.procs;
		if (sh.conns < AT_ONCE || sh.procs < 2) {
			fprintf(stderr, "bench/replay: at least 16 connections and 2 processes\n");
			return 2;
		}
		err = make_up(&r, &sh);
	}
	if (err || !pl || rs_pipeline_init(pl, &opts) || rs_bufpool_init(&pool, 64 << 20)) {
		fprintf(stderr, "bench/replay: no memory\n");
		return 1;
	}
	if (argc > 2 && strcmp(argv[2], "none") != 0 &&
	    rs_encoder_new(argv[2], &pool, NULL, &sums.enc)) {
		fprintf(stderr, "bench/replay: no encoder '%s'\n", argv[2]);
		return 1;
	}
	pl->flush = flush;
	pl->arg = &sums;
	warm = r.count / 10 > 10 * (uint64_t)sh.conns ? r.count / 10 : 10 * (uint64_t)sh.conns;
	for (size_t at = 0; at < r.len; done += drain.count) {
		fill(&drain, &r, &at);
		if (done < warm)
			spans0 = sums.spans;
		heap.counting = done >= warm;
		begin = cpu_seconds();
		take(pl, &drain, &next_tick);
		if (done >= warm) {
			seconds += cpu_seconds() - begin;
			timed += drain.count;
		}
	}
	rs_pipeline_flush(pl);
	heap.counting = false;

	double spans = (double)(sums.spans - spans0), records = (double)timed;

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
