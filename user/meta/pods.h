/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pods — the pods that are known, by the uid that is in cgroups' paths and by address.
 *
 * Filled by a source (user/k8s): whole lists, and single changes. A pod that is gone is kept for
 * RS_PODS_KEEP_NS: its last spans come after it. An address belongs to the pod that had it last and has not
 * ended. Bounded: a pod that does not fit is counted and left out, deleted ones give way first.
 * `gen` changes when anything here does, a pod's `gen` when that pod does.
 * Pointers are valid until the next call that is not a look-up. Not thread-safe.
 */
#ifndef RS_META_PODS_H
#define RS_META_PODS_H

#include "base/counters.h"
#include "base/map.h"
#include "base/pool.h"
#include "meta/pod.h"

#define RS_PODS_KEEP_NS 120000000000ull

struct rs_pods {
	struct rs_map by_uid, by_ip;
	struct rs_pool pool;
	struct rs_list live;	/* in no order */
	struct rs_list deleted; /* longest deleted first */
	uint32_t nlive, ndeleted;
	uint64_t gen, epoch;
	struct rs_pod_conf conf; /* strings are the caller's */
	struct rs_counters *n;
	bool wanted; /* somebody asked for a pod that is not known: the source may hurry; it resets this */
};

void rs_pods_init(struct rs_pods *ps, uint32_t max, struct rs_counters *n);
void rs_pods_release(struct rs_pods *ps);

/* An empty one to parse into; give it to put or drop. NULL: full. */
struct rs_pod *rs_pods_new(struct rs_pods *ps);
void rs_pods_drop(struct rs_pods *ps, struct rs_pod *p);
/* It is as p says, from now on. Takes p. */
void rs_pods_put(struct rs_pods *ps, struct rs_pod *p);
/* It is gone, with this last state. Takes p. */
void rs_pods_gone(struct rs_pods *ps, struct rs_pod *p, uint64_t now_ns);

/* Of all living pods of this controller, its own controller is known now. */
void rs_pods_set_top(struct rs_pods *ps, struct str owner_uid, struct str kind, struct str name,
		     struct str uid);

/* A whole list: what is not put between the two is gone. */
void rs_pods_list_begin(struct rs_pods *ps);
void rs_pods_list_end(struct rs_pods *ps, uint64_t now_ns);
/* Forgets those that were deleted long ago. */
void rs_pods_tick(struct rs_pods *ps, uint64_t now_ns);

const struct rs_pod *rs_pods_by_uid(const struct rs_pods *ps, struct str cgroup_uid);
/* ip: IPv4 in the first four bytes, the rest zero. */
const struct rs_pod *rs_pods_by_ip(const struct rs_pods *ps, const uint8_t ip[16]);

#endif
