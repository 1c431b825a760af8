// SPDX-License-Identifier: Apache-2.0
#include "thread.h"

void rs_threads_init(struct rs_threads *ts, uint32_t max, struct rs_counters *n)
{
	*ts = (struct rs_threads){ .n = n };
	rs_map_init(&ts->by_id, max);
	rs_map_init(&ts->crew_by_tgid, max);
	rs_pool_init(&ts->crews, sizeof(struct rs_crew), max);
	rs_pool_init(&ts->pool, sizeof(struct rs_thread), max);
	rs_pool_init(&ts->asks, sizeof(struct rs_ask), RS_THREAD_ASKS);
	rs_list_init(&ts->lru);
}

void rs_threads_release(struct rs_threads *ts)
{
	rs_map_release(&ts->by_id);
	rs_map_release(&ts->crew_by_tgid);
	rs_pool_release(&ts->crews);
	rs_pool_release(&ts->pool);
	rs_pool_release(&ts->asks);
}

static void set_idle(struct rs_open *o, enum rs_idle idle)
{
	struct rs_thread *th = o->thread;

	th->ndark += (idle == RS_IDLE_DARK) - (o->idle == RS_IDLE_DARK);
	th->nquiet += (idle == RS_IDLE_QUIET) - (o->idle == RS_IDLE_QUIET);
	o->idle = (uint8_t)idle;
}

void rs_thread_update(struct rs_open *o)
{
	if (!o->thread)
		return;
	if (o->thread->at == o || o->waits)
		set_idle(o, RS_IDLE_NOT);
	else
		set_idle(o, o->x.request_done && !o->x.has_response ? RS_IDLE_DARK : RS_IDLE_QUIET);
}

void rs_thread_leave(struct rs_open *o)
{
	if (!o->thread)
		return;
	set_idle(o, RS_IDLE_NOT);
	if (o->thread->at == o)
		o->thread->at = NULL;
	rs_list_del(&o->of_thread);
	o->thread = NULL;
}

static struct rs_crew *crew_get(struct rs_threads *ts, uint32_t tgid)
{
	struct rs_crew *c = rs_map_get(&ts->crew_by_tgid, tgid);

	if (!c) {
		c = rs_pool_get(&ts->crews);
		if (!c)
			return NULL;
		*c = (struct rs_crew){ .tgid = tgid };
		if (rs_map_put(&ts->crew_by_tgid, tgid, c)) {
			rs_pool_put(&ts->crews, c);
			return NULL;
		}
	}
	c->threads++;
	return c;
}

static void crew_put(struct rs_threads *ts, struct rs_crew *c)
{
	if (--c->threads)
		return;
	rs_map_del(&ts->crew_by_tgid, c->tgid);
	rs_pool_put(&ts->crews, c);
}

void rs_thread_answered(struct rs_thread *th, bool itself)
{
	if (!itself)
		th->crew->wanders = RS_CREW_WANDERS;
	else if (th->crew->wanders)
		th->crew->wanders--;
}

void rs_thread_owns(struct rs_thread *th, uint32_t peer)
{
	th->own_left = RS_THREAD_OWN_CALLS;
	for (unsigned i = 0; i < th->nown && i < RS_THREAD_OWN; i++) {
		if (th->own[i] == peer)
			return;
	}
	if (th->nown < RS_THREAD_OWN)
		th->own[th->nown] = peer;
	if (th->nown <= RS_THREAD_OWN)
		th->nown++;
}

bool rs_thread_own(struct rs_thread *th, uint32_t peer, bool doubt)
{
	if (doubt && th->stirs < RS_THREAD_STIR_MAX)
		th->stirs += RS_THREAD_STIR;
	else if (!doubt && th->stirs)
		th->stirs--;
	if (doubt && th->stirs >= RS_THREAD_STIR_MAX)
		rs_thread_owns(th, peer);
	if (!th->nown)
		return false;
	if (!--th->own_left)
		th->nown = 0;
	for (unsigned i = 0; i < th->nown && i < RS_THREAD_OWN; i++) {
		if (th->own[i] == peer)
			return true;
	}
	return th->nown > RS_THREAD_OWN;
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

static void reset(struct rs_thread *th, struct rs_crew *crew, uint64_t id)
{
	*th = (struct rs_thread){ .id = id, .tgid = crew->tgid, .crew = crew };
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

void rs_threads_ahead(const struct rs_threads *ts, uint32_t tgid, uint64_t id)
{
	rs_map_ahead(&ts->by_id, key_of(tgid, id));
}

void rs_threads_ahead_more(const struct rs_threads *ts, uint32_t tgid, uint64_t id)
{
	const struct rs_thread *th = rs_map_get(&ts->by_id, key_of(tgid, id));

	if (th)
		__builtin_prefetch(th, 1);
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
	crew_put(ts, th->crew);
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

/* A new thread's memory: one that was not used for long gives way. */
static struct rs_thread *thread_new(struct rs_threads *ts)
{
	struct rs_thread *th = rs_pool_get(&ts->pool);

	if (!th && !rs_list_empty(&ts->lru)) {
		rs_thread_forget(ts, oldest(ts));
		th = rs_pool_get(&ts->pool);
		ts->n->v[RS_C_TRACE_THREADS_EVICTED]++;
	}
	return th;
}

struct rs_thread *rs_thread_get(struct rs_threads *ts, uint32_t tgid, uint64_t id)
{
	struct rs_thread *th = rs_map_get(&ts->by_id, key_of(tgid, id));
	struct rs_crew *crew;

	if (th && (th->tgid != tgid || th->id != id)) { /* the number is in use again */
		rs_thread_forget(ts, th);
		th = NULL;
	}
	if (!th) {
		th = thread_new(ts);
		crew = th ? crew_get(ts, tgid) : NULL;
		if (crew)
			reset(th, crew, id);
		if (!crew || rs_map_put(&ts->by_id, key_of(tgid, id), th)) {
			if (crew)
				crew_put(ts, crew);
			rs_pool_put(&ts->pool, th);
			return NULL;
		}
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

/* Tasks do one thing at a time: what else their thread did between is not theirs. */
static bool is_task(const struct rs_thread *th)
{
	return th->id & RS_THREAD_TASK;
}

struct rs_open *rs_thread_works(const struct rs_thread *th, struct rs_moment now,
				enum rs_sure *ret_sure)
{
	bool awake = rs_awake(th->moved, now);

	*ret_sure = RS_SURE;
	if (th->hands_off || th->ndark)
		return NULL;
	if (!th->at)
		return th->lent;
	if (is_task(th))
		return th->at;
	if (th->unsure || (th->nquiet && (!awake || th->at->x.has_response)))
		*ret_sure = RS_SURE_NOT;
	else if (!th->at->waits && !th->nquiet && awake)
		*ret_sure = RS_SURE_DIRECT;
	return th->at;
}

static bool side_by_side(const struct rs_open *o)
{
	return o->x.ops && o->x.ops->pairing == RS_PAIR_BY_ID && !o->served;
}

/* What a task works for that th makes. Where several requests are open it is not known which. */
static struct rs_open *lends(const struct rs_thread *th)
{
	enum rs_sure sure;
	struct rs_open *o = rs_thread_works(th, (struct rs_moment){ 0 }, &sure);

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
