// SPDX-License-Identifier: Apache-2.0
/*
 * What an API server answers: a stream cut into objects, the objects read as pods, kept and named. The first byte
 * says list or watch, and where the stream is cut. Checked: however it is cut, the same objects come out; the
 * store holds no more than it may and finds what it holds.
 */
#include <string.h>

#include "base/hash.h"
#include "k8s/split.h"
#include "meta/names.h"
#include "fuzz.h"

#define PODS 8

struct world {
	struct rs_counters n;
	struct rs_pods ps;
	struct rs_split split;
	uint64_t digest, objects;
};

static bool on_object(void *arg, enum rs_split_kind kind, struct str json)
{
	struct world *w = arg;
	struct rs_pod *p = rs_pods_new(&w->ps);
	struct rs_json j;

	w->objects++;
	w->digest = rs_hash_str(w->digest + kind, json);
	FUZZ_CHECK(p);
	rs_json_init(&j, json, &p->mem);
	if (!rs_pod_parse(p, &j, &w->ps.conf))
		rs_pods_drop(&w->ps, p);
	else if (w->objects % 5 == 4)
		rs_pods_gone(&w->ps, p, w->objects);
	else
		rs_pods_put(&w->ps, p);
	FUZZ_CHECK(w->ps.nlive + w->ps.ndeleted <= PODS);
	return true;
}

static void check_store(struct world *w)
{
	struct rs_list *pos;

	rs_list_for_each (pos, &w->ps.live) {
		const struct rs_pod *p = rs_list_entry(pos, struct rs_pod, node);
		struct rs_container_facts c = { .pod_uid = p->cgroup_uid };
		struct rs_arena mem;
		struct rs_res r = { .mem = &mem };

		FUZZ_CHECK(rs_pods_by_uid(&w->ps, p->cgroup_uid) == p);
		FUZZ_CHECK(p->nips <= RS_POD_IPS && p->ncontainers <= RS_POD_LIST_MAX);
		FUZZ_CHECK(rs_names_service(p).len);
		rs_arena_init(&mem, 4096, 64 * 1024);
		rs_names_pod(&r, &c, p, &w->ps.conf, STR("node"));
		FUZZ_CHECK(r.n && r.n <= RS_RES_MAX);
		rs_arena_release(&mem);
	}
}

static void run(struct world *w, enum rs_split_mode mode, struct str text, size_t piece)
{
	bool ok = true;

	*w = (struct world){ .digest = 1 };
	rs_pods_init(&w->ps, PODS, &w->n);
	w->ps.conf = (struct rs_pod_conf){ STR("*"), STR("a*,b") };
	rs_split_begin(&w->split, mode);
	rs_pods_list_begin(&w->ps);
	while (text.len && ok) {
		ok = rs_split_feed(&w->split, str_at(text, 0, piece), on_object, w);
		text = str_from(text, piece);
	}
	check_store(w);
	rs_pods_list_end(&w->ps, 1000);
	rs_pods_tick(&w->ps, 1000 + RS_PODS_KEEP_NS);
	rs_split_release(&w->split);
	rs_pods_release(&w->ps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world whole, cut;
	enum rs_split_mode mode;
	struct str text;

	if (!size)
		return 0;
	mode = data[0] & 1 ? RS_SPLIT_WATCH : RS_SPLIT_LIST;
	text = str_of((const char *)data + 1, size - 1);
	run(&whole, mode, text, SIZE_MAX);
	run(&cut, mode, text, 1 + data[0] / 2 % 32);
	FUZZ_CHECK(whole.digest == cut.digest && whole.objects == cut.objects);
	return 0;
}
