// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"
#include "text_screen.h"

/* What is remembered of a span. */
struct held {
	struct rs_list in_trace; /* in the order they came */
	struct held *child, *last_child, *next, *parent;
	uint8_t id[8], parent_id[8];
	bool printed;
	struct rs_text_span s;
};

struct trace {
	struct rs_list lru; /* oldest first */
	struct rs_list spans;
	uint8_t id[16];
	uint64_t since_ns; /* CLOCK_MONOTONIC, first span came */
	uint64_t start_ns; /* earliest start */
	uint32_t n;
	bool ready; /* its root is there */
};

struct rs_text {
	struct rs_map traces; /* part of the trace id -> struct trace */
	struct rs_list lru;
	struct rs_pool trace_pool, held_pool;
	struct held *sorted[RS_TEXT_TRACE]; /* scratch: a trace by start time */
	struct held *by_id[RS_TEXT_TRACE];
	struct trace *ready[RS_TEXT_SPANS]; /* scratch: traces to print, by start time */
	struct rs_text_screen screen;
};

static int by_start(const void *a, const void *b)
{
	const struct held *x = *(struct held *const *)a, *y = *(struct held *const *)b;

	if (x->s.start_ns != y->s.start_ns)
		return x->s.start_ns < y->s.start_ns ? -1 : 1;
	/* What began together: the longer one is the outer one. */
	return x->s.end_ns > y->s.end_ns ? -1 : x->s.end_ns < y->s.end_ns;
}

static int by_id(const void *a, const void *b)
{
	return memcmp((*(struct held *const *)a)->id, (*(struct held *const *)b)->id, 8);
}

static struct held *find_parent(struct rs_text *t, const struct held *h, uint32_t n)
{
	uint32_t lo = 0, hi = n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		int c = memcmp(t->by_id[mid]->id, h->parent_id, 8);

		if (c == 0)
			return t->by_id[mid] == h ? NULL : t->by_id[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* A span and all below it, parents first. What was printed is unlinked, so that a ring of parents ends. */
static void put_tree(struct rs_text *t, struct held *root, uint64_t from, uint64_t to)
{
	struct held *h = root;
	int level = 0;

	while (h) {
		struct held *child = h->child;

		rs_text_screen_line(&t->screen, &h->s, level, from, to);
		h->child = NULL;
		h->printed = true;
		if (child) {
			h = child;
			level++;
			continue;
		}
		while (h != root && !h->next) {
			h = h->parent;
			level--;
		}
		h = h == root ? NULL : h->next;
	}
}

static void give_back(struct rs_text *t, struct trace *tr)
{
	struct rs_list *pos, *tmp;
	uint64_t key;

	rs_list_for_each_safe (pos, tmp, &tr->spans) {
		rs_list_del(pos);
		rs_pool_put(&t->held_pool, rs_list_entry(pos, struct held, in_trace));
	}
	memcpy(&key, tr->id, sizeof(key));
	rs_map_del(&t->traces, key);
	rs_list_del(&tr->lru);
	rs_pool_put(&t->trace_pool, tr);
}

static void put_trace(struct rs_text *t, struct trace *tr)
{
	uint64_t from = UINT64_MAX, to = 0;
	struct rs_list *pos;
	uint32_t n = 0;

	rs_list_for_each (pos, &tr->spans) {
		struct held *h = rs_list_entry(pos, struct held, in_trace);

		from = h->s.start_ns < from ? h->s.start_ns : from;
		to = h->s.end_ns > to ? h->s.end_ns : to;
		t->sorted[n] = t->by_id[n] = h;
		n++;
	}
	qsort(t->sorted, n, sizeof(t->sorted[0]), by_start);
	qsort(t->by_id, n, sizeof(t->by_id[0]), by_id);
	for (uint32_t i = 0; i < n; i++) {
		struct held *h = t->sorted[i], *p = find_parent(t, h, n);

		h->parent = p;
		if (!p)
			continue;
		if (p->last_child)
			p->last_child->next = h;
		else
			p->child = h;
		p->last_child = h;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!t->sorted[i]->parent)
			put_tree(t, t->sorted[i], from, n > 1 ? to : 0);
	}
	/* Spans that are each other's parents have no root; traffic can be made so. */
	for (uint32_t i = 0; i < n; i++) {
		if (!t->sorted[i]->printed) {
			t->sorted[i]->child = NULL;
			put_tree(t, t->sorted[i], from, to);
		}
	}
	give_back(t, tr);
}

static struct trace *oldest(struct rs_text *t)
{
	return rs_list_empty(&t->lru) ? NULL : rs_list_entry(t->lru.next, struct trace, lru);
}

static struct trace *get_trace(struct rs_text *t, const uint8_t id[16], uint64_t now_ns)
{
	struct trace *tr;
	uint64_t key;

	memcpy(&key, id, sizeof(key));
	tr = rs_map_get(&t->traces, key);
	/* Half of an id is the key; another trace with the same half has to go first. */
	if (tr && (memcmp(tr->id, id, sizeof(tr->id)) || tr->n == RS_TEXT_TRACE)) {
		put_trace(t, tr);
		tr = NULL;
	}
	if (tr)
		return tr;
	tr = rs_pool_get(&t->trace_pool);
	if (!tr)
		return NULL;
	memcpy(tr->id, id, sizeof(tr->id));
	tr->since_ns = now_ns;
	tr->start_ns = UINT64_MAX;
	tr->n = 0;
	tr->ready = false;
	rs_list_init(&tr->spans);
	if (rs_map_put(&t->traces, key, tr)) {
		rs_pool_put(&t->trace_pool, tr);
		return NULL;
	}
	rs_list_add_tail(&t->lru, &tr->lru);
	return tr;
}

static bool is_root(const struct rs_span *s)
{
	static const uint8_t zero[8];

	return !memcmp(s->parent_id, zero, sizeof(zero));
}

static void take(struct rs_text *t, const struct rs_span *s, const struct rs_resource *r,
		 uint64_t now_ns)
{
	struct held *h;
	struct trace *tr;

	if (t->held_pool.in_use == RS_TEXT_SPANS && oldest(t))
		put_trace(t, oldest(t));
	tr = get_trace(t, s->trace_id, now_ns);
	h = tr ? rs_pool_get(&t->held_pool) : NULL;
	if (!h) {
		t->screen.err = t->screen.err ? t->screen.err : -ENOMEM;
		return;
	}
	h->child = h->last_child = h->next = h->parent = NULL;
	h->printed = false;
	memcpy(h->id, s->span_id, sizeof(h->id));
	memcpy(h->parent_id, s->parent_id, sizeof(h->parent_id));
	rs_text_describe(&h->s, s, r);
	rs_list_add_tail(&tr->spans, &h->in_trace);
	tr->n++;
	tr->ready |= is_root(s);
	if (s->start_ns < tr->start_ns)
		tr->start_ns = s->start_ns;
}

static int by_trace_start(const void *a, const void *b)
{
	const struct trace *x = *(struct trace *const *)a, *y = *(struct trace *const *)b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Prints traces that are complete, or came before `before_ns`, in the order in which they began. */
static int put_ready(struct rs_text *t, uint64_t before_ns)
{
	struct rs_list *pos;
	size_t n = 0;

	rs_text_screen_fit(&t->screen);
	rs_list_for_each (pos, &t->lru) {
		struct trace *tr = rs_list_entry(pos, struct trace, lru);

		if (tr->ready || tr->since_ns < before_ns)
			t->ready[n++] = tr;
	}
	qsort(t->ready, n, sizeof(t->ready[0]), by_trace_start);
	for (size_t i = 0; i < n; i++)
		put_trace(t, t->ready[i]);
	rs_text_screen_flush(&t->screen);
	return t->screen.err;
}

struct rs_text *rs_text_new(const struct rs_text_opts *opts)
{
	struct rs_text *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	rs_text_screen_init(&t->screen, opts->fd, opts->color, opts->width);
	rs_map_init(&t->traces, 2 * RS_TEXT_SPANS);
	rs_list_init(&t->lru);
	rs_pool_init(&t->trace_pool, sizeof(struct trace), RS_TEXT_SPANS);
	rs_pool_init(&t->held_pool, sizeof(struct held), RS_TEXT_SPANS);
	if (opts->header)
		rs_text_screen_header(&t->screen);
	return t;
}

void rs_text_free(struct rs_text *t)
{
	if (!t)
		return;
	rs_map_release(&t->traces);
	rs_pool_release(&t->trace_pool);
	rs_pool_release(&t->held_pool);
	free(t);
}

int rs_text_batch(struct rs_text *t, const struct rs_batch *b, uint64_t now_ns)
{
	for (const struct rs_resource_spans *rs = b->first; rs; rs = rs->next) {
		for (const struct rs_scope_spans *ss = rs->first; ss; ss = ss->next) {
			for (const struct rs_span *s = ss->first; s; s = s->next)
				take(t, s, &rs->resource, now_ns);
		}
	}
	/* A batch is ordered by process: only now is every span of a trace there. */
	return put_ready(t, 0);
}

int rs_text_tick(struct rs_text *t, uint64_t now_ns)
{
	return put_ready(t, now_ns > RS_TEXT_HOLD_NS ? now_ns - RS_TEXT_HOLD_NS : 0);
}

int rs_text_flush(struct rs_text *t)
{
	return put_ready(t, UINT64_MAX);
}
