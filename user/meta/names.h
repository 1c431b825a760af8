/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names — the resource attributes of a process in a pod: k8s.*, and service.* in the order that the
 * OpenTelemetry operator and its collector's processor follow (semantic conventions, "Specify resource
 * attributes using Kubernetes annotations"). Pure.
 */
#ifndef RS_META_NAMES_H
#define RS_META_NAMES_H

#include "meta/attrs.h"
#include "meta/container.h"
#include "meta/pods.h"

/* What the runtime says of a process's container; strings may be empty. */
struct rs_container_facts {
	struct str id, name, runtime, image;
	struct str pod_uid, pod_name, pod_namespace, pod_container;
};

/* pod: what Kubernetes says, or NULL: then what the runtime's and kubelet's files say. node: or empty. */
void rs_names_pod(struct rs_res *r, const struct rs_container_facts *c, const struct rs_pod *pod,
		  const struct rs_pod_conf *conf, struct str node);

/* What a client calls a pod, or a Service, that it talks to: service.name by the same order. Part of pod. */
struct str rs_names_service(const struct rs_pod *pod);

/* container.image.* of an image as it was asked for; empty: nothing. */
void rs_names_image(struct rs_res *r, struct str image);

#endif
