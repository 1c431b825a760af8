/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup — what a control group's path says: container, pod, runtime. Pure functions, nothing is read here.
 *
 * Runtimes put a container's 64-digit id into the name of its cgroup, kubelet the pod's uid into the name of
 * the one above, each in a form per runtime and cgroup driver (systemd: "….slice/cri-containerd-ID.scope",
 * cgroupfs: "…/podUID/ID"). Containers may hold cgroups of their own, and other containers: the innermost
 * name that is a container's counts. Monitors of containers (conmon) are outside of them.
 */
#ifndef RS_META_CGROUP_H
#define RS_META_CGROUP_H

#include "base/str.h"

#define RS_CONTAINER_ID_MAX 80 /* bytes of an id, and a NUL */
#define RS_POD_UID_MAX	    40 /* likewise */
#define RS_CGROUP_PATH_MAX  4096

enum rs_runtime {
	RS_RUNTIME_UNKNOWN, /* a bare id does not say whose, nor do the paths of ECS */
	RS_RUNTIME_CONTAINERD,
	RS_RUNTIME_CRIO,
	RS_RUNTIME_DOCKER,
	RS_RUNTIME_PODMAN,
	RS_RUNTIME_GARDEN,
	RS_RUNTIME_LXC,
	RS_RUNTIME_MESOS,
};

struct rs_cgroup {
	char container_id[RS_CONTAINER_ID_MAX]; /* empty: not in a container */
	char pod_uid[RS_POD_UID_MAX]; /* with dashes; static pods: 32 digits; empty: not in a pod */
	uint8_t runtime;	      /* enum rs_runtime */
};

/* As container.runtime.name says it: "containerd", "cri-o", …; "" when it is not known. */
const char *rs_runtime_name(enum rs_runtime r);

/* A path below the cgroup file system's root; relative ones ("/../x") too. False, and *ret empty: neither
 * container nor pod. */
bool rs_cgroup_path(struct str path, struct rs_cgroup *ret);

/* The text of /proc/PID/cgroup, v1, v2 or both: the first line that names a container, else the first that
 * names a pod; the unified hierarchy's line ("0::") before all others. */
bool rs_cgroup_text(struct str text, struct rs_cgroup *ret);

#endif
