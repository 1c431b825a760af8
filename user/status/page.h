/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page — the agent's small web page, for Prometheus and for Kubernetes' probes; off unless asked for.
 *
 *   GET /metrics   Prometheus text format 0.0.4: the ledger, the exporters, the process (prometheus.c)
 *   GET /healthz   200: the event loop turns
 *   GET /readyz    200: it is capturing; 503 and why: it is not
 *
 * Nothing secret is on it, but a host is: it listens on loopback unless another address is given. At most
 * RS_PAGE_CLIENTS clients; who does not send or read for RS_PAGE_TIMEOUT_NS is closed. Never blocks the loop.
 */
#ifndef RS_STATUS_PAGE_H
#define RS_STATUS_PAGE_H

#include "loop/loop.h"
#include "status.h"

#define RS_PAGE_CLIENTS	   8
#define RS_PAGE_REQUEST	   4096
#define RS_PAGE_TIMEOUT_NS 5000000000u

struct rs_page;

struct rs_page_client {
	struct rs_page *p;
	struct rs_loop_fd w; /* w.fd -1: free slot */
	uint64_t active_ns;
	size_t got, sent, len;
	char *answer; /* malloc'ed; NULL: still reading */
	char request[RS_PAGE_REQUEST];
};

struct rs_page {
	struct rs_loop *loop;
	struct rs_loop_fd w;
	struct rs_loop_timer timer; /* looks for dead clients */
	void (*fill)(void *arg, struct rs_status *s);
	void *arg;
	struct rs_page_client client[RS_PAGE_CLIENTS];
};

/* Is it an address to listen on: "PORT", "HOST:PORT" or "[HOST]:PORT", a host being a number? 0, or -EINVAL with a line
 * in err. */
int rs_page_check(const char *address, char *err, size_t size);
/* 0, or -errno with a line in err; -EINVAL: as above. */
int rs_page_open(struct rs_page *p, struct rs_loop *loop, const char *address,
		 void (*fill)(void *arg, struct rs_status *s), void *arg, char *err, size_t size);
/* Harmless on one that is not open (zeroed, or open failed). */
void rs_page_close(struct rs_page *p);

/* The snapshot as Prometheus text: malloc'ed; NULL without memory. */
char *rs_status_prometheus(const struct rs_status *s, size_t *ret_len);

#endif
