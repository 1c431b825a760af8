/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control — the agent's Unix socket, and how `ringspan status` asks through it.
 *
 * Protocol: the client sends one line; the server answers and closes. The one request is "status"; the
 * answer is the JSON of status.h. Anything else gets {"error": "…"}. (`echo status | nc -U PATH` works.)
 *
 * Server: mode 0600, at most RS_CONTROL_CLIENTS clients with RS_CONTROL_REQUEST bytes each; a client
 * that does not send or read for RS_CONTROL_TIMEOUT_NS is closed. Never blocks the loop.
 */
#ifndef RS_STATUS_CONTROL_H
#define RS_STATUS_CONTROL_H

#include <sys/un.h>

#include "loop/loop.h"
#include "status.h"

#define RS_CONTROL_CLIENTS    8
#define RS_CONTROL_REQUEST    64
#define RS_CONTROL_TIMEOUT_NS 5000000000u

/* Fills in what rs_status_init() did not. */
typedef void (*rs_control_fill_fn)(void *arg, struct rs_status *s);

struct rs_control;

struct rs_control_client {
	struct rs_control *c;
	struct rs_loop_fd w; /* w.fd -1: free slot */
	uint64_t active_ns;  /* last progress */
	size_t got, sent, len;
	char *answer; /* malloc'ed, len bytes; NULL: still reading */
	char request[RS_CONTROL_REQUEST];
};

struct rs_control {
	struct rs_loop *loop;
	struct rs_loop_fd w;
	struct rs_loop_timer timer; /* looks for dead clients; off when there is none */
	rs_control_fill_fn fill;
	void *arg;
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
/* Removes the socket. Harmless on one that is not open (zeroed, or open failed). */
void rs_control_close(struct rs_control *c);

/*
 * Client: asks and waits at most a few seconds. The answer is malloc'ed and NUL-terminated; free() it.
 * 0, or -errno with one line of text in err.
 */
int rs_control_ask(const char *path, const char *request, char **ret, size_t *ret_len, char *err,
		   size_t size);

#endif
