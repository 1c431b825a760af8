// SPDX-License-Identifier: Apache-2.0
/* Which trace an exchange belongs to. */
#include "trace.h"

#include "base/hash.h"
#include "trace/messages.h"
#include "trace/resend.h"

/* A call made so long after a thread's last request has ended is not even linked to it. */
#define ENDED_NS 1000000000ull

void rs_trace_init(struct rs_trace *t, uint64_t seed, uint32_t max_threads, uint32_t max_requests,
		   struct rs_pair *pair, struct rs_counters *n)
{
	*t = (struct rs_trace){
		.pair = pair, .n = n, .join = RS_JOIN_NODE, .events = RS_EVENTS_SPAN
	};
	t->limits = RS_LIMITS_DEFAULT;
	rs_ids_init(&t->ids, seed);
	for (uint8_t i = 0; i < RS_PROP_COUNT; i++)
		t->propagators.v[t->propagators.n++] = i;
	rs_threads_init(&t->threads, max_threads, n);
	rs_connects_init(&t->connects);
	rs_joins_init(&t->joins, max_requests);
	rs_map_init(&t->by_wire, max_requests);
	rs_pool_init(&t->roots, sizeof(struct rs_root), max_requests);
	rs_pool_init(&t->messages, sizeof(struct rs_messages), max_requests);
}

void rs_trace_release(struct rs_trace *t)
{
	rs_threads_release(&t->threads);
	rs_connects_release(&t->connects);
	rs_joins_release(&t->joins);
	rs_map_release(&t->by_wire);
	rs_pool_release(&t->roots);
	rs_pool_release(&t->messages);
}

struct str rs_trace_configure(struct rs_trace *t, const struct rs_config *cfg)
{
	struct str unknown = STR_NONE;

	rs_propagators_parse(str_c(cfg->propagators), &t->propagators, &unknown);
	t->join = (enum rs_join_mode)cfg->join;
	t->events = (enum rs_events_mode)cfg->events;
	t->pair->keep_parts = cfg->rpc_messages;
	t->skip_sdk = cfg->sdk == 0;
	t->limits = (struct rs_limits){
		.attributes = (uint32_t)cfg->max_attributes,
		.events = (uint32_t)cfg->max_events,
		.links = (uint32_t)cfg->max_links,
		.event_attributes = (uint32_t)cfg->max_event_attributes,
		.link_attributes = (uint32_t)cfg->max_link_attributes,
		.value_length = (uint32_t)cfg->max_value_length,
	};
	return unknown;
}

struct str rs_trace_redact(struct rs_trace *t, const struct rs_config *cfg)
{
	return rs_redact_init(&t->redact, &(struct rs_redact_lists){
						  .query = cfg->redact_query,
						  .drop = cfg->drop_attribute,
						  .request = cfg->capture_request_header,
						  .response = cfg->capture_response_header,
					  });
}

void rs_trace_link(struct rs_open *o, enum rs_link_type type, const uint8_t trace_id[16],
		   const uint8_t span_id[8], bool remote)
{
	struct rs_open_link *l = &o->links[o->nlinks];

	if (o->nlinks == RS_PAIR_LINKS) {
		o->dropped_links++;
		return;
	}
	o->nlinks++;
	*l = (struct rs_open_link){ .type = (uint8_t)type, .remote = remote };
	memcpy(l->trace_id, trace_id, sizeof(l->trace_id));
	memcpy(l->span_id, span_id, sizeof(l->span_id));
}

static void link_to(struct rs_open *o, enum rs_link_type type, const struct rs_open *to,
		    bool remote)
{
	if (to->root)
		rs_trace_link(o, type, rs_root_of(to->root)->trace_id, to->span_id, remote);
}

/* Open requests of a process by the trace they came with: a map to the first, the others in its list. */
static uint64_t wire_key(uint32_t tgid, const uint8_t trace_id[16])
{
	uint64_t lo;

	memcpy(&lo, trace_id + 8, sizeof(lo));
	return lo ^ ((uint64_t)tgid << 32 | tgid);
}

/* Where it is noted that a request with this key has ended; others share the place. */
static uint64_t *gone_slot(struct rs_trace *t, uint64_t key)
{
	return &t->gone[rs_hash_mix(key) % RS_TRACE_GONE];
}

static void wire_add(struct rs_trace *t, struct rs_open *o, const uint8_t trace_id[16])
{
	uint64_t key = wire_key(o->x.tgid, trace_id);
	struct rs_open *first = rs_map_get(&t->by_wire, key);

	if (first)
		rs_list_add_tail(&first->of_wire, &o->of_wire);
	else
		rs_map_put(&t->by_wire, key, o);
}

static void wire_del(struct rs_trace *t, struct rs_open *o)
{
	uint64_t key = wire_key(o->x.tgid, rs_root_of(o->root)->trace_id);

	if (rs_map_get(&t->by_wire, key) == o) {
		if (rs_list_empty(&o->of_wire))
			rs_map_del(&t->by_wire, key);
		else
			rs_map_put(&t->by_wire, key,
				   rs_list_entry(o->of_wire.next, struct rs_open, of_wire));
	}
	*gone_slot(t, key) = key;
	rs_list_del(&o->of_wire);
}

static bool in_trace(const struct rs_open *o, const uint8_t trace_id[16])
{
	return o->root && memcmp(rs_root_of(o->root)->trace_id, trace_id, 16) == 0;
}

/*
 * The request of this process that a context sent by it must come from: the only one in that trace, or the
 * only one that came with the very same span id (a forwarded header). NULL: none, or not certain.
 */
static struct rs_open *from_wire(struct rs_trace *t, uint32_t tgid, const struct rs_wire_ctx *wire)
{
	struct rs_open *first = rs_map_get(&t->by_wire, wire_key(tgid, wire->trace_id)),
		       *same = NULL;
	uint64_t key = first ? wire_key(tgid, wire->trace_id) : 0;
	struct rs_list *pos;
	unsigned nsame = 0;

	if (!first || first->x.tgid != tgid || !in_trace(first, wire->trace_id))
		return NULL;
	/* If others of the trace were here before, work that they have left may be what calls. */
	if (rs_list_empty(&first->of_wire))
		return *gone_slot(t, key) != key ||
				       memcmp(first->wire_span_id, wire->span_id, 8) == 0
			       ? first
			       : NULL;
	pos = &first->of_wire;
	for (unsigned i = 0; i < 16;
	     i++) { /* a trace that is here more often: not worth a long look */
		struct rs_open *o = rs_list_entry(pos, struct rs_open, of_wire);

		if (memcmp(o->wire_span_id, wire->span_id, 8) == 0) {
			same = o;
			nsame++;
		}
		pos = pos->next;
		if (pos == &first->of_wire)
			return nsame == 1 ? same : NULL;
	}
	return NULL;
}

/* A trace that begins with o. Its id may still change: see root.h. */
static struct rs_root *own_root(struct rs_trace *t, const struct rs_open *o)
{
	struct rs_root *r = rs_root_new(&t->roots);
	uint8_t span[8];

	if (!r)
		return NULL;
	if (o->far_key) {
		rs_join_ids(o->far_key, r->trace_id, span);
		r->flags = RS_TRACE_SAMPLED;
	} else {
		rs_ids_trace(&t->ids, r->trace_id);
		r->flags = RS_TRACE_SAMPLED | RS_TRACE_RANDOM;
	}
	return r;
}

static void take_wire(struct rs_root *r, const struct rs_msg *m, const struct rs_wire_ctx *wire)
{
	memcpy(r->trace_id, wire->trace_id, sizeof(r->trace_id));
	r->flags = wire->flags;
	r->fixed = true;
	r->nstate = (uint16_t)rs_context_state(m, wire, r->state);
}

static struct rs_root *wire_root(struct rs_trace *t, const struct rs_msg *m,
				 const struct rs_wire_ctx *wire)
{
	struct rs_root *r = rs_root_new(&t->roots);

	if (r)
		take_wire(r, m, wire);
	return r;
}

/* What the kernel told of the request that ends here, as a context from the wire. */
static bool told(struct rs_conn *c, enum rs_ev_context_kind kind, struct rs_wire_ctx *ret)
{
	const struct rs_told *t;

	if (!(c->told_set & 1u << kind))
		return false;
	t = &c->told[kind];
	*ret = (struct rs_wire_ctx){ .flags = t->flags & (RS_TRACE_SAMPLED | RS_TRACE_RANDOM),
				     .format = RS_PROP_COUNT };
	memcpy(ret->trace_id, t->trace_id, sizeof(ret->trace_id));
	memcpy(ret->span_id, t->span_id, sizeof(ret->span_id));
	/* An id is one request's; a thread's active span may be several ones'. */
	if (kind != RS_CONTEXT_SDK)
		c->told_set &= (uint8_t) ~(1u << kind);
	return true;
}

/* Is the other end of the connection on this node, for all that the addresses say? */
static bool peer_local(struct rs_conn *c)
{
	const struct rs_conn_info *i = &c->info;

	if (!c->peer_local) {
		bool same = i->peer.len &&
			    str_eq(rs_conn_addr(i, &i->peer), rs_conn_addr(i, &i->local));

		c->peer_local = same || rs_conn_loopback(i, &i->peer) ? 1 : 2;
	}
	return c->peer_local == 1;
}

/* Client and server of one request have met. */
static void joined(struct rs_trace *t, struct rs_open *server, struct rs_open *client)
{
	t->n->v[RS_C_TRACE_JOINED]++;
	server->far_key = 0;
	if (server->conn && server->conn->proc)
		rs_pair_peer(client, server->conn->proc->service, false);
	if (server->conn)
		server->conn->peer_local = 1;
	if (client->conn)
		client->conn->peer_local = 1;
	if (!server->root || !client->root)
		return;
	if (server->parent_source == RS_PARENT_WIRE) {
		if (memcmp(server->parent_id, client->span_id, 8) != 0)
			link_to(server, RS_LINK_SEQUENCE, client, true);
		return;
	}
	rs_root_of(server->root)->waiting = false;
	if (!rs_root_merge(server->root, client->root) &&
	    !rs_root_merge(client->root, server->root)) {
		link_to(server, RS_LINK_SEQUENCE, client, true);
		return;
	}
	memcpy(server->parent_id, client->span_id, 8);
	server->parent_source = RS_PARENT_SEQUENCE;
	server->parent_remote = true;
}

static struct rs_moment moment(const struct rs_msg *m)
{
	return (struct rs_moment){ m->end_ns, m->slept };
}

/* Who moved the message, or whose the exchange is. */
static uint64_t mover(const struct rs_msg *m)
{
	return rs_thread_id(m->tid, m->task);
}

static uint64_t owner(const struct rs_open *o)
{
	return rs_thread_id(o->x.tid, o->x.task);
}

static struct rs_thread *thread_of(struct rs_trace *t, const struct rs_open *o)
{
	return rs_thread_get(&t->threads, o->x.tgid, owner(o));
}

/* The thread (or NULL) has moved bytes of o's, or for o (NULL: not known for which); perhaps, if it is unsure. */
static void go_to(struct rs_thread *th, struct rs_open *o, struct rs_moment now, bool unsure)
{
	if (!th)
		return;
	rs_thread_at(th, o);
	th->moved = now;
	th->unsure = unsure;
}

static void server_request(struct rs_trace *t, struct rs_open *o, const struct rs_msg *m)
{
	struct rs_wire_ctx wire, other;
	struct rs_open *client;

	if (rs_context_extract(&t->propagators, m, &wire) ||
	    told(o->conn, RS_CONTEXT_RECEIVED, &wire)) {
		o->root = wire_root(t, m, &wire);
		memcpy(o->parent_id, wire.span_id, sizeof(o->parent_id));
		memcpy(o->wire_span_id, wire.span_id, sizeof(o->wire_span_id));
		o->parent_source = RS_PARENT_WIRE;
		o->parent_remote = true;
		if (o->root)
			wire_add(t, o, wire.trace_id);
		if (rs_context_other(&t->propagators, m, &wire, &other))
			rs_trace_link(o, RS_LINK_OTHER_CONTEXT, other.trace_id, other.span_id,
				      true);
	} else {
		o->root = own_root(t, o);
	}
	rs_ids_span(&t->ids, o->span_id);
	if (o->join_key) {
		client = rs_join_meet(&t->joins, o);
		if (client) {
			joined(t, o, client);
		} else if (o->root && o->parent_source == RS_PARENT_NONE && peer_local(o->conn)) {
			o->root->waiting = true;
			o->root->until_ns = o->x.start_ns + RS_TRACE_WAIT_NS;
		}
	}
	go_to(thread_of(t, o), o, moment(m), false);
}

static uint32_t peer_of(const struct rs_conn *c)
{
	return (uint32_t)rs_hash_str(c->info.peer.port, rs_conn_addr(&c->info, &c->info.peer));
}

/*
 * What the thread is at when it makes a call, on a connection that it may have just opened (k). *ret_sure: not
 * RS_SURE_NOT when that is certain. Of tasks the runtime says what there is to know.
 */
static struct rs_open *works_for(struct rs_thread *th, const struct rs_open *o,
				 const struct rs_connect *k, struct rs_moment now,
				 enum rs_sure *ret_sure)
{
	/* Tasks open connections for each other: pools hand them to whoever asks next. */
	struct rs_open *opener = k && !o->x.task ? k->opener : NULL, *at = NULL;
	bool doubt;
	uint32_t peer;

	*ret_sure = RS_SURE_NOT;
	if (th)
		at = rs_thread_works(th, now, ret_sure);
	if (opener) {
		at = opener;
		*ret_sure = k->sure;
	}
	if (!th || o->x.task)
		return at;
	if (th->crew->wanders)
		return NULL;
	peer = peer_of(o->conn);
	doubt = *ret_sure == RS_SURE_NOT && th->nquiet;
	if (at && rs_thread_own(th, peer, doubt) && *ret_sure != RS_SURE_DIRECT)
		*ret_sure = RS_SURE_NOT;
	else if (!at && !th->at && !th->ndark)
		rs_thread_owns(th, peer);
	return at;
}

/* What of this node the call was made for. k: its connection was just opened, or NULL. *ret_doubt: a request it may have been made for. */
static struct rs_open *find_parent(struct rs_trace *t, struct rs_open *o, const struct rs_msg *m,
				   const struct rs_wire_ctx *wire, const struct rs_connect *k,
				   struct rs_open **ret_doubt)
{
	struct rs_thread *th = rs_thread_find(&t->threads, m->tgid, owner(o));
	struct rs_open *parent = wire ? from_wire(t, m->tgid, wire) : NULL, *at;
	enum rs_sure sure;

	*ret_doubt = NULL;
	if (parent) {
		o->parent_source = RS_PARENT_WIRE;
		return parent;
	}
	at = works_for(th, o, k, moment(m), &sure);
	if (!at || sure == RS_SURE_NOT) {
		*ret_doubt = at ? at : th && th->at ? th->at : th ? rs_thread_last(th) : NULL;
		o->unsure = at;
		return NULL;
	}
	if (wire && !in_trace(at, wire->trace_id)) {
		struct rs_root *r = rs_root_of(at->root);

		/* The program began a trace by itself: that is what this one is called. */
		if (!r || r->fixed || r->emitted) {
			if (r)
				link_to(o, RS_LINK_OTHER_CONTEXT, at, false);
			return NULL;
		}
		take_wire(r, m, wire);
		if (at->parent_source != RS_PARENT_WIRE)
			wire_add(t, at, wire->trace_id);
	}
	o->parent_source = o->x.task ? RS_PARENT_GOROUTINE : RS_PARENT_THREAD;
	return at;
}

/* Without a parent: what it may have to do with. */
static void link_doubts(struct rs_trace *t, struct rs_open *o, const struct rs_open *doubt)
{
	struct rs_thread *th = rs_thread_find(&t->threads, o->x.tgid, owner(o));

	if (doubt)
		link_to(o, RS_LINK_THREAD, doubt, false);
	else if (th && th->has_ended && o->x.start_ns - th->ended_ns < ENDED_NS)
		rs_trace_link(o, RS_LINK_THREAD_ENDED, th->ended_trace, th->ended_span, false);
}

/*
 * Requests of a connection are linked to the one it was opened for, if that is not their parent. Threads: that of
 * the first, unless the connection is older than the agent; tasks open connections for whoever asks first, so the
 * one that connected is meant (or NULL).
 */
static void link_opener(struct rs_open *o, const struct rs_open *opener)
{
	struct rs_conn *c = o->conn;

	if (!c->asked && o->x.task && opener && opener->root) {
		c->has_opener = true;
		memcpy(c->opener_trace, rs_root_of(opener->root)->trace_id, 16);
		memcpy(c->opener_span, opener->span_id, 8);
	} else if (!c->asked && !o->x.task && o->parent && !o->unsure && !c->present) {
		c->has_opener = true;
		memcpy(c->opener_trace, rs_root_of(o->root)->trace_id, 16);
		memcpy(c->opener_span, o->parent_id, 8);
	}
	if (c->has_opener && memcmp(c->opener_span, o->parent_id, 8) != 0)
		rs_trace_link(o, RS_LINK_CONNECTION, c->opener_trace, c->opener_span, false);
	c->asked = true;
}

/* The SDK's active span, unless that is the very one which the request's headers name. */
static bool sdk_parent(const struct rs_open *o, const struct rs_wire_ctx *wire,
		       struct rs_wire_ctx *ret)
{
	if (!told(o->conn, RS_CONTEXT_SDK, ret))
		return false;
	return !wire || (memcmp(wire->trace_id, ret->trace_id, 16) == 0 &&
			 memcmp(wire->span_id, ret->span_id, 8) != 0);
}

/* The call is one of parent's; perhaps, if it is unsure. */
static void made_for(struct rs_trace *t, struct rs_open *o, struct rs_open *parent,
		     const struct rs_msg *m)
{
	o->parent = parent;
	rs_list_add_tail(&parent->children, &o->of_parent);
	parent->waits++;
	/* A task may work for what another one is at. */
	if (!o->x.task)
		go_to(thread_of(t, o), parent, moment(m), o->unsure);
	rs_thread_update(parent);
}

static void client_request(struct rs_trace *t, struct rs_open *o, const struct rs_msg *m)
{
	struct rs_wire_ctx ctx, sdk, *wire = NULL, *in;
	struct rs_connect *k =
		o->conn->asked ? NULL : rs_connect_find(&t->connects, o->conn->info.id);
	uint64_t caller = o->conn->has_caller ? o->conn->caller : k ? k->caller : 0;
	struct rs_open *doubt, *parent, *server, *opener;
	bool by_sdk;

	if (rs_context_extract(&t->propagators, m, &ctx)) {
		wire = &ctx;
	} else if (told(o->conn, RS_CONTEXT_SENT, &ctx)) {
		wire = &ctx;
		o->join_key = 0; /* the other end reads it; and a header shifts what it counts */
	}
	by_sdk = sdk_parent(o, wire, &sdk);
	in = wire ? wire : by_sdk ? &sdk : NULL;
	if (!caller && m->task && m->id)
		caller = rs_thread_asks(&t->threads, m->tgid, m->task, m->id);
	if (caller)
		o->x.task = caller;
	o->conn->has_caller = false;
	opener = k ? k->opener : NULL;
	parent = find_parent(t, o, m, in, k, &doubt);
	if (k && k->done_ns)
		rs_pair_fact(o, RS_FACT_CONNECTED, k->took_us, k->done_ns);
	rs_connect_forget(&t->connects, k);
	if (parent && !k && !o->x.task)
		rs_connect_opener_calls(parent);
	if (parent || o->unsure)
		made_for(t, o, parent ? parent : doubt, m);
	if (parent) {
		o->root = parent->root ? rs_root_ref(rs_root_of(parent->root)) : NULL;
		memcpy(o->parent_id, parent->span_id, 8);
	} else {
		o->root = in ? wire_root(t, m, in) : own_root(t, o);
		if (!by_sdk)
			link_doubts(t, o, doubt);
	}
	if (by_sdk) {
		memcpy(o->parent_id, sdk.span_id, sizeof(o->parent_id));
		o->parent_source = RS_PARENT_SDK;
	}
	/* Forwarded as it came (a proxy): that id is the sender's before us. */
	o->forwarded = wire && parent && memcmp(parent->wire_span_id, wire->span_id, 8) == 0;
	if (wire && !o->forwarded)
		memcpy(o->span_id, wire->span_id, 8);
	else if (by_sdk && t->skip_sdk && o->conn->proc && o->conn->proc->sdk)
		memcpy(o->span_id, sdk.span_id, 8); /* no span of ours: the SDK's stands for it */
	else
		rs_ids_span(&t->ids, o->span_id);
	if (o->far_key && !in) {
		uint8_t trace[16];

		/* The agent at the other end calls this span so, in a trace that it can only name so. */
		rs_join_ids(o->far_key, trace, o->span_id);
		if (!in_trace(o, trace))
			rs_trace_link(o, RS_LINK_SEQUENCE, trace, o->span_id, true);
	}
	if (o->join_key) {
		server = rs_join_meet(&t->joins, o);
		if (server)
			joined(t, server, o);
	}
	if (o->root)
		link_opener(o, opener);
	rs_resend_begin(t, o);
}

/* The server answers. Does the thread that read a request also answer it? */
static void answered(struct rs_open *o, const struct rs_msg *m)
{
	struct rs_thread *th = o->thread;
	bool itself = th && th->id == mover(m);

	if (!th)
		return;
	if (!o->x.task)
		rs_thread_answered(th, itself);
	else if (!itself)
		th->hands_off |= !o->served;
	if (itself)
		go_to(th, o, moment(m), false);
	else
		rs_thread_update(o);
}

/* The thread goes on with the request that a call was made for; if another thread made it, nobody can say with what. */
static void back_from_call(struct rs_trace *t, const struct rs_open *o, uint32_t tgid, uint32_t tid,
			   struct rs_moment now)
{
	go_to(rs_thread_get(&t->threads, tgid, tid), tid == o->x.tid ? o->parent : NULL, now,
	      o->unsure);
}

void rs_trace_message(struct rs_trace *t, struct rs_open *o, const struct rs_msg *m)
{
	bool server = o->x.role == RS_ROLE_SERVER;

	if (!o->has_request)
		return;
	switch ((enum rs_msg_type)m->type) {
	case RS_MSG_REQUEST:
		o->join_key = t->join == RS_JOIN_OFF ? 0 : rs_join_key(m, o->conn);
		o->far_key =
			t->join == RS_JOIN_CLUSTER ? rs_join_far_key(o->join_key, m, o->conn) : 0;
		if (server)
			server_request(t, o, m);
		else
			client_request(t, o, m);
		break;
	case RS_MSG_REQUEST_END:
		/* The body was read by the thread that handles the request. Tasks read for each other. */
		if (server && !o->x.has_response && !o->x.task)
			go_to(rs_thread_get(&t->threads, m->tgid, m->tid), o, moment(m), false);
		break;
	case RS_MSG_RESPONSE:
		if (server)
			answered(o, m);
		else
			rs_resend_response(o, m);
		/* fallthrough */
	case RS_MSG_RESPONSE_END:
		if (!server && !o->x.task)
			back_from_call(t, o, m->tgid, m->tid, moment(m));
		break;
	case RS_MSG_INTERIM:
	case RS_MSG_PART:
		break;
	}
}

void rs_trace_body(struct rs_trace *t, struct rs_conn *c, const struct rs_ev_data *ev)
{
	struct rs_open *o = rs_list_entry(c->open.next, struct rs_open, of_conn);
	struct rs_moment now = { ev->h.ts_ns, ev->slept };

	if (!o->has_request || o->x.task)
		return;
	if (o->x.role == RS_ROLE_CLIENT)
		back_from_call(t, o, ev->tgid, ev->tid, now);
	else if (o->thread && o->thread->id == ev->tid)
		go_to(o->thread, o, now, false);
}

void rs_trace_connect(struct rs_trace *t, uint64_t conn, uint32_t tgid, uint64_t who,
		      struct rs_moment now)
{
	struct rs_thread *th = rs_thread_find(&t->threads, tgid, who);
	enum rs_sure sure = RS_SURE_NOT;
	struct rs_open *o = NULL;

	if (th && ((who & RS_THREAD_TASK) || !th->crew->wanders))
		o = rs_thread_works(th, now, &sure);
	rs_connect_begin(&t->connects, conn, o, (uint8_t)sure);
}

/* The request with this number that is being served on the connection. */
static struct rs_open *serving(struct rs_conn *c, uint32_t id)
{
	struct rs_list *pos;

	rs_list_for_each (pos, &c->open) {
		struct rs_open *o = rs_list_entry(pos, struct rs_open, of_conn);

		if (o->id == id && o->has_request && o->x.role == RS_ROLE_SERVER)
			return o;
	}
	return NULL;
}

void rs_trace_task(struct rs_trace *t, struct rs_conn *c, const struct rs_ev_task *ev)
{
	struct rs_connect *k;
	struct rs_thread *th;
	struct rs_open *o;

	switch ((enum rs_ev_task_kind)ev->kind) {
	case RS_TASK_SPAWN:
		rs_thread_spawn(&t->threads, ev->tgid, ev->parent, ev->task, ev->stream);
		break;
	case RS_TASK_CALLS:
		if (!ev->conn) {
			rs_thread_ask(&t->threads, ev->tgid, ev->parent, ev->stream, ev->task);
			break;
		}
		k = c ? NULL : rs_connect_find(&t->connects, ev->conn);
		if (c) {
			c->caller = ev->task;
			c->has_caller = ev->task != 0;
		} else if (k) {
			k->caller = ev->task;
		}
		break;
	case RS_TASK_SERVES:
		o = c ? serving(c, ev->stream) : NULL;
		if (!o)
			break;
		o->served = true;
		o->x.task = ev->task;
		th = thread_of(t, o);
		if (th)
			rs_thread_at(th, o);
		break;
	}
}

void rs_trace_conn_gone(struct rs_trace *t, struct rs_conn *c)
{
	if (!c->asked)
		rs_connect_forget(&t->connects, rs_connect_find(&t->connects, c->info.id));
}

void rs_trace_end(struct rs_trace *t, struct rs_open *o)
{
	struct rs_thread *server = o->served ? o->thread : NULL;
	struct rs_list *pos, *tmp;

	if (!o->has_request)
		return;
	rs_resend_end(t, o);
	if (o->thread && o->thread->at == o && o->root) {
		struct rs_thread *th = o->thread;

		th->has_ended = true;
		memcpy(th->ended_trace, rs_root_of(o->root)->trace_id, 16);
		memcpy(th->ended_span, o->span_id, 8);
		th->ended_ns = o->x.end_ns;
	}
	rs_thread_leave(o);
	rs_thread_reclaim(&t->threads, o);
	rs_thread_forget(&t->threads, server);
	rs_list_for_each_safe (pos, tmp, &o->children) {
		rs_list_entry(pos, struct rs_open, of_parent)->parent = NULL;
		rs_list_del(pos);
	}
	rs_connect_opener_ends(o);
	if (o->parent) {
		rs_list_del(&o->of_parent);
		o->parent->waits--;
		rs_thread_update(o->parent);
		o->parent = NULL;
	}
	if (o->root && o->x.role == RS_ROLE_SERVER)
		wire_del(t, o);
}

bool rs_trace_waits(const struct rs_open *o, uint64_t now_ns)
{
	const struct rs_root *r = rs_root_of(o->root);

	return r && r->waiting && now_ns < r->until_ns;
}

void rs_trace_forget(struct rs_trace *t, struct rs_open *o)
{
	rs_join_forget(&t->joins, o);
	rs_messages_forget(t, o);
	rs_root_put(&t->roots, o->root);
	o->root = NULL;
}
