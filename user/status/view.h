/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view — the agent's JSON for people and for scripts. What comes from the socket is not trusted: missing
 * or strange members are shown as nothing, text is made safe for the terminal.
 */
#ifndef RS_STATUS_VIEW_H
#define RS_STATUS_VIEW_H

#include <stdio.h>

#include "base/str.h"
#include "base/term.h"

struct json_t;

/* What is to be shown; zeroed: all. The caller's texts. */
struct rs_view_filter {
	const uint32_t *pids;
	uint32_t npids;
	const char *comms[8];
	uint32_t ncomms;
	const char *service, *pod; /* globs, or NULL */
};

enum rs_view_sort { /* --sort */
	RS_SORT_REQUESTS,
	RS_SORT_ERRORS,
	RS_SORT_P50,
	RS_SORT_P99,
	RS_SORT_NAME,
};

struct rs_view {
	enum rs_view_sort sort; /* of services */
	struct rs_style style;
	int width;	     /* columns; 0: no limit */
	struct json_t *last; /* the snapshot before, for rates; NULL at first. Owned */
};

void rs_view_init(struct rs_view *v, bool color, int width);
void rs_view_release(struct rs_view *v);

/* Does f leave anything out? */
bool rs_view_filters(const struct rs_view_filter *f);
/*
 * The snapshot with the wanted processes and their services only; what concerns the whole agent stays.
 * malloc'ed, one line; NULL: not JSON, or no memory.
 */
char *rs_view_filter(const struct rs_view_filter *f, struct str json, size_t *ret_len);

/* A screen: capturing? losing anything, where, what to do? export? who is seen? 0, or -EBADMSG: not JSON. */
int rs_view_text(struct rs_view *v, struct str json, FILE *out);

/*
 * Tab-separated lines; the first column names the kind. Columns are only ever added at the end. Ages are
 * empty when the thing never happened. 0 or -EBADMSG.
 *   agent     version command pid uptime_ns kernel state reason
 *   capture   backend connections last_record_age_ns last_span_age_ns
 *   probe     name state purpose reason
 *   process   pid comm service connections requests spans errors why_not pod tls
 *             tls_plain_bytes rule
 *   protocol  name connections requests spans errors
 *   ledger    stage name kind value
 *   exporter  name target state sent failed queued last_success_age_ns last_error last_error_age_ns
 *             protocol retried uncertain queue_bytes spool_bytes buffer_bytes buffer_bytes_high
 *   usage     cpu_user_ns cpu_system_ns rss_bytes map_bytes bpf_run_ns bpf_runs
 *   service   service kind spans errors p50_ns p99_ns
 *   rights    capabilities no_new_privs seccomp refused_calls
 *   kubernetes  source target node synced failing pods deleted_pods last_success_age_ns last_error
 *             last_error_age_ns
 */
int rs_view_dump(struct str json, FILE *out);

/* The answer's "error", copied to buf; false when it is a snapshot. */
bool rs_view_error(struct str json, char *buf, size_t size);

#endif
