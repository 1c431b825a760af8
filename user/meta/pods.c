// SPDX-License-Identifier: Apache-2.0
#include "pods.h"

#include "base/hash.h"

#define POD_CHUNK 1536

void rs_pods_init(struct rs_pods *ps, uint32_t max, struct rs_counters *n)
{
	*ps = (struct rs_pods){ .n = n };
	rs_map_init(&ps->by_uid, max);
	rs_map_init(&ps->by_ip, max * RS_POD_IPS);
	/* One more: a change is parsed before it takes its predecessor's place. */
	rs_pool_init(&ps->pool, sizeof(struct rs_pod), max + 1);
	rs_list_init(&ps->live);
	rs_list_init(&ps->deleted);
}

static void free_list(struct rs_list *head)
{
	struct rs_list *pos, *tmp;

	rs_list_for_each_safe (pos, tmp, head)
		rs_arena_release(&rs_list_entry(pos, struct rs_pod, node)->mem);
}

void rs_pods_release(struct rs_pods *ps)
{
	if (!ps->live.next)
		return;
	free_list(&ps->live);
	free_list(&ps->deleted);
	rs_map_release(&ps->by_uid);
	rs_map_release(&ps->by_ip);
	rs_pool_release(&ps->pool);
}

static uint64_t ip_key(const uint8_t ip[16])
{
	return rs_hash_str(1, str_of((const char *)ip, 16));
}

/* The key of a uid, never 0. */
static uint64_t uid_key(struct str cgroup_uid)
{
	uint64_t k = rs_hash_str(2, cgroup_uid);

	return k ? k : 1;
}

static bool has_ip(const struct rs_pod *p, const uint8_t ip[16])
{
	for (uint8_t i = 0; i < p->nips; i++) {
		if (memcmp(p->ip[i], ip, 16) == 0)
			return true;
	}
	return false;
}

static void take_ips(struct rs_pods *ps, struct rs_pod *p)
{
	for (uint8_t i = 0; !p->host_network && !p->ended && i < p->nips; i++) {
		if (!p->leaving || !rs_map_get(&ps->by_ip, ip_key(p->ip[i])))
			(void)rs_map_put(&ps->by_ip, ip_key(p->ip[i]),
					 p); /* there is room for all */
	}
}

static void leave_ips(struct rs_pods *ps, const struct rs_pod *p)
{
	for (uint8_t i = 0; i < p->nips; i++) {
		if (rs_map_get(&ps->by_ip, ip_key(p->ip[i])) == p)
			rs_map_del(&ps->by_ip, ip_key(p->ip[i]));
	}
}

void rs_pods_drop(struct rs_pods *ps, struct rs_pod *p)
{
	rs_arena_release(&p->mem);
	rs_pool_put(&ps->pool, p);
}

/* Out of the store. */
static void forget(struct rs_pods *ps, struct rs_pod *p)
{
	leave_ips(ps, p);
	if (rs_map_get(&ps->by_uid, p->key) == p)
		rs_map_del(&ps->by_uid, p->key);
	*(p->deleted_ns ? &ps->ndeleted : &ps->nlive) -= 1;
	rs_list_del(&p->node);
	rs_pods_drop(ps, p);
}

struct rs_pod *rs_pods_new(struct rs_pods *ps)
{
	struct rs_pod *p = rs_pool_get(&ps->pool);

	if (!p && !rs_list_empty(&ps->deleted)) {
		forget(ps, rs_list_entry(ps->deleted.next, struct rs_pod, node));
		p = rs_pool_get(&ps->pool);
	}
	if (!p)
		return NULL;
	*p = (struct rs_pod){ .key = 0 };
	rs_list_init(&p->node);
	rs_arena_init(&p->mem, POD_CHUNK, RS_POD_MEM);
	return p;
}

static uint64_t list_digest(uint64_t h, const struct rs_pod_kv *kv, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		h = rs_hash_str(rs_hash_str(h, kv[i].key), kv[i].value);
	return h;
}

/* Of all that goes into a resource: a pod's status changes more often than what is said of it. */
static uint64_t digest(const struct rs_pod *p)
{
	const struct str parts[] = { p->uid,	    p->name,	  p->namespace, p->owner_kind,
				     p->owner_name, p->owner_uid, p->top_uid };
	uint64_t h = p->nips;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		h = rs_hash_str(h, parts[i]);
	h = rs_hash_str(h, str_of((const char *)p->ip, sizeof(p->ip[0]) * p->nips));
	h = list_digest(h, p->labels, p->nlabels);
	h = list_digest(h, p->annotations, p->nannotations);
	for (uint32_t i = 0; i < p->ncontainers; i++) {
		h = rs_hash_str(h, p->containers[i].name);
		h = rs_hash_str(h, p->containers[i].image);
		h = rs_hash_str(h, p->containers[i].id);
	}
	return h;
}

void rs_pods_put(struct rs_pods *ps, struct rs_pod *p)
{
	struct rs_pod *old;

	p->key = uid_key(p->cgroup_uid);
	p->digest = digest(p);
	p->epoch = ps->epoch;
	old = rs_map_get(&ps->by_uid, p->key);
	p->gen = old && old->digest == p->digest ? old->gen : ++ps->gen;
	if (old)
		forget(ps, old);
	if (rs_map_put(&ps->by_uid, p->key, p)) {
		/* The places are taken, by pods that live or are young. */
		if (rs_list_empty(&ps->deleted)) {
			ps->n->v[RS_C_K8S_NO_ROOM]++;
			rs_pods_drop(ps, p);
			return;
		}
		forget(ps, rs_list_entry(ps->deleted.next, struct rs_pod, node));
		if (rs_map_put(&ps->by_uid, p->key, p)) {
			ps->n->v[RS_C_K8S_NO_ROOM]++;
			rs_pods_drop(ps, p);
			return;
		}
	}
	rs_list_add_tail(&ps->live, &p->node);
	ps->nlive++;
	take_ips(ps, p);
}

static void mark_deleted(struct rs_pods *ps, struct rs_pod *p, uint64_t now_ns)
{
	p->deleted_ns = now_ns ? now_ns : 1;
	rs_list_del(&p->node);
	rs_list_add_tail(&ps->deleted, &p->node);
	ps->nlive--;
	ps->ndeleted++;
}

void rs_pods_gone(struct rs_pods *ps, struct rs_pod *p, uint64_t now_ns)
{
	struct rs_pod *old = rs_map_get(&ps->by_uid, uid_key(p->cgroup_uid));

	/* A static pod keeps its hash when its mirror in the API is made anew under another uid. */
	if (old && !old->deleted_ns && str_eq(old->uid, p->uid))
		mark_deleted(ps, old, now_ns);
	rs_pods_drop(ps, p);
}

void rs_pods_set_top(struct rs_pods *ps, struct str owner_uid, struct str kind, struct str name,
		     struct str uid)
{
	struct rs_list *pos;

	rs_list_for_each (pos, &ps->live) {
		struct rs_pod *p = rs_list_entry(pos, struct rs_pod, node);

		if (!str_eq(p->owner_uid, owner_uid) || !rs_pod_set_top(p, kind, name, uid))
			continue;
		p->digest = digest(p);
		p->gen = ++ps->gen;
	}
}

void rs_pods_list_begin(struct rs_pods *ps)
{
	ps->epoch++;
}

void rs_pods_list_end(struct rs_pods *ps, uint64_t now_ns)
{
	struct rs_list *pos, *tmp;

	rs_list_for_each_safe (pos, tmp, &ps->live) {
		struct rs_pod *p = rs_list_entry(pos, struct rs_pod, node);

		if (p->epoch != ps->epoch)
			mark_deleted(ps, p, now_ns);
	}
}

void rs_pods_tick(struct rs_pods *ps, uint64_t now_ns)
{
	while (!rs_list_empty(&ps->deleted)) {
		struct rs_pod *p = rs_list_entry(ps->deleted.next, struct rs_pod, node);

		if (now_ns - p->deleted_ns < RS_PODS_KEEP_NS)
			break;
		forget(ps, p);
	}
}

const struct rs_pod *rs_pods_by_uid(const struct rs_pods *ps, struct str cgroup_uid)
{
	const struct rs_pod *p = rs_map_get(&ps->by_uid, uid_key(cgroup_uid));

	return p && str_eq(p->cgroup_uid, cgroup_uid) ? p : NULL;
}

const struct rs_pod *rs_pods_by_ip(const struct rs_pods *ps, const uint8_t ip[16])
{
	const struct rs_pod *p = rs_map_get(&ps->by_ip, ip_key(ip));

	return p && has_ip(p, ip) ? p : NULL;
}
