/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts — what is known of a process when rules are asked about it.
 *
 * Texts are NUL-terminated and belong to whoever fills them in. NULL: not known, and it may yet become
 * known (a pod's labels arrive late); "" or 0 of them: known to be none.
 */
#ifndef RS_DISCOVER_FACTS_H
#define RS_DISCOVER_FACTS_H

#include <stdint.h>

struct rs_label {
	const char *key, *value;
};

#define RS_FACTS_PORTS	16
#define RS_FACTS_NO_UID UINT32_MAX

struct rs_facts {
	const char *exe;			     /* path of its executable */
	const char *comm;			     /* command name, as the kernel cuts it */
	const char *cgroup;			     /* path below the cgroup mount, from '/' on */
	uint32_t uid;				     /* effective; RS_FACTS_NO_UID: not known */
	const char *container, *pod, *k8s_namespace; /* names */
	const struct rs_label *labels;		     /* of the pod */
	int nlabels;				     /* -1: not known */
	/* Local ports it listens on, and ports of either end of its connections, the first ones. */
	uint16_t ports[RS_FACTS_PORTS];
	uint32_t nports;
	uint16_t far; /* bit per ports[]: seen at the other end only, it is that port's client */
};

#endif
