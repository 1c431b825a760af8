// SPDX-License-Identifier: Apache-2.0
#include "agent.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_dump.h"
#include "agent_report.h"
#include "agent_rights.h"
#include "agent_status.h"
#include "base/clock.h"
#include "base/log.h"
#include "export/exporters.h"
#include "export/out.h"
#include "go/gos.h"
#include "k8s/k8s.h"
#include "kernel/kernel.h"
#include "loop/loop.h"
#include "meta/facts.h"
#include "pipeline.h"
#include "settings.h"
#include "source/tev.h"
#include "status/control.h"
#include "status/page.h"
#include "tls/tls.h"

#define MS 1000000ull

/* The ring is drained on a timer, records wake nobody: at this pace when there is traffic, slower when
 * there is none. 8 MiB hold far more than traffic makes in one period. */
#define DRAIN_BUSY_NS (5 * MS)
#define DRAIN_IDLE_NS (50 * MS)
#define DRAIN_BUDGET  16384 /* records per turn, so that everything else gets its turn too */
#define TICK_NS	      (100 * MS)
#define SWEEP_TICKS   100 /* sweep for dead sockets every 10 s */
#define CLOCK_TICKS   10  /* follow the wall clock every second */
#define FLUSH_NS      (200 * MS)
#define AGENT_NICE    (-10)

struct agent {
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
	uint64_t last_record_ns, last_flush_ns, started_ns;
	uint64_t flush_ns; /* a batch waits no longer for more spans */
	uint64_t recorded;

	pid_t child;	/* the command being traced; 0: none */
	int child_gate; /* closing it lets the command run; -1: none */
	bool child_ended;
};

static void stop(struct agent *a, int rc)
{
	if (rc != RS_EXIT_OK && a->rc == RS_EXIT_OK)
		a->rc = rc;
	rs_loop_stop(&a->loop);
}

/* -- output -- */

static void on_flush(void *arg, const struct rs_batch *b)
{
	struct agent *a = arg;
	int rc;

	a->last_flush_ns = a->pl.now;
	if (a->cfg->command == RS_CMD_run) {
		rs_exporters_batch(&a->exporters, b);
		return;
	}
	if (a->out.err)
		return; /* told already; the loop is about to end */
	rc = rs_out_batch(&a->out, b);
	if (rc == -EPIPE) {
		stop(a, RS_EXIT_OK); /* `ringspan trace | head`: enough was seen */
	} else if (rc) {
		rs_error("cannot write spans: %s", strerror(-rc));
		stop(a, RS_EXIT_FAILED);
	}
}

/* -- input -- */

/* Go brings its TLS with it: goroutines are followed in any case. */
static void look_for_go(struct agent *a, uint32_t tgid, enum rs_tls_mode mode)
{
	rs_gos_look(&a->gos, tgid,
		    a->cfg->tls != RS_TLS_NEVER && mode != RS_TLS_NEVER &&
			    !rs_tls_excluded(&a->tls, tgid));
}

static void on_learnt(void *arg, uint32_t tgid)
{
	struct agent *a = arg;
	const struct rs_proc *p = rs_procs_find(&a->pl.procs, tgid);
	int tls = p && p->decision.rule ? p->decision.rule->tls : RS_RULE_TLS_DEFAULT;
	enum rs_tls_mode mode = tls == RS_RULE_TLS_DEFAULT
					? a->tls.mode
					: (enum rs_tls_mode)(tls - RS_RULE_TLS_AUTO);

	look_for_go(a, tgid, mode);
	rs_tls_look(&a->tls, tgid, mode);
}

/* At its very beginning: a connection's first bytes say what all later ones mean (HPACK). */
static void on_execed(void *arg, uint32_t tgid)
{
	struct agent *a = arg;

	if (!rs_procs_may_trace(&a->pl.procs, tgid))
		return;
	look_for_go(a, tgid, a->tls.mode);
	rs_tls_exec(&a->tls, tgid); /* what is in the executable itself is there now */
}

static void on_does_tls(void *arg, uint32_t tgid, bool opaque)
{
	rs_tls_again(&((struct agent *)arg)->tls, tgid, opaque);
}

static void on_record(void *arg, const struct rs_ev_hdr *ev)
{
	struct agent *a = arg;

	a->last_record_ns = ev->ts_ns;
	if (!a->record)
		rs_pipeline_event(&a->pl, ev);
	else if (rs_tev_write(a->record, ev) == 0) {
		a->recorded++;
		if (ev->type == RS_EV_PROC &&
		    ((const struct rs_ev_proc *)(const void *)ev)->event == RS_PROC_EXEC)
			on_execed(a, ((const struct rs_ev_proc *)(const void *)ev)->tgid);
		if (ev->type == RS_EV_OPEN) /* no pipeline learns of its process */
			on_learnt(a, ((const struct rs_ev_open *)(const void *)ev)->tgid);
	} else if (!a->loop.stop) {
		rs_error("cannot write %s: %s", a->cfg->output, strerror(errno));
		stop(a, RS_EXIT_FAILED);
	}
}

static void drain(struct agent *a)
{
	size_t n = rs_kernel_drain(a->kernel, DRAIN_BUDGET, on_record, a);
	uint64_t period = n ? DRAIN_BUSY_NS : a->drain_period * 2;

	if (a->pl.done)
		stop(a, RS_EXIT_OK);
	if (period > DRAIN_IDLE_NS)
		period = DRAIN_IDLE_NS;
	/* More is waiting: at once, after the others' turn. */
	if (n == DRAIN_BUDGET)
		rs_loop_timer_set(&a->drain, 0, period);
	else if (period != a->drain_period)
		rs_loop_timer_set(&a->drain, period, period);
	a->drain_period = period;
}

static void on_drain(void *arg)
{
	drain(arg);
}

static void on_ring(void *arg, uint32_t events)
{
	(void)events;
	drain(arg);
}

static void on_live(void *arg, uint64_t conn)
{
	rs_pipeline_sweep_live(arg, conn);
}

static void on_policy(void *arg, uint64_t conn, const struct rs_bpf_policy *policy)
{
	/* A refusal (map full) costs copying, nothing else. */
	(void)rs_kernel_policy(((struct agent *)arg)->kernel, conn, policy);
}

/* What is decided of a process: the kernel side need not send what nobody wants. */
static void on_decision(void *arg, const struct rs_proc *p)
{
	struct agent *a = arg;
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

	rs_kernel_listening(((struct agent *)arg)->kernel, tgid, &l);
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
static void discover(struct agent *a, const struct rs_config *cfg)
{
	bool named = cfg->pids.n || cfg->comms.n || cfg->cmd;

	rs_discover_init(&a->discover, &cfg->include, &cfg->exclude, (enum rs_others)cfg->others,
			 !cfg->trace_agents && !named);
}

static int tell_ports(struct agent *a)
{
	uint64_t bits[RS_PORT_BITS] = { 0 };

	rs_discover_ports(&a->discover, set_ports, bits);
	return rs_kernel_ports(a->kernel, bits);
}

static void on_request_start(void *arg, uint64_t conn, uint64_t off)
{
	rs_kernel_request_start(((struct agent *)arg)->kernel, conn, off);
}

static void on_publisher(void *arg, uint32_t tgid, const struct rs_bpf_tlsvar *tls)
{
	/* A refusal (too many) costs the SDK's word on its threads, nothing else. */
	(void)rs_kernel_publisher(((struct agent *)arg)->kernel, tgid, tls);
}

static void on_tick(void *arg)
{
	struct agent *a = arg;
	uint64_t now = rs_clock_mono();

	rs_tls_tick(&a->tls, now);
	if (a->record)
		return;
	a->ticks++;
	rs_k8s_tick(&a->k8s, now);
	rs_pipeline_tick(&a->pl, now);
	if (a->ticks % CLOCK_TICKS == 0)
		a->pl.trace.wall_offset = rs_clock_wall_offset();
	if (a->ticks % CLOCK_TICKS == 0)
		rs_gos_tick(&a->gos);
	if (a->ticks % SWEEP_TICKS == 0) {
		rs_pipeline_sweep_begin(&a->pl);
		if (rs_kernel_live(a->kernel, on_live, &a->pl) == 0)
			rs_pipeline_sweep_end(&a->pl);
	}
	if (a->pl.batch.nspans && now - a->last_flush_ns >= a->flush_ns)
		rs_pipeline_flush(&a->pl);
	rs_out_tick(&a->out, now);
}

static void on_end(void *arg)
{
	stop(arg, RS_EXIT_OK);
}

/* -- the traced command -- */

/* Forks; the child waits until its gate is closed, so that the filter knows it before it runs. */
static int start_child(struct agent *a)
{
	int gate[2];
	char c;

	if (pipe(gate))
		return -errno;
	a->child = fork();
	if (a->child < 0) {
		close(gate[0]);
		close(gate[1]);
		a->child = 0;
		return -errno;
	}
	if (a->child == 0) {
		close(gate[1]);
		while (read(gate[0], &c, 1) < 0 && errno == EINTR)
			;
		close(gate[0]);
		rs_loop_signals_default();
		(void)setpriority(PRIO_PROCESS, 0, 0);
		execvp(a->cfg->cmd[0], a->cfg->cmd);
		rs_error("cannot run %s: %s", a->cfg->cmd[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	close(gate[0]);
	a->child_gate = gate[1];
	return 0;
}

static void open_gate(struct agent *a)
{
	if (a->child_gate >= 0)
		close(a->child_gate);
	a->child_gate = -1;
}

static void on_child(struct agent *a)
{
	int status;

	if (!a->child || waitpid(a->child, &status, WNOHANG) != a->child)
		return;
	a->child_ended = true;
	a->rc = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	rs_loop_stop(&a->loop);
}

/* -- settings -- */

/* What may change while the agent runs. cfg stays until the next call. */
static void apply(void *arg, const struct rs_config *cfg)
{
	struct agent *a = arg;
	struct str unknown = rs_trace_configure(&a->pl.trace, cfg);

	if (unknown.len)
		rs_warn("propagators: '%.*s' is not known, the others are used", STR_ARG(unknown));
	/* Both were looked at before (rs_settings_check). */
	(void)rs_trace_redact(&a->pl.trace, cfg);
	rs_sampler_release(&a->sampler);
	if (!rs_sampler_configure(&a->sampler, cfg))
		rs_warn("--sampler-arg %s: not a number from 0 to 1; taken for 1",
			cfg->sampler_arg);
	rs_log_set_level((enum rs_log_level)cfg->log_level);
	a->pl.o.request_timeout_ns = cfg->request_timeout;
	a->pl.skip_probes = !cfg->trace_probes;
	a->pl.procs.extra = str_c(cfg->resource_attributes);
	discover(a, cfg);
	if (tell_ports(a))
		rs_warn("the kernel side cannot be told which ports rules name");
	if (a->reload.napplied)
		rs_kernel_adopt(a->kernel, 0);
	rs_kernel_forget_verdicts(a->kernel);
	rs_procs_relearn(&a->pl.procs);
}

static void reload(struct agent *a)
{
	struct rs_reload *r = &a->reload;

	/* What has happened until now is seen by the old settings. */
	rs_kernel_drain(a->kernel, DRAIN_BUDGET, on_record, a);
	if (rs_reload_run(r, rs_clock_mono()))
		rs_error("reload: %s; going on as before", r->err);
	else
		rs_info("reloaded%s%s: %d settings applied, %d need a restart%s%s",
			r->start->config ? " " : "", r->start->config ? r->start->config : "",
			r->napplied, r->nrestart, r->nrestart ? ", such as --" : "",
			r->nrestart ? r->restart[0] : "");
}

static void on_signal(void *arg, int signo, bool sent)
{
	struct agent *a = arg;

	if (signo == SIGCHLD)
		on_child(a);
	else if (signo == SIGHUP && a->cfg->command == RS_CMD_run)
		reload(a);
	else if (!a->child || a->child_ended)
		stop(a, RS_EXIT_OK);
	else if (sent)
		kill(a->child,
		     signo); /* what the terminal sent, the command has got itself; it decides */
}

/* -- life -- */

static void kernel_opts(const struct rs_config *cfg, struct rs_kernel_opts *o, uint32_t *pids)
{
	*o = (struct rs_kernel_opts){ .mode = (enum rs_capture_mode)cfg->capture,
				      .ring_bytes = cfg->ring_size };
	for (uint32_t i = 0; i < cfg->pids.n; i++)
		pids[o->npids++] = cfg->pids.v[i];
	o->pids = pids;
	o->cfg.filter_comm = (uint8_t)cfg->comms.n;
	memcpy(o->cfg.comm, cfg->comms.v, sizeof(o->cfg.comm));
	o->cfg.filter_port = (uint8_t)cfg->ports.n;
	memcpy(o->cfg.port, cfg->ports.v, sizeof(o->cfg.port));
}

/* Processes that run already and are not wanted: the ring does not begin with what they do. */
static void decide_early(struct agent *a)
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
	struct agent *a = arg;
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
	struct agent *a = arg;

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

static int start_kernel(struct agent *a)
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
		if (tell_ports(a))
			rs_warn("the kernel side cannot be told which ports rules name");
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
	return RS_EXIT_OK;
}

static void pipeline_opts(const struct rs_config *cfg, struct rs_pipeline_opts *o)
{
	*o = (struct rs_pipeline_opts){
		.max_conns = (uint32_t)cfg->max_connections,
		.request_timeout_ns = cfg->request_timeout,
		.max_spans = cfg->command == RS_CMD_trace ? cfg->count : 0,
		.batch_spans = cfg->command == RS_CMD_run ? (uint32_t)cfg->batch_spans : 0,
		.live = true,
		.host_root = cfg->host_root,
		.wall_offset = rs_clock_wall_offset(),
	};
}

static void on_rate(void *arg, struct str service, struct str env, double rate)
{
	rs_sampler_rate(arg, service, env, rate);
}

/* Where spans (or records) go. */
static int open_output(struct agent *a)
{
	struct rs_config *cfg = a->cfg;
	char err[512];
	int rc;

	if (cfg->command == RS_CMD_record) {
		if (!cfg->output) {
			rs_error("record: where to? give -o FILE");
			return RS_EXIT_USAGE;
		}
		a->record = fopen(cfg->output, "wbe");
		if (!a->record || rs_tev_write_header(a->record, rs_clock_wall_offset())) {
			rs_error("cannot write %s: %s", cfg->output, strerror(errno));
			return RS_EXIT_FAILED;
		}
		return RS_EXIT_OK;
	}
	if (cfg->command == RS_CMD_run) {
		if (!rs_sampler_configure(&a->sampler, cfg))
			rs_warn("--sampler-arg %s: not a number from 0 to 1; taken for 1",
				cfg->sampler_arg);
		a->pl.sampler = &a->sampler;
		a->pl.procs.extra = str_c(cfg->resource_attributes);
		a->exporters.on_rate = on_rate;
		a->exporters.rate_arg = &a->sampler;
		rc = rs_exporters_open(&a->exporters, &a->loop, cfg, err, sizeof(err));
		if (*a->exporters.unknown)
			rs_warn("OTEL_TRACES_EXPORTER: unknown exporter '%s'; it is ignored",
				a->exporters.unknown);
		if (rc)
			rs_error("%s", err);
		return rc == -EINVAL ? RS_EXIT_USAGE : rc ? RS_EXIT_FAILED : RS_EXIT_OK;
	}
	rc = rs_out_open(&a->out, cfg->format, cfg->output, false, (enum rs_color)cfg->color,
			 &a->pl.n, err, sizeof(err));
	if (rc) {
		rs_error("%s", err);
		return rc == -ENOENT ? RS_EXIT_USAGE : RS_EXIT_FAILED;
	}
	return RS_EXIT_OK;
}

static void config_status(struct rs_status *s, const struct agent *a)
{
	const struct rs_reload *r = &a->reload;
	char list[2048] = "";
	size_t n = 0;

	for (int i = 0; i < r->nrestart && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? " " : "",
				      r->restart[i]);
	s->config_file = a->cfg->config ? rs_status_str(s, str_c(a->cfg->config)) : "";
	s->config_error = rs_status_str(s, str_c(r->err));
	s->config_restart = rs_status_str(s, str_c(list));
	if (r->done_ns)
		s->reload_age_ns = rs_clock_mono() - r->done_ns;
}

/* Names of pods. Not to be had: spans are sent without. */
static int open_k8s(struct agent *a)
{
	const struct rs_config *cfg = a->cfg;
	char err[256];
	int rc;

	a->pl.procs.node = str_c(cfg->k8s_node);
	rc = rs_k8s_open(&a->k8s, &a->loop, cfg, &a->pl.n, err, sizeof(err));
	if (rc) {
		rs_error("%s", err);
		return rc == -EINVAL ? RS_EXIT_USAGE : RS_EXIT_FAILED;
	}
	if (a->k8s.source == RS_K8S_OFF)
		return RS_EXIT_OK;
	a->pl.procs.pods = &a->k8s.feed[0].pods;
	for (int i = 0; cfg->k8s_peers != RS_K8S_PEERS_OFF && i < a->k8s.nfeeds; i++)
		a->pl.peers[i] = &a->k8s.feed[i].pods;
	a->pl.procs.node = str_c(a->k8s.node);
	a->pl.procs.pods_wait_ns = cfg->k8s_wait;
	return RS_EXIT_OK;
}

static void on_status(void *arg, struct rs_status *s)
{
	struct agent *a = arg;
	const struct rs_config *cfg = a->cfg;
	const struct rs_agent_view v = {
		.pl = &a->pl,
		.kernel = a->kernel,
		.out = &a->out,
		.exporters = cfg->command == RS_CMD_run ? &a->exporters : NULL,
		.exporter = cfg->format,
		.target = cfg->output ? cfg->output : "-",
		.now_ns = rs_clock_mono(),
		.started_ns = a->started_ns,
		.last_record_ns = a->last_record_ns,
		.rights = &a->rights,
		.k8s = &a->k8s,
		.tls = &a->tls,
		.gos = &a->gos,
	};

	s->command = rs_command_info[cfg->command].name;
	config_status(s, a);
	rs_agent_status(s, &v);
}

/* "reload": answered at once. */
static int reload_request(struct agent *a, struct rs_control_client *cl)
{
	size_t len = 0;
	char *text;

	reload(a);
	text = rs_reload_json(&a->reload, &len);
	if (text)
		rs_control_say(cl, text, len);
	free(text);
	rs_control_end(cl);
	return 0;
}

static int on_request(void *arg, struct rs_control_client *cl, struct str line)
{
	struct agent *a = arg;
	int rc;

	if (a->cfg->command == RS_CMD_run && str_eq(line, STR("reload")))
		return reload_request(a, cl);
	rc = a->record ? -ENOENT : rs_dump_request(&a->dump, &a->pl, &a->loop, cl, line);
	return rc == -ENOENT ? rs_report_request(a->cfg, cl, line) : rc;
}

static void on_gone(void *arg, struct rs_control_client *cl)
{
	struct agent *a = arg;

	rs_dump_gone(&a->dump, cl);
}

/* The agent answers always, the others when they are asked to. */
static int open_control(struct agent *a)
{
	char err[256];
	int rc;

	if (a->cfg->listen &&
	    rs_page_open(&a->page, &a->loop, a->cfg->listen, on_status, a, err, sizeof(err))) {
		rs_error("%s", err);
		return RS_EXIT_FAILED;
	}

	if (a->cfg->command != RS_CMD_run && a->cfg->source[RS_O_socket] == RS_FROM_DEFAULT)
		return RS_EXIT_OK;
	rc = rs_control_open(&a->control, &a->loop, a->cfg->socket, on_status, a, err, sizeof(err));
	a->control.request = on_request;
	a->control.gone = on_gone;
	if (!rc)
		return RS_EXIT_OK;
	if (rc == -EACCES || rc == -EPERM) {
		rs_error("%s, or run as root", err);
		return RS_EXIT_UNSUPPORTED;
	}
	rs_error("%s", err);
	return RS_EXIT_FAILED;
}

static int start(struct agent *a)
{
	struct rs_pipeline_opts popts;
	struct str unknown;
	int rc;

	a->started_ns = rs_clock_mono();
	/* On a busy machine a reader that waits for its turn loses records; what it needs is little. Not
	 * allowed to (no CAP_SYS_NICE): it works as well as it can. */
	(void)setpriority(PRIO_PROCESS, 0, AGENT_NICE);
	rc = rs_loop_init(&a->loop);
	if (!rc)
		rc = rs_loop_signals(&a->loop, on_signal, a);
	if (rc) {
		rs_error("cannot set up the event loop: %s", strerror(-rc));
		return RS_EXIT_FAILED;
	}
	pipeline_opts(a->cfg, &popts);
	rc = rs_pipeline_init(&a->pl, &popts);
	if (rc) {
		rs_error("cannot set up the pipeline: %s", strerror(-rc));
		return RS_EXIT_FAILED;
	}
	unknown = rs_trace_configure(&a->pl.trace, a->cfg);
	if (unknown.len)
		rs_warn("propagators: '%.*s' is not known, the others are used", STR_ARG(unknown));
	unknown = rs_trace_redact(&a->pl.trace, a->cfg);
	if (unknown.len) {
		rs_error(
			"redaction: '%.*s' is not an attribute ringspan writes, is too long, or is one too many",
			STR_ARG(unknown));
		return RS_EXIT_USAGE;
	}
	a->reload = (struct rs_reload){ .start = a->cfg, .apply = apply, .arg = a };
	discover(a, a->cfg);
	a->pl.procs.discover = &a->discover;
	a->pl.procs.tell = on_decision;
	a->pl.procs.listens = on_listens;
	a->pl.procs.tell_arg = a;
	a->pl.procs.learnt = on_learnt;
	a->pl.procs.execed = on_execed;
	a->pl.procs.learnt_arg = a;
	a->pl.does_tls = on_does_tls;
	a->pl.does_tls_arg = a;
	a->pl.skip_probes = !a->cfg->trace_probes;
	a->pl.flush = on_flush;
	a->pl.l7.policy = on_policy;
	if (a->cfg->thread_context)
		a->pl.procs.publisher = on_publisher;
	a->pl.procs.publisher_arg = a;
	if (a->cfg->inject == RS_INJECT_TRACEPARENT)
		a->pl.request_start = on_request_start;
	a->pl.arg = a->pl.l7.policy_arg = a;
	rc = open_control(a);
	if (!rc)
		rc = open_output(a);
	if (!rc && !a->record)
		rc = open_k8s(a);
	if (rc)
		return rc;
	if (a->cfg->cmd) {
		rc = start_child(a);
		if (rc) {
			rs_error("cannot start %s: %s", a->cfg->cmd[0], strerror(-rc));
			return RS_EXIT_FAILED;
		}
	}
	rc = start_kernel(a);
	if (rc)
		return rc;
	a->drain_period = DRAIN_BUSY_NS;
	rc = rs_loop_add(&a->loop, &a->ring, rs_kernel_fd(a->kernel), EPOLLIN | EPOLLET, on_ring,
			 a);
	if (!rc)
		rc = rs_loop_timer_start(&a->loop, &a->drain, DRAIN_BUSY_NS, DRAIN_BUSY_NS,
					 on_drain, a);
	if (!rc)
		rc = rs_loop_timer_start(&a->loop, &a->tick, TICK_NS, TICK_NS, on_tick, a);
	if (!rc && a->cfg->duration)
		rc = rs_loop_timer_start(&a->loop, &a->end, a->cfg->duration, 0, on_end, a);
	if (rc) {
		rs_error("cannot set up the event loop: %s", strerror(-rc));
		return RS_EXIT_FAILED;
	}
	rs_agent_drop_rights(a->cfg, a->kernel, &a->exporters, a->child > 0, &a->rights);
	rs_info("capturing (%s)", rs_kernel_backend(a->kernel));
	return RS_EXIT_OK;
}

#define FINISH_NS (500 * MS) /* a SIGTERM ends the agent within a second */

/* What the kernel held at this moment (capturing goes on while we read), then what is open, then what is
 * in the batch. */
static void finish(struct agent *a)
{
	uint64_t now = rs_clock_mono(), until = now;

	if (!a->kernel)
		return;
	while (rs_kernel_drain(a->kernel, DRAIN_BUDGET, on_record, a) == DRAIN_BUDGET &&
	       a->last_record_ns < until && now - until < FINISH_NS)
		now = rs_clock_mono();
	if (!a->record)
		rs_pipeline_finish(&a->pl);
}

/* Nothing new comes in any more: only exporters have work. A second signal ends that too. */
static void drain_exporters(struct agent *a)
{
	if (!a->exporters.n)
		return;
	rs_loop_timer_stop(&a->loop, &a->drain);
	rs_loop_timer_stop(&a->loop, &a->tick);
	rs_loop_timer_stop(&a->loop, &a->end);
	rs_loop_del(&a->loop, &a->ring);
	rs_exporters_drain(&a->exporters, a->cfg->drain_time);
	rs_exporters_end(&a->exporters);
	rs_exporters_ledger(&a->exporters, 0, &a->pl.n);
}

/* The last word: what was seen, and what was not. */
static void summarize(struct agent *a)
{
	uint64_t kernel[RS_BPFC_COUNT];
	char line[2048];

	rs_kernel_counters(a->kernel, kernel);
	if (a->record)
		rs_info("%llu records; %s", (unsigned long long)a->recorded,
			rs_status_losses(line, sizeof(line), &a->pl.n, kernel));
	else
		rs_info("%s", rs_status_summary(line, sizeof(line), &a->pl.n, kernel,
						rs_clock_mono() - a->started_ns));
}

static void release(struct agent *a)
{
	open_gate(a);
	rs_control_close(&a->control);
	rs_dump_release(&a->dump);
	rs_page_close(&a->page);
	rs_gos_release(&a->gos);
	rs_tls_release(&a->tls);
	rs_kernel_close(a->kernel);
	rs_pipeline_release(&a->pl);
	if (a->record && fclose(a->record) && a->rc == RS_EXIT_OK) {
		rs_error("cannot write %s: %s", a->cfg->output, strerror(errno));
		a->rc = RS_EXIT_FAILED;
	}
	rs_out_close(&a->out);
	rs_exporters_close(&a->exporters);
	rs_k8s_close(&a->k8s);
	rs_sampler_release(&a->sampler);
	rs_reload_release(&a->reload);
	rs_loop_timer_stop(&a->loop, &a->drain);
	rs_loop_timer_stop(&a->loop, &a->tick);
	rs_loop_timer_stop(&a->loop, &a->end);
	rs_loop_release(&a->loop);
}

int rs_agent_capture(struct rs_config *cfg)
{
	struct agent *a = calloc(1, sizeof(*a));
	int rc;

	if (!a) {
		rs_error("out of memory");
		return RS_EXIT_FAILED;
	}
	a->cfg = cfg;
	a->child_gate = -1;
	a->ring.fd = a->drain.w.fd = a->tick.w.fd = a->end.w.fd = -1;
	a->rc = start(a);
	if (a->rc == RS_EXIT_OK) {
		open_gate(a);
		rc = rs_loop_run(&a->loop);
		if (rc) {
			rs_error("event loop: %s", strerror(-rc));
			a->rc = RS_EXIT_FAILED;
		}
		finish(a);
		rs_out_flush(&a->out);
		drain_exporters(a);
		if (a->out.err != -EPIPE) /* whoever read has gone: there is nobody to tell */
			summarize(a);
	} else if (a->child) {
		kill(a->child, SIGKILL); /* it waits at its gate and has run nothing */
		waitpid(a->child, NULL, 0);
	}
	release(a);
	rc = a->rc;
	free(a);
	return rc;
}
