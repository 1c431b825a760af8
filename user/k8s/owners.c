// SPDX-License-Identifier: Apache-2.0
#include "owners.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/hash.h"

#define SEC	    1000000000ull
#define WAIT_MAX    (30 * SEC)
#define WAIT_RIGHTS (300 * SEC) /* 403: it is not allowed, and that seldom changes */
#define IDLE	    (15 * SEC)

/* A controller of pods, and the controller of that. */
struct rs_owner {
	struct rs_list node, ask; /* of all; of waiting */
	uint64_t key;
	bool known;
	struct str kind, namespace, name, uid;
	struct str top_kind, top_name, top_uid; /* empty: it has none */
	struct rs_arena mem;
};

void rs_owners_init(struct rs_owners *os, const struct rs_watch_opts *o, struct rs_pods *pods)
{
	*os = (struct rs_owners){ .o = *o, .pods = pods };
	rs_map_init(&os->by_uid, RS_OWNERS_MAX);
	rs_pool_init(&os->pool, sizeof(struct rs_owner), RS_OWNERS_MAX);
	rs_list_init(&os->all);
	rs_list_init(&os->waiting);
}

static void forget(struct rs_owners *os, struct rs_owner *w)
{
	if (os->asking == w) {
		rs_http_cancel(&os->req);
		os->asking = NULL;
	}
	rs_map_del(&os->by_uid, w->key);
	rs_list_del(&w->node);
	rs_list_del(&w->ask);
	rs_arena_release(&w->mem);
	rs_pool_put(&os->pool, w);
}

void rs_owners_release(struct rs_owners *os)
{
	if (!os->all.next)
		return;
	rs_http_req_release(&os->req);
	os->asking = NULL;
	while (!rs_list_empty(&os->all))
		forget(os, rs_list_entry(os->all.next, struct rs_owner, node));
	rs_map_release(&os->by_uid);
	rs_pool_release(&os->pool);
}

static struct rs_owner *add(struct rs_owners *os, uint64_t key, const struct rs_pod *p)
{
	struct rs_owner *w;

	if (os->pool.in_use == os->pool.max)
		forget(os, rs_list_entry(os->all.next, struct rs_owner, node));
	w = rs_pool_get(&os->pool);
	if (!w)
		return NULL;
	*w = (struct rs_owner){ .key = key };
	rs_list_init(&w->ask);
	rs_arena_init(&w->mem, 512, 16 * 1024);
	w->kind = rs_arena_str(&w->mem, p->owner_kind);
	w->namespace = rs_arena_str(&w->mem, p->namespace);
	w->name = rs_arena_str(&w->mem, p->owner_name);
	w->uid = rs_arena_str(&w->mem, p->owner_uid);
	if (rs_map_put(&os->by_uid, key, w)) {
		rs_arena_release(&w->mem);
		rs_pool_put(&os->pool, w);
		return NULL;
	}
	rs_list_add_tail(&os->all, &w->node);
	rs_list_add_tail(&os->waiting, &w->ask);
	return w;
}

void rs_owners_fill(struct rs_owners *os, struct rs_pod *p)
{
	uint64_t key = rs_hash_str(3, p->owner_uid);
	struct rs_owner *w;

	if (!os->all.next || !p->owner_uid.len ||
	    (!str_eq(p->owner_kind, STR("ReplicaSet")) && !str_eq(p->owner_kind, STR("Job"))))
		return;
	w = rs_map_get(&os->by_uid, key);
	if (!w)
		w = add(os, key, p);
	if (w && w->known)
		rs_pod_set_top(p, w->top_kind, w->top_name, w->top_uid);
}

static void later(struct rs_owners *os, uint64_t at_least)
{
	uint32_t n = os->failures < 5 ? os->failures : 5;
	uint64_t ns = SEC << n;

	os->failures++;
	if (ns > WAIT_MAX)
		ns = WAIT_MAX;
	os->not_before_ns = rs_clock_mono() + (ns > at_least ? ns : at_least);
}

/* The object's metadata are of the same form as a pod's. */
static bool learn(struct rs_owner *w, struct str json)
{
	const struct rs_pod_conf none = { STR_NONE, STR_NONE };
	struct rs_pod object = { .key = 0 };
	struct rs_json j;
	bool ok;

	rs_arena_init(&object.mem, 2048, RS_POD_MEM);
	rs_json_init(&j, json, &object.mem);
	ok = rs_pod_parse(&object, &j, &none);
	/* Another one of this name since: nothing is known of the one that was meant. */
	if (ok && str_eq(object.uid, w->uid)) {
		w->top_kind = rs_arena_str(&w->mem, object.owner_kind);
		w->top_name = rs_arena_str(&w->mem, object.owner_name);
		w->top_uid = rs_arena_str(&w->mem, object.owner_uid);
	}
	rs_arena_release(&object.mem);
	return ok;
}

static void on_done(void *arg, struct rs_http_req *r)
{
	struct rs_owners *os = arg;
	struct rs_owner *w = os->asking;
	uint64_t at_least = 0;

	os->asking = NULL;
	if (r->rc == CURLE_OK && r->status == 404)
		w->known = true; /* gone already */
	else if (r->rc == CURLE_OK && r->status == 200)
		w->known = learn(w, str_of(r->body, r->body_len));
	if (w->known) {
		os->failures = 0;
		rs_list_del(&w->ask);
		rs_pods_set_top(os->pods, w->uid, w->top_kind, w->top_name, w->top_uid);
		return;
	}
	if (r->rc == CURLE_OK && r->status == 403)
		at_least = WAIT_RIGHTS;
	if (r->retry_after_ns != RS_HTTP_NO_WAIT && r->retry_after_ns < WAIT_RIGHTS)
		at_least = r->retry_after_ns;
	rs_http_explain(r, os->last_error, sizeof(os->last_error));
	later(os, at_least);
}

static void ask(struct rs_owners *os, struct rs_owner *w)
{
	const struct rs_http_conf conf = { .ca = os->o.ca,
					   .no_proxy = true,
					   .idle_ns = IDLE,
					   .user_agent = "ringspan/" RS_VERSION };
	bool job = str_eq(w->kind, STR("Job"));
	char url[1024];
	int n;

	/* Names are DNS names: nothing in them needs escaping. */
	n = snprintf(url, sizeof(url), "%s/apis/%s/namespaces/%.*s/%s/%.*s", os->o.base,
		     job ? "batch/v1" : "apps/v1", STR_ARG(w->namespace),
		     job ? "jobs" : "replicasets", STR_ARG(w->name));
	rs_watch_token(&os->req, os->o.base, os->o.token);
	rs_http_header(&os->req,
		       "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, "
		       "application/json");
	os->req.done = on_done;
	os->req.arg = os;
	os->asking = w;
	if (n < 0 || (size_t)n >= sizeof(url) || rs_http_start(os->o.http, &os->req, &conf, url)) {
		os->asking = NULL;
		later(os, 0);
	}
}

void rs_owners_tick(struct rs_owners *os, uint64_t now_ns)
{
	if (!os->all.next || os->asking || now_ns < os->not_before_ns ||
	    rs_list_empty(&os->waiting))
		return;
	ask(os, rs_list_entry(os->waiting.next, struct rs_owner, ask));
}
