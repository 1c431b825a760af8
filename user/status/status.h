/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status — one snapshot of the agent, and its JSON.
 *
 * The agent fills a struct rs_status when somebody asks (control.h); rs_status_json() turns it into the
 * text that goes through the socket. `ringspan status` reads that text (view.h), so that JSON is the
 * contract between them, and anyone may read it. Times are nanoseconds; ages count back from the
 * snapshot, and are absent when the thing never happened. Keys:
 *
 *   version command pid uptime_ns kernel     command: run, trace or record
 *   state reason                             capturing or stopping; reason: why, or ""
 *   config{file, error, restart, reload_age_ns}   of the last reload: why it was refused, or ""; which changed
 *                                            options (with blanks between) wait for a restart
 *   capture{backend, connections, last_record_age_ns,
 *           probes[{name, purpose, state, reason}]}      state: attached, off, failed
 *   last_span_age_ns
 *   processes[{pid, comm, service, connections, requests, spans, errors, traced, rule, why_not, pod,
 *             tls, tls_plain_bytes}], processes_left_out
 *   services[{service, kind, spans, errors, p50_ns, p99_ns, latency[[end_ns, spans]]}]
 *                                            kind: server, client; service "": others; latency: how many
 *                                            took less than end_ns, and not less than the one before
 *   protocols[{name, connections, requests, spans, errors}]
 *   ledger[{stage, name, kind, value, help, remedy}]     kind: in, out, dropped, held, info
 *   exporters[{name, target, protocol, state, sent, failed, lost{cause: spans}, queued, queue_bytes,
 *              queue_max_bytes, spool_bytes, buffer_bytes, buffer_bytes_high, retried, uncertain, requests, last_success_age_ns,
 *              last_error, last_error_age_ns}]           state: ok, failing, idle
 *   kubernetes{source, target, node, synced, failing, pods, deleted_pods, peers, last_success_age_ns, last_error,
 *              last_error_age_ns}                        absent without a source of pods
 *   rights{capabilities, no_new_privs, seccomp, refused_calls}    what the sandbox left
 *   usage{cpu_user_ns, cpu_system_ns, rss_bytes, map_bytes, bpf_stats, bpf_run_ns, bpf_runs}
 *
 * Memory: all lists live in the snapshot's arena, which is bounded; what does not fit is counted.
 */
#ifndef RS_STATUS_STATUS_H
#define RS_STATUS_STATUS_H

#include "base/arena.h"
#include "base/counters.h"

#define RS_STATUS_ARENA	 (4u << 20) /* bytes of one snapshot's lists at most */
#define RS_STATUS_LOSSES 12
#define RS_STATUS_NEVER	 UINT64_MAX /* an age: has not happened */

enum rs_status_state {
	RS_STATE_CAPTURING,
	RS_STATE_STOPPING, /* nothing new is captured; exporters send what they have */
};

enum rs_status_probe_state {
	RS_PROBE_ATTACHED,
	RS_PROBE_OFF,	 /* not wanted: another backend's, or switched off */
	RS_PROBE_FAILED, /* wanted and not there: a feature or everything is lost */
};

enum rs_status_export_state {
	RS_EXPORT_IDLE, /* nothing was sent yet */
	RS_EXPORT_OK,
	RS_EXPORT_FAILING, /* the last attempt failed */
};

/* Strings in all of these: copied by the caller with rs_status_str(), or static. NULL is "". */
struct rs_status_probe {
	struct rs_status_probe *next;
	const char *name, *purpose, *reason;
	enum rs_status_probe_state state;
};

struct rs_status_process {
	struct rs_status_process *next;
	uint32_t pid;
	const char *comm, *service;
	uint64_t connections; /* open now */
	uint64_t requests;    /* seen so far */
	uint64_t spans, errors;
	bool traced;	      /* by the rules of discovery */
	const char *rule;     /* of them, that has decided; "": none */
	const char *why_not;  /* why nothing, or not all, is seen of it */
	const char *pod;      /* NAMESPACE/NAME, or "" */
	const char *tls;      /* its TLS libraries, and what is done with them; "": none */
	uint64_t plain_bytes; /* of plain text of TLS seen so far */
};

struct rs_service; /* services.h; the pipeline's own, valid while the snapshot is */

struct rs_status_service {
	struct rs_status_service *next;
	const struct rs_service *row;
};

struct rs_status_protocol {
	struct rs_status_protocol *next;
	const char *name;
	uint64_t connections, requests, spans, errors;
};

struct rs_status_exporter {
	struct rs_status_exporter *next;
	const char *name, *target; /* target: URL without secrets, file, … */
	const char *protocol;	   /* as negotiated */
	enum rs_status_export_state state;
	uint64_t sent, failed, queued; /* spans */
	uint64_t retried, uncertain, requests;
	uint64_t queue_bytes, queue_max_bytes, spool_bytes;
	uint64_t buffer_bytes, buffer_bytes_high; /* encoded and in use, now and most ever */
	struct {
		const char *name; /* NULL: none left */
		uint64_t spans;
	} lost[RS_STATUS_LOSSES];			 /* `failed` by cause */
	uint64_t last_success_age_ns, last_error_age_ns; /* or RS_STATUS_NEVER */
	const char *last_error;
};

struct rs_status {
	struct rs_arena arena;
	const char *version, *command, *kernel;
	uint32_t pid;
	uint64_t uptime_ns;
	enum rs_status_state state;
	const char *reason;
	const char *backend; /* "socket", "syscall", "replay" */
	uint64_t connections;
	uint64_t last_record_age_ns, last_span_age_ns;
	const char *config_file, *config_error, *config_restart;
	uint64_t reload_age_ns;
	struct rs_status_probe *probes, **probes_end;
	struct rs_status_process *processes, **processes_end;
	struct rs_status_protocol *protocols, **protocols_end;
	struct rs_status_service *services, **services_end;
	struct rs_status_exporter *exporters, **exporters_end;
	uint32_t processes_left_out;
	struct rs_counters user;
	uint64_t kernel_counters[RS_BPFC_COUNT];
	uint64_t cpu_user_ns, cpu_system_ns, rss_bytes;
	uint64_t map_bytes, bpf_run_ns, bpf_runs;
	const char *k8s_source; /* NULL: there is none */
	const char *k8s_target, *k8s_node, *k8s_last_error;
	bool k8s_synced;  /* a whole list was read */
	bool k8s_failing; /* the last attempt failed */
	uint64_t k8s_pods, k8s_deleted, k8s_peers;
	uint64_t k8s_last_ok_age_ns, k8s_last_error_age_ns; /* or RS_STATUS_NEVER */
	const char *capabilities; /* names with blanks between, or "none" */
	bool no_new_privs, seccomp;
	uint64_t refused_calls;
	bool bpf_stats; /* false: run time is not measured (kernel.bpf_stats_enabled) */
};

/* Empty; ages are RS_STATUS_NEVER. Fills in what concerns this process: version, pid, kernel, CPU, RSS. */
void rs_status_init(struct rs_status *s);
void rs_status_release(struct rs_status *s);

/* New, zeroed, at the end of its list; NULL when the snapshot is full (counted for processes). */
struct rs_status_probe *rs_status_add_probe(struct rs_status *s);
struct rs_status_process *rs_status_add_process(struct rs_status *s);
struct rs_status_protocol *rs_status_add_protocol(struct rs_status *s);
struct rs_status_service *rs_status_add_service(struct rs_status *s);
struct rs_status_exporter *rs_status_add_exporter(struct rs_status *s);
/* A copy that lives as long as the snapshot; "" when it is full. */
const char *rs_status_str(struct rs_status *s, struct str text);

/* malloc'ed, NUL-terminated, one line ending in a newline; NULL without memory. free() it. */
char *rs_status_json(const struct rs_status *s, size_t *ret_len);

/*
 * One line for the end of a run: spans, requests per second, errors, and each loss by its name with what
 * to do. kernel: RS_BPFC_COUNT numbers, or NULL when there was no kernel side. Returns buf.
 */
const char *rs_status_summary(char *buf, size_t size, const struct rs_counters *user,
			      const uint64_t *kernel, uint64_t elapsed_ns);
/* Its last part alone: "nothing lost", or "lost: …". Returns buf. */
const char *rs_status_losses(char *buf, size_t size, const struct rs_counters *user,
			     const uint64_t *kernel);

#endif
