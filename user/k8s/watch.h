/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch — keeps up with one collection of objects of the Kubernetes API: a list, then its changes as they
 * happen; or, of kubelet, which has no watch, the list again and again.
 *
 * The list is asked of the server's cache (resourceVersion 0) in pages where it can do pages, the watch from the
 * list's version on with bookmarks. A watch that ends begins again where it stood; one whose version is too
 * old (410) is a new list, this time of the store itself. After failures it waits, twice as long each time up to
 * 30 s, or as long as Retry-After says. The token's file is read for every request, and a watch lasts no more than
 * five minutes: tokens are renewed under a running process. Objects go to the owner as they come in, each
 * parsed alone: memory is bounded by one object, not by the list.
 */
#ifndef RS_K8S_WATCH_H
#define RS_K8S_WATCH_H

#include "export/http.h"
#include "k8s/split.h"

enum rs_watch_event {
	RS_WATCH_LIST_BEGIN, /* what is not named until the end is gone */
	RS_WATCH_OBJECT,     /* there it is, new or changed */
	RS_WATCH_DELETED,    /* its last state */
	RS_WATCH_LIST_END,
};

enum rs_watch_state {
	RS_WATCH_WAITING, /* until `at_ns` */
	RS_WATCH_LISTING,
	RS_WATCH_WATCHING,
};

/* Set by the owner before rs_watch_tick() is first called; strings stay. */
struct rs_watch_opts {
	struct rs_http *http;
	const char *base;  /* "https://host:port" */
	const char *path;  /* "/api/v1/pods" */
	const char *query; /* "&fieldSelector=…" or "" */
	const char *token; /* file, or NULL */
	const char *ca;	   /* file, or NULL: the system's */
	bool insecure;
	uint64_t poll_ns; /* 0: watch; else the list again after so long */
	/* json: the object's text; of LIST_BEGIN and _END nothing. False: it cannot be read; counted there. */
	void (*on_event)(void *arg, enum rs_watch_event ev, struct str json);
	void *arg;
};

struct rs_watch {
	struct rs_watch_opts o;
	enum rs_watch_state state;
	struct rs_http_req req;
	struct rs_split split;
	char version[64];      /* to watch from; empty: list first */
	char next[2048];       /* continue token of the next page; empty: none */
	bool fresh;	       /* list from the store, not from the cache */
	bool synced;	       /* a whole list was read, and its changes since are known */
	bool expired, stopped; /* of the running watch: the server said so in it */
	uint64_t at_ns, started_ns;
	uint64_t seen;	   /* objects of the running request */
	uint32_t failures; /* in a row */

	/* For status: */
	uint64_t lists, events, failed;
	uint64_t last_ok_ns, last_err_ns; /* CLOCK_MONOTONIC; 0: never */
	char last_error[256];
};

/* Adds the bearer token in a file (NULL: none) to the next request, if `base` is an https:// URL. */
void rs_watch_token(struct rs_http_req *r, const char *base, const char *file);

void rs_watch_init(struct rs_watch *w, const struct rs_watch_opts *o);
void rs_watch_release(struct rs_watch *w);
/* A few times a second. */
void rs_watch_tick(struct rs_watch *w, uint64_t now_ns);
/* Of a polled list: now rather than later, but not more than once a second. */
void rs_watch_hurry(struct rs_watch *w, uint64_t now_ns);

#endif
