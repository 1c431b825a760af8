/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control — the agent's Unix socket, and how `ringspan status` asks through it.
 *
 * Protocol: the client sends one line; the server answers and closes. To "status" the answer is the JSON
 * of status.h; other requests are their owner's (c->request), whose answer may come bit by bit. What
 * nobody knows gets {"error": "…"}. (`echo status | nc -U PATH` works.)
 *
 * Server: mode 0600, at most RS_CONTROL_CLIENTS clients with RS_CONTROL_REQUEST bytes each; a client
 * that does not send or read for RS_CONTROL_TIMEOUT_NS is closed, and when there is no room for a new one, the one that
 * has been so for longest, if that is RS_CONTROL_PATIENCE_NS. Never blocks the loop.
 */
#ifndef RS_STATUS_CONTROL_H
#define RS_STATUS_CONTROL_H

#include <sys/un.h>

#include "loop/loop.h"
#include "status.h"

#define RS_CONTROL_CLIENTS     8
#define RS_CONTROL_REQUEST     256
#define RS_CONTROL_SAY	       (256 * 1024) /* bytes of an answer by bits that may wait for the client */
#define RS_CONTROL_TIMEOUT_NS  5000000000u
#define RS_CONTROL_PATIENCE_NS 200000000u

/* Fills in what rs_status_init() did not. */
typedef void (*rs_control_fill_fn)(void *arg, struct rs_status *s);

struct rs_control;

struct rs_control_client {
	struct rs_control *c;
	struct rs_loop_fd w; /* w.fd -1: free slot */
	uint64_t active_ns;  /* last progress */
	size_t got, sent, len;
	char *answer; /* malloc'ed, len bytes; NULL: still reading */
	bool open;    /* more will be said */
	char request[RS_CONTROL_REQUEST];
};

struct rs_control {
	struct rs_loop *loop;
	struct rs_loop_fd w;
	struct rs_loop_timer timer; /* looks for dead clients; off when there is none */
	rs_control_fill_fn fill;
	/*
	 * Requests other than "status"; to be set after the open, NULL: there are none. 0: it has answered or
	 * will, with rs_control_say() and at last rs_control_end(); -ENOENT: unknown. gone: the client has
	 * left, or the server ends, before that.
	 */
	int (*request)(void *arg, struct rs_control_client *cl, struct str line);
	void (*gone)(void *arg, struct rs_control_client *cl);
	void *arg; /* of all three */
	uint32_t nclients;
	struct rs_control_client client[RS_CONTROL_CLIENTS];
	dev_t dev; /* the socket's own, so that only ours is removed */
	ino_t ino;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

/*
 * Serves `path`, calling fill(arg, …) for each question. A socket left behind by a dead agent is taken
 * over. 0, or -errno with one line of text in err (size bytes): -EADDRINUSE when an agent lives there,
 * -ENOTSOCK when something else is there. c stays where it is until the close.
 */
int rs_control_open(struct rs_control *c, struct rs_loop *loop, const char *path,
		    rs_control_fill_fn fill, void *arg, char *err, size_t size);
/*
 * More of an answer; text is copied. -ENOSPC: what waits already is too much, nothing is added; -ENOMEM.
 * It goes out when the loop turns.
 */
int rs_control_say(struct rs_control_client *cl, const char *text, size_t len);
/* All is said: closed when it is sent. cl is not to be used any more. */
void rs_control_end(struct rs_control_client *cl);

/* Removes the socket. Harmless on one that is not open (zeroed, or open failed). */
void rs_control_close(struct rs_control *c);

/*
 * Client: asks and waits at most a few seconds, also for a place. The answer is malloc'ed and NUL-terminated; free() it.
 * 0, or -errno with one line of text in err.
 */
int rs_control_ask(const char *path, const char *request, char **ret, size_t *ret_len, char *err,
		   size_t size);
/*
 * The same, of an answer by bits: they are given to fn as they come; it returns false when it has had
 * enough. wait_s: for a bit at most.
 */
int rs_control_listen(const char *path, const char *request, unsigned wait_s,
		      bool (*fn)(void *arg, const char *bits, size_t len), void *arg, char *err,
		      size_t size);

#endif
