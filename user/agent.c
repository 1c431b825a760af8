// SPDX-License-Identifier: Apache-2.0
#include "agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent_parts.h"
#include "agent_rights.h"
#include "base/clock.h"
#include "base/log.h"
#include "source/tev.h"

#define MS 1000000ull

/* The ring is drained on a timer, records wake nobody. Each turn begins with caches that other programs have had, so
 * turns are few: as few as leave most of the ring free. */
#define DRAIN_SOON_NS (5 * MS)
#define DRAIN_BUSY_NS (20 * MS)
#define DRAIN_IDLE_NS (50 * MS)
#define DRAIN_PART    8 /* of the ring: what a period is to fill at most */
#define TICK_NS	      (100 * MS)
#define SWEEP_NS      (10000 * MS) /* for dead sockets */
#define CLOCK_TICKS   10	   /* follow the wall clock every second */
#define AGENT_NICE    (-10)

void rs_agent_stop(struct rs_agent *a, int rc)
{
	if (rc != RS_EXIT_OK && a->rc == RS_EXIT_OK)
		a->rc = rc;
	rs_loop_stop(&a->loop);
}

/* -- input -- */

/* To the file. No pipeline learns of processes: that is done here. */
static void record(struct rs_agent *a, const struct rs_ev_hdr *ev)
{
	const void *body = ev;

	if (rs_tev_write(a->record, ev) == 0) {
		const struct rs_ev_proc *proc = body;
		const struct rs_ev_open *open = body;

		a->recorded++;
		if (ev->type == RS_EV_PROC && proc->event == RS_PROC_EXEC)
			rs_agent_on_exec(a, proc->tgid);
		if (ev->type == RS_EV_OPEN)
			rs_agent_on_learnt(a, open->tgid);
	} else if (!a->loop.stop) {
		rs_error("cannot write %s: %s", a->cfg->output, strerror(errno));
		rs_agent_stop(a, RS_EXIT_FAILED);
	}
}

static void on_ahead(void *arg, const struct rs_ev_hdr *ev)
{
	struct rs_agent *a = arg;

	if (!a->record)
		rs_pipeline_ahead(&a->pl, ev);
}

static void on_record(void *arg, const struct rs_ev_hdr *ev)
{
	struct rs_agent *a = arg;

	a->last_record_ns = ev->ts_ns;
	if (a->record)
		record(a, ev);
	else
		rs_pipeline_event(&a->pl, ev);
}

size_t rs_agent_read_ring(struct rs_agent *a)
{
	uint64_t now = rs_clock_mono(), written = rs_kernel_written(a->kernel);
	size_t n = rs_kernel_drain(a->kernel, RS_AGENT_BUDGET, on_ahead, on_record, a);

	a->read_ns = rs_kernel_read_pos(a->kernel) >= written ? now : a->last_record_ns;
	return n;
}

/* Until the next turn, after one that found so many bytes. */
static uint64_t next_period(const struct rs_agent *a, uint64_t found)
{
	/* With --inject the kernel side is to hear of an answer before the next request. */
	uint64_t most = a->pl.request_start ? DRAIN_SOON_NS : DRAIN_BUSY_NS, period;

	if (!found)
		return a->drain_period < DRAIN_IDLE_NS / 2 ? a->drain_period * 2 : DRAIN_IDLE_NS;
	period = a->drain_period * (a->cfg->ring_size / DRAIN_PART) / found;
	return period > most ? most : period < DRAIN_SOON_NS ? DRAIN_SOON_NS : period;
}

static void drain(struct rs_agent *a)
{
	uint64_t from = rs_kernel_read_pos(a->kernel), period;
	size_t n = rs_agent_read_ring(a);

	if (a->pl.done)
		rs_agent_stop(a, RS_EXIT_OK);
	period = next_period(a, rs_kernel_read_pos(a->kernel) - from);
	/* More is waiting: at once, after the others' turn. */
	if (n == RS_AGENT_BUDGET)
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

/*
 * Sockets that went without a record of their end. What was said on them last may be in the ring still: the verdict waits
 * until all is read that was there when they were found missing.
 */
static void sweep(struct rs_agent *a, uint64_t now)
{
	if (a->sweeping) {
		if (rs_kernel_read_pos(a->kernel) < a->sweep_to)
			return;
		a->sweeping = false;
		rs_pipeline_sweep_end(&a->pl);
	}
	if (now - a->last_sweep_ns < SWEEP_NS)
		return;
	a->last_sweep_ns = now;
	rs_pipeline_sweep_begin(&a->pl);
	a->sweeping = rs_kernel_live(a->kernel, on_live, &a->pl) == 0;
	a->sweep_to = rs_kernel_written(a->kernel);
}

/* Would the batch be older than it may be at the next tick? A screen shows at once what there is. */
static bool batch_is_due(const struct rs_agent *a, uint64_t now)
{
	uint64_t age = a->cfg->command == RS_CMD_run ? a->cfg->batch_age : 0;

	return a->pl.batch.nspans && now + TICK_NS > a->last_flush_ns + age;
}

static void on_tick(void *arg)
{
	struct rs_agent *a = arg;
	uint64_t now = rs_clock_mono();

	rs_tls_tick(&a->tls, now);
	if (a->record)
		return;
	a->ticks++;
	rs_k8s_tick(&a->k8s, now);
	/* What has not happened until now may be in the ring still: nothing is over before that is read. */
	rs_pipeline_tick(&a->pl, a->read_ns);
	if (a->ticks % CLOCK_TICKS == 0) {
		a->pl.trace.wall_offset = rs_clock_wall_offset();
		rs_gos_tick(&a->gos);
	}
	sweep(a, now);
	if (batch_is_due(a, now))
		rs_pipeline_flush(&a->pl);
	rs_out_tick(&a->out, now);
}

static void on_end(void *arg)
{
	rs_agent_stop(arg, RS_EXIT_OK);
}

static void on_signal(void *arg, int signo, bool sent)
{
	struct rs_agent *a = arg;

	if (signo == SIGCHLD) {
		rs_agent_reap_child(a);
	} else if (signo == SIGIO) { /* a lease of user/kernel/uprobe.h */
		rs_tls_make_way(&a->tls);
		rs_gos_make_way(&a->gos);
	} else if (signo == SIGHUP && a->cfg->command == RS_CMD_run) {
		rs_agent_reload(a);
	} else if (!a->child || a->child_ended) {
		rs_agent_stop(a, RS_EXIT_OK);
	} else if (sent) {
		/* What the terminal sent, the command has got itself; it decides. */
		kill(a->child, signo);
	}
}

/* -- life -- */

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

/* Names of pods. Not to be had: spans are sent without. */
static int open_k8s(struct rs_agent *a)
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

/* The kernel side is there: whatever comes is handled from now on. 0 or -errno. */
static int start_loop(struct rs_agent *a)
{
	int rc;

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
	return rc;
}

/*
 * On a busy machine a reader that waits for its turn loses records; what it needs is little. Not allowed to (no
 * CAP_SYS_NICE): it works as well as it can.
 */
static void raise_priority(const struct rs_config *cfg)
{
	FILE *f;

	(void)setpriority(PRIO_PROCESS, 0, AGENT_NICE);
	/* Where each session gets its share (autogroup), that counts within ours alone. A service has one for itself. */
	if (getsid(0) != getpid() || cfg->cmd)
		return;
	f = fopen("/proc/self/autogroup", "we");
	if (f) {
		(void)fprintf(f, "%d", AGENT_NICE);
		(void)fclose(f);
	}
}

static int start(struct rs_agent *a)
{
	struct rs_pipeline_opts popts;
	int rc;

	a->started_ns = a->last_sweep_ns = rs_clock_mono();
	raise_priority(a->cfg);
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
	rs_agent_bind_kernel(a);
	rs_agent_first_settings(a);
	rc = rs_agent_open_control(a);
	if (!rc)
		rc = rs_agent_open_output(a);
	if (!rc && !a->record)
		rc = open_k8s(a);
	if (rc)
		return rc;
	if (a->cfg->cmd) {
		rc = rs_agent_start_child(a);
		if (rc) {
			rs_error("cannot start %s: %s", a->cfg->cmd[0], strerror(-rc));
			return RS_EXIT_FAILED;
		}
	}
	rc = rs_agent_open_kernel(a);
	if (rc)
		return rc;
	rc = start_loop(a);
	if (rc) {
		rs_error("cannot set up the event loop: %s", strerror(-rc));
		return RS_EXIT_FAILED;
	}
	rs_kernel_begin(a->kernel);
	rs_agent_drop_rights(a->cfg, a->kernel, &a->exporters, a->child > 0, &a->rights);
	for (int i = 0; i < a->exporters.n; i++)
		rs_info("spans go to %s, %s", a->exporters.e[i].ops->name,
			a->exporters.e[i].target);
	rs_info("capturing (%s)", rs_kernel_backend(a->kernel));
	return RS_EXIT_OK;
}

static void on_unread(void *arg, const struct rs_ev_hdr *ev)
{
	struct rs_agent *a = arg;

	if (ev->ts_ns >= a->read_ns)
		return;
	a->pl.n.v[RS_C_SOURCE_RECORDS]++;
	a->pl.n.v[RS_C_SOURCE_UNREAD]++;
}

#define FINISH_NS (500 * MS) /* a SIGTERM ends the agent within a second */

/* What the kernel held at this moment (capturing goes on while we read), then what is open, then what is
 * in the batch. */
static void finish(struct rs_agent *a)
{
	uint64_t now = rs_clock_mono(), until = now;

	if (!a->kernel)
		return;
	while (rs_agent_read_ring(a) == RS_AGENT_BUDGET && a->last_record_ns < until &&
	       now - until < FINISH_NS)
		now = rs_clock_mono();
	if (a->last_record_ns < until && !a->pl.done) { /* no time is left for these */
		a->read_ns = until;
		rs_kernel_drain(a->kernel, SIZE_MAX, NULL, on_unread, a);
	}
	if (!a->record)
		rs_pipeline_finish(&a->pl);
}

/* The last word: what was seen, and what was not. */
static void summarize(struct rs_agent *a)
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

static void release(struct rs_agent *a)
{
	rs_agent_open_gate(a);
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
	struct rs_agent *a;
	char err[512];
	int rc;

	if (rs_settings_check(cfg, err, sizeof(err))) {
		rs_error("%s", err);
		return RS_EXIT_USAGE;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		rs_error("out of memory");
		return RS_EXIT_FAILED;
	}
	a->cfg = cfg;
	a->child_gate = -1;
	a->ring.fd = a->drain.w.fd = a->tick.w.fd = a->end.w.fd = -1;
	a->rc = start(a);
	if (a->rc == RS_EXIT_OK) {
		rs_agent_open_gate(a);
		rc = rs_loop_run(&a->loop);
		if (rc) {
			rs_error("event loop: %s", strerror(-rc));
			a->rc = RS_EXIT_FAILED;
		}
		finish(a);
		rs_out_flush(&a->out);
		rs_agent_drain_exporters(a);
		if (a->out.err != -EPIPE) /* whoever read has gone: there is nobody to tell */
			summarize(a);
	} else {
		rs_agent_kill_child(a);
	}
	release(a);
	rc = a->rc;
	free(a);
	return rc;
}
