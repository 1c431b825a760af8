/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod — what Kubernetes says of one pod: an object of its API (core/v1 Pod), as the API server and kubelet
 * write it; or of one Service, whose cluster addresses stand where a pod has its own. What is of no use here is not kept; all labels are, of the annotations those that are asked for.
 */
#ifndef RS_META_POD_H
#define RS_META_POD_H

#include "base/arena.h"
#include "base/json.h"
#include "base/list.h"

#define RS_POD_LIST_MAX 64	    /* labels, annotations, containers of a pod each */
#define RS_POD_IPS	2	    /* one of each family */
#define RS_POD_MEM	(64 * 1024) /* bytes of one pod at most */

struct rs_pod_kv {
	struct str key, value;
};

struct rs_pod_container {
	struct str name, image;
	struct str id; /* without "runtime://"; empty until kubelet has told */
};

/* What users chose to see: names with commas between, each may end in '*'. */
struct rs_pod_conf {
	struct str labels, annotations;
};

struct rs_pod {
	struct str uid; /* as the API knows it */
	struct str
		cgroup_uid; /* as cgroups have it: static pods' is another (their configuration's hash) */
	struct str name, namespace;
	struct str owner_kind, owner_name, owner_uid; /* the controller; empty: none */
	struct str top_kind, top_name,
		top_uid;	    /* the controller's own; empty: not known, or none */
	struct str template_hash;   /* label pod-template-hash */
	bool ended;		    /* Succeeded or Failed: its address may be another's */
	bool leaving;		    /* is being deleted: its address may be another's already */
	bool host_network;	    /* its address is the node's */
	uint8_t ip[RS_POD_IPS][16]; /* IPv4 in the first four bytes */
	uint8_t nips;
	uint32_t nlabels, nannotations, ncontainers;
	struct rs_pod_kv *labels, *annotations;
	struct rs_pod_container *containers;

	/* The store's (pods.h): */
	uint64_t key, digest, gen, epoch, deleted_ns;
	struct rs_list node;
	struct rs_arena mem;
};

/* An address as text; ret: IPv4 in the first four bytes, the rest zero. False: it is none. */
bool rs_pod_ip(struct str text, uint8_t ret[16]);

/* Is the key in the list? */
bool rs_pod_wanted(struct str list, struct str key);

/*
 * Reads a Pod object; p->mem is initialised, is j's arena, and holds the strings afterwards. False: it is
 * malformed (j->err), or has no uid or name.
 */
bool rs_pod_parse(struct rs_pod *p, struct rs_json *j, const struct rs_pod_conf *conf);

/* Sets the controller's controller; copies. False: nothing has changed. */
bool rs_pod_set_top(struct rs_pod *p, struct str kind, struct str name, struct str uid);

/* Of its lists; empty or NULL when there is none. */
struct str rs_pod_label(const struct rs_pod *p, struct str key);
struct str rs_pod_annotation(const struct rs_pod *p, struct str key);
/* By name, else by id; else the only one there is. */
const struct rs_pod_container *rs_pod_container(const struct rs_pod *p, struct str name,
						struct str id);

#endif
