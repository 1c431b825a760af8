// SPDX-License-Identifier: Apache-2.0
/*
 * bench/spanevents — dd-trace-java's SpanEventsMapperBenchmark: one trace of one span with structured events and
 * links, into a new payload. (`make bench-spanevents`)
 *
 * The span is the one of its TraceMapperBenchmark; events are one small one, ten, or an exception with a stack trace of
 * 1.2 kB; links none or two. Timed: everything from the span in memory to the payload's bytes, with empty string
 * tables, JSON rendered and escaped where the format has no events (v0.4-json, v0.5). Beside it the numbers that the
 * benchmark's authors published for their mappers, before and after events stayed structured (no links, ns/op; their
 * machine is not ours, so look at what each format costs relative to the others).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "measure.h"
#include "spans.h"

#define ROUNDS	 40
#define CHUNK_NS 1000000

static const char *const formats[] = { "datadog-v0.4", "datadog-v0.4-json", "datadog-v0.5",
				       "datadog-v1" };
static const char *const kinds[] = { "small", "small x10", "exception" };
/* ns/op, before and after; no row for the native v0.4 form, which their mapper does not write. */
static const int published[4][3][2] = {
	{ { 0, 0 }, { 0, 0 }, { 0, 0 } },
	{ { 460, 874 }, { 499, 2629 }, { 509, 4270 } },
	{ { 1229, 1754 }, { 1320, 4686 }, { 1350, 6482 } },
	{ { 2686, 1069 }, { 17256, 1922 }, { 7387, 972 } },
};

static void stack_trace(char *out, size_t len)
{
	size_t n = (size_t)snprintf(out, len, "java.lang.IllegalStateException: order is closed\n");

	for (int i = 0; n < 1150; i++)
		n += (size_t)snprintf(
			out + n, len - n,
			"\tat com.example.shop.orders.OrderService.place(OrderService.java:%d)\n",
			100 + i);
}

static void make(struct rs_batch *b, int kind, uint32_t nlinks)
{
	static struct bench_maker m;
	struct rs_resource_spans *rs;
	struct rs_event *events;
	struct rs_link *links;
	struct rs_span *s;
	char text[2048];

	m = (struct bench_maker){ .b = b };
	rs_keys_init(&m.keys);
	rs = rs_batch_add_resource(b);
	bench_text(&m, "service.name", "service");
	rs->resource.attrs = bench_attrs(&m);
	s = rs_batch_add_span(b, rs_batch_add_scope(b, rs));
	s->trace_id[15] = 1;
	s->span_id[7] = 2;
	s->start_ns = 1700000000000000000u;
	s->end_ns = s->start_ns + 1500000;
	s->name = bench_str(&m, "operation");
	bench_text(&m, "operation.name", "operation");
	bench_text(&m, "resource.name", "benchmark");
	bench_text(&m, "span.type", "type");
	bench_int(&m, "_sampling_priority_v1", 1);
	bench_int(&m, "_dd.top_level", 1);
	bench_int(&m, "thread.id", 1);
	bench_text(&m, "thread.name", "main");
	bench_text(&m, "runtime-id", "fdd790b3-4aeb-4517-9b84-cafcc0129c48");
	bench_text(&m, "language", "jvm");
	bench_text(&m, "env", "prod");
	s->attrs = bench_attrs(&m);
	s->nevents = kind == 1 ? 10 : 1;
	events = bench_alloc(&m, s->nevents * sizeof(*events));
	for (uint32_t i = 0; i < s->nevents; i++) {
		events[i] = (struct rs_event){ .time_ns = s->start_ns + i };
		if (kind == 2) {
			stack_trace(text, sizeof(text));
			events[i].name = bench_str(&m, "exception");
			bench_text(&m, "exception.message", "order is closed");
			bench_text(&m, "exception.type", "java.lang.IllegalStateException");
			bench_text(&m, "exception.stacktrace", text);
		} else {
			events[i].name = bench_str(&m, "event");
			bench_text(&m, "message", "hello");
			bench_int(&m, "http.status_code", 200);
			bench_attr(&m, "ratio", (struct rs_val){ .type = RS_VAL_DOUBLE, .d = 0.5 });
			bench_attr(&m, "cached", (struct rs_val){ .type = RS_VAL_BOOL, .b = true });
		}
		events[i].attrs = bench_attrs(&m);
	}
	s->events = events;
	links = bench_alloc(&m, 2 * sizeof(*links));
	for (uint32_t i = 0; i < nlinks; i++) {
		links[i] =
			(struct rs_link){ .flags = !i,
					  .trace_state = i ? STR_NONE : bench_str(&m, "dd=s:1") };
		for (int k = 0; k < 16; k++)
			links[i].trace_id[k] = (uint8_t)(0x11 * (k + 1) + (int)i);
		links[i].span_id[0] = 0x12;
		bench_text(&m, "link.kind", "follows_from");
		links[i].attrs = bench_attrs(&m);
	}
	s->links = links;
	s->nlinks = nlinks;
}

static size_t encode_one(struct rs_encoder *e, const struct rs_batch *b)
{
	struct rs_encode run = { .batch = b };
	size_t len;

	if (rs_encode(e, &run) || run.spans != 1) {
		fputs("the span was not encoded\n", stderr);
		exit(1);
	}
	len = run.out.len;
	rs_payload_release(&run.out);
	return len;
}

struct cell {
	struct rs_encoder *e;
	const struct rs_batch *b;
	double ns; /* of the fastest chunk */
	size_t bytes;
	unsigned long allocs;
};

static void time_chunk(struct cell *c)
{
	unsigned long before;
	uint64_t start, end;
	unsigned calls = 0;

	for (int i = 0; i < 300; i++) /* the others have been here */
		c->bytes = encode_one(c->e, c->b);
	before = heap.calls;
	start = now();
	do {
		for (int i = 0; i < 16; i++)
			encode_one(c->e, c->b);
		calls += 16;
		end = now();
	} while (end - start < CHUNK_NS);
	c->allocs += heap.calls - before;
	if ((double)(end - start) / calls < c->ns)
		c->ns = (double)(end - start) / calls;
}

int main(void)
{
	struct rs_batch b[3][2];
	struct rs_bufpool pool;
	struct cell cells[4][3][2];

	if (rs_bufpool_init(&pool, 0))
		return 1;
	heap.counting = true;
	for (int k = 0; k < 3; k++) {
		for (uint32_t l = 0; l < 2; l++) {
			rs_batch_init(&b[k][l], 0);
			make(&b[k][l], k, 2 * l);
		}
	}
	for (int i = 0; i < 24; i++) {
		struct cell *c = &cells[0][0][0] + i;

		*c = (struct cell){ .b = &b[0][0] + i % 6, .ns = 1e18 };
		if (i % 6)
			c->e = c[-1].e;
		else if (rs_encoder_new(formats[i / 6], &pool, NULL, &c->e))
			return 1;
	}
	for (int i = 0; i < 24; i++) {
		for (int k = 0; k < 2000; k++)
			encode_one(cells[i / 6][i / 2 % 3][i % 2].e,
				   cells[i / 6][i / 2 % 3][i % 2].b);
	}
	/* Every cell in every round: what else the machine does hits all of them. */
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < 24; i++)
			time_chunk(&cells[i / 6][i / 2 % 3][i % 2]);
	}
	printf("%-18s %-10s %5s %8s %7s %7s   published ns/op\n", "format", "events", "links",
	       "ns/op", "bytes", "allocs");
	for (int f = 0; f < 4; f++) {
		for (int k = 0; k < 3; k++) {
			for (int l = 0; l < 2; l++) {
				const struct cell *c = &cells[f][k][l];

				printf("%-18s %-10s %5d %8.1f %7zu %7lu", formats[f], kinds[k],
				       2 * l, c->ns, c->bytes, c->allocs);
				if (!l && published[f][k][0])
					printf("   %d -> %d", published[f][k][0],
					       published[f][k][1]);
				puts("");
			}
		}
	}
	puts("published: dd-trace-java's mappers, events as ready JSON text -> structured events; no links");
	return 0;
}
