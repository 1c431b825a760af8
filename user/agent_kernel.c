// SPDX-License-Identifier: Apache-2.0
#include "agent_parts.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "meta/facts.h"

/* Go brings its TLS with it: goroutines are followed in any case. */
static void look_for_go(struct rs_agent *a, uint32_t tgid, enum rs_tls_mode mode)
{
	rs_gos_look(&a->gos, tgid,
		    a->cfg->tls != RS_TLS_NEVER && mode != RS_TLS_NEVER &&
			    !rs_tls_excluded(&a->tls, tgid));
}

void rs_agent_on_learnt(void *arg, uint32_t tgid)
{
	struct rs_agent *a = arg;
	const struct rs_proc *p = rs_procs_find(&a->pl.procs, tgid);
	int tls = p && p->decision.rule ? p->decision.rule->tls : RS_RULE_TLS_DEFAULT;
	enum rs_tls_mode mode = tls == RS_RULE_TLS_DEFAULT
					? a->tls.mode
					: (enum rs_tls_mode)(tls - RS_RULE_TLS_AUTO);

	look_for_go(a, tgid, mode);
	rs_tls_look(&a->tls, tgid, mode);
}

/* At its very beginning: a connection's first bytes say what all later ones mean (HPACK). */
void rs_agent_on_exec(void *arg, uint32_t tgid)
{
	struct rs_agent *a = arg;

	if (!rs_procs_may_trace(&a->pl.procs, tgid))
		return;
	look_for_go(a, tgid, a->tls.mode);
	rs_tls_exec(&a->tls, tgid); /* what is in the executable itself is there now */
}

static void on_does_tls(void *arg, uint32_t tgid, bool opaque)
{
	rs_tls_again(&((struct rs_agent *)arg)->tls, tgid, opaque);
}

static void on_loads_tls(void *arg, const struct rs_ev_proc *ev)
{
	rs_tls_loads(&((struct rs_agent *)arg)->tls, ev->tgid, ev->dev, ev->ino);
}

static enum rs_tls_reading on_reading(void *arg, uint32_t tgid, uint64_t *ret_since_ns)
{
	const struct rs_agent *a = arg;
	struct rs_gos_info go;

	if (rs_gos_process(&a->gos, tgid, &go) && go.tls) {
		*ret_since_ns = go.tls_since_ns;
		return RS_TLS_READ;
	}
	return rs_tls_reading(&a->tls, tgid, ret_since_ns);
}

static void on_policy(void *arg, uint64_t conn, const struct rs_bpf_policy *policy)
{
	/* A refusal (map full) costs copying, nothing else. */
	(void)rs_kernel_policy(((struct rs_agent *)arg)->kernel, conn, policy);
}

/* What is decided of a process: the kernel side need not send what nobody wants. */
static void on_decision(void *arg, const struct rs_proc *p)
{
	struct rs_agent *a = arg;
	uint32_t verdict = 0;

	if (p->decision.state == RS_DECIDED_SKIP)
		verdict = RS_BPF_SKIP;
	else if (p->decision.state == RS_DECIDED_PORTS)
		verdict = RS_BPF_PORTS;
	if (!verdict)
		rs_kernel_adopt(a->kernel, p->tgid);
	/* A refusal (map full) costs copying, nothing else. */
	(void)rs_kernel_verdict(a->kernel, p->tgid, verdict);
}

static void on_listens(void *arg, uint32_t tgid, struct rs_facts *f)
{
	struct rs_bpf_listening l;

	rs_kernel_listening(((struct rs_agent *)arg)->kernel, tgid, &l);
	for (int i = 0; i < RS_LISTENING; i++)
		rs_facts_add_port(f, l.port[i], false);
}

static void set_ports(void *arg, uint16_t first, uint16_t last)
{
	uint64_t *bits = arg;

	for (uint32_t port = first; port <= last; port++)
		bits[port / 64] |= 1ull << (port % 64);
}

/* Whoever names processes by --pid or --comm means them, agents or not. */
void rs_agent_set_rules(struct rs_agent *a, const struct rs_config *cfg)
{
	bool named = cfg->pids.n || cfg->comms.n || cfg->cmd;

	rs_discover_init(&a->discover, &cfg->include, &cfg->exclude, (enum rs_others)cfg->others,
			 !cfg->trace_agents && !named);
}

void rs_agent_tell_ports(struct rs_agent *a)
{
	uint64_t bits[RS_PORT_BITS] = { 0 };

	rs_discover_ports(&a->discover, set_ports, bits);
	if (rs_kernel_ports(a->kernel, bits))
		rs_warn("the kernel side cannot be told which ports rules name");
}

static void on_request_start(void *arg, uint64_t conn, uint64_t off)
{
	rs_kernel_request_start(((struct rs_agent *)arg)->kernel, conn, off);
}

static void on_publisher(void *arg, uint32_t tgid, const struct rs_bpf_tlsvar *tls)
{
	/* A refusal (too many) costs the SDK's word on its threads, nothing else. */
	(void)rs_kernel_publisher(((struct rs_agent *)arg)->kernel, tgid, tls);
}

void rs_agent_bind_kernel(struct rs_agent *a)
{
	struct rs_procs *procs = &a->pl.procs;

	procs->discover = &a->discover;
	procs->tell = on_decision;
	procs->listens = on_listens;
	procs->tell_arg = a;
	procs->learnt = rs_agent_on_learnt;
	procs->execed = rs_agent_on_exec;
	procs->learnt_arg = a;
	if (a->cfg->thread_context)
		procs->publisher = on_publisher;
	procs->publisher_arg = a;
	a->pl.tls.does = on_does_tls;
	a->pl.tls.loads = on_loads_tls;
	a->pl.tls.reading = on_reading;
	a->pl.tls.arg = a;
	a->pl.l7.policy = on_policy;
	a->pl.l7.policy_arg = a;
	if (a->cfg->inject == RS_INJECT_TRACEPARENT)
		a->pl.request_start = on_request_start;
	a->pl.arg = a;
}

static void kernel_opts(const struct rs_config *cfg, struct rs_kernel_opts *o, uint32_t *pids)
{
	*o = (struct rs_kernel_opts){ .mode = (enum rs_capture_mode)cfg->capture,
				      .ring_bytes = cfg->ring_size,
				      .max_conns = (uint32_t)cfg->max_connections };
	for (uint32_t i = 0; i < cfg->pids.n; i++)
		pids[o->npids++] = cfg->pids.v[i];
	o->pids = pids;
	o->cfg.filter_comm = (uint8_t)cfg->comms.n;
	memcpy(o->cfg.comm, cfg->comms.v, sizeof(o->cfg.comm));
	o->cfg.filter_port = (uint8_t)cfg->ports.n;
	memcpy(o->cfg.port, cfg->ports.v, sizeof(o->cfg.port));
}

/* Processes that run already and are not wanted: the ring does not begin with what they do. */
static void decide_early(struct rs_agent *a)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	uint64_t pid;

	while (dir && (d = readdir(dir))) {
		if (!str_u64(str_c(d->d_name), &pid) ||
		    rs_procs_may_trace(&a->pl.procs, (uint32_t)pid))
			continue;
		(void)rs_kernel_verdict(a->kernel, (uint32_t)pid, RS_BPF_TELL);
	}
	if (dir)
		closedir(dir);
}

/* Do the filters let this process through, as far as is known now? Its children are looked at when they are seen. */
static bool may_matter(void *arg, uint32_t tgid)
{
	struct rs_agent *a = arg;
	const struct rs_config *cfg = a->cfg;
	bool named = !cfg->pids.n && !cfg->cmd;
	char comm[RS_COMM_LEN];

	for (uint32_t i = 0; i < cfg->pids.n; i++)
		named |= cfg->pids.v[i] == tgid;
	if (!named || !rs_procs_may_trace(&a->pl.procs, tgid))
		return false;
	if (!cfg->comms.n)
		return true;
	rs_facts_comm(tgid, comm);
	for (uint32_t i = 0; i < cfg->comms.n; i++) {
		if (strcmp(comm, cfg->comms.v[i]) == 0)
			return true;
	}
	return false;
}

/* A process that ran before the agent. */
static bool look_now(void *arg, uint32_t tgid)
{
	struct rs_agent *a = arg;

	if (!may_matter(a, tgid))
		return false;
	look_for_go(a, tgid, a->tls.mode);
	return true;
}

/* Why a header is not to be put in here, or NULL. */
static const char *refuse_injection(const struct rs_config *cfg)
{
	int ok;

	if (cfg->inject != RS_INJECT_TRACEPARENT)
		return NULL;
	ok = rs_kernel_sockmap_ok();
	if (ok == 1)
		return NULL;
	if (ok == -EPERM)
		return "a sockmap takes CAP_NET_ADMIN";
	if (cfg->inject_force) {
		rs_warn("--inject-force: on this kernel programs that ask how much they can read (FIONREAD) "
			"on their client sockets are told 0");
		return NULL;
	}
	return ok == 0 ? "on this kernel it would break FIONREAD (--inject-force)"
		       : "whether it breaks FIONREAD cannot be tried here (--inject-force)";
}

int rs_agent_open_kernel(struct rs_agent *a)
{
	uint32_t pids[RS_CONFIG_PIDS + 1];
	struct rs_kernel_opts opts;
	struct rs_kernel_err err = { 0 };
	int rc;

	kernel_opts(a->cfg, &opts, pids);
	for (uint32_t i = 0; i < opts.npids; i++) {
		if (kill((pid_t)pids[i], 0) && errno == ESRCH)
			rs_warn("--pid %u: there is no such process now", pids[i]);
	}
	if (a->child)
		pids[opts.npids++] = (uint32_t)a->child;
	opts.cfg.tls = a->cfg->tls != RS_TLS_NEVER;
	opts.cfg.runq_us = (uint32_t)(a->cfg->run_queue_wait / 1000);
	opts.cfg.filter_pid = opts.npids > 0;
	opts.cfg.discover = !a->record;
	opts.cfg.inject = (uint8_t)a->cfg->inject;
	opts.inject_refused = refuse_injection(a->cfg);
	if (opts.inject_refused)
		rs_warn("--inject: not done: %s", opts.inject_refused);
	opts.cfg.dns = a->cfg->dns == 0;
	rc = rs_kernel_open(&opts, &a->kernel, &err);
	if (!rc && !a->record) {
		rs_agent_tell_ports(a);
		decide_early(a);
	}
	if (rc || rs_kernel_attach(a->kernel, &err)) {
		rs_error("%s", err.msg);
		return err.unsupported ? RS_EXIT_UNSUPPORTED : RS_EXIT_FAILED;
	}
	rs_gos_init(&a->gos, a->kernel, &a->pl.n);
	rs_tls_init(&a->tls, a->kernel, (enum rs_tls_mode)a->cfg->tls, a->cfg->tls_exclude,
		    &a->pl.n);
	rs_tls_look_all(&a->tls, look_now, a);
	if (!a->cfg->pids.n) /* these run, or are started by what does */
		rs_tls_look_system(&a->tls, a->pl.procs.containers.host_root);
	return RS_EXIT_OK;
}
