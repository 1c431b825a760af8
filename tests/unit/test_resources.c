// SPDX-License-Identifier: Apache-2.0
/*
 * What encoders remember of processes' resources does not show, whatever becomes of the processes: each batch is
 * written as by an encoder that has seen nothing before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoder.h"
#include "meta/pods.h"
#include "meta/proc.h"
#include "trace/trace.h"
#include "unit.h"

#define PIDS	 40
#define ENCODERS 16

struct world {
	struct rs_counters n;
	struct rs_procs procs;
	struct rs_pods pods;
	struct rs_batch b;
	struct rs_bufpool pool;
	struct rs_encoder *used[ENCODERS];
	size_t formats;
	uint64_t random;
	uint64_t parted;
};

static unsigned pick(struct world *w, unsigned n)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->random >> 33) % n;
}

static void on_parting(void *arg, struct rs_proc *p)
{
	struct world *w = arg;

	w->parted += p->batch_serial == w->b.serial;
	assert_int_equal(rs_trace_part(&w->b, p), 0);
}

static void setup(struct world *w)
{
	*w = (struct world){ .random = 1 };
	rs_procs_init(&w->procs, PIDS / 2, false, NULL, &w->n);
	rs_pods_init(&w->pods, 8, &w->n);
	w->pods.conf.labels = STR("*");
	w->procs.pods = &w->pods;
	w->procs.parting = on_parting;
	w->procs.parting_arg = w;
	rs_batch_init(&w->b, 0);
	assert_int_equal(rs_bufpool_init(&w->pool, 0), 0);
	for (; rs_encoder_name(w->formats); w->formats++) {
		assert_true(w->formats < ENCODERS);
		assert_int_equal(rs_encoder_new(rs_encoder_name(w->formats), &w->pool, NULL,
						&w->used[w->formats]),
				 0);
	}
}

static void teardown(struct world *w)
{
	for (size_t f = 0; f < w->formats; f++)
		rs_encoder_free(w->used[f]);
	rs_batch_release(&w->b);
	rs_bufpool_release(&w->pool);
	rs_procs_release(&w->procs);
	rs_pods_release(&w->pods);
}

static char *encode(struct rs_encoder *e, const struct rs_batch *b, size_t *ret_len)
{
	struct rs_encode run = { .batch = b };
	char *all = NULL;

	*ret_len = 0;
	while (!rs_encode(e, &run) && run.out.niov) {
		for (int i = 0; i < run.out.niov; i++) {
			all = realloc(all, *ret_len + run.out.iov[i].iov_len + 1);
			memcpy(all + *ret_len, run.out.iov[i].iov_base, run.out.iov[i].iov_len);
			*ret_len += run.out.iov[i].iov_len;
		}
		rs_payload_release(&run.out);
	}
	assert_true(run.done);
	return all;
}

/* Spans of a process, as trace/assemble.c puts them there: the resource is borrowed. */
static void add_spans(struct world *w, struct rs_proc *p)
{
	struct rs_batch *b = &w->b;

	if (p->batch_serial != b->serial) {
		struct rs_resource_spans *rs = rs_batch_add_resource(b);

		p->batch_group = rs_batch_add_scope(b, rs);
		p->batch_serial = b->serial;
		p->batch_group->scope.name = RS_SPAN_STR("scope");
		rs->resource = p->resource;
	}
	for (unsigned n = 1 + pick(w, 3); n; n--) {
		struct rs_span *s = rs_batch_add_span(b, p->batch_group);

		s->trace_id[0] = s->trace_id[15] = (uint8_t)(1 + pick(w, 200));
		s->span_id[0] = (uint8_t)b->nspans;
		s->span_id[1] = (uint8_t)(b->nspans >> 8);
		s->kind = (uint8_t)(2 + pick(w, 2));
		s->start_ns = 1700000000000000000;
		s->end_ns = s->start_ns + pick(w, 100000);
		s->name = RS_SPAN_STR("GET");
	}
}

static void flush(struct world *w)
{
	for (size_t f = 0; f < w->formats; f++) {
		struct rs_encoder *fresh;
		size_t len, want_len;
		char *got, *want;

		assert_int_equal(rs_encoder_new(rs_encoder_name(f), &w->pool, NULL, &fresh), 0);
		got = encode(w->used[f], &w->b, &len);
		want = encode(fresh, &w->b, &want_len);
		if (len != want_len || (len && memcmp(got, want, len) != 0))
			fail_msg("%s: not what a fresh encoder writes", rs_encoder_name(f));
		free(got);
		free(want);
		rs_encoder_free(fresh);
	}
	rs_batch_reset(&w->b);
}

static void put_pod(struct world *w)
{
	struct rs_pod *p = rs_pods_new(&w->pods);
	struct rs_json j;
	char text[256];

	snprintf(text, sizeof(text),
		 "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"pod-%u\",\"labels\":"
		 "{\"app\":\"%u\"}}}",
		 pick(w, 3), pick(w, 5));
	rs_json_init(&j, str_c(text), &p->mem);
	assert_true(rs_pod_parse(p, &j, &w->pods.conf));
	rs_pods_put(&w->pods, p);
}

/* Something becomes of a process, or of all. */
static void change(struct world *w, struct rs_proc *p)
{
	static const char *const extra[] = { "", "team=a", "team=b",
					     "deployment.environment.name=x",
					     "service.version=1,team=a" };
	static const struct str uids[] = { { "pod-0", 5 }, { "pod-1", 5 }, { "pod-2", 5 } };
	char comm[16];
	int n = snprintf(comm, sizeof(comm), "program-%u", pick(w, 4));

	switch (pick(w, 8)) {
	case 0: /* it executes another program */
		rs_procs_exec(&w->procs, p, str_of(comm, (size_t)n));
		break;
	case 1: /* its pid is another's */
		rs_procs_get(&w->procs, p->tgid, p->start_ns + 1 + pick(w, 3), 0,
			     str_of(comm, (size_t)n));
		break;
	case 2: /* it turns out to be in a pod */
		p->c.pod_uid = uids[pick(w, 3)];
		p->c.image = pick(w, 2) ? STR("registry/web:3") : STR("registry/web:4");
		p->pods_seen = 0;
		rs_procs_follow(&w->procs, p);
		break;
	case 3: /* a pod is known now, or has another label */
		put_pod(w);
		rs_procs_follow(&w->procs, p);
		break;
	case 4: /* a reload */
		w->procs.extra = str_c(extra[pick(w, 5)]);
		rs_procs_relearn(&w->procs);
		break;
	case 5:
		rs_procs_gone(&w->procs, p);
		break;
	}
}

static void changing_processes(void **state)
{
	struct world w;

	(void)state;
	setup(&w);
	for (unsigned round = 0; round < 400; round++) {
		for (unsigned i = pick(&w, 30); i; i--) {
			struct rs_proc *p =
				rs_procs_get(&w.procs, 1 + pick(&w, PIDS), 0, 0, STR("program"));

			add_spans(&w, p);
			if (!pick(&w, 3))
				change(&w, p);
		}
		flush(&w);
	}
	assert_true(w.parted > 100);
	teardown(&w);
}

/* More resources than are kept, short and long ones, those that come again and those that do not. */
static void many_resources(void **state)
{
	struct world w;
	struct rs_attr *a;
	static char text[20000 + RS_ARENA_PAD];

	(void)state;
	setup(&w);
	memset(text, 'x', sizeof(text));
	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < 100; i++) {
			struct rs_resource_spans *rs = rs_batch_add_resource(&w.b);
			struct rs_scope_spans *ss = rs_batch_add_scope(&w.b, rs);
			unsigned id = 1 + pick(&w, round % 2 ? 80 : 5000);
			struct rs_span *s = rs_batch_add_span(&w.b, ss);

			a = rs_arena_alloc(&w.b.arena, 2 * sizeof(*a));
			a[0] = (struct rs_attr){ rs_key(RS_K_PROCESS_PID),
						 { .type = RS_VAL_INT, .i = id } };
			a[1] = (struct rs_attr){ rs_key(RS_K_SERVICE_NAME),
						 { .type = RS_VAL_STR,
						   .len = id % 13 ? id % 900 : 15000 + id,
						   .str = text } };
			rs->resource = (struct rs_resource){ { a, 2, id % 5 }, id };
			s->trace_id[15] = s->span_id[0] = 1;
		}
		flush(&w);
	}
	teardown(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changing_processes),
		cmocka_unit_test(many_resources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
