// SPDX-License-Identifier: Apache-2.0
#include "join.h"

#include "base/hash.h"
#include "trace/ids.h"

/*
 * Does the connection's own number and the request's stand for where the request begins? In TLS, several requests may
 * share a record, or one may be read in other pieces than it was written in.
 */
static bool by_stream(const struct rs_msg *m, const struct rs_conn *c)
{
	return c->info.tls && m->id;
}

uint64_t rs_join_key(const struct rs_msg *m, const struct rs_conn *c)
{
	uint64_t h = m->seq;

	if (m->flags & (RS_MSGF_CUT | RS_MSGF_RESYNC))
		return 0;
	if (by_stream(m, c) && (c->present || !c->oseq))
		return 0;
	if (by_stream(m, c))
		h = rs_hash_mix((uint64_t)m->id << 32 | c->oseq);
	if (!h)
		return 0;
	if (c->info.family == RS_FAMILY_UNIX) {
		/* Offsets count from first sight: if the connection is older than we, from when both ends were at rest. */
		uint64_t client = m->dir == RS_DIR_OUT ? c->info.id : c->peer;

		if (!client || (c->present && !c->rested))
			return 0;
		if (c->present)
			h = (uint32_t)(m->seq - c->rest_off[m->dir & 1]);
		h = rs_hash_mix(client + h);
	}
	for (unsigned i = 0; i < m->nfields; i++)
		h = rs_hash_str(h + m->fields[i].id, m->fields[i].value);
	/* The lowest bit tells the two ends apart in the table. */
	return h > 1 ? h & ~1ULL : 2;
}

uint64_t rs_join_far_key(uint64_t key, const struct rs_msg *m, const struct rs_conn *c)
{
	uint64_t answered = c->next_off[c->role == RS_ROLE_CLIENT ? RS_DIR_IN : RS_DIR_OUT];

	/* A Unix socket's other end is on this node. Of streams, answers are sent and read in any order. */
	if (c->info.family == RS_FAMILY_UNIX || by_stream(m, c))
		return 0;
	return key && c->oseq ? rs_hash_mix(key + c->oseq + answered) : key;
}

void rs_join_ids(uint64_t key, uint8_t ret_trace[16], uint8_t ret_span[8])
{
	rs_ids_put(ret_trace, rs_hash_mix(key + 0x9e3779b97f4a7c15ULL));
	rs_ids_put(ret_trace + 8, rs_hash_mix(key + 0x3c6ef372fe94f82aULL) | 1);
	rs_ids_put(ret_span, rs_hash_mix(key + 0xdaa66d2c7ddf743fULL) | 1);
}

void rs_joins_init(struct rs_joins *j, uint32_t max)
{
	rs_map_init(&j->by_key, max);
}

void rs_joins_release(struct rs_joins *j)
{
	rs_map_release(&j->by_key);
}

static uint64_t slot(const struct rs_open *o, bool other)
{
	return o->join_key | ((o->x.role == RS_ROLE_SERVER) != other);
}

struct rs_open *rs_join_meet(struct rs_joins *j, struct rs_open *o)
{
	struct rs_open *met = rs_map_del(&j->by_key, slot(o, true)), *before;

	if (met) {
		met->join_key = o->join_key = 0;
		return met;
	}
	before = rs_map_get(&j->by_key, slot(o, false));
	if (before)
		before->join_key = 0;
	if (rs_map_put(&j->by_key, slot(o, false), o))
		o->join_key = 0;
	return NULL;
}

void rs_join_forget(struct rs_joins *j, struct rs_open *o)
{
	if (o->join_key)
		rs_map_del(&j->by_key, slot(o, false));
	o->join_key = 0;
}
