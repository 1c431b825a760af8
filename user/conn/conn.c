// SPDX-License-Identifier: Apache-2.0
#include "conn.h"

#include <arpa/inet.h>

#include "base/hash.h"

#define HANDSHAKES 1024 /* that are followed at once: 8 MB */

void rs_conns_init(struct rs_conns *cs, uint32_t max, struct rs_counters *n)
{
	*cs = (struct rs_conns){ .n = n };
	rs_map_init(&cs->by_id, max);
	rs_map_init(&cs->by_ends, max);
	rs_pool_init(&cs->pool, sizeof(struct rs_conn), max);
	rs_pool_init(&cs->handshakes, sizeof(struct rs_tls_handshake), HANDSHAKES);
	rs_pool_init(&cs->facts, sizeof(struct rs_tls_facts), max);
	rs_pool_init(&cs->told, RS_CONTEXT_KINDS * sizeof(struct rs_told), max);
	rs_list_init(&cs->lru);
}

void rs_conns_release(struct rs_conns *cs)
{
	rs_map_release(&cs->by_id);
	rs_map_release(&cs->by_ends);
	rs_pool_release(&cs->pool);
	rs_pool_release(&cs->handshakes);
	rs_pool_release(&cs->facts);
	rs_pool_release(&cs->told);
}

void rs_conns_ahead(const struct rs_conns *cs, uint64_t id)
{
	rs_map_ahead(&cs->by_id, id);
}

void rs_conns_ahead_more(const struct rs_conns *cs, uint64_t id, int dir)
{
	const struct rs_conn *c = rs_conns_find(cs, id);

	if (!c)
		return;
	__builtin_prefetch(c, 1);
	__builtin_prefetch(&c->open, 1);
	if (dir < 0)
		return;
	__builtin_prefetch(&c->l7.s[dir], 1);
	__builtin_prefetch(c->l7.own, 1);
}

struct rs_conn *rs_conns_find(const struct rs_conns *cs, uint64_t id)
{
	return rs_map_get(&cs->by_id, id);
}

/* A list kept in order would cost each record its neighbours' cache lines. */
struct rs_conn *rs_conns_oldest(struct rs_conns *cs)
{
	while (!rs_list_empty(&cs->lru)) {
		struct rs_conn *c = rs_list_entry(cs->lru.next, struct rs_conn, lru);

		if (!c->used)
			return c;
		c->used = false;
		rs_list_del(&c->lru);
		rs_list_add_tail(&cs->lru, &c->lru);
	}
	return NULL;
}

struct rs_conn *rs_conns_get(struct rs_conns *cs, uint64_t id, bool *ret_new)
{
	struct rs_conn *c = rs_conns_find(cs, id);

	*ret_new = !c;
	if (c)
		return c;
	c = rs_pool_get(&cs->pool);
	if (!c)
		return NULL;
	*c = (struct rs_conn){ .info.id = id, .epoch = cs->epoch };
	if (rs_map_put(&cs->by_id, id, c)) {
		rs_pool_put(&cs->pool, c);
		return NULL;
	}
	rs_l7_init(&c->l7);
	rs_list_init(&c->of_proc);
	rs_list_init(&c->open);
	rs_list_init(&c->closing);
	rs_list_add_tail(&cs->lru, &c->lru);
	cs->n->v[RS_C_CONN_OPENED]++;
	return c;
}

void rs_conns_touch(struct rs_conns *cs, struct rs_conn *c, uint64_t ts_ns)
{
	c->last_ns = ts_ns;
	c->epoch = cs->epoch;
	c->used = true;
}

static void end_handshake(struct rs_conns *cs, struct rs_conn *c)
{
	if (c->handshake)
		rs_pool_put(&cs->handshakes, c->handshake);
	c->handshake = NULL;
}

/* TLS begins with a connection, or behind what was given up (a tunnel); one older than the agent is cut in. */
static bool begins_tls(const struct rs_conn *c, const struct rs_ev_data *ev)
{
	struct str bytes = { (const char *)ev->data, ev->cap };

	if (c->l7.phase == RS_L7_ACTIVE)
		return false;
	if (c->l7.phase == RS_L7_IGNORED)
		return rs_tls_begins(bytes, false);
	return ev->off == 0 && rs_tls_begins(bytes, c->present || !c->synced);
}

/*
 * A record of the client's that is application data: it looks like that, is more than the closing alert (RFC 8446,
 * 5.2, 6.1), and from 1.3 on there was another before it, that ended the handshake.
 */
static bool asks(const struct rs_conn *c, struct str bytes, const struct rs_ev_data *ev)
{
	bool client = (ev->dir == RS_DIR_OUT) == (c->role == RS_ROLE_CLIENT);
	const struct rs_tls_facts *f = rs_conn_facts(&c->info);
	uint32_t len = ev->len;

	if (!client || !c->role || bytes.len < 5 || bytes.ptr[0] != 23)
		return false;
	if (len == 5) /* its header is read by itself */
		len += (uint32_t)(uint8_t)bytes.ptr[3] << 8 | (uint8_t)bytes.ptr[4];
	return len > 5 + 2 + 1 + 16 && (f->done_ns || f->version == 0x0303);
}

bool rs_conn_cipher(struct rs_conns *cs, struct rs_conn *c, const struct rs_ev_data *ev)
{
	struct str bytes = { (const char *)ev->data, ev->cap };

	if (ev->source == RS_SRC_TLS)
		return false;
	if (!c->info.tls) {
		if (!begins_tls(c, ev))
			return false;
		c->info.tls = true;
		cs->n->v[RS_C_CONN_TLS]++;
		c->info.facts = rs_pool_get(&cs->facts);
		if (c->info.facts)
			memset(c->info.facts, 0, sizeof(*c->info.facts));
		if (c->info.facts && rs_tls_begins(bytes, false))
			c->handshake = rs_pool_get(&cs->handshakes);
		if (c->handshake) {
			memset(c->handshake, 0, sizeof(*c->handshake));
			c->handshake->s[0].next = c->handshake->s[1].next = UINT64_MAX;
			c->info.facts->began_ns = ev->h.ts_ns;
		}
	}
	c->tls_asked |= asks(c, bytes, ev);
	if (c->handshake) {
		struct rs_tls_stream *s = &c->handshake->s[ev->dir & 1];

		/* Behind a tunnel it does not begin at offset 0. */
		if (s->next == UINT64_MAX)
			s->next = ev->off;
		if (rs_tls_feed(c->handshake, c->info.facts, ev->dir & 1, ev->off, bytes, ev->len,
				ev->h.ts_ns) != RS_TLS_MORE)
			end_handshake(cs, c);
	}
	return true;
}

void rs_conn_plain(struct rs_conns *cs, struct rs_conn *c, struct rs_l7_env *env)
{
	if (c->plain)
		return;
	c->plain = true;
	if (!c->info.tls)
		cs->n->v[RS_C_CONN_TLS]++;
	c->info.tls = true;
	c->told_policy = c->l7.told;
	rs_l7_release(&c->l7, env);
	rs_l7_init(&c->l7);
	c->next_off[0] = c->next_off[1] = 0;
}

void rs_conns_drop(struct rs_conns *cs, struct rs_conn *c)
{
	end_handshake(cs, c);
	rs_pool_put(&cs->facts, c->info.facts);
	rs_pool_put(&cs->told, c->told);
	rs_map_del(&cs->by_id, c->info.id);
	if (c->ends && rs_map_get(&cs->by_ends, c->ends) == c)
		rs_map_del(&cs->by_ends, c->ends);
	rs_list_del(&c->lru);
	rs_list_del(&c->closing);
	rs_pool_put(&cs->pool, c);
	cs->n->v[RS_C_CONN_CLOSED]++;
}

static bool at_rest(const struct rs_conn *c)
{
	return c->synced && !c->nopen;
}

static void rest(struct rs_conn *c)
{
	c->rested = true;
	c->rest_off[0] = c->next_off[0];
	c->rest_off[1] = c->next_off[1];
}

void rs_conn_rests(struct rs_conns *cs, struct rs_conn *c)
{
	struct rs_conn *other;

	if (!c->present || !c->peer || !at_rest(c))
		return;
	other = rs_conns_find(cs, c->peer);
	if (!other || !at_rest(other))
		return;
	rest(c);
	rest(other);
}

void rs_conn_tell(struct rs_conns *cs, struct rs_conn *c, const struct rs_ev_context *ev)
{
	struct rs_told *t;

	if (!c->told)
		c->told = rs_pool_get(&cs->told);
	if (!c->told)
		return;
	t = &c->told[ev->kind];
	c->told_set |= (uint8_t)(1u << ev->kind);
	*t = (struct rs_told){ .flags = ev->flags, .len = ev->len, .off = ev->off };
	memcpy(t->trace_id, ev->trace_id, sizeof(t->trace_id));
	memcpy(t->span_id, ev->span_id, sizeof(t->span_id));
}

void rs_conn_forget_told(struct rs_conn *c, const struct rs_ev_data *ev)
{
	for (int i = 0; c->told_set && i < RS_CONTEXT_KINDS; i++) {
		const struct rs_told *t = &c->told[i];

		if ((i == RS_CONTEXT_RECEIVED) == (ev->dir == RS_DIR_IN) &&
		    ev->off - t->off >= t->len)
			c->told_set &= (uint8_t) ~(1u << i);
	}
}

static void ip_text(struct rs_conn_info *i, struct rs_endpoint *e, uint8_t family,
		    const __u8 addr[16], uint16_t port)
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
	char text[INET6_ADDRSTRLEN];

	e->port = port;
	if (family == RS_FAMILY_INET)
		inet_ntop(AF_INET, addr, text, sizeof(text));
	else if (memcmp(addr, mapped, sizeof(mapped)) ==
		 0) /* an IPv4 client of a dual-stack socket */
		inet_ntop(AF_INET, addr + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, addr, text, sizeof(text));
	rs_conn_set_addr(i, e, str_c(text));
}

bool rs_conn_loopback(const struct rs_conn_info *i, const struct rs_endpoint *e)
{
	struct str addr = rs_conn_addr(i, e);

	return str_starts(addr, STR("127.")) || str_eq(addr, STR("::1"));
}

/* Loopback addresses mean another machine in each network namespace; others are the same from all of them. */
static uint64_t hash_ends(const struct rs_conn_info *i, const struct rs_endpoint *here,
			  const struct rs_endpoint *there, uint32_t netns)
{
	bool loop = rs_conn_loopback(i, here);
	uint64_t h = rs_hash_mix((uint64_t)here->port << 16 | there->port);

	h = rs_hash_str(rs_hash_str(h, rs_conn_addr(i, here)), rs_conn_addr(i, there));
	h = rs_hash_mix(h ^ (loop ? netns : 0));
	return h ? h : 1;
}

/* Are i's local end and k's peer the same? */
static bool same_end(const struct rs_conn_info *i, const struct rs_conn_info *k)
{
	return i->local.port == k->peer.port &&
	       str_eq(rs_conn_addr(i, &i->local), rs_conn_addr(k, &k->peer));
}

struct rs_conn *rs_conns_other_end(const struct rs_conns *cs, const struct rs_conn *c)
{
	struct rs_conn *o = c->peer ? rs_conns_find(cs, c->peer) : NULL;

	if (o || !c->ends_there)
		return o;
	o = rs_map_get(&cs->by_ends, c->ends_there);
	return o && same_end(&o->info, &c->info) && same_end(&c->info, &o->info) ? o : NULL;
}

void rs_conn_describe(struct rs_conns *cs, struct rs_conn *c, const struct rs_ev_open *ev)
{
	struct rs_conn_info *i = &c->info;

	c->netns = ev->netns;

	c->role = ev->role;
	c->oseq = ev->oseq;
	i->family = ev->family;
	i->l4 = ev->l4;
	if (ev->family == RS_FAMILY_INET || ev->family == RS_FAMILY_INET6) {
		ip_text(i, &i->local, ev->family, ev->laddr, ev->lport);
		ip_text(i, &i->peer, ev->family, ev->raddr, ev->rport);
		if (!memchr(i->addrs, ':', i->local.len))
			i->family = RS_FAMILY_INET;
		if (i->local.port && i->peer.port && !c->ends) {
			c->ends = hash_ends(i, &i->local, &i->peer, c->netns);
			c->ends_there = hash_ends(i, &i->peer, &i->local, c->netns);
			if (rs_map_put(&cs->by_ends, c->ends, c)) /* no memory: no names */
				c->ends = c->ends_there = 0;
		}
	} else if (ev->family == RS_FAMILY_UNIX) {
		/* One path names the connection: the listener's. Both ends carry it. */
		size_t n = strnlen(ev->path, sizeof(ev->path) - 1);

		rs_conn_set_addr(i, &i->local, str_of(ev->path, n));
		i->peer = i->local;
	}
}
