// SPDX-License-Identifier: Apache-2.0
#include "k8s.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "config/option.h"

#define KUBELET_POLL 10000000000ull
#define TELL_EVERY   60000000000ull

static void on_event(void *arg, enum rs_watch_event ev, struct str json)
{
	struct rs_k8s_feed *f = arg;
	struct rs_counters *n = f->k->n;
	struct rs_json j;
	struct rs_pod *p;

	switch (ev) {
	case RS_WATCH_LIST_BEGIN:
		rs_pods_list_begin(&f->pods);
		return;
	case RS_WATCH_LIST_END:
		rs_pods_list_end(&f->pods, rs_clock_mono());
		n->v[RS_C_K8S_LISTS]++;
		return;
	case RS_WATCH_OBJECT:
	case RS_WATCH_DELETED:
		break;
	}
	n->v[RS_C_K8S_EVENTS]++;
	p = rs_pods_new(&f->pods);
	if (!p) {
		n->v[RS_C_K8S_NO_ROOM]++;
		return;
	}
	rs_json_init(&j, json, &p->mem);
	if (!rs_pod_parse(p, &j, &f->pods.conf)) {
		n->v[RS_C_K8S_BAD_OBJECT]++;
		rs_pods_drop(&f->pods, p);
	} else if (ev == RS_WATCH_DELETED) {
		rs_pods_gone(&f->pods, p, rs_clock_mono());
	} else {
		if (f == &f->k->feed[0])
			rs_owners_fill(&f->k->owners, p);
		rs_pods_put(&f->pods, p);
	}
}

/* In a cluster these are set, and the service account's files are mounted. */
static bool in_cluster(const struct rs_config *cfg)
{
	return cfg->k8s_api ||
	       (getenv("KUBERNETES_SERVICE_HOST") && access(cfg->k8s_token, R_OK) == 0);
}

static int api_base(struct rs_k8s *k, const struct rs_config *cfg, char *err, size_t size)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST"),
		   *port = getenv("KUBERNETES_SERVICE_PORT");
	bool v6 = host && strchr(host, ':');

	if (cfg->k8s_api) {
		snprintf(k->base, sizeof(k->base), "%s", cfg->k8s_api);
	} else if (host && *host) {
		snprintf(k->base, sizeof(k->base), "https://%s%s%s:%s", v6 ? "[" : "", host,
			 v6 ? "]" : "", port && *port ? port : "443");
	} else {
		snprintf(
			err, size,
			"--k8s-source api: this is not in a cluster; name the server by --k8s-api");
		return -EINVAL;
	}
	while (*k->base && k->base[strlen(k->base) - 1] == '/')
		k->base[strlen(k->base) - 1] = 0;
	return 0;
}

static int node_name(struct rs_k8s *k, const struct rs_config *cfg, char *err, size_t size)
{
	char *escaped;

	if (cfg->k8s_node && *cfg->k8s_node)
		snprintf(k->node, sizeof(k->node), "%s", cfg->k8s_node);
	else if (gethostname(k->node, sizeof(k->node) - 1))
		k->node[0] = 0;
	escaped = *k->node ? curl_easy_escape(NULL, k->node, 0) : NULL;
	if (!escaped) {
		snprintf(err, size,
			 "the node's name is not known: give it by NODE_NAME or --k8s-node");
		return -EINVAL;
	}
	snprintf(k->query, sizeof(k->query), "&fieldSelector=spec.nodeName%%3D%s", escaped);
	curl_free(escaped);
	return 0;
}

static const char *readable(const char *file)
{
	return access(file, R_OK) == 0 ? file : NULL;
}

static void follow(struct rs_k8s *k, const struct rs_watch_opts *from, const char *path,
		   const char *query, const struct rs_config *cfg)
{
	struct rs_k8s_feed *f = &k->feed[k->nfeeds++];
	struct rs_watch_opts o = *from;

	f->k = k;
	o.path = path;
	o.query = query;
	o.on_event = on_event;
	o.arg = f;
	rs_pods_init(&f->pods, (uint32_t)cfg->k8s_max_pods, k->n);
	f->pods.conf = (struct rs_pod_conf){ str_c(cfg->k8s_labels), str_c(cfg->k8s_annotations) };
	rs_watch_init(&f->watch, &o);
}

int rs_k8s_check(const struct rs_config *cfg, char *err, size_t size)
{
	/* The usual place may be empty: outside of a cluster, or where the system's authorities do. */
	if (cfg->k8s_source == RS_K8S_OFF || strcmp(cfg->k8s_ca, rs_options[RS_O_k8s_ca].def) == 0)
		return 0;
	return rs_http_check_pem(cfg, cfg->k8s_ca, err, size);
}

int rs_k8s_open(struct rs_k8s *k, struct rs_loop *loop, const struct rs_config *cfg,
		struct rs_counters *n, char *err, size_t size)
{
	struct rs_watch_opts o = { .http = &k->http, .base = k->base, .token = cfg->k8s_token };
	int rc;

	*k = (struct rs_k8s){ .source = (enum rs_k8s_source)cfg->k8s_source, .n = n };
	if (k->source == RS_K8S_AUTO)
		k->source = in_cluster(cfg) ? RS_K8S_API : RS_K8S_OFF;
	if (k->source == RS_K8S_OFF)
		return 0;
	rc = rs_k8s_check(cfg, err, size);
	if (!rc)
		rc = node_name(k, cfg, err, size);
	if (!rc && k->source == RS_K8S_API)
		rc = api_base(k, cfg, err, size);
	if (rc)
		return rc;
	rc = rs_http_init(&k->http, loop);
	if (rc) {
		snprintf(err, size, "cannot set up requests to Kubernetes: %s", strerror(-rc));
		return rc;
	}
	o.ca = readable(cfg->k8s_ca);
	if (k->source == RS_K8S_KUBELET) {
		snprintf(k->base, sizeof(k->base), "%s", cfg->k8s_kubelet);
		o.poll_ns = KUBELET_POLL;
		o.insecure = cfg->k8s_kubelet_insecure;
		follow(k, &o, "/pods", "", cfg);
		return 0;
	}
	follow(k, &o, "/api/v1/pods", k->query, cfg);
	if (cfg->k8s_owners)
		rs_owners_init(&k->owners, &o, &k->feed[0].pods);
	if (cfg->k8s_peers == RS_K8S_PEERS_CLUSTER) {
		follow(k, &o, "/api/v1/services", "", cfg);
		follow(k, &o, "/api/v1/pods", "", cfg);
	}
	return 0;
}

void rs_k8s_close(struct rs_k8s *k)
{
	for (int i = 0; i < k->nfeeds; i++)
		rs_watch_release(&k->feed[i].watch);
	rs_owners_release(&k->owners);
	rs_http_release(&k->http);
	for (int i = 0; i < k->nfeeds; i++)
		rs_pods_release(&k->feed[i].pods);
	*k = (struct rs_k8s){ 0 };
}

static void tell(struct rs_k8s_feed *f, uint64_t now_ns)
{
	if (f->watch.failures < 2 || (f->told_ns && now_ns - f->told_ns < TELL_EVERY))
		return;
	f->told_ns = now_ns;
	rs_warn("kubernetes: %s%s: %s", f->k->base, f->watch.o.path, f->watch.last_error);
}

void rs_k8s_tick(struct rs_k8s *k, uint64_t now_ns)
{
	if (!k->nfeeds)
		return;
	rs_owners_tick(&k->owners, now_ns);
	k->n->v[RS_C_K8S_FAILURES] = k->n->v[RS_C_K8S_TOO_BIG] = 0;
	for (int i = 0; i < k->nfeeds; i++) {
		struct rs_k8s_feed *f = &k->feed[i];

		if (f->pods.wanted)
			rs_watch_hurry(&f->watch, now_ns);
		f->pods.wanted = false;
		rs_watch_tick(&f->watch, now_ns);
		rs_pods_tick(&f->pods, now_ns);
		k->n->v[RS_C_K8S_FAILURES] += f->watch.failed;
		k->n->v[RS_C_K8S_TOO_BIG] += f->watch.split.too_big;
		tell(f, now_ns);
	}
}
