// SPDX-License-Identifier: Apache-2.0
/* Threads, roots, joins and limits, each alone; together they are in tests/golden/trace. */
#include <stdlib.h>

#include "trace/join.h"
#include "trace/limits.h"
#include "trace/messages.h"
#include "trace/root.h"
#include "trace/thread.h"
#include "unit.h"

static struct rs_open *open_new(void)
{
	struct rs_open *o = calloc(1, sizeof(*o));

	assert_non_null(o);
	o->x.request_done = true;
	rs_list_init(&o->of_thread);
	rs_list_init(&o->borrowers);
	return o;
}

static struct rs_open *certain(const struct rs_thread *th)
{
	enum rs_sure sure;
	struct rs_open *o = rs_thread_works(th, th->moved, &sure);

	return sure == RS_SURE_NOT ? NULL : o;
}

static void test_last_active(void **state)
{
	enum {
		N = 200
	};
	struct rs_counters n = { 0 };
	struct rs_threads ts;
	struct rs_open *o[N];
	struct rs_thread *th;

	(void)state;
	rs_threads_init(&ts, 4, &n);
	th = rs_thread_get(&ts, 1, 10);
	assert_null(rs_thread_last(th));
	for (int i = 0; i < N; i++) {
		o[i] = open_new();
		rs_thread_at(th, o[i]);
		assert_ptr_equal(rs_thread_last(th), o[i]);
		assert_int_equal(th->ndark, i);
	}
	/* They end in an order that has nothing to do with the one they came in. */
	for (int i = 0; i < N; i++) {
		struct rs_open *end = o[i * 77 % N];

		assert_non_null(end->thread);
		rs_thread_leave(end);
		assert_null(end->thread);
	}
	assert_null(rs_thread_last(th));
	assert_null(th->at);
	assert_int_equal(th->ndark, 0);
	for (int i = 0; i < N; i++)
		free(o[i]);
	rs_threads_release(&ts);
}

static void test_dark(void **state)
{
	struct rs_counters n = { 0 };
	struct rs_open *a = open_new(), *b = open_new();
	struct rs_threads ts;
	struct rs_thread *th, *other;

	(void)state;
	rs_threads_init(&ts, 4, &n);
	th = rs_thread_get(&ts, 1, 10);
	rs_thread_at(th, a);
	assert_ptr_equal(certain(th), a);
	a->waits = 1; /* a call of a's is under way: that is what it waits for */
	rs_thread_at(th, b);
	assert_ptr_equal(certain(th), b);
	a->waits = 0;
	rs_thread_update(a);
	assert_null(certain(th));
	a->x.has_response = true;
	rs_thread_update(a);
	assert_ptr_equal(certain(th), b);
	a->x.has_response = false;
	rs_thread_update(a);
	assert_null(certain(th));
	/* Heard of elsewhere: it is there now. */
	other = rs_thread_get(&ts, 1, 11);
	rs_thread_at(other, a);
	assert_ptr_equal(certain(th), b);
	assert_ptr_equal(certain(other), a);
	rs_thread_leave(b);
	assert_null(certain(th));
	rs_thread_leave(a);
	rs_threads_release(&ts);
	free(a);
	free(b);
}

/* Who reads requests that others answer is not believed. */
static void test_crews(void **state)
{
	struct rs_counters n = { 0 };
	struct rs_open *a = open_new();
	struct rs_thread *t1, *t2;
	struct rs_threads ts;

	(void)state;
	rs_threads_init(&ts, 4, &n);
	t1 = rs_thread_get(&ts, 1, 10);
	rs_thread_at(t1, a);
	t2 = rs_thread_get(&ts, 1, 11);
	assert_ptr_equal(t1->crew, t2->crew);
	rs_thread_answered(t2, false);
	for (int i = 0; i < RS_CREW_WANDERS; i++) {
		assert_true(t1->crew->wanders);
		rs_thread_answered(t1, true);
	}
	assert_false(t1->crew->wanders);
	/* Its threads are forgotten, and then it is. */
	for (uint32_t tgid = 2; tgid < 6; tgid++)
		assert_int_equal(rs_thread_get(&ts, tgid, tgid)->crew->tgid, tgid);
	assert_int_equal(ts.crews.in_use, 4);
	assert_null(a->thread);
	rs_threads_release(&ts);
	free(a);
}

static enum rs_sure sure(const struct rs_thread *th, struct rs_moment now)
{
	enum rs_sure s;

	assert_ptr_equal(rs_thread_works(th, now, &s), th->at);
	return s;
}

static void test_sure(void **state)
{
	struct rs_moment then = { 1000, 255 }, soon = { 2000, 255 }, slept = { 2000, 0 },
			 late = { 1000 + RS_AWAKE_NS, 255 };
	struct rs_counters n = { 0 };
	struct rs_open *a = open_new(), *b = open_new();
	struct rs_threads ts;
	struct rs_thread *th;

	(void)state;
	rs_threads_init(&ts, 4, &n);
	th = rs_thread_get(&ts, 1, 10);
	a->x.has_response = true;
	rs_thread_at(th, a);
	rs_thread_at(th, b);
	th->moved = then;
	assert_int_equal(th->nquiet, 1);
	assert_int_equal(sure(th, soon), RS_SURE);
	assert_int_equal(sure(th, slept), RS_SURE_NOT);
	assert_int_equal(sure(th, late), RS_SURE_NOT);
	assert_int_equal(sure(th, (struct rs_moment){ 0 }), RS_SURE_NOT);
	b->x.has_response = true;
	assert_int_equal(sure(th, soon), RS_SURE_NOT);
	a->waits = 1;
	rs_thread_update(a);
	assert_int_equal(th->nquiet, 0);
	assert_int_equal(sure(th, slept), RS_SURE);
	assert_int_equal(sure(th, soon), RS_SURE_DIRECT);
	b->waits = 1;
	assert_int_equal(sure(th, soon), RS_SURE);
	th->unsure = true;
	assert_int_equal(sure(th, soon), RS_SURE_NOT);
	rs_thread_leave(a);
	rs_thread_leave(b);
	rs_threads_release(&ts);
	free(a);
	free(b);
}

static void test_own_peers(void **state)
{
	struct rs_thread th = { 0 };
	int doubts = 0;

	(void)state;
	assert_false(rs_thread_own(&th, 7, false));
	rs_thread_owns(&th, 7);
	rs_thread_owns(&th, 7);
	assert_true(rs_thread_own(&th, 7, false));
	assert_false(rs_thread_own(&th, 8, false));
	for (int i = 2; i < RS_THREAD_OWN_CALLS; i++)
		rs_thread_own(&th, 8, false);
	assert_false(rs_thread_own(&th, 7, false));
	/* More than are kept apart: all are meant. */
	for (uint32_t i = 0; i < 2 * RS_THREAD_OWN; i++)
		rs_thread_owns(&th, 100 + i);
	assert_true(rs_thread_own(&th, 7, false));
	th = (struct rs_thread){ 0 };
	for (int i = 0; i < 100; i++) /* now and then is nothing */
		assert_false(rs_thread_own(&th, 7, i % (RS_THREAD_STIR + 2) == 0));
	while (!rs_thread_own(&th, 7, true))
		doubts++;
	assert_true(doubts > 0 && doubts < 4);
}

static void test_thread_ids(void **state)
{
	struct rs_counters n = { 0 };
	struct rs_open *a = open_new();
	struct rs_threads ts;

	(void)state;
	rs_threads_init(&ts, 2, &n);
	rs_thread_at(rs_thread_get(&ts, 1, 10), a);
	assert_null(rs_thread_find(&ts, 2, 10)); /* another process's */
	assert_null(rs_thread_get(&ts, 2, 10)->at);
	assert_null(a->thread);
	rs_thread_at(rs_thread_get(&ts, 2, 10), a);
	rs_thread_get(&ts, 2, 11);
	rs_thread_get(&ts, 2, 12);
	assert_int_equal(n.v[RS_C_TRACE_THREADS_EVICTED], 1);
	assert_null(a->thread);
	rs_threads_release(&ts);
	free(a);
}

static void test_roots(void **state)
{
	struct rs_pool pool;
	struct rs_root *a, *b, *c;

	(void)state;
	rs_pool_init(&pool, sizeof(struct rs_root), 3);
	a = rs_root_new(&pool);
	b = rs_root_new(&pool);
	c = rs_root_new(&pool);
	assert_null(rs_root_new(&pool));
	assert_true(rs_root_merge(a, b));
	assert_true(rs_root_merge(b, c));
	assert_ptr_equal(rs_root_of(a), c);
	assert_true(rs_root_merge(c, a)); /* the same already */
	rs_root_put(&pool, c);
	rs_root_put(&pool, b);
	assert_int_equal(pool.in_use, 3); /* a leads to them */
	rs_root_put(&pool, a);
	assert_int_equal(pool.in_use, 0);

	a = rs_root_new(&pool);
	b = rs_root_new(&pool);
	a->emitted = true;
	assert_false(rs_root_merge(a, b));
	assert_true(rs_root_merge(b, a));
	rs_root_put(&pool, a);
	rs_root_put(&pool, b);
	rs_root_put(&pool, NULL);
	assert_int_equal(pool.in_use, 0);
	rs_pool_release(&pool);
}

static void test_joins(void **state)
{
	struct rs_msg m = { .type = RS_MSG_REQUEST, .seq = 7, .nfields = 2 };
	struct rs_open *c = open_new(), *s = open_new(), *s2 = open_new();
	uint8_t t1[16], t2[16], p1[8], p2[8];
	static struct rs_conn conn;
	struct rs_joins j;
	uint64_t key;

	(void)state;
	m.fields[0] = (struct rs_field){ RS_F_PROTO, STR("GET") };
	m.fields[1] = (struct rs_field){ RS_F_PROTO + 1, STR("/a/long/enough/target") };
	key = rs_join_key(&m, &conn);
	assert_true(key > 1 && !(key & 1));
	m.fields[1].value = STR("/a/long/enough/tarGet");
	assert_int_not_equal(rs_join_key(&m, &conn), key);
	m.fields[1].value = STR("/a/long/enough/target");
	m.seq = 8;
	assert_int_not_equal(rs_join_key(&m, &conn), key);
	m.seq = 0;
	assert_int_equal(rs_join_key(&m, &conn), 0);
	m.seq = 7;
	m.flags = RS_MSGF_CUT;
	assert_int_equal(rs_join_key(&m, &conn), 0);

	{
		/* A Unix socket's ends, once the kernel has told the server of its other end. */
		static struct rs_conn client = { .info = { .id = 5, .family = RS_FAMILY_UNIX } };
		static struct rs_conn server = { .info = { .id = 6, .family = RS_FAMILY_UNIX } };
		uint64_t unix_key;

		m.flags = 0;
		m.dir = RS_DIR_OUT;
		unix_key = rs_join_key(&m, &client);
		assert_int_not_equal(unix_key, 0);
		assert_int_not_equal(unix_key, key);
		m.dir = RS_DIR_IN;
		assert_int_equal(rs_join_key(&m, &server), 0);
		server.peer = 5;
		assert_int_equal(rs_join_key(&m, &server), unix_key);
		assert_int_equal(rs_join_far_key(unix_key, &m, &server), 0);
		m.seq = 8;
		assert_int_not_equal(rs_join_key(&m, &server), unix_key);
		m.seq = 7;
		server.present = true;
		assert_int_equal(rs_join_key(&m, &server), 0);
	}

	{
		/* Streams in TLS: where the records begin does not matter. */
		static struct rs_conn tls = { .info = { .tls = true }, .oseq = 70 };
		uint64_t of_one;

		m = (struct rs_msg){ .type = RS_MSG_REQUEST, .id = 1 };
		of_one = rs_join_key(&m, &tls);
		assert_int_not_equal(of_one, 0);
		m.seq = 7;
		assert_int_equal(rs_join_key(&m, &tls), of_one);
		assert_int_equal(rs_join_far_key(of_one, &m, &tls), 0);
		m.id = 3;
		assert_int_not_equal(rs_join_key(&m, &tls), of_one);
		tls.present = true;
		assert_int_equal(rs_join_key(&m, &tls), 0);
		tls = (struct rs_conn){ .info = { .tls = true } };
		assert_int_equal(rs_join_key(&m, &tls), 0);
	}

	rs_join_ids(key, t1, p1);
	rs_join_ids(key, t2, p2);
	assert_memory_equal(t1, t2, 16);
	assert_memory_equal(p1, p2, 8);
	rs_join_ids(key + 2, t2, p2);
	assert_memory_not_equal(t1, t2, 16);
	assert_memory_not_equal(p1, p2, 8);

	{
		/* Both ends, from where they stand: the answers so far end at the same number. */
		static struct rs_conn client = { .role = RS_ROLE_CLIENT,
						 .oseq = 1000,
						 .next_off = { [RS_DIR_IN] = 50 } };
		static struct rs_conn server = { .role = RS_ROLE_SERVER,
						 .oseq = 1040,
						 .next_off = { [RS_DIR_OUT] = 10 } };
		uint64_t far = rs_join_far_key(key, &m, &client);

		assert_int_equal(rs_join_far_key(key, &m, &server), far);
		server.next_off[RS_DIR_OUT]++;
		assert_int_not_equal(rs_join_far_key(key, &m, &server), far);
		client.oseq = 0;
		assert_int_equal(rs_join_far_key(key, &m, &client), key);
		assert_int_equal(rs_join_far_key(0, &m, &server), 0);
	}
	rs_joins_init(&j, 16);
	c->x.role = RS_ROLE_CLIENT;
	s->x.role = s2->x.role = RS_ROLE_SERVER;
	c->join_key = s->join_key = s2->join_key = key;
	assert_null(rs_join_meet(&j, s));
	assert_null(rs_join_meet(&j, s2)); /* the same again: the newer one counts */
	rs_join_forget(&j, s);		   /* and is not taken out with the older */
	assert_ptr_equal(rs_join_meet(&j, c), s2);
	s->join_key = key;
	assert_null(rs_join_meet(&j, s));
	rs_join_forget(&j, s);
	c->join_key = key;
	assert_null(rs_join_meet(&j, c));
	rs_joins_release(&j);
	free(c);
	free(s);
	free(s2);
}

static void test_cut(void **state)
{
	static const struct {
		const char *text;
		uint32_t max;
		size_t want;
	} cases[] = {
		{ "abc", 3, 3 },
		{ "abc", 2, 2 },
		{ "abc", 9, 3 },
		{ "\xc3\xa9\xc3\xa9", 1, 2 },
		{ "\xe6\x97\xa5x", 1, 3 },
		{ "\xf0\x9f\x98\x80x", 1, 4 },
		{ "\xf0\x9f\x98\x80x", 2, 5 },
		{ "\xf0\x9f", 1, 2 },
		{ "\xff\xff\xff", 2, 2 },
		{ "\xc3z", 1, 1 },
		{ "", 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(rs_limits_cut(cases[i].text, strlen(cases[i].text), cases[i].max),
				 cases[i].want);
}

static void test_limits(void **state)
{
	struct rs_attr attrs[3] = {
		{ .val = { .type = RS_VAL_STR, .len = 4, .str = "\xc3\xa9zz" } }
	};
	struct rs_event events[2] = { { .attrs = { attrs, 3, 1 } }, { 0 } };
	struct rs_link links[2] = { { .attrs = { attrs, 1, 0 } } };
	struct rs_span s = {
		.events = events, .nevents = 2, .links = links, .nlinks = 2, .dropped_links = 1
	};
	struct rs_val many[2] = { { .type = RS_VAL_STR, .len = 3, .str = "abc" },
				  { .type = RS_VAL_INT, .i = 4 } };
	struct rs_build *b = calloc(1, sizeof(*b));

	(void)state;
	assert_non_null(b);
	b->span = &s;
	b->n = 5;
	b->attrs[1].val = (struct rs_val){ .type = RS_VAL_ARRAY, .len = 2, .arr = many };
	rs_limits_apply(&(struct rs_limits){ 3, 1, 1, 2, 0, 2 }, b);
	assert_int_equal(b->n, 3);
	assert_int_equal(b->dropped, 2);
	assert_int_equal(many[0].len, 2);
	assert_int_equal(many[1].i, 4);
	assert_int_equal(s.nevents, 1);
	assert_int_equal(s.dropped_events, 1);
	assert_int_equal(s.nlinks, 1);
	assert_int_equal(s.dropped_links, 2);
	assert_int_equal(events[0].attrs.n, 2);
	assert_int_equal(events[0].attrs.dropped, 2);
	assert_int_equal(attrs[0].val.len, 3);
	assert_int_equal(links[0].attrs.n, 0);
	assert_int_equal(links[0].attrs.dropped, 1);
	free(b);
}

/* A batch that was consumed: a link for each message, within the limit; nothing is left behind. */
static void test_messages(void **state)
{
	static struct rs_trace t;
	struct rs_counters n = { 0 };
	struct rs_open *o = open_new();
	struct rs_wire_ctx sender = { .flags = 1 };

	(void)state;
	rs_trace_init(&t, 1, 4, 4, NULL, &n);
	rs_trace_link(o, RS_LINK_CONNECTION, sender.trace_id, sender.span_id, false);
	assert_int_equal(rs_messages_count(o), 1);
	for (int i = 0; i < 40; i++) {
		sender.span_id[7] = (uint8_t)i;
		rs_trace_link_message(&t, o, &sender);
	}
	assert_int_equal(rs_messages_count(o), 41);
	assert_int_equal(rs_messages_at(o, 0)->type, RS_LINK_CONNECTION);
	for (uint32_t i = 0; i < 40; i++) {
		const struct rs_open_link *l = rs_messages_at(o, 1 + i);

		assert_int_equal(l->type, RS_LINK_MESSAGE);
		assert_int_equal(l->span_id[7], i);
		assert_true(l->remote);
	}
	assert_int_equal(t.messages.in_use, 3);
	t.limits.links = 50;
	for (int i = 0; i < 400; i++)
		rs_trace_link_message(&t, o, &sender);
	assert_int_equal(rs_messages_count(o), 50);
	assert_int_equal(o->dropped_links, 391);
	rs_messages_forget(&t, o);
	assert_int_equal(t.messages.in_use, 0);
	assert_int_equal(rs_messages_count(o), 1);
	/* No memory for one more chunk (there are as many as requests): counted. */
	t.limits.links = 1000;
	for (int i = 0; i < 100; i++)
		rs_trace_link_message(&t, o, &sender);
	assert_int_equal(rs_messages_count(o), 1 + 4 * RS_MESSAGE_CHUNK);
	assert_int_equal(o->dropped_links, 391 + 40);
	rs_messages_forget(&t, o);
	rs_trace_release(&t);
	free(o);
}

/* Tasks beside threads: what is lent, what is asked for others, and that nothing is left behind. */
static void test_tasks(void **state)
{
	struct rs_counters n = { 0 };
	struct rs_open *a = open_new(), *b = open_new();
	struct rs_threads ts;
	struct rs_thread *th;

	(void)state;
	rs_threads_init(&ts, 4, &n);
	/* Numbers of tasks are each process's own, and no thread's. */
	rs_thread_at(rs_thread_get(&ts, 1, rs_thread_id(10, 7)), a);
	assert_null(rs_thread_find(&ts, 2, rs_thread_id(10, 7)));
	assert_null(rs_thread_find(&ts, 1, 7));
	/* Lent on, to those it makes and those they make; of two open requests, none. */
	rs_thread_spawn(&ts, 1, 7, 8, 0);
	rs_thread_spawn(&ts, 1, 8, 9, 0);
	assert_ptr_equal(certain(rs_thread_find(&ts, 1, rs_thread_id(0, 9))), a);
	rs_thread_at(rs_thread_find(&ts, 1, rs_thread_id(0, 7)), b);
	rs_thread_spawn(&ts, 1, 7, 10, 0);
	th = rs_thread_find(&ts, 1, rs_thread_id(0, 10));
	assert_true(!th || !certain(th));
	/* The request ends: those made for it are forgotten. */
	rs_thread_leave(a);
	rs_thread_reclaim(&ts, a);
	assert_null(rs_thread_find(&ts, 1, rs_thread_id(0, 8)));
	assert_null(rs_thread_find(&ts, 1, rs_thread_id(0, 9)));
	/* More tasks than there is room for: a borrower that gives way is nobody's borrower. */
	rs_thread_leave(b);
	rs_thread_at(rs_thread_get(&ts, 1, rs_thread_id(0, 7)), a);
	for (uint64_t task = 20; task < 40; task++) {
		rs_thread_get(&ts, 1, rs_thread_id(0, 7));
		rs_thread_spawn(&ts, 1, 7, task, 0);
	}
	assert_true(ts.pool.in_use <= 4);
	rs_thread_leave(a);
	rs_thread_reclaim(&ts, a);
	assert_true(rs_list_empty(&a->borrowers));
	/* What a task will write for others, by number; those before it were not sent. */
	for (uint32_t i = 1; i <= 9; i += 2)
		rs_thread_ask(&ts, 1, 50, i, 100 + i);
	assert_int_equal(rs_thread_asks(&ts, 1, 50, 3), 103);
	assert_int_equal(rs_thread_asks(&ts, 1, 50, 1), 0);
	assert_int_equal(rs_thread_asks(&ts, 1, 50, 4), 0);
	assert_int_equal(rs_thread_asks(&ts, 1, 50, 9), 109);
	assert_int_equal(ts.asks.in_use, 0);
	for (uint32_t i = 0; i < RS_THREAD_ASKS + 10; i++)
		rs_thread_ask(&ts, 1, 50 + i % 8, i + 1, 1);
	assert_true(ts.asks.in_use <= RS_THREAD_ASKS);
	rs_threads_release(&ts);
	free(a);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_active), cmocka_unit_test(test_dark),
		cmocka_unit_test(test_crews),	    cmocka_unit_test(test_sure),
		cmocka_unit_test(test_own_peers),   cmocka_unit_test(test_thread_ids),
		cmocka_unit_test(test_roots),	    cmocka_unit_test(test_joins),
		cmocka_unit_test(test_cut),	    cmocka_unit_test(test_limits),
		cmocka_unit_test(test_messages),    cmocka_unit_test(test_tasks),
	};

	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
