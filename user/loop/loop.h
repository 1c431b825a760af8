/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop — one thread, one epoll: file descriptors, timers and signals in one place.
 *
 * Watches are the caller's memory and must stay where they are until removed; the loop allocates
 * nothing. A callback may remove any watch, its own included: an event that was already fetched for a
 * removed watch is not delivered. Callbacks must not block. Not thread-safe.
 */
#ifndef RS_LOOP_LOOP_H
#define RS_LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#define RS_LOOP_BATCH 64 /* events fetched per turn at most */

/* events: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP as epoll reports them. */
typedef void (*rs_loop_fd_fn)(void *arg, uint32_t events);
typedef void (*rs_loop_timer_fn)(void *arg);
/* sent: by a process (kill), not by the terminal, which tells everybody in the foreground. */
typedef void (*rs_loop_signal_fn)(void *arg, int signo, bool sent);

struct rs_loop_fd {
	rs_loop_fd_fn fn;
	void *arg;
	int fd; /* borrowed; -1: not in the loop */
};

struct rs_loop_timer {
	struct rs_loop_fd w; /* w.fd is the timer's own */
	rs_loop_timer_fn fn;
	void *arg;
};

struct rs_loop {
	int epoll_fd;
	bool stop;
	int nready;
	struct epoll_event ready[RS_LOOP_BATCH];
	struct rs_loop_fd sig; /* sig.fd is the loop's own */
	rs_loop_signal_fn on_signal;
	void *signal_arg;
};

/* 0 or -errno. Release accepts a loop whose init failed, and is to be called after all removals. */
int rs_loop_init(struct rs_loop *l);
void rs_loop_release(struct rs_loop *l);

/* Watches fd for `events` (level-triggered). 0 or -errno; *w is marked as not in the loop on failure. */
int rs_loop_add(struct rs_loop *l, struct rs_loop_fd *w, int fd, uint32_t events, rs_loop_fd_fn fn,
		void *arg);
/* Changes what is waited for. */
int rs_loop_mod(struct rs_loop *l, struct rs_loop_fd *w, uint32_t events);
/* Harmless when w is not in the loop. Does not close the fd. */
void rs_loop_del(struct rs_loop *l, struct rs_loop_fd *w);

/*
 * Calls fn after first_ns (0: at once), then every period_ns (0: once). Missed periods are not made up.
 * 0 or -errno.
 */
int rs_loop_timer_start(struct rs_loop *l, struct rs_loop_timer *t, uint64_t first_ns,
			uint64_t period_ns, rs_loop_timer_fn fn, void *arg);
/* Sets a started timer anew. */
int rs_loop_timer_set(struct rs_loop_timer *t, uint64_t first_ns, uint64_t period_ns);
/* Ends the timer for good; harmless when it was not started (w.fd -1). */
void rs_loop_timer_stop(struct rs_loop *l, struct rs_loop_timer *t);

/*
 * Takes SIGINT, SIGTERM, SIGHUP, SIGCHLD and SIGIO out of the process's asynchronous life and delivers them
 * as calls; SIGPIPE is ignored. 0 or -errno.
 */
int rs_loop_signals(struct rs_loop *l, rs_loop_signal_fn fn, void *arg);
/* For a forked child, before exec: signals as a program expects them. */
void rs_loop_signals_default(void);

/* Turns until rs_loop_stop(). 0 or -errno. */
int rs_loop_run(struct rs_loop *l);
/* One turn: waits at most timeout_ms (-1: no limit). Number of callbacks made, or -errno. */
int rs_loop_turn(struct rs_loop *l, int timeout_ms);
void rs_loop_stop(struct rs_loop *l);

#endif
