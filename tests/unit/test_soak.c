// SPDX-License-Identifier: Apache-2.0
/*
 * A long run of everything at random, over small tables: none grows beyond its bound, and when all connections have
 * ended nothing is left in any. Times, ids and orders are made up without regard for what may happen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline.h"
#include "unit.h"

enum {
	CONNS = 48,
	REQUESTS = 40,
	PROCS = 12,
	THREADS = 32,
	STEPS = 150000,
};

struct soak {
	struct rs_pipeline pl;
	uint64_t seed, now, spans, named;
	uint64_t off[256][2];
	uint32_t seq[256][2];
};

static uint32_t rnd(struct soak *s, uint32_t n)
{
	s->seed = s->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(s->seed >> 33) % n;
}

/* What a process is called: its number, and something that changes with each program. */
static void name(struct soak *s, char comm[16], uint32_t tgid)
{
	snprintf(comm, 16, "%u-%0*u", tgid, 1 + (int)rnd(s, 10), 0);
}

/* A batch speaks of each process as it was, whatever has become of it since. */
static void on_flush(void *arg, const struct rs_batch *b)
{
	struct soak *s = arg;

	for (const struct rs_resource_spans *rs = b->first; rs; rs = rs->next) {
		const struct rs_attrs *as = &rs->resource.attrs;
		char pid[16] = "", called[16] = "";

		for (uint32_t i = 0; i < as->n; i++) {
			const struct rs_val *v = &as->a[i].val;

			if (as->a[i].key == rs_key(RS_K_PROCESS_PID))
				snprintf(pid, sizeof(pid), "%lld-", (long long)v->i);
			if (as->a[i].key == rs_key(RS_K_PROCESS_EXECUTABLE_NAME))
				snprintf(called, sizeof(called), "%.*s", (int)v->len, v->str);
		}
		assert_true(*pid);
		if (*called) { /* else it was never told */
			assert_memory_equal(called, pid, strlen(pid));
			s->named++;
		}
	}
	s->spans += b->nspans;
}

static struct rs_ev_hdr header(struct soak *s, enum rs_ev_type type, size_t len)
{
	return (struct rs_ev_hdr){ .type = (uint16_t)type, .len = (uint32_t)len, .ts_ns = s->now };
}

static void send_open(struct soak *s, uint64_t conn)
{
	struct rs_ev_open ev = { .conn = conn, .tgid = 1 + rnd(s, 20) };

	ev.h = header(s, RS_EV_OPEN, sizeof(ev));
	name(s, ev.comm, ev.tgid);
	if (rnd(s, 8) == 0)
		ev.h.flags = RS_EVF_PRESENT;
	ev.tid = 100 + rnd(s, 60);
	ev.family = rnd(s, 3) ? RS_FAMILY_INET : RS_FAMILY_UNIX;
	ev.l4 = ev.family == RS_FAMILY_INET ? RS_L4_TCP : RS_L4_UNKNOWN;
	ev.role = (uint8_t)rnd(s, 3);
	ev.laddr[0] = ev.raddr[0] = 127;
	ev.oseq = rnd(s, 3);
	ev.peer_conn = rnd(s, 3) ? 0 : rnd(s, 256);
	rs_pipeline_event(&s->pl, &ev.h);
}

static size_t text_of(struct soak *s, char *to, size_t size)
{
	static const char *const texts[] = {
		"GET /a HTTP/1.1\r\nHost: x\r\n\r\n",
		NULL, /* made up below */
		"POST /c HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
		"0\r\n\r\n",
		"GET /a HTTP/1.1\r\nHo",
		"\x16\x03\x01",
	};
	uint32_t i = rnd(s, sizeof(texts) / sizeof(texts[0]) + 6);
	int n;

	if (i >= sizeof(texts) / sizeof(texts[0]))
		i %= 4;
	if (i == 1)
		n = snprintf(to, size,
			     "GET /b HTTP/1.1\r\nHost: x\r\ntraceparent: 00-%032x-%016x-01\r\n\r\n",
			     1 + rnd(s, 6), 1 + rnd(s, 9));
	else
		n = snprintf(to, size, "%s", texts[i]);
	return (size_t)n;
}

static void send_data(struct soak *s, uint64_t conn)
{
	union {
		struct rs_ev_data ev;
		char bytes[sizeof(struct rs_ev_data) + 256];
	} u = { 0 };
	unsigned dir = rnd(s, 2), n = (unsigned)text_of(s, (char *)u.ev.data, 256);

	u.ev.h = header(s, RS_EV_DATA, sizeof(u.ev) + n);
	u.ev.conn = conn;
	u.ev.dir = (uint8_t)dir;
	u.ev.cap = n;
	u.ev.len = n + (rnd(s, 30) ? 0 : rnd(s, 100));
	if (rnd(s, 50) == 0)
		s->off[conn][dir] += rnd(s, 1000); /* lost */
	u.ev.off = s->off[conn][dir];
	u.ev.seq = rnd(s, 4) ? 0 : 1 + rnd(s, 10);
	u.ev.tgid = 1 + rnd(s, 20);
	u.ev.tid = 100 + rnd(s, 60);
	u.ev.task = rnd(s, 3) ? 0 : 1 + rnd(s, 50);
	s->off[conn][dir] += u.ev.len;
	rs_pipeline_ahead(&s->pl, &u.ev.h);
	rs_pipeline_event(&s->pl, &u.ev.h);
}

static void send_other(struct soak *s, uint64_t conn)
{
	struct rs_ev_close close = { .conn = conn, .how = rnd(s, 3) };
	struct rs_ev_fact fact = { .conn = conn, .fact = 1 + rnd(s, 9), .value = 100 + rnd(s, 60) };
	struct rs_ev_proc proc = { .tgid = 1 + rnd(s, 20), .event = 1 + rnd(s, 5) };
	struct rs_ev_context ctx = { .conn = conn, .kind = (uint8_t)rnd(s, 3), .len = 100 };
	struct rs_ev_task task = { .conn = conn,
				   .task = 1 + rnd(s, 50),
				   .parent = 1 + rnd(s, 50),
				   .tgid = 1 + rnd(s, 20),
				   .kind = 1 + rnd(s, 3) };

	close.h = header(s, RS_EV_CLOSE, sizeof(close));
	fact.h = header(s, RS_EV_FACT, sizeof(fact));
	proc.h = header(s, RS_EV_PROC, sizeof(proc));
	name(s, proc.comm, proc.tgid);
	ctx.h = header(s, RS_EV_CONTEXT, sizeof(ctx));
	task.h = header(s, RS_EV_TASK, sizeof(task));
	ctx.trace_id[0] = (uint8_t)(1 + rnd(s, 5));
	ctx.span_id[0] = (uint8_t)(1 + rnd(s, 5));
	ctx.off = s->off[conn][ctx.kind != RS_CONTEXT_RECEIVED];
	switch (rnd(s, 8)) {
	case 0:
		rs_pipeline_event(&s->pl, &close.h);
		if (close.how == RS_CLOSE_ALL)
			s->off[conn][0] = s->off[conn][1] = 0;
		break;
	case 1:
	case 2:
		rs_pipeline_ahead(&s->pl, &fact.h);
		rs_pipeline_event(&s->pl, &fact.h);
		break;
	case 3:
		if (rnd(s, 4) == 0)
			rs_pipeline_event(&s->pl, &proc.h);
		break;
	case 4:
	case 5:
		rs_pipeline_event(&s->pl, &ctx.h);
		break;
	default:
		rs_pipeline_event(&s->pl, &task.h);
		break;
	}
}

static void bounded(const struct rs_pipeline *pl)
{
	const struct rs_trace *t = &pl->trace;

	assert_true(pl->conns.pool.in_use <= CONNS);
	assert_true(pl->pair.pool.in_use <= REQUESTS);
	assert_true(pl->procs.pool.in_use <= PROCS);
	assert_true(pl->held_pool.in_use <= REQUESTS / 4);
	assert_true(t->threads.pool.in_use <= THREADS);
	assert_true(t->threads.asks.in_use <= RS_THREAD_ASKS);
	assert_true(t->roots.in_use <= REQUESTS);
	assert_true(t->joins.by_key.count <= pl->pair.pool.in_use);
	assert_true(t->by_wire.count <= pl->pair.pool.in_use);
	assert_true(t->connects.pool.in_use <= RS_CONNECTS);
	assert_int_equal(t->connects.pool.in_use, t->connects.by_conn.count);
	assert_int_equal(t->threads.pool.in_use, t->threads.by_id.count);
}

/* Whenever somebody asks, what entered a stage has left it, or is there. */
static void balanced(struct rs_pipeline *pl)
{
	static const char *const stages[] = { "conn", "stream", "proto", "pair", "trace", "tls" };

	rs_pipeline_gauges(pl);
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		uint64_t in = 0, gone = 0;

		for (int c = 0; c < RS_C_COUNT; c++) {
			if (strcmp(rs_counter_info[c].stage, stages[i]) ||
			    rs_counter_info[c].kind == RS_CK_INFO)
				continue;
			*(rs_counter_info[c].kind == RS_CK_IN ? &in : &gone) += pl->n.v[c];
		}
		if (in != gone)
			fail_msg("%s: in %llu, out or there %llu", stages[i],
				 (unsigned long long)in, (unsigned long long)gone);
	}
}

static void test_soak(void **state)
{
	const struct rs_pipeline_opts opts = { .max_conns = CONNS,
					       .max_requests = REQUESTS,
					       .max_procs = PROCS,
					       .max_threads = THREADS,
					       .seed = 7,
					       .request_timeout_ns = 2000000000ull };
	struct soak *s = calloc(1, sizeof(*s));

	(void)state;
	assert_non_null(s);
	s->seed = 42;
	assert_int_equal(rs_pipeline_init(&s->pl, &opts), 0);
	s->pl.flush = on_flush;
	s->pl.arg = s;
	for (int join = RS_JOIN_NODE; join <= RS_JOIN_CLUSTER; join++) {
		s->pl.trace.join = (enum rs_join_mode)join;
		for (int i = 0; i < STEPS; i++) {
			uint64_t conn = 1 + rnd(s, 200);

			s->now += 1000 * rnd(s, 1000);
			switch (rnd(s, 6)) {
			case 0:
				send_open(s, conn);
				break;
			case 1:
				send_other(s, conn);
				break;
			default:
				send_data(s, conn);
				break;
			}
			if (rnd(s, 100) == 0)
				rs_pipeline_tick(&s->pl, s->now);
			bounded(&s->pl);
			if (rnd(s, 100) == 0)
				balanced(&s->pl);
		}
	}
	rs_pipeline_finish(&s->pl);
	bounded(&s->pl);
	balanced(&s->pl);
	assert_true(s->spans > STEPS / 20);
	assert_true(s->named > s->spans / 100);
	assert_int_equal(s->pl.conns.pool.in_use, 0);
	assert_int_equal(s->pl.pair.pool.in_use, 0);
	assert_int_equal(s->pl.held_pool.in_use, 0);
	assert_int_equal(s->pl.trace.roots.in_use, 0);
	assert_int_equal(s->pl.trace.joins.by_key.count, 0);
	assert_int_equal(s->pl.trace.by_wire.count, 0);
	assert_int_equal(s->pl.trace.messages.in_use, 0);
	rs_pipeline_release(&s->pl);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_soak),
	};

	return cmocka_run_group_tests_name("soak", tests, NULL, NULL);
}
