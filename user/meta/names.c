// SPDX-License-Identifier: Apache-2.0
#include "names.h"

#include <arpa/inet.h>
#include <stdio.h>

#define OTEL STR("resource.opentelemetry.io/")

/* The workload a pod belongs to, as far as its own object tells, and what was asked of its controller. */
struct work {
	struct str deployment, replicaset, statefulset, daemonset, cronjob, job;
	struct str deployment_uid, cronjob_uid;
};

/* A Job of a CronJob is named after it and the minute (or, before Kubernetes 1.21, the second) it was for. */
static struct str cronjob_of(struct str job)
{
	size_t n = job.len;

	while (n && job.ptr[n - 1] >= '0' && job.ptr[n - 1] <= '9')
		n--;
	if (n < 2 || job.ptr[n - 1] != '-' || job.len - n < 8 || job.len - n > 10)
		return STR_NONE;
	return str_at(job, 0, n - 1);
}

/* A Deployment's ReplicaSet is named after it and the hash of its template, which its pods have as a label. */
static struct str deployment_of(struct str replicaset, struct str hash)
{
	size_t n = replicaset.len - hash.len;

	if (!hash.len || replicaset.len < hash.len + 2 || !str_eq(str_from(replicaset, n), hash) ||
	    replicaset.ptr[n - 1] != '-')
		return STR_NONE;
	return str_at(replicaset, 0, n - 1);
}

static struct work work_of(const struct rs_pod *p)
{
	struct work w = { 0 };

	if (str_eq(p->owner_kind, STR("ReplicaSet"))) {
		w.replicaset = p->owner_name;
		w.deployment = deployment_of(p->owner_name, p->template_hash);
	} else if (str_eq(p->owner_kind, STR("StatefulSet"))) {
		w.statefulset = p->owner_name;
	} else if (str_eq(p->owner_kind, STR("DaemonSet"))) {
		w.daemonset = p->owner_name;
	} else if (str_eq(p->owner_kind, STR("Job"))) {
		w.job = p->owner_name;
		w.cronjob = cronjob_of(p->owner_name);
	}
	/* What the API says is certain. */
	if (str_eq(p->top_kind, STR("Deployment"))) {
		w.deployment = p->top_name;
		w.deployment_uid = p->top_uid;
	} else if (str_eq(p->top_kind, STR("CronJob"))) {
		w.cronjob = p->top_name;
		w.cronjob_uid = p->top_uid;
	}
	return w;
}

static void set_first(struct rs_res *r, enum rs_known_key key, const struct str *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		rs_res_str(r, key, from[i]); /* the first that is not empty */
}

#define SET_FIRST(r, key, ...)                                                                     \
	do {                                                                                       \
		const struct str from_[] = { __VA_ARGS__ };                                        \
		set_first(r, key, from_, sizeof(from_) / sizeof(from_[0]));                        \
	} while (0)

static void set_version(struct rs_res *r, struct str image)
{
	struct str name, tag, digest;
	char both[512];
	int n;

	rs_image_parse(image, &name, &tag, &digest);
	n = snprintf(both, sizeof(both), "%.*s%s%.*s", STR_ARG(tag),
		     tag.len && digest.len ? "@" : "", STR_ARG(digest));
	if (n > 0 && (size_t)n < sizeof(both))
		rs_res_str(r, RS_K_SERVICE_VERSION, str_of(both, (size_t)n));
}

static void set_instance(struct rs_res *r, struct str ns, struct str pod, struct str container)
{
	char id[768];
	int n = snprintf(id, sizeof(id), "%.*s.%.*s.%.*s", STR_ARG(ns), STR_ARG(pod),
			 STR_ARG(container));

	if (ns.len && pod.len && container.len && n > 0 && (size_t)n < sizeof(id))
		rs_res_str(r, RS_K_SERVICE_INSTANCE_ID, str_of(id, (size_t)n));
}

static void set_ip(struct rs_res *r, const struct rs_pod *p)
{
	static const uint8_t zero[12];
	char buf[INET6_ADDRSTRLEN];
	bool v4;

	if (!p->nips)
		return;
	v4 = memcmp(p->ip[0] + 4, zero, sizeof(zero)) == 0;
	if (inet_ntop(v4 ? AF_INET : AF_INET6, p->ip[0], buf, sizeof(buf)))
		rs_res_str(r, RS_K_K8S_POD_IP, str_c(buf));
}

static void set_chosen(struct rs_res *r, const char *prefix, struct str list,
		       const struct rs_pod_kv *kv, uint32_t n)
{
	char name[320];

	for (uint32_t i = 0; i < n; i++) {
		if (!rs_pod_wanted(list, kv[i].key))
			continue;
		snprintf(name, sizeof(name), "%s%.*s", prefix, STR_ARG(kv[i].key));
		rs_res_named(r, str_c(name), kv[i].value);
	}
}

static void set_workload(struct rs_res *r, const struct rs_pod *p, const struct work *w)
{
	rs_res_str(r, RS_K_K8S_DEPLOYMENT_NAME, w->deployment);
	rs_res_str(r, RS_K_K8S_REPLICASET_NAME, w->replicaset);
	rs_res_str(r, RS_K_K8S_STATEFULSET_NAME, w->statefulset);
	rs_res_str(r, RS_K_K8S_DAEMONSET_NAME, w->daemonset);
	rs_res_str(r, RS_K_K8S_JOB_NAME, w->job);
	rs_res_str(r, RS_K_K8S_CRONJOB_NAME, w->cronjob);
	rs_res_str(r, RS_K_K8S_DEPLOYMENT_UID, w->deployment_uid);
	rs_res_str(r, RS_K_K8S_CRONJOB_UID, w->cronjob_uid);
	if (w->replicaset.len)
		rs_res_str(r, RS_K_K8S_REPLICASET_UID, p->owner_uid);
	if (w->statefulset.len)
		rs_res_str(r, RS_K_K8S_STATEFULSET_UID, p->owner_uid);
	if (w->daemonset.len)
		rs_res_str(r, RS_K_K8S_DAEMONSET_UID, p->owner_uid);
	if (w->job.len)
		rs_res_str(r, RS_K_K8S_JOB_UID, p->owner_uid);
}

/* No API: what files say. A pod's name changes with every start of it, its container's does not. */
static void without_api(struct rs_res *r, const struct rs_container_facts *c)
{
	SET_FIRST(r, RS_K_SERVICE_NAME, c->pod_container, c->pod_name);
	rs_res_str(r, RS_K_SERVICE_NAMESPACE, c->pod_namespace);
	set_version(r, c->image);
	set_instance(r, c->pod_namespace, c->pod_name, c->pod_container);
	rs_res_str(r, RS_K_K8S_NAMESPACE_NAME, c->pod_namespace);
	rs_res_str(r, RS_K_K8S_POD_NAME, c->pod_name);
	rs_res_str(r, RS_K_K8S_POD_UID, c->pod_uid);
	rs_res_str(r, RS_K_K8S_CONTAINER_NAME, c->pod_container);
}

struct str rs_names_service(const struct rs_pod *pod)
{
	const struct work w = work_of(pod);
	const struct str from[] = {
		rs_pod_annotation(pod, STR("resource.opentelemetry.io/service.name")),
		rs_pod_label(pod, STR("app.kubernetes.io/instance")),
		rs_pod_label(pod, STR("app.kubernetes.io/name")),
		w.deployment,
		w.replicaset,
		w.statefulset,
		w.daemonset,
		w.cronjob,
		w.job,
	};

	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		if (from[i].len)
			return from[i];
	}
	return pod->name;
}

void rs_names_pod(struct rs_res *r, const struct rs_container_facts *c, const struct rs_pod *pod,
		  const struct rs_pod_conf *conf, struct str node)
{
	const struct rs_pod_container *pc;
	struct str container;
	struct work w;

	if (!c->pod_uid.len)
		return;
	rs_res_str(r, RS_K_K8S_NODE_NAME, node);
	if (!pod) {
		without_api(r, c);
		return;
	}
	w = work_of(pod);
	pc = rs_pod_container(pod, c->pod_container, c->id);
	container = pc ? pc->name : c->pod_container;
	for (uint32_t i = 0; i < pod->nannotations; i++) {
		struct str key = pod->annotations[i].key;

		if (str_starts(key, OTEL))
			rs_res_named(r, str_from(key, OTEL.len), pod->annotations[i].value);
	}
	rs_res_str(r, RS_K_SERVICE_NAME, rs_names_service(pod));
	rs_res_str(r, RS_K_SERVICE_NAMESPACE, pod->namespace);
	rs_res_str(r, RS_K_SERVICE_VERSION, rs_pod_label(pod, STR("app.kubernetes.io/version")));
	set_version(r, pc && pc->image.len ? pc->image : c->image);
	set_instance(r, pod->namespace, pod->name, container);
	rs_res_str(r, RS_K_K8S_NAMESPACE_NAME, pod->namespace);
	rs_res_str(r, RS_K_K8S_POD_NAME, pod->name);
	rs_res_str(r, RS_K_K8S_POD_UID, pod->uid);
	set_ip(r, pod);
	rs_res_str(r, RS_K_K8S_CONTAINER_NAME, container);
	set_workload(r, pod, &w);
	set_chosen(r, "k8s.pod.label.", conf->labels, pod->labels, pod->nlabels);
	set_chosen(r, "k8s.pod.annotation.", conf->annotations, pod->annotations,
		   pod->nannotations);
	if (!c->image.len && pc)
		rs_names_image(r, pc->image);
}

void rs_names_image(struct rs_res *r, struct str image)
{
	struct str name, tag, digest;

	rs_image_parse(image, &name, &tag, &digest);
	rs_res_str(r, RS_K_CONTAINER_IMAGE_NAME, name);
	rs_res_list(r, RS_K_CONTAINER_IMAGE_TAGS, tag);
}
