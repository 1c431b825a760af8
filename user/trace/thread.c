// SPDX-License-Identifier: Apache-2.0
#include "thread.h"

void rs_threads_init(struct rs_threads *ts, uint32_t max, struct rs_counters *n)
{
	*ts = (struct rs_threads){ .n = n };
	rs_map_init(&ts->by_tid, max);
	rs_pool_init(&ts->pool, sizeof(struct rs_thread), max);
	rs_list_init(&ts->lru);
}

void rs_threads_release(struct rs_threads *ts)
{
	rs_map_release(&ts->by_tid);
	rs_pool_release(&ts->pool);
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

static void forget_all(struct rs_thread *th)
{
	while (!rs_list_empty(&th->open))
		rs_thread_leave(rs_list_entry(th->open.next, struct rs_open, of_thread));
	th->at = NULL;
}

static void reset(struct rs_thread *th, uint32_t tgid, uint32_t tid)
{
	*th = (struct rs_thread){ .tid = tid, .tgid = tgid };
	rs_list_init(&th->open);
	rs_list_init(&th->lru);
}

struct rs_thread *rs_thread_find(const struct rs_threads *ts, uint32_t tgid, uint32_t tid)
{
	struct rs_thread *th = rs_map_get(&ts->by_tid, tid);

	return th && th->tgid == tgid ? th : NULL;
}

struct rs_thread *rs_thread_get(struct rs_threads *ts, uint32_t tgid, uint32_t tid)
{
	struct rs_thread *th = rs_map_get(&ts->by_tid, tid);

	if (!th) {
		th = rs_pool_get(&ts->pool);
		if (!th && !rs_list_empty(&ts->lru)) {
			th = rs_list_entry(ts->lru.next, struct rs_thread, lru);
			forget_all(th);
			rs_list_del(&th->lru);
			rs_map_del(&ts->by_tid, th->tid);
			ts->n->v[RS_C_TRACE_THREADS_EVICTED]++;
		}
		if (!th)
			return NULL;
		reset(th, tgid, tid);
		if (rs_map_put(&ts->by_tid, tid, th)) {
			rs_pool_put(&ts->pool, th);
			return NULL;
		}
	} else if (th->tgid != tgid) { /* the id is in use again */
		forget_all(th);
		rs_list_del(&th->lru);
		reset(th, tgid, tid);
	}
	rs_list_del(&th->lru);
	rs_list_add_tail(&ts->lru, &th->lru);
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
	if (before)
		rs_thread_update(before);
	if (o)
		rs_thread_update(o);
}

struct rs_open *rs_thread_certain(const struct rs_thread *th)
{
	return th->ndark ? NULL : th->at;
}

struct rs_open *rs_thread_last(const struct rs_thread *th)
{
	return rs_list_empty(&th->open) ? NULL
					: rs_list_entry(th->open.prev, struct rs_open, of_thread);
}
