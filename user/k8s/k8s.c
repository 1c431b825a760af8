// SPDX-License-Identifier: Apache-2.0
#include "k8s.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define KUBELET_POLL 10000000000ull
#define TELL_EVERY   60000000000ull

static void on_event(void *arg, enum rs_watch_event ev, struct str json)
{
	struct rs_k8s *k = arg;
	struct rs_json j;
	struct rs_pod *p;

	switch (ev) {
	case RS_WATCH_LIST_BEGIN:
		rs_pods_list_begin(&k->pods);
		return;
	case RS_WATCH_LIST_END:
		rs_pods_list_end(&k->pods, rs_clock_mono());
		k->n->v[RS_C_K8S_LISTS]++;
		return;
	case RS_WATCH_OBJECT:
	case RS_WATCH_DELETED:
		break;
	}
	k->n->v[RS_C_K8S_EVENTS]++;
	p = rs_pods_new(&k->pods);
	if (!p) {
		k->n->v[RS_C_K8S_NO_ROOM]++;
		return;
	}
	rs_json_init(&j, json, &p->mem);
	if (!rs_pod_parse(p, &j, &k->pods.conf)) {
		k->n->v[RS_C_K8S_BAD_OBJECT]++;
		rs_pods_drop(&k->pods, p);
	} else if (ev == RS_WATCH_DELETED) {
		rs_pods_gone(&k->pods, p, rs_clock_mono());
	} else {
		rs_pods_put(&k->pods, p);
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

int rs_k8s_open(struct rs_k8s *k, struct rs_loop *loop, const struct rs_config *cfg,
		struct rs_counters *n, char *err, size_t size)
{
	struct rs_watch_opts o = { .http = &k->http,
				   .base = k->base,
				   .query = "",
				   .token = cfg->k8s_token,
				   .on_event = on_event,
				   .arg = k };
	int rc;

	*k = (struct rs_k8s){ .source = (enum rs_k8s_source)cfg->k8s_source, .n = n };
	if (k->source == RS_K8S_AUTO)
		k->source = in_cluster(cfg) ? RS_K8S_API : RS_K8S_OFF;
	if (k->source == RS_K8S_OFF)
		return 0;
	rc = node_name(k, cfg, err, size);
	if (rc)
		return rc;
	if (k->source == RS_K8S_API) {
		rc = api_base(k, cfg, err, size);
		if (rc)
			return rc;
		o.path = "/api/v1/pods";
		o.query = k->query;
	} else {
		snprintf(k->base, sizeof(k->base), "%s", cfg->k8s_kubelet);
		o.path = "/pods";
		o.poll_ns = KUBELET_POLL;
		o.insecure = cfg->k8s_kubelet_insecure;
	}
	o.ca = readable(cfg->k8s_ca);
	rc = rs_http_init(&k->http, loop);
	if (rc) {
		snprintf(err, size, "cannot set up requests to Kubernetes: %s", strerror(-rc));
		return rc;
	}
	rs_pods_init(&k->pods, (uint32_t)cfg->k8s_max_pods, n);
	k->pods.conf = (struct rs_pod_conf){ str_c(cfg->k8s_labels), str_c(cfg->k8s_annotations) };
	rs_watch_init(&k->watch, &o);
	return 0;
}

void rs_k8s_close(struct rs_k8s *k)
{
	rs_watch_release(&k->watch);
	rs_http_release(&k->http);
	rs_pods_release(&k->pods);
	*k = (struct rs_k8s){ 0 };
}

void rs_k8s_tick(struct rs_k8s *k, uint64_t now_ns)
{
	struct rs_watch *w = &k->watch;

	if (!k->pods.live.next)
		return;
	if (k->pods.wanted)
		rs_watch_hurry(w, now_ns);
	k->pods.wanted = false;
	rs_watch_tick(w, now_ns);
	rs_pods_tick(&k->pods, now_ns);
	k->n->v[RS_C_K8S_FAILURES] = w->failed;
	k->n->v[RS_C_K8S_TOO_BIG] = w->split.too_big;
	if (w->failures > 1 && (!k->told_ns || now_ns - k->told_ns > TELL_EVERY)) {
		k->told_ns = now_ns;
		rs_warn("kubernetes: %s%s: %s", k->base, w->o.path, w->last_error);
	}
}
