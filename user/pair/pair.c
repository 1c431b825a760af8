// SPDX-License-Identifier: Apache-2.0
#include "pair.h"

#include "base/hash.h"

#define BIG_BYTES (4 * RS_PAIR_FIELD)

void rs_pair_init(struct rs_pair *p, uint32_t max, struct rs_counters *n)
{
	*p = (struct rs_pair){ .n = n };
	rs_pool_init(&p->pool, sizeof(struct rs_open), max);
	rs_pool_init(&p->big, BIG_BYTES, max / 16 + 16);
	rs_list_init(&p->all);
	rs_map_init(&p->by_id, max);
}

void rs_pair_release(struct rs_pair *p)
{
	rs_pool_release(&p->pool);
	rs_pool_release(&p->big);
	rs_map_release(&p->by_id);
}

bool rs_pair_full(const struct rs_pair *p)
{
	return p->pool.in_use >= p->pool.max;
}

struct rs_open *rs_pair_oldest(const struct rs_pair *p)
{
	return rs_list_empty(&p->all) ? NULL : rs_list_entry(p->all.next, struct rs_open, of_all);
}

void rs_open_ahead(const struct rs_open *o)
{
	const char *req = (const char *)o->x.req, *own = (const char *)&o->conn;

	__builtin_prefetch(o, 1);
	__builtin_prefetch((const char *)o + 64, 1);
	for (size_t i = 0; i < 192; i += 64)
		__builtin_prefetch(req + i);
	for (size_t i = 0; i < 384; i += 64)
		__builtin_prefetch(own + i, 1);
	__builtin_prefetch(o->x.resp, 1);
	__builtin_prefetch(o->x.resp + 3, 1);
	__builtin_prefetch(o->buf);
	__builtin_prefetch(o->buf + 64);
}

/* Copies s into the exchange's memory, cut at RS_PAIR_FIELD. */
static struct str keep(struct rs_pair *p, struct rs_open *o, struct str s)
{
	char *to;

	if (s.len > RS_PAIR_FIELD) {
		p->n->v[RS_C_PAIR_FIELD_CUT]++;
		s.len = RS_PAIR_FIELD;
	}
	if (s.len <= sizeof(o->buf) - o->used) {
		to = o->buf + o->used;
		o->used += (uint32_t)s.len;
	} else {
		if (!o->more) {
			o->more = rs_pool_get(&p->big);
			o->more_used = 0;
		}
		if (!o->more || s.len > BIG_BYTES - o->more_used) {
			p->n->v[RS_C_PAIR_FIELD_DROPPED]++;
			return STR_NONE;
		}
		to = o->more + o->more_used;
		o->more_used += (uint32_t)s.len;
	}
	if (s.len)
		memcpy(to, s.ptr, s.len);
	return str_of(to, s.len);
}

/* A key that two open exchanges do not share but by accident; what is found is checked. */
static uint64_t id_key(const struct rs_conn *c, uint32_t id)
{
	return rs_hash_mix(c->info.id * 0x9e3779b97f4a7c15ULL + id);
}

static struct rs_open *new_open(struct rs_pair *p, struct rs_conn *c, const struct rs_msg *m)
{
	struct rs_open *o = rs_pool_get(&p->pool);

	if (!o)
		return NULL;
	/* Field arrays and buffers are written before they are read: their counts say how far. */
	memset(&o->x, 0, offsetof(struct rs_exchange, req));
	memset((char *)o + sizeof(o->x), 0, offsetof(struct rs_open, facts) - sizeof(o->x));
	o->nfacts = o->nparts = o->dropped_facts = o->used = o->more_used = 0;
	o->more = NULL;
	o->conn = c;
	o->id = m->id;
	o->x.ops = rs_l7_proto(&c->l7);
	o->x.conn = &c->info;
	rs_list_init(&o->of_parent);
	rs_list_init(&o->children);
	rs_list_init(&o->of_thread);
	rs_list_init(&o->borrowers);
	rs_list_init(&o->of_wire);
	rs_list_init(&o->opened);
	rs_list_add_tail(&c->open, &o->of_conn);
	rs_list_add_tail(&p->all, &o->of_all);
	c->nopen++;
	/* An id that is there already: its exchange was not seen to end; the map forgets it. */
	if (o->id)
		(void)rs_map_put(&p->by_id, id_key(c, o->id), o);
	return o;
}

/* Behind the n that are kept. Returns how many there are then. */
static uint8_t keep_fields(struct rs_pair *p, struct rs_open *o, const struct rs_msg *m,
			   struct rs_field *to, uint8_t n)
{
	for (unsigned i = 0; i < m->nfields && n < RS_MSG_FIELDS; i++) {
		struct str s;

		if (m->fields[i].id < RS_F_PROTO)
			continue;
		s = keep(p, o, m->fields[i].value);
		if (s.ptr || !m->fields[i].value.len)
			to[n++] = (struct rs_field){ m->fields[i].id, s };
	}
	return n;
}

static struct rs_open *find_id(const struct rs_pair *p, const struct rs_conn *c, uint32_t id)
{
	struct rs_open *o = rs_map_get(&p->by_id, id_key(c, id));

	return o && o->conn == c && o->id == id ? o : NULL;
}

/* The exchange m belongs to, if `fits` says so: by its number, else the first in order. */
static struct rs_open *first(const struct rs_pair *p, struct rs_conn *c, const struct rs_msg *m,
			     bool (*fits)(const struct rs_open *o))
{
	struct rs_list *pos;

	if (rs_l7_numbered(&c->l7)) {
		struct rs_open *o = find_id(p, c, m->id);

		return o && fits(o) ? o : NULL;
	}
	rs_list_for_each (pos, &c->open) {
		struct rs_open *o = rs_list_entry(pos, struct rs_open, of_conn);

		if (fits(o))
			return o;
	}
	return NULL;
}

static bool without_request(const struct rs_open *o)
{
	return !o->has_request;
}

static bool without_response(const struct rs_open *o)
{
	return !o->x.has_response;
}

/* Head seen, end not. */
static bool request_open(const struct rs_open *o)
{
	return o->has_request && !o->x.request_done;
}

static bool response_open(const struct rs_open *o)
{
	return o->x.has_response && !o->response_done;
}

static bool unfinished(const struct rs_open *o)
{
	return !o->response_done;
}

static void finish(struct rs_pair *p, struct rs_open *o, enum rs_xend end, uint64_t end_ns)
{
	o->finished = true;
	o->x.end = end;
	o->x.end_ns = end_ns < o->x.start_ns ? o->x.start_ns : end_ns;
	if (!o->has_request)
		return;
	p->n->v[RS_C_PAIR_FINISHED]++;
	p->n->v[RS_C_PAIR_END_UNKNOWN] += end == RS_XEND_LOST;
}

static struct rs_open *add_request(struct rs_pair *p, struct rs_conn *c, const struct rs_msg *m)
{
	struct rs_open *o = first(p, c, m, without_request);

	p->n->v[RS_C_PAIR_REQUESTS]++;
	if (c->confused) {
		p->n->v[RS_C_PAIR_CONFUSED]++;
		return NULL;
	}
	if (!o)
		o = new_open(p, c, m);
	if (!o) {
		p->n->v[RS_C_PAIR_NO_ROOM]++;
		return NULL;
	}
	o->has_request = true;
	o->x.role = (m->dir == RS_DIR_IN) == !(m->flags & RS_MSGF_PUSHED) ? RS_ROLE_SERVER
									  : RS_ROLE_CLIENT;
	o->heard_ns = m->end_ns;
	o->x.start_ns = m->start_ns;
	o->x.tgid = m->tgid;
	o->x.tid = m->tid;
	o->x.task = m->task;
	o->seq = m->seq;
	o->x.cut |= (m->flags & RS_MSGF_CUT) != 0;
	o->x.nreq = keep_fields(p, o, m, o->x.req, 0);
	if (o->response_done)
		finish(p, o, RS_XEND_OK, o->x.end_ns);
	return o;
}

static struct rs_open *add_response(struct rs_pair *p, struct rs_conn *c, const struct rs_msg *m)
{
	struct rs_open *o = c->confused ? NULL : first(p, c, m, without_response);

	if (!o && !c->confused && c->synced && m->dir == RS_DIR_IN)
		o = new_open(p, c, m); /* a client's: its request is about to be seen */
	if (!o) {
		p->n->v[RS_C_PAIR_ORPHAN_RESPONSE]++;
		return NULL;
	}
	if (rs_l7_numbered(&c->l7))
		o->x.ops = rs_l7_proto(&c->l7); /* the request may have come in another's form */
	else
		c->pipelined |= c->synced && o->of_conn.next != &c->open;
	o->heard_ns = m->end_ns;
	o->x.has_response = true;
	o->x.resp_start_ns = m->start_ns;
	o->x.cut |= (m->flags & RS_MSGF_CUT) != 0;
	o->x.nresp = keep_fields(p, o, m, o->x.resp, 0);
	return o;
}

static void keep_part(struct rs_open *o, const struct rs_msg *m)
{
	if (o->nparts == RS_PAIR_PARTS)
		o->dropped_facts++;
	else
		o->parts[o->nparts++] =
			(struct rs_open_part){ m->end_ns, m->dir, (uint32_t)m->body_size };
}

struct rs_open *rs_pair_add(struct rs_pair *p, struct rs_conn *c, const struct rs_msg *m)
{
	struct rs_open *o;

	switch ((enum rs_msg_type)m->type) {
	case RS_MSG_REQUEST:
		return add_request(p, c, m);
	case RS_MSG_RESPONSE:
		return add_response(p, c, m);
	case RS_MSG_REQUEST_END:
		o = first(p, c, m, request_open);
		if (o) {
			o->heard_ns = m->end_ns;
			memcpy(o->x.parts, m->parts, sizeof(o->x.parts));
			o->x.request_done = !(m->flags & RS_MSGF_ABORTED);
			o->x.req_body = m->body_size;
		}
		return o;
	case RS_MSG_RESPONSE_END:
		o = first(p, c, m, m->flags & RS_MSGF_RESET ? unfinished : response_open);
		if (!o)
			return NULL;
		o->heard_ns = m->end_ns;
		o->x.nresp = keep_fields(p, o, m, o->x.resp, o->x.nresp);
		memcpy(o->x.parts, m->parts, sizeof(o->x.parts));
		o->response_done = true;
		o->x.resp_body = m->body_size;
		o->x.cut |= (m->flags & RS_MSGF_CUT) != 0;
		o->x.end_ns = m->end_ns;
		if (m->flags & RS_MSGF_RESET)
			finish(p, o, RS_XEND_ABORTED, m->end_ns);
		else if (m->flags & RS_MSGF_ABORTED)
			finish(p, o,
			       c->reset	      ? RS_XEND_RESET
			       : o->proc_gone ? RS_XEND_PROC_GONE
					      : RS_XEND_CLOSED,
			       m->end_ns);
		else if (o->has_request)
			finish(p, o, RS_XEND_OK, m->end_ns);
		return o;
	case RS_MSG_PART:
		o = p->keep_parts ? find_id(p, c, m->id) : NULL;
		if (o)
			keep_part(o, m);
		return NULL;
	case RS_MSG_INTERIM:
		return NULL;
	}
	return NULL;
}

void rs_pair_peer(struct rs_open *o, struct str name, bool is_name)
{
	if (o->x.peer.len || !name.len || name.len > sizeof(o->peer))
		return;
	memcpy(o->peer, name.ptr, name.len);
	o->x.peer = str_of(o->peer, name.len);
	o->x.peer_is_name = is_name;
}

void rs_pair_fact(struct rs_open *o, uint8_t kind, uint32_t value, uint64_t ts_ns)
{
	for (uint32_t i = 0; i < o->nfacts; i++) {
		if (o->facts[i].kind == kind) {
			o->facts[i].count++;
			o->facts[i].value += kind < RS_FACT_PROC ? value : 0;
			return;
		}
	}
	if (o->nfacts == RS_PAIR_FACTS) {
		o->dropped_facts++;
		return;
	}
	o->facts[o->nfacts++] =
		(struct rs_open_fact){ .ts_ns = ts_ns, .kind = kind, .value = value, .count = 1 };
}

struct rs_open *rs_pair_lost(struct rs_conn *c, enum rs_ev_dir dir)
{
	struct rs_open *o;
	bool request_dir;

	c->synced = false;
	if (rs_list_empty(&c->open))
		return NULL;
	if (c->pipelined) {
		c->confused = c->nopen > 1;
		return NULL;
	}
	o = rs_list_entry(c->open.prev, struct rs_open, of_conn);
	request_dir = (dir == RS_DIR_IN) == (o->x.role == RS_ROLE_SERVER);
	/*
	 * A piece of a request's body may be missing; its answer is still to come. Behind a whole request
	 * another one is missing, and its answer; and what is missing of responses may be the answer to
	 * this one: what comes now can then answer a request that is missing, too.
	 */
	return o->has_request && request_dir && !o->x.request_done ? o : NULL;
}

bool rs_pair_doubtful(const struct rs_open *o)
{
	const struct rs_conn *c = o->conn;
	enum rs_ev_dir answers = o->x.role == RS_ROLE_CLIENT ? RS_DIR_IN : RS_DIR_OUT;

	if (!c || !rs_l7_numbered(&c->l7))
		return false;
	return c->l7.s[answers].lost_ns >= o->heard_ns ||
	       (!o->x.request_done && c->l7.s[!answers].lost_ns >= o->heard_ns);
}

void rs_pair_end(struct rs_pair *p, struct rs_open *o, enum rs_xend end, uint64_t ts_ns)
{
	finish(p, o, end, ts_ns);
}

void rs_pair_detach(struct rs_pair *p, struct rs_open *o)
{
	if (!o->conn)
		return;
	rs_list_del(&o->of_conn);
	rs_list_del(&o->of_all);
	o->conn->nopen--;
	if (o->id && rs_map_get(&p->by_id, id_key(o->conn, o->id)) == o)
		(void)rs_map_del(&p->by_id, id_key(o->conn, o->id));
	/* At rest, after a whole exchange: what comes next is seen from its beginning. */
	if (o->conn->nopen == 0 && o->has_request && o->x.end == RS_XEND_OK)
		o->conn->synced = true;
	if (!o->has_request)
		p->n->v[RS_C_PAIR_ORPHAN_RESPONSE]++;
	o->conn = NULL;
}

void rs_pair_put(struct rs_pair *p, struct rs_open *o)
{
	rs_pair_detach(p, o);
	rs_pool_put(&p->big, o->more);
	rs_pool_put(&p->pool, o);
}
