// SPDX-License-Identifier: Apache-2.0
/* Which trace an exchange belongs to. */
#include "trace.h"

/* What a thread is doing, as far as its messages tell. */
struct thread {
	uint32_t tid;
	struct rs_open *at; /* server exchange it is handling, or NULL */
	struct rs_list of_open; /* in at->threads */
	struct rs_list lru;
};

void rs_trace_init(struct rs_trace *t, uint64_t seed, uint32_t max_threads, struct rs_pair *pair,
		   struct rs_counters *n)
{
	*t = (struct rs_trace){ .pair = pair, .n = n };
	rs_ids_init(&t->ids, seed);
	for (uint8_t i = 0; i < RS_PROP_COUNT; i++)
		t->propagators.v[t->propagators.n++] = i;
	rs_map_init(&t->threads, max_threads);
	rs_pool_init(&t->pool, sizeof(struct thread), max_threads);
	rs_list_init(&t->lru);
}

void rs_trace_release(struct rs_trace *t)
{
	rs_map_release(&t->threads);
	rs_pool_release(&t->pool);
}

struct str rs_trace_configure(struct rs_trace *t, const struct rs_config *cfg)
{
	struct str unknown = STR_NONE;

	rs_propagators_parse(str_c(cfg->propagators), &t->propagators, &unknown);
	return unknown;
}

static struct rs_open *thread_at(const struct rs_trace *t, uint32_t tid)
{
	struct thread *th = rs_map_get(&t->threads, tid);

	return th ? th->at : NULL;
}

static struct thread *new_thread(struct rs_trace *t, uint32_t tid)
{
	struct thread *th = rs_pool_get(&t->pool);

	if (!th && !rs_list_empty(&t->lru)) {
		th = rs_list_entry(t->lru.next, struct thread, lru);
		rs_list_del(&th->of_open);
		rs_list_del(&th->lru);
		rs_map_del(&t->threads, th->tid);
		t->n->v[RS_C_TRACE_THREADS_EVICTED]++;
	}
	if (!th)
		return NULL;
	*th = (struct thread){ .tid = tid };
	rs_list_init(&th->of_open);
	rs_list_init(&th->lru);
	if (rs_map_put(&t->threads, tid, th)) {
		rs_pool_put(&t->pool, th);
		return NULL;
	}
	return th;
}

/* o: a server exchange or NULL. */
static void thread_set(struct rs_trace *t, uint32_t tid, struct rs_open *o)
{
	struct thread *th = rs_map_get(&t->threads, tid);

	if (!th) {
		if (!o)
			return;
		th = new_thread(t, tid);
		if (!th)
			return;
	}
	rs_list_del(&th->lru);
	rs_list_add_tail(&t->lru, &th->lru);
	if (th->at == o)
		return;
	rs_list_del(&th->of_open);
	th->at = o;
	if (o)
		rs_list_add_tail(&o->threads, &th->of_open);
}

static void keep_state(struct rs_trace *t, struct rs_open *o, const struct rs_msg *m, const struct rs_wire_ctx *c)
{
	char state[RS_TRACE_STATE_MAX];
	size_t n = rs_context_state(m, c, state);

	if (n)
		o->trace_state = rs_pair_keep(t->pair, o, str_of(state, n));
}

static void new_root(struct rs_trace *t, struct rs_open *o)
{
	rs_ids_trace(&t->ids, o->trace_id);
	o->trace_flags = RS_TRACE_SAMPLED | RS_TRACE_RANDOM;
	o->parent_source = RS_PARENT_NONE;
}

static void server_request(struct rs_trace *t, struct rs_open *o, const struct rs_msg *m)
{
	struct rs_wire_ctx wire;

	rs_ids_span(&t->ids, o->span_id);
	if (!rs_context_extract(&t->propagators, m, &wire)) {
		new_root(t, o);
		return;
	}
	memcpy(o->trace_id, wire.trace_id, sizeof(o->trace_id));
	memcpy(o->parent_id, wire.span_id, sizeof(o->parent_id));
	memcpy(o->wire_span_id, wire.span_id, sizeof(o->wire_span_id));
	o->trace_flags = wire.flags;
	o->parent_source = RS_PARENT_WIRE;
	o->parent_remote = true;
	keep_state(t, o, m, &wire);
}

static void client_request(struct rs_trace *t, struct rs_open *o, const struct rs_msg *m)
{
	struct rs_open *parent = thread_at(t, m->tid);
	struct rs_wire_ctx wire;
	bool carried = rs_context_extract(&t->propagators, m, &wire);

	/* A thread id met again in another process (pid reuse) carries nothing over. */
	if (parent && parent->x.tgid != m->tgid)
		parent = NULL;
	/* The program is in a trace of its own: that one is right, the thread's is another. */
	if (parent && carried && memcmp(parent->trace_id, wire.trace_id, 16) != 0)
		parent = NULL;
	if (parent) {
		memcpy(o->trace_id, parent->trace_id, 16);
		memcpy(o->parent_id, parent->span_id, 8);
		o->trace_flags = parent->trace_flags;
		o->parent_source = RS_PARENT_THREAD;
		if (parent->trace_state.len)
			o->trace_state = rs_pair_keep(t->pair, o, parent->trace_state);
		o->parent = parent;
		rs_list_add_tail(&parent->children, &o->of_parent);
	} else if (carried) {
		memcpy(o->trace_id, wire.trace_id, 16);
		o->trace_flags = wire.flags;
		o->parent_source = RS_PARENT_NONE;
		keep_state(t, o, m, &wire);
	} else {
		new_root(t, o);
	}
	/* Forwarded as it came (a proxy): that id is the sender's before us. */
	if (carried && !(parent && memcmp(parent->wire_span_id, wire.span_id, 8) == 0))
		memcpy(o->span_id, wire.span_id, 8);
	else
		rs_ids_span(&t->ids, o->span_id);
}

void rs_trace_message(struct rs_trace *t, struct rs_open *o, const struct rs_msg *m)
{
	switch ((enum rs_msg_type)m->type) {
	case RS_MSG_REQUEST:
		if (o->x.role == RS_ROLE_SERVER) {
			server_request(t, o, m);
			thread_set(t, m->tid, o);
		} else {
			client_request(t, o, m);
		}
		break;
	case RS_MSG_REQUEST_END:
		/* The body was read by the thread that handles the request. */
		if (o->has_request && o->x.role == RS_ROLE_SERVER && !o->x.has_response)
			thread_set(t, m->tid, o);
		break;
	case RS_MSG_RESPONSE:
	case RS_MSG_RESPONSE_END:
		/* Whoever reads an answer goes on with the request it was asked for. */
		if (o->has_request && o->x.role == RS_ROLE_CLIENT)
			thread_set(t, m->tid, o->parent);
		break;
	case RS_MSG_INTERIM:
		break;
	}
}

void rs_trace_forget(struct rs_trace *t, struct rs_open *o)
{
	struct rs_list *pos, *tmp;

	(void)t;
	rs_list_for_each_safe (pos, tmp, &o->threads) {
		rs_list_entry(pos, struct thread, of_open)->at = NULL;
		rs_list_del(pos);
	}
	rs_list_for_each_safe (pos, tmp, &o->children) {
		rs_list_entry(pos, struct rs_open, of_parent)->parent = NULL;
		rs_list_del(pos);
	}
	rs_list_del(&o->of_parent);
	o->parent = NULL;
}
