/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_parts — what the agent owns, and what its files call of each other:
 *
 *   agent.c          the loop's callbacks; building up and tearing down
 *   agent_kernel.c   the kernel side: opening it, telling it what was decided
 *   agent_output.c   where spans go: exporters, a screen, a file
 *   agent_child.c    the command of `trace -- CMD`
 *   agent_control.c  requests of the control socket and of --listen
 *   agent_reload.c   settings that change while it runs
 *
 * One thread. Functions that return `enum rs_exit` have logged what went wrong.
 */
#ifndef RS_AGENT_PARTS_H
#define RS_AGENT_PARTS_H

#include <stdio.h>
#include <sys/types.h>

#include "agent_dump.h"
#include "config/config.h"
#include "discover/discover.h"
#include "export/exporters.h"
#include "export/out.h"
#include "go/gos.h"
#include "k8s/k8s.h"
#include "kernel/kernel.h"
#include "loop/loop.h"
#include "pipeline.h"
#include "sandbox/sandbox.h"
#include "settings.h"
#include "status/control.h"
#include "status/page.h"
#include "tls/tls.h"
#include "trace/sample.h"

struct rs_agent {
	struct rs_config *cfg;
	struct rs_loop loop;
	struct rs_kernel *kernel;
	struct rs_pipeline pl;
	struct rs_out out;	       /* `trace` */
	struct rs_exporters exporters; /* `run` */
	struct rs_sampler sampler;
	struct rs_k8s k8s;
	struct rs_discover discover;
	struct rs_gos gos;
	struct rs_reload reload; /* `run` */
	struct rs_tls_watch tls;
	struct rs_control control;
	struct rs_page page;
	struct rs_sandbox rights;
	struct rs_dump dump; /* `ringspan debug dump` */
	FILE *record;	     /* `record` only */
	int rc;		     /* enum rs_exit */

	struct rs_loop_fd ring;
	struct rs_loop_timer drain, tick, end;
	uint64_t drain_period;
	unsigned ticks;
	uint64_t last_record_ns, last_flush_ns, last_sweep_ns, started_ns; /* CLOCK_MONOTONIC */
	uint64_t read_ns;  /* all records of before then have been handled */
	uint64_t sweep_to; /* with sweeping: how far the ring must be read before its verdict */
	bool sweeping;
	uint64_t recorded;
	bool stopping; /* nothing is captured any more */

	pid_t child;	/* the command being traced; 0: none */
	int child_gate; /* closing it lets the command run; -1: none */
	bool child_ended;
};

/* Ends the loop; rc: enum rs_exit, the first that is not RS_EXIT_OK stays. */
void rs_agent_stop(struct rs_agent *a, int rc);
/* Handles what the ring holds, up to a budget. Returns the number of records; RS_AGENT_BUDGET: there is more. */
size_t rs_agent_read_ring(struct rs_agent *a);
#define RS_AGENT_BUDGET 16384 /* records per turn, so that everything else gets its turn too */

/* -- agent_kernel.c -- */

/* Makes the pipeline ask and tell the kernel side. After rs_pipeline_init(). */
void rs_agent_bind_kernel(struct rs_agent *a);
/* Loads and attaches the probes, finds what runs already. Returns enum rs_exit. */
int rs_agent_open_kernel(struct rs_agent *a);
/* The rules of cfg are the ones that hold; cfg must stay. */
void rs_agent_set_rules(struct rs_agent *a, const struct rs_config *cfg);
/* The ports that rules name, to the kernel side. */
void rs_agent_tell_ports(struct rs_agent *a);
/* A process was executed, or seen for the first time: are its Go and its TLS to be followed? */
void rs_agent_on_exec(void *arg, uint32_t tgid);
void rs_agent_on_learnt(void *arg, uint32_t tgid);

/* -- agent_output.c -- */

/* Where spans (or records) go. Returns enum rs_exit. */
int rs_agent_open_output(struct rs_agent *a);
/* Nothing new comes in any more: only exporters have work. A second signal ends that too. */
void rs_agent_drain_exporters(struct rs_agent *a);

/* -- agent_child.c -- */

/* Forks; the child waits until its gate is opened, so that the filter knows it before it runs. 0 or -errno. */
int rs_agent_start_child(struct rs_agent *a);
void rs_agent_open_gate(struct rs_agent *a);
/* SIGCHLD: the command's end is the agent's. */
void rs_agent_reap_child(struct rs_agent *a);
/* Before its gate was opened: it has run nothing. */
void rs_agent_kill_child(struct rs_agent *a);

/* -- agent_control.c -- */

/* The status socket and --listen, as far as they are asked for. Returns enum rs_exit. */
int rs_agent_open_control(struct rs_agent *a);

/* -- agent_reload.c -- */

/* At the start: what a reload may change later. */
void rs_agent_first_settings(struct rs_agent *a);
/* Reads the config again and applies it. Logs what came of it. */
void rs_agent_reload(struct rs_agent *a);

#endif
