// SPDX-License-Identifier: Apache-2.0
/*
 * bench/export — what exporting costs: spans through encoder, queue and HTTP to a sink on this machine, which
 * reads and answers and does nothing else (a process of its own; its CPU time does not count). export [BATCHES]
 *
 * Batches of 512 spans of an HTTP server, 10 attributes each. After a warm-up of a tenth, for each protocol: spans
 * per second of wall time and per second of our own CPU time, CPU per span, bytes per span, and allocations per
 * batch of the whole process, libcurl's included. Then the memory with a full queue, the backend being down.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "export/exporters.h"
#include "measure.h"
#include "trace/build.h"

#define SPANS  512
#define AHEAD  16 /* batches in the queue at most */
#define BUFFER (1 << 20)

/* -- the sink -- */

struct peer {
	struct rs_loop_fd w;
	struct rs_loop *loop;
	bool h2, known;
	size_t len;	 /* bytes in buf */
	size_t skip;	 /* of a body or a frame, still to be read */
	uint32_t stream; /* h2: whose frame is being skipped, if it ends it; 0 */
	bool owed;	 /* HTTP/1: an answer, when the body has gone by */
	bool info;	 /* and it is /info's */
	char buf[16384];
};

static void say(struct peer *p, const void *bytes, size_t n)
{
	/* Answers are short, the socket's buffer takes them. */
	if (send(p->w.fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
		errno = 0;
}

static size_t content_length(const char *head, size_t n)
{
	const char *at = memmem(head, n, "\r\nContent-Length:", 17);

	return at ? strtoul(at + 17, NULL, 10) : 0;
}

static void answer_http1(struct peer *p)
{
	static const char json[] =
		"{\"endpoints\":[\"/v0.4/traces\",\"/v0.5/traces\",\"/v1.0/traces\"],"
		"\"span_events\":true}";
	static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

	char info[256];
	int n;

	n = snprintf(info, sizeof(info), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
		     sizeof(json) - 1, json);
	if (p->info)
		say(p, info, (size_t)n);
	else
		say(p, ok, sizeof(ok) - 1);
}

static void frame_answer(struct peer *p, uint32_t stream)
{
	/* HEADERS :status 200, content-type; DATA: an empty message; HEADERS grpc-status 0, end of stream. */
	static const uint8_t head[] = "\x88\x00\x0c"
				      "content-type\x10"
				      "application/grpc";
	static const uint8_t trailer[] = "\x00\x0b"
					 "grpc-status\x01"
					 "0";
	uint8_t out[128];
	size_t n = 0;
	const struct {
		const uint8_t *bytes;
		uint8_t len, type, flags;
	} frames[] = {
		{ head, sizeof(head) - 1, 1, 4 },
		{ (const uint8_t *)"\0\0\0\0\0", 5, 0, 0 },
		{ trailer, sizeof(trailer) - 1, 1, 5 },
	};

	for (int i = 0; i < 3; i++) {
		const uint8_t fh[9] = { 0,
					0,
					frames[i].len,
					frames[i].type,
					frames[i].flags,
					(uint8_t)(stream >> 24),
					(uint8_t)(stream >> 16),
					(uint8_t)(stream >> 8),
					(uint8_t)stream };

		memcpy(out + n, fh, 9);
		memcpy(out + n + 9, frames[i].bytes, frames[i].len);
		n += 9u + frames[i].len;
	}
	say(p, out, n);
}

/* One frame's head; its payload is skipped, then answered if it ends a stream. */
static void frame(struct peer *p)
{
	const uint8_t *b = (const uint8_t *)p->buf;
	uint32_t len = (uint32_t)b[0] << 16 | b[1] << 8 | b[2];
	uint32_t stream = (uint32_t)b[5] << 24 | b[6] << 16 | b[7] << 8 | b[8];

	if (b[3] == 4 && !(b[4] & 1))
		say(p, "\0\0\0\4\1\0\0\0\0", 9);
	p->stream = (b[3] == 0 || b[3] == 1) && (b[4] & 1) ? stream : 0;
	p->skip = len;
	p->len -= 9;
	memmove(p->buf, p->buf + 9, p->len);
}

static void consume(struct peer *p)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

	for (;;) {
		size_t n = p->len < p->skip ? p->len : p->skip;
		char *end;

		p->skip -= n;
		p->len -= n;
		memmove(p->buf, p->buf + n, p->len);
		if (p->skip)
			return;
		if (p->owed)
			answer_http1(p);
		p->owed = false;
		if (p->stream)
			frame_answer(p, p->stream);
		p->stream = 0;
		if (!p->known && p->len >= 24) {
			p->known = true;
			p->h2 = memcmp(p->buf, preface, 24) == 0;
			if (p->h2) {
				/* Windows as large as they get, for streams and for the connection. */
				say(p,
				    "\0\0\6\4\0\0\0\0\0\0\4\x7f\xff\xff\xff\0\0\4\x08\0\0\0\0\0\x7f\xff\0\0",
				    28);
				p->skip = 24;
				continue;
			}
		}
		if (p->h2 && p->len >= 9) {
			frame(p);
			continue;
		}
		end = !p->h2 && p->known ? memmem(p->buf, p->len, "\r\n\r\n", 4) : NULL;
		if (!end)
			return;
		n = (size_t)(end + 4 - p->buf);
		p->owed = true;
		p->info = n > 9 && memcmp(p->buf, "GET /info", 9) == 0;
		p->skip = n + content_length(p->buf, n);
	}
}

static void on_peer(void *arg, uint32_t events)
{
	static char waste[BUFFER];
	struct peer *p = arg;
	ssize_t n;

	(void)events;
	/* Bodies go by without being looked at. */
	if (p->skip > sizeof(p->buf) && !p->len) {
		n = recv(p->w.fd, waste, p->skip - 1 < sizeof(waste) ? p->skip - 1 : sizeof(waste),
			 MSG_DONTWAIT);
		if (n > 0)
			p->skip -= (size_t)n;
	} else {
		n = recv(p->w.fd, p->buf + p->len, sizeof(p->buf) - p->len, MSG_DONTWAIT);
		if (n > 0) {
			p->len += (size_t)n;
			consume(p);
		}
	}
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		int fd = p->w.fd;

		rs_loop_del(p->loop, &p->w);
		close(fd);
		free(p);
	}
}

struct sink {
	struct rs_loop loop;
	struct rs_loop_fd w;
};

static void on_connect(void *arg, uint32_t events)
{
	struct sink *s = arg;
	int fd = accept4(s->w.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct peer *p = fd < 0 ? NULL : calloc(1, sizeof(*p));

	(void)events;
	if (!p)
		return;
	p->loop = &s->loop;
	rs_loop_add(&s->loop, &p->w, fd, EPOLLIN, on_peer, p);
}

static int listen_somewhere(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		return -1;
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static void run_sink(int fd)
{
	static struct sink s;

	if (rs_loop_init(&s.loop) == 0 &&
	    rs_loop_add(&s.loop, &s.w, fd, EPOLLIN, on_connect, &s) == 0)
		rs_loop_run(&s.loop);
	_exit(1);
}

/* -- spans -- */

static void add_spans(struct rs_batch *b)
{
	struct rs_resource_spans *rs = rs_batch_add_resource(b);
	struct rs_scope_spans *ss = rs_batch_add_scope(b, rs);
	struct rs_attr *a = rs_arena_alloc(&b->arena, sizeof(*a));
	struct str service = rs_arena_str(&b->arena, STR("checkout"));

	*a = (struct rs_attr){ rs_key(RS_K_SERVICE_NAME),
			       { .type = RS_VAL_STR, .len = 8, .str = service.ptr } };
	rs->resource.attrs = (struct rs_attrs){ .a = a, .n = 1 };
	ss->scope.name = rs_arena_str(&b->arena, STR("ringspan"));
	for (int i = 0; i < SPANS; i++) {
		struct rs_span *s = rs_batch_add_span(b, ss);
		struct rs_build build;
		char path[64];
		int trace = i / 4; /* four spans are a trace */
		int n = snprintf(path, sizeof(path), "/api/v1/orders/%d/items", i);

		memset(s->trace_id, 0x40, sizeof(s->trace_id));
		memcpy(s->trace_id, &trace, sizeof(trace));
		s->span_id[0] = 1;
		memcpy(s->span_id + 4, &i, sizeof(i));
		s->kind = RS_KIND_SERVER;
		s->flags = 0x101;
		s->start_ns = 1700000000000000000u + (uint64_t)i * 1000;
		s->end_ns = s->start_ns + 1234567;
		s->name = rs_arena_str(&b->arena, STR("GET"));
		rs_build_init(&build, s, &b->arena);
		rs_build_str(&build, RS_K_HTTP_REQUEST_METHOD, STR("GET"));
		rs_build_str(&build, RS_K_URL_PATH, str_of(path, (size_t)n));
		rs_build_str(&build, RS_K_URL_SCHEME, STR("http"));
		rs_build_int(&build, RS_K_HTTP_RESPONSE_STATUS_CODE, 200);
		rs_build_str(&build, RS_K_SERVER_ADDRESS, STR("shop.example.com"));
		rs_build_int(&build, RS_K_SERVER_PORT, 8080);
		rs_build_str(&build, RS_K_CLIENT_ADDRESS, STR("10.1.2.3"));
		rs_build_str(&build, RS_K_NETWORK_PROTOCOL_VERSION, STR("1.1"));
		rs_build_str(&build, RS_K_USER_AGENT_ORIGINAL, STR("curl/8.5.0"));
		rs_build_int(&build, RS_K_THREAD_ID, 4711);
		rs_build_finish(&build);
	}
}

/* -- measuring -- */

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static long rss_kb(void)
{
	long size = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%ld %ld", &size, &resident) != 2)
		resident = 0;
	fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void push(struct rs_exporters *x, struct rs_loop *loop, const struct rs_batch *b,
		 int batches)
{
	for (int i = 0; i < batches; i++) {
		rs_exporters_batch(x, b);
		while (rs_exporters_held(x) > AHEAD * SPANS)
			rs_loop_turn(loop, 100);
		rs_loop_turn(loop, 0);
	}
	while (rs_exporters_held(x))
		rs_loop_turn(loop, 100);
}

static bool open_exporters(struct rs_exporters *x, struct rs_loop *loop, struct rs_config *cfg)
{
	char err[512];

	memset(x, 0, sizeof(*x));
	if (rs_loop_init(loop) == 0 && rs_exporters_open(x, loop, cfg, err, sizeof(err)) == 0)
		return true;
	fprintf(stderr, "bench/export: %s\n", err);
	return false;
}

static bool measure(const char *label, const char *exporter, const char *option, const char *value,
		    const struct rs_batch *b, int batches)
{
	static struct rs_exporters x;
	struct rs_loop loop;
	struct rs_config cfg;
	char name[] = "--exporter", opt[64],
	     *argv[] = { name, (char *)exporter, opt, (char *)value };
	uint64_t began, wall;
	double cpu;
	bool ok;

	snprintf(opt, sizeof(opt), "%s", option);
	rs_config_init(&cfg, RS_CMD_run);
	if (rs_config_load(&cfg, *option ? 4 : 2, argv) || !open_exporters(&x, &loop, &cfg))
		return false;
	/* Datadog's version is agreed upon meanwhile. */
	for (int i = 0; i < 20; i++)
		rs_loop_turn(&loop, 10);
	push(&x, &loop, b, batches / 10);
	x.e[0].bytes_sent = 0;
	heap.calls = 0;
	heap.counting = true;
	cpu = cpu_seconds();
	began = rs_clock_mono();
	push(&x, &loop, b, batches);
	wall = rs_clock_mono() - began;
	cpu = cpu_seconds() - cpu;
	heap.counting = false;
	ok = x.e[0].sent == x.e[0].spans_in && !x.e[0].retried;
	printf("%-16s %-20s %10.0f %10.0f %8.0f %8.0f %8.1f%s\n", label, x.e[0].protocol,
	       batches * (double)SPANS / ((double)wall / 1e9), batches * (double)SPANS / cpu,
	       cpu * 1e9 / (batches * (double)SPANS),
	       (double)x.e[0].bytes_sent / (batches * (double)SPANS), (double)heap.calls / batches,
	       ok ? "" : "  FAILED");
	if (!ok)
		printf("  %s\n", x.e[0].last_error);
	fflush(stdout);
	rs_exporters_close(&x);
	rs_loop_release(&loop);
	rs_config_release(&cfg);
	return ok;
}

static bool full_queue(const struct rs_batch *b)
{
	static struct rs_exporters x;
	char name[] = "--exporter", to[] = "otlp-http=http://127.0.0.1:1", *argv[] = { name, to };
	struct rs_config cfg;
	struct rs_loop loop;
	long before = rss_kb();
	bool ok;

	rs_config_init(&cfg, RS_CMD_run);
	if (rs_config_load(&cfg, 2, argv) || !open_exporters(&x, &loop, &cfg))
		return false;
	for (int i = 0; i < 4000 && x.e[0].lost[RS_LOSS_QUEUE_FULL] < 20 * SPANS; i++) {
		rs_exporters_batch(&x, b);
		rs_loop_turn(&loop, 0);
	}
	ok = x.e[0].q.bytes <= cfg.queue_bytes && x.e[0].lost[RS_LOSS_QUEUE_FULL] > 0;
	printf("\nfull queue: %llu spans, %.1f MB of buffers (bound %.1f MB), resident memory %.1f MB more\n",
	       (unsigned long long)x.e[0].q.spans, (double)x.e[0].q.bytes / 1e6,
	       (double)cfg.queue_bytes / 1e6, (double)(rss_kb() - before) * 1024 / 1e6);
	rs_exporters_close(&x);
	rs_loop_release(&loop);
	rs_config_release(&cfg);
	return ok;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *label, *exporter, *option, *value;
	} runs[] = {
		{ "otlp-http", "otlp-http", "", "" },
		{ "otlp-http gzip", "otlp-http", "--compression", "gzip" },
		{ "otlp-http zstd", "otlp-http", "--compression", "zstd" },
		{ "otlp-http-json", "otlp-http-json", "", "" },
		{ "otlp-grpc", "otlp-grpc", "", "" },
		{ "datadog", "datadog", "--dd-protocol", "0.4" },
		{ "datadog", "datadog", "--dd-protocol", "0.5" },
		{ "datadog", "datadog", "--dd-protocol", "1.0" },
		{ "zipkin", "zipkin", "", "" },
		{ "sentry", "sentry", "", "" },
	};
	int batches = argc > 1 ? atoi(argv[1]) : 2000;
	struct rs_batch batch;
	uint16_t port;
	bool ok = true;
	pid_t sink;
	int fd;

	fd = listen_somewhere(&port);
	sink = fd < 0 ? -1 : fork();
	if (sink < 0 || batches < 10) {
		fprintf(stderr, "usage: export [BATCHES]; 10 at least\n");
		return 2;
	}
	if (sink == 0)
		run_sink(fd);
	close(fd);
	rs_batch_init(&batch, 0);
	add_spans(&batch);
	printf("%-16s %-20s %10s %10s %8s %8s %8s\n", "exporter", "protocol", "spans/s", "per core",
	       "ns CPU", "bytes", "allocs");
	printf("%-16s %-20s %10s %10s %8s %8s %8s\n", "", "", "", "", "per span", "per span",
	       "per batch");
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		char to[128];

		if (strcmp(runs[i].exporter, "sentry"))
			snprintf(to, sizeof(to), "%s=http://127.0.0.1:%u", runs[i].exporter, port);
		else
			snprintf(to, sizeof(to), "sentry=http://key0@127.0.0.1:%u/1", port);
		ok &= measure(runs[i].label, to, runs[i].option, runs[i].value, &batch, batches);
	}
	ok &= full_queue(&batch);
	rs_batch_release(&batch);
	kill(sink, SIGKILL);
	waitpid(sink, NULL, 0);
	return ok ? 0 : 1;
}
