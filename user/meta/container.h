/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container — which container a process runs in, and what the runtime's files on this node say of it.
 *
 * By the cgroup id that a connection's record carries: the unified hierarchy's directory of that id is opened
 * by handle (no walk, and the process may be gone), its path says the rest (cgroup.h). Where that leads
 * nowhere (no unified hierarchy, no right to open by handle) by /proc/PID/cgroup. Names come from the runtime's
 * own files, no API: containerd's and CRI-O's bundle (config.json), Docker's and Podman's lists, the mounts of
 * a pod's process, kubelet's log directories.
 *
 * Cached by cgroup, bounded, the longest unused gives way. Reads small local files when a container is first
 * seen; not again. Not thread-safe.
 */
#ifndef RS_META_CONTAINER_H
#define RS_META_CONTAINER_H

#include "base/arena.h"
#include "base/counters.h"
#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"
#include "meta/cgroup.h"

#define RS_CONTAINERS_MAX 4096

/* Strings are empty when nothing says so. They live as long as the struct is in the cache: copy them. */
struct rs_container {
	struct rs_cgroup cg;
	struct str name;  /* the runtime's, of containers that are in no pod */
	struct str image; /* as it was asked for: "registry/name:tag" */
	struct str pod_name, pod_namespace, pod_container;

	uint64_t key;
	bool asked; /* its process's mounts were looked at */
	struct rs_list lru;
	struct rs_arena mem;
};

struct rs_containers {
	struct rs_map by_key; /* cgroup id, or a hash of the container's id */
	struct rs_pool pool;
	struct rs_list lru;
	struct rs_counters *n;
	int cgroup_fd;	       /* the host's unified hierarchy; -1: none to be had */
	const char *host_root; /* of all paths to the runtimes' files, without a slash at the end */
};

/* host_root: where the host's files are seen; NULL: by process 1's root, "" if that is not to be had. */
void rs_containers_init(struct rs_containers *cs, const char *host_root, struct rs_counters *n);
void rs_containers_release(struct rs_containers *cs);

/* The container of a process, or NULL: it is in none. cgroup: its cgroup id, 0: not known. Valid until the
 * next call. */
const struct rs_container *rs_containers_of(struct rs_containers *cs, uint32_t tgid,
					    uint64_t cgroup);

/* A cgroup was made: what its path says is kept, it may be gone when its processes are heard of. */
void rs_containers_made(struct rs_containers *cs, uint64_t cgroup, struct str path);

/* -- parts, for tests -- */

/* The text of an OCI bundle's config.json, or of Docker's config.v2.json. */
void rs_container_config(struct rs_container *c, struct str json);
/* Podman's containers.json: a list of all; takes the one of c's id. */
void rs_container_podman(struct rs_container *c, struct str json);
/* A line of /proc/PID/mountinfo: a pod's process has mounts below …/pods/UID/containers/NAME/. */
void rs_container_mount(struct rs_container *c, struct str line);

/* "registry:5000/name:tag@sha256:…" in its parts. */
void rs_image_parse(struct str image, struct str *ret_name, struct str *ret_tag,
		    struct str *ret_digest);

#endif
