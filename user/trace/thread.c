// SPDX-License-Identifier: Apache-2.0
#include "thread.h"

void rs_threads_init(struct rs_threads *ts, uint32_t max, struct rs_counters *n)
{
	*ts = (struct rs_threads){ .n = n };
	rs_map_init(&ts->by_id, max);
	rs_pool_init(&ts->pool, sizeof(struct rs_thread), max);
	rs_pool_init(&ts->asks, sizeof(struct rs_ask), RS_THREAD_ASKS);
	rs_list_init(&ts->lru);
}

void rs_threads_release(struct rs_threads *ts)
{
	rs_map_release(&ts->by_id);
	rs_pool_release(&ts->pool);
	rs_pool_release(&ts->asks);
}

static void set_dark(struct rs_open *o, bool dark)
{
	if (o->dark == dark)
		return;
	o->dark = dark;
	if (dark)
		o->thread->ndark++;
	else
		o->thread->ndark--;
}

void rs_thread_update(struct rs_open *o)
{
	if (o->thread)
		set_dark(o, o->thread->at != o && !o->waits && !o->x.has_response &&
				    o->x.request_done);
}

void rs_thread_leave(struct rs_open *o)
{
	if (!o->thread)
		return;
	set_dark(o, false);
	if (o->thread->at == o)
		o->thread->at = NULL;
	rs_list_del(&o->of_thread);
	o->thread = NULL;
}

static void give_back(struct rs_thread *th)
{
	if (!th->lent)
		return;
	rs_list_del(&th->of_lent);
	th->lent = NULL;
}

static void forget_ask(struct rs_threads *ts, struct rs_ask *a)
{
	rs_list_del(&a->list);
	rs_pool_put(&ts->asks, a);
}

void rs_thread_ask(struct rs_threads *ts, uint32_t tgid, uint64_t writer, uint32_t stream,
		   uint64_t task)
{
	struct rs_thread *th = rs_thread_get(ts, tgid, writer | RS_THREAD_TASK);
	struct rs_ask *a = th ? rs_pool_get(&ts->asks) : NULL;

	if (!a)
		return;
	*a = (struct rs_ask){ .task = task, .stream = stream };
	rs_list_add_tail(&th->asks, &a->list);
}

uint64_t rs_thread_asks(struct rs_threads *ts, uint32_t tgid, uint64_t writer, uint32_t stream)
{
	struct rs_thread *th = rs_thread_find(ts, tgid, writer | RS_THREAD_TASK);
	uint64_t task = 0;

	while (th && !task && !rs_list_empty(&th->asks)) {
		struct rs_ask *a = rs_list_entry(th->asks.next, struct rs_ask, list);

		if (a->stream > stream) /* numbers rise: this one was not told of */
			break;
		if (a->stream == stream)
			task = a->task;
		forget_ask(ts, a);
	}
	return task;
}

static void forget_all(struct rs_threads *ts, struct rs_thread *th)
{
	give_back(th);
	while (!rs_list_empty(&th->asks))
		forget_ask(ts, rs_list_entry(th->asks.next, struct rs_ask, list));
	while (!rs_list_empty(&th->open))
		rs_thread_leave(rs_list_entry(th->open.next, struct rs_open, of_thread));
	th->at = NULL;
}

static void reset(struct rs_thread *th, uint32_t tgid, uint64_t id)
{
	*th = (struct rs_thread){ .id = id, .tgid = tgid };
	rs_list_init(&th->open);
	rs_list_init(&th->lru);
	rs_list_init(&th->of_lent);
	rs_list_init(&th->asks);
}

/* Threads' numbers are the machine's, tasks' each process's: two of them in one place are told apart by
 * what stands there, as a number that is used again is. */
static uint64_t key_of(uint32_t tgid, uint64_t id)
{
	return id & RS_THREAD_TASK ? id ^ (uint64_t)tgid << 40 : id;
}

struct rs_thread *rs_thread_find(const struct rs_threads *ts, uint32_t tgid, uint64_t id)
{
	struct rs_thread *th = rs_map_get(&ts->by_id, key_of(tgid, id));

	return th && (!tgid || th->tgid == tgid) && th->id == id ? th : NULL;
}

void rs_thread_forget(struct rs_threads *ts, struct rs_thread *th)
{
	if (!th)
		return;
	forget_all(ts, th);
	rs_list_del(&th->lru);
	rs_map_del(&ts->by_id, key_of(th->tgid, th->id));
	rs_pool_put(&ts->pool, th);
}

void rs_thread_reclaim(struct rs_threads *ts, struct rs_open *o)
{
	while (!rs_list_empty(&o->borrowers)) {
		struct rs_thread *th = rs_list_entry(o->borrowers.next, struct rs_thread, of_lent);

		if (rs_list_empty(&th->open))
			rs_thread_forget(ts, th);
		else
			give_back(th);
	}
}

/* The first in turn that was not used since its last turn, of one at least. */
static struct rs_thread *oldest(struct rs_threads *ts)
{
	for (;;) {
		struct rs_thread *th = rs_list_entry(ts->lru.next, struct rs_thread, lru);

		if (!th->used)
			return th;
		th->used = false;
		rs_list_del(&th->lru);
		rs_list_add_tail(&ts->lru, &th->lru);
	}
}

struct rs_thread *rs_thread_get(struct rs_threads *ts, uint32_t tgid, uint64_t id)
{
	struct rs_thread *th = rs_map_get(&ts->by_id, key_of(tgid, id));

	if (!th) {
		th = rs_pool_get(&ts->pool);
		if (!th && !rs_list_empty(&ts->lru)) {
			rs_thread_forget(ts, oldest(ts));
			th = rs_pool_get(&ts->pool);
			ts->n->v[RS_C_TRACE_THREADS_EVICTED]++;
		}
		if (!th)
			return NULL;
		reset(th, tgid, id);
		if (rs_map_put(&ts->by_id, key_of(tgid, id), th)) {
			rs_pool_put(&ts->pool, th);
			return NULL;
		}
		rs_list_add_tail(&ts->lru, &th->lru);
	} else if (th->tgid != tgid || th->id != id) { /* the number is in use again */
		forget_all(ts, th);
		rs_list_del(&th->lru);
		reset(th, tgid, id);
		rs_list_add_tail(&ts->lru, &th->lru);
	}
	th->used = true;
	return th;
}

void rs_thread_at(struct rs_thread *th, struct rs_open *o)
{
	struct rs_open *before = th->at;

	if (o && o->thread != th) {
		rs_thread_leave(o);
		o->thread = th;
	}
	if (o) {
		rs_list_del(&o->of_thread);
		rs_list_add_tail(&th->open, &o->of_thread);
	}
	th->at = o;
	give_back(th);
	if (before)
		rs_thread_update(before);
	if (o)
		rs_thread_update(o);
}

struct rs_open *rs_thread_certain(const struct rs_thread *th)
{
	if (th->hands_off)
		return NULL;
	return th->ndark ? NULL : th->at ? th->at : th->lent;
}

static bool side_by_side(const struct rs_open *o)
{
	return o->x.ops && o->x.ops->pairing == RS_PAIR_BY_ID && !o->served;
}

/* What a task works for that th makes. Where several requests are open it is not known which. */
static struct rs_open *lends(const struct rs_thread *th)
{
	struct rs_open *o = rs_thread_certain(th);

	return o && th->open.next == th->open.prev && !side_by_side(o) ? o : NULL;
}

static struct rs_open *find_stream(const struct rs_thread *th, uint32_t stream)
{
	struct rs_list *pos;

	rs_list_for_each (pos, &th->open) {
		struct rs_open *o = rs_list_entry(pos, struct rs_open, of_thread);

		if (o->id == stream && side_by_side(o))
			return o;
	}
	return NULL;
}

void rs_thread_spawn(struct rs_threads *ts, uint32_t tgid, uint64_t maker, uint64_t made,
		     uint32_t stream)
{
	struct rs_thread *th = rs_thread_find(ts, tgid, maker | RS_THREAD_TASK), *before;
	struct rs_open *lent = th && !stream ? lends(th) : NULL, *own = NULL;

	if (th && stream) {
		own = find_stream(th, stream);
		before = own ? NULL : rs_thread_find(ts, tgid, th->maker | RS_THREAD_TASK);
		if (before)
			own = find_stream(before, stream);
	}
	if (!lent && !own && (!th || rs_list_empty(&th->open)))
		return; /* it matters to nothing */
	th = rs_thread_get(ts, tgid, made | RS_THREAD_TASK);
	if (!th)
		return;
	th->maker = maker;
	if (own) {
		own->served = true;
		rs_thread_at(th, own);
	}
	if (lent) {
		rs_list_del(&th->of_lent);
		th->lent = lent;
		rs_list_add_tail(&lent->borrowers, &th->of_lent);
	}
}

struct rs_open *rs_thread_last(const struct rs_thread *th)
{
	return rs_list_empty(&th->open) ? NULL
					: rs_list_entry(th->open.prev, struct rs_open, of_thread);
}
