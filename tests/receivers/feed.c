// SPDX-License-Identifier: Apache-2.0
/*
 * feed — spans made up at a given rate, through the agent's exporters; what became of them as one JSON line on
 * standard error.
 *
 *	feed SPANS RATE FIRST [options of `ringspan replay`: --exporter …]
 *
 * A line "fed" says before that all spans were handed over.
 * Span number i (from FIRST on) has span id i and is named "GET /item/i"; four in a row are one trace, the
 * first of them its root. Every 50th has an event, every 70th a link and every 100th an error.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "export/exporters.h"
#include "export/spool.h"
#include "trace/build.h"

#define STEP_NS	  10000000ull
#define BATCH_MAX 512

struct feed {
	struct rs_loop loop;
	struct rs_exporters x;
	struct rs_batch batch;
	struct rs_loop_timer timer;
	uint64_t spans, rate, first;
	uint64_t made, began_ns, last_ns, stall_ns;
	int64_t wall;
};

static void put64(uint8_t *to, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		to[i] = (uint8_t)(v >> (56 - 8 * i));
}

static struct str text(struct rs_batch *b, const char *before, uint64_t n)
{
	char buf[64];
	int len = snprintf(buf, sizeof(buf), "%s%" PRIu64, before, n);

	return rs_arena_str(&b->arena, str_of(buf, (size_t)len));
}

static void add_link(struct rs_batch *b, struct rs_span *s)
{
	struct rs_link *l = rs_arena_alloc(&b->arena, sizeof(*l));

	if (!l)
		return;
	*l = (struct rs_link){ .flags = 0x101 };
	memset(l->trace_id, 0xab, sizeof(l->trace_id));
	memset(l->span_id, 0xcd, sizeof(l->span_id));
	s->links = l;
	s->nlinks = 1;
}

static void add_event(struct rs_batch *b, struct rs_span *s)
{
	struct rs_event *ev = rs_arena_alloc(&b->arena, sizeof(*ev));
	struct rs_attr *a = rs_arena_alloc(&b->arena, sizeof(*a));

	if (!ev || !a)
		return;
	*a = (struct rs_attr){ rs_key(RS_K_RINGSPAN_COUNT), { .type = RS_VAL_INT, .i = 3 } };
	*ev = (struct rs_event){ .time_ns = s->start_ns + 1000,
				 .name = rs_arena_str(&b->arena, STR("tcp.retransmit")) };
	ev->attrs = (struct rs_attrs){ .a = a, .n = 1 };
	s->events = ev;
	s->nevents = 1;
}

static bool add_span(struct feed *f, struct rs_scope_spans *ss, uint64_t i)
{
	struct rs_span *s = rs_batch_add_span(&f->batch, ss);
	struct rs_build build;
	uint64_t root = i - i % 4;

	if (!s)
		return false;
	put64(s->trace_id, 0x5249000000000001u);
	put64(s->trace_id + 8, root + 4);
	put64(s->span_id, i + 1);
	if (i != root && root >= f->first)
		put64(s->parent_id, root + 1);
	s->kind = i % 2 ? RS_KIND_CLIENT : RS_KIND_SERVER;
	s->flags = 0x101;
	s->end_ns = rs_clock_mono() + (uint64_t)f->wall;
	s->start_ns = s->end_ns - 1000000 - i % 1000;
	s->name = text(&f->batch, "GET /item/", i);
	rs_build_init(&build, s, &f->batch.arena);
	rs_build_str(&build, RS_K_HTTP_REQUEST_METHOD, STR("GET"));
	rs_build_str(&build, RS_K_URL_PATH, text(&f->batch, "/item/", i));
	rs_build_str(&build, RS_K_SERVER_ADDRESS, STR("127.0.0.1"));
	rs_build_int(&build, RS_K_SERVER_PORT, 8080);
	rs_build_int(&build, RS_K_HTTP_RESPONSE_STATUS_CODE, i % 100 ? 200 : 500);
	rs_build_finish(&build);
	if (i % 100 == 0) {
		s->status = RS_STATUS_ERROR;
		s->status_msg = rs_arena_str(&f->batch.arena, STR("it failed"));
	}
	if (i % 50 == 0)
		add_event(&f->batch, s);
	if (i % 70 == 0)
		add_link(&f->batch, s);
	return true;
}

static struct rs_scope_spans *new_batch(struct feed *f)
{
	struct rs_resource_spans *rs;
	struct rs_scope_spans *ss;
	struct rs_attr *a;

	rs_batch_reset(&f->batch);
	rs = rs_batch_add_resource(&f->batch);
	ss = rs ? rs_batch_add_scope(&f->batch, rs) : NULL;
	a = ss ? rs_arena_alloc(&f->batch.arena, sizeof(*a)) : NULL;
	if (!a)
		return NULL;
	*a = (struct rs_attr){
		rs_key(RS_K_SERVICE_NAME),
		{ .type = RS_VAL_STR, .len = 4, .str = "feed" RS_PAD16 RS_PAD16 RS_PAD16 RS_PAD16 }
	};
	rs->resource.attrs = (struct rs_attrs){ .a = a, .n = 1 };
	ss->scope.name = rs_arena_str(&f->batch.arena, STR("ringspan"));
	ss->scope.version = rs_arena_str(&f->batch.arena, STR("1"));
	return ss;
}

static void on_timer(void *arg)
{
	struct feed *f = arg;
	uint64_t now = rs_clock_mono(), due = (now - f->began_ns) * f->rate / 1000000000u;

	if (f->last_ns && now - f->last_ns > f->stall_ns)
		f->stall_ns = now - f->last_ns;
	f->last_ns = now;
	if (due > f->spans)
		due = f->spans;
	while (f->made < due) {
		struct rs_scope_spans *ss = new_batch(f);

		while (ss && f->batch.nspans < BATCH_MAX && f->made < due &&
		       add_span(f, ss, f->first + f->made))
			f->made++;
		rs_exporters_batch(&f->x, &f->batch);
	}
	if (f->made == f->spans) {
		fputs("fed\n", stderr);
		rs_loop_stop(&f->loop);
	}
}

static void on_signal(void *arg, int signo, bool sent)
{
	(void)signo;
	(void)sent;
	rs_loop_stop(&((struct feed *)arg)->loop);
}

static void json_text(const char *s)
{
	fputc('"', stderr);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', stderr);
		fputc(*s, stderr);
	}
	fputc('"', stderr);
}

static void report(const struct feed *f)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	fprintf(stderr,
		"{\"produced\":%" PRIu64 ",\"stall_ms\":%" PRIu64 ",\"rss_kb\":%ld,\"exporters\":[",
		f->made, f->stall_ns / 1000000, ru.ru_maxrss);
	for (int i = 0; i < f->x.n; i++) {
		const struct rs_exporter *e = &f->x.e[i];

		fprintf(stderr,
			"%s{\"name\":\"%s\",\"in\":%" PRIu64 ",\"sent\":%" PRIu64
			",\"held\":%" PRIu64 ",\"retried\":%" PRIu64 ",\"uncertain\":%" PRIu64
			",\"requests\":%" PRIu64 ",\"spool_bytes\":%" PRIu64 ",\"protocol\":",
			i ? "," : "", e->ops->name, e->spans_in, e->sent, rs_exporter_held(e),
			e->retried, e->uncertain, e->requests, rs_spool_bytes(e->spool));
		json_text(e->protocol);
		fprintf(stderr, ",\"target\":");
		json_text(e->target);
		fprintf(stderr, ",\"error\":");
		json_text(e->last_error);
		fprintf(stderr, ",\"lost\":{");
		for (int k = 0; k < RS_LOSS_COUNT; k++)
			fprintf(stderr, "%s\"%s\":%" PRIu64, k ? "," : "",
				rs_loss_name((enum rs_loss)k), e->lost[k]);
		fprintf(stderr, "}}");
	}
	fprintf(stderr, "]}\n");
}

int main(int argc, char **argv)
{
	static struct feed f;
	static struct rs_config cfg;
	char err[512];
	int rc;

	if (argc < 4) {
		fprintf(stderr, "usage: feed SPANS RATE FIRST [options]\n");
		return 2;
	}
	f.spans = strtoull(argv[1], NULL, 10);
	f.rate = strtoull(argv[2], NULL, 10);
	f.first = strtoull(argv[3], NULL, 10);
	f.wall = rs_clock_wall_offset();
	f.timer.w.fd = -1;
	rs_config_init(&cfg, RS_CMD_replay);
	if (rs_config_load(&cfg, argc - 4, argv + 4)) {
		fprintf(stderr, "feed: %s\n", cfg.err);
		return 2;
	}
	rs_batch_init(&f.batch, 0);
	rc = rs_loop_init(&f.loop);
	if (!rc)
		rc = rs_loop_signals(&f.loop, on_signal, &f);
	snprintf(err, sizeof(err), "loop: %s", strerror(-rc));
	if (!rc)
		rc = rs_exporters_open(&f.x, &f.loop, &cfg, err, sizeof(err));
	f.began_ns = rs_clock_mono();
	if (!rc)
		rc = rs_loop_timer_start(&f.loop, &f.timer, STEP_NS, STEP_NS, on_timer, &f);
	if (rc) {
		fprintf(stderr, "feed: %s\n", err);
		return 2;
	}
	if (f.spans)
		rs_loop_run(&f.loop);
	rs_loop_timer_stop(&f.loop, &f.timer);
	rs_exporters_drain(&f.x, cfg.drain_time);
	rs_exporters_end(&f.x);
	report(&f);
	rs_exporters_close(&f.x);
	rs_batch_release(&f.batch);
	rs_loop_release(&f.loop);
	rs_config_release(&cfg);
	return 0;
}
