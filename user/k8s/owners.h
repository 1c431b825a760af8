/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owners — whose the controllers of pods are: the Deployment of a ReplicaSet, the CronJob of a Job, with their uids, which no
 * pod holds. Asked of the API server once for each ReplicaSet or Job (its metadata alone), one after the other; remembered by
 * the controller's uid, bounded, the oldest gives way. What cannot be had is tried again later, and not waited for.
 */
#ifndef RS_K8S_OWNERS_H
#define RS_K8S_OWNERS_H

#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"
#include "k8s/watch.h"
#include "meta/pods.h"

#define RS_OWNERS_MAX 4096

struct rs_owners {
	struct rs_watch_opts o; /* http, base, token, ca */
	struct rs_pods *pods;	/* told of what is learnt */
	struct rs_map by_uid;	/* hash of the controller's uid */
	struct rs_pool pool;
	struct rs_list all;	/* oldest first */
	struct rs_list waiting; /* to be asked about */
	struct rs_http_req req;
	struct rs_owner *asking; /* NULL: no request is running */
	uint64_t not_before_ns;
	uint32_t failures; /* in a row */
	char last_error[256];
};

void rs_owners_init(struct rs_owners *os, const struct rs_watch_opts *o, struct rs_pods *pods);
void rs_owners_release(struct rs_owners *os);
/* Fills in what is known of the pod's controller, asks for what is not. p is not in the store yet. */
void rs_owners_fill(struct rs_owners *os, struct rs_pod *p);
/* A few times a second. */
void rs_owners_tick(struct rs_owners *os, uint64_t now_ns);

#endif
