/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exporters — the exporters of one agent: each batch goes to all of them, each has its own queue.
 *
 * Which ones: --exporter NAME[=TARGET],… (or its environment variables); without it what the environment
 * tells of backends (OTEL_EXPORTER_OTLP_*, DD_AGENT_HOST, DD_TRACE_AGENT_URL, SENTRY_DSN), all of them;
 * without that otlp-http to this machine.
 */
#ifndef RS_EXPORT_EXPORTERS_H
#define RS_EXPORT_EXPORTERS_H

#include "base/counters.h"
#include "export/exporter.h"

#define RS_EXPORTERS_MAX 8

struct rs_exporters {
	struct rs_loop *loop;
	struct rs_http http;
	struct rs_loop_timer tick;
	struct rs_arena mem;
	/* The backend's sampling rates, for whoever samples; set before opening. May be NULL. */
	void (*on_rate)(void *arg, struct str service, struct str env, double rate);
	void *rate_arg;
	/* A name in OTEL_TRACES_EXPORTER that is none of an exporter, after opening; it is ignored. */
	char unknown[64];
	int n;
	struct rs_exporter e[RS_EXPORTERS_MAX];
};

/* x is zeroed but for on_rate. cfg must outlive it. 0, or -errno with a line in err (-EINVAL: a mistake of the user's). */
int rs_exporters_open(struct rs_exporters *x, struct rs_loop *loop, const struct rs_config *cfg,
		      char *err, size_t size);
/* Are they exporters that there are? Opens nothing. 0, or -EINVAL with a line in err. */
int rs_exporters_check(const struct rs_config *cfg, char *err, size_t size);
/* Do both name the same exporters, and the same targets with them, and can any of these go from the one to the other? */
bool rs_exporters_movable(const struct rs_config *a, const struct rs_config *b);
/* Where to and how from another configuration that names the same: see rs_exporter_move. All of them, or an error and none. */
int rs_exporters_move(struct rs_exporters *x, const struct rs_config *cfg, char *err, size_t size);
/* Never blocks; what cannot be kept is counted. */
void rs_exporters_batch(struct rs_exporters *x, const struct rs_batch *b);
/* Sends what is queued, turning the loop; until all is gone, the time is over or the loop is stopped. */
void rs_exporters_drain(struct rs_exporters *x, uint64_t timeout_ns);
/* The end: what is still queued is counted as lost, unless it is in a spool (then it is still held). */
void rs_exporters_end(struct rs_exporters *x);
/* Harmless on a zeroed struct. */
void rs_exporters_close(struct rs_exporters *x);

/* The ledger's stage export: every exporter is given every span, so spans count once for each.
 * in_batch: spans that are not handed over yet. */
void rs_exporters_ledger(const struct rs_exporters *x, uint64_t in_batch, struct rs_counters *n);
/* Waiting or in flight, in all exporters. */
uint64_t rs_exporters_held(const struct rs_exporters *x);

#endif
