/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k8s — this node's pods, from the API server or from kubelet, into meta's store.
 *
 * The API server is asked for the pods of this node alone (a field selector), which takes get, list and watch of
 * pods and nothing else; with --k8s-peers cluster for all pods and Services too, to name whom requests go to. Requests run in the agent's loop; nothing here blocks. Whatever the source does, the
 * agent goes on with what is known.
 */
#ifndef RS_K8S_K8S_H
#define RS_K8S_K8S_H

#include "config/config.h"
#include "k8s/owners.h"
#include "meta/pods.h"

/* The values of option --k8s-source, in its order. */
enum rs_k8s_source {
	RS_K8S_AUTO,
	RS_K8S_API,
	RS_K8S_KUBELET,
	RS_K8S_OFF,
};

/* The values of option --k8s-peers, in its order. */
enum rs_k8s_peers {
	RS_K8S_PEERS_OFF,
	RS_K8S_PEERS_NODE,
	RS_K8S_PEERS_CLUSTER,
};

/* One collection that is followed. */
struct rs_k8s_feed {
	struct rs_k8s *k;
	struct rs_pods pods;
	struct rs_watch watch;
	uint64_t told_ns; /* when the log last told of an error */
};

#define RS_K8S_FEEDS 3 /* this node's pods, Services, all pods */

struct rs_k8s {
	enum rs_k8s_source source; /* never AUTO after open */
	struct rs_http http;
	struct rs_k8s_feed feed[RS_K8S_FEEDS]; /* the first is this node's pods */
	int nfeeds;
	struct rs_owners owners; /* with --k8s-owners */
	struct rs_counters *n;
	char base[256], query[384], node[256];
};

/* What can be known before: 0, or -EINVAL and a line in err. */
int rs_k8s_check(const struct rs_config *cfg, char *err, size_t size);
/*
 * cfg outlives k. source OFF afterwards: nothing is wanted, or (AUTO) this is not in a cluster. 0, or -errno and a
 * line in err. Release in either case; harmless on a zeroed struct.
 */
int rs_k8s_open(struct rs_k8s *k, struct rs_loop *loop, const struct rs_config *cfg,
		struct rs_counters *n, char *err, size_t size);
void rs_k8s_close(struct rs_k8s *k);
/* A few times a second. */
void rs_k8s_tick(struct rs_k8s *k, uint64_t now_ns);

#endif
