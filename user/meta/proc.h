/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc — the traced processes: what they are called, and the OTLP resource their spans carry.
 *
 * A process is known by its thread group id and start time (pids are reused). It is learnt at first
 * sight, from the record and, when live, from /proc, and learnt again after exec. Its resource stays
 * the same between, and resource.id is then a number that no other resource of this agent ever has.
 * A process that is not traced is only looked at as far as the rules of discovery ask.
 * Bounded: when the table is full a process unheard of for about the longest gives way (counted).
 * Not thread-safe. Strings and attributes live until the process is learnt again or forgotten.
 */
#ifndef RS_META_PROC_H
#define RS_META_PROC_H

#include "base/counters.h"
#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"
#include "discover/discover.h"
#include "shared/config.h"
#include "meta/container.h"
#include "meta/execs.h"
#include "meta/names.h"
#include "trace/span.h"

/* What a request and its span need comes first, in two cache lines. */
struct rs_service;

struct rs_proc {
	uint32_t tgid;
	uint32_t nconns;
	uint32_t nheld; /* finished requests that are held back: it must stay */
	bool exited;
	bool used; /* heard of since the table last looked for one to give up, and since its program began */
	uint8_t strays;		     /* records that came though it is not traced */
	bool described;		     /* its environment was read */
	bool sdk;		     /* runs an OpenTelemetry SDK, which makes spans of its own */
	bool published;		     /* it publishes its context: what there is to know is known */
	uint8_t sdk_ticks;	     /* since it was looked at for one */
	bool opaque;		     /* it had TLS connections of which no plain text was seen */
	struct rs_decision decision; /* what rules say */
	struct str service;	     /* service.name */

	uint64_t spans, requests, errors;
	/* Where its spans as a server and as a client are counted (status/services.h), the pipeline's; NULL: not known yet. */
	struct rs_service *counted[2];
	/* Of the batch under construction (see trace/assemble.c): */
	uint64_t batch_serial;
	struct rs_scope_spans *batch_group; /* under one that borrows from `resource` */

	struct rs_resource resource;
	uint64_t start_ns; /* CLOCK_BOOTTIME; 0: not known */
	uint64_t cgroup;   /* cgroup v2 id when it was first seen; 0: not known */
	char comm[16];
	const char *rule_service; /* that rules give it, as last composed; NULL: none */
	struct rs_facts facts;	  /* what rules ask for; texts in arena */
	struct rs_list conns;	  /* rs_conn.of_proc: connections it used last */
	uint64_t plain_bytes;	  /* of TLS, seen */
	uint32_t tls_unknown;	  /* ended connections whose TLS was no library's that is known */
	uint32_t tls_missed;	  /* others that were not read, or not from the beginning */

	struct rs_container_facts c; /* in own_mem */
	struct rs_attrs own;	     /* what it says of itself, in own_mem */
	struct str exe;		     /* path, or empty; in own_mem */
	uint64_t pod_gen;	     /* of the pod in `resource` (pods.h); 0: none */
	uint64_t pods_seen, wait_until_ns;

	struct rs_list lru;
	struct rs_arena own_mem; /* until it executes another program */
	struct rs_arena arena;	 /* of resource */
};
_Static_assert(offsetof(struct rs_proc, spans) == 64 && offsetof(struct rs_proc, resource) <= 128,
	       "as said above");

struct rs_procs {
	struct rs_map by_tgid;
	struct rs_pool pool;
	struct rs_list lru; /* nearly in the order in which they were last heard of */
	uint64_t next_id;   /* of a resource */
	bool live;	    /* read /proc */
	struct rs_counters *n;
	/* Called when a process is found to publish its threads' active span. May be NULL. */
	void (*publisher)(void *arg, uint32_t tgid, const struct rs_bpf_tlsvar *tls);
	void *publisher_arg;
	struct rs_containers containers; /* while live */
	struct rs_execs execs;		 /* the same */
	struct str
		extra; /* attributes for those that lack them, as in OTEL_RESOURCE_ATTRIBUTES; the caller's */
	struct str host;
	char host_buf[256];

	/* Set by the caller after init: */
	struct rs_pods *pods;  /* of this node; NULL: no Kubernetes source */
	struct str node;       /* the node's name, or empty */
	uint64_t pods_wait_ns; /* a process's spans wait at most so long for its pod to be known */
	const struct rs_discover *discover; /* NULL: every process is traced */
	/* A verdict is not, or not any more, "traced": the kernel side wants to know. NULL: it does not. */
	void (*tell)(void *arg, const struct rs_proc *p);
	/* Adds ports of rules that it listens on to its facts. NULL: nobody knows. */
	void (*listens)(void *arg, uint32_t tgid, struct rs_facts *f);
	void *tell_arg;
	/* What p->resource refers to is about to go: whoever borrowed of it takes a copy. NULL: nobody did. */
	void (*parting)(void *arg, struct rs_proc *p);
	void *parting_arg;
	/* A process was seen for the first time, or has become another program. NULL: nobody asks. */
	void (*learnt)(void *arg, uint32_t tgid);
	/* Any process that may be traced has executed a program, long before it is seen. NULL: nobody asks. */
	void (*execed)(void *arg, uint32_t tgid);
	void *learnt_arg;
};

/* live: /proc is read; host_root: as rs_containers_init. */
void rs_procs_init(struct rs_procs *ps, uint32_t max, bool live, const char *host_root,
		   struct rs_counters *n);
void rs_procs_release(struct rs_procs *ps);

/* The process, learnt now if it is new. start_ns 0: any with this tgid. cgroup 0: not known. comm may be
 * empty. NULL only without memory. The result stays valid until rs_procs_gone() or until the table is full. */
struct rs_proc *rs_procs_get(struct rs_procs *ps, uint32_t tgid, uint64_t start_ns, uint64_t cgroup,
			     struct str comm);
/* A request of p comes soon: its memory comes nearer. */
void rs_proc_ahead(const struct rs_proc *p);
/* NULL when it is not known. */
struct rs_proc *rs_procs_find(const struct rs_procs *ps, uint32_t tgid);
/* It listens on or talks through this port, or (far) to it: rules may ask for it. */
void rs_procs_port(struct rs_procs *ps, struct rs_proc *p, uint16_t port, bool far);
/* Would this process, which is not known yet, be traced, as far as can be said now? */
bool rs_procs_may_trace(struct rs_procs *ps, uint32_t tgid);
/* It is not traced, and something of it came all the same: now and then the kernel side is told again, which may have
 * had to forget it. */
void rs_procs_stray(struct rs_procs *ps, struct rs_proc *p);
/* What is not known of it yet will not be waited for: decides by the rest. */
void rs_procs_settle(struct rs_procs *ps, struct rs_proc *p);
/* The rules are others now: asks them of every process. */
void rs_procs_relearn(struct rs_procs *ps);
/* A process that may be unknown has executed a program: looks at it while it is there. */
void rs_procs_execed(struct rs_procs *ps, uint32_t tgid, uint64_t start_ns);
/* It has executed another program. */
void rs_procs_exec(struct rs_procs *ps, struct rs_proc *p, struct str comm);
/* Call a few times a second while ps->live: looks once more for an SDK, which may start late. */
void rs_procs_tick(struct rs_procs *ps, struct rs_proc *p);
/* Its cgroup's id is known only now: what container it is in is looked up, unless that is known. */
void rs_procs_cgroup(struct rs_procs *ps, struct rs_proc *p, uint64_t cgroup);
/* Brings its resource, and what the rules say, up to date with what is known of its pod. */
void rs_procs_follow(struct rs_procs *ps, struct rs_proc *p);
/* The same; and is its pod still being waited for? */
bool rs_procs_waits(struct rs_procs *ps, struct rs_proc *p, uint64_t now_ns);
/* Is there a source that does not know its pod? */
bool rs_procs_lacks_pod(const struct rs_procs *ps, const struct rs_proc *p);
/* Forget it; its connections must have been moved away. */
void rs_procs_gone(struct rs_procs *ps, struct rs_proc *p);

#endif
