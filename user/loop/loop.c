// SPDX-License-Identifier: Apache-2.0
#include "loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

int rs_loop_init(struct rs_loop *l)
{
	*l = (struct rs_loop){ .epoll_fd = -1, .sig.fd = -1 };
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return l->epoll_fd < 0 ? -errno : 0;
}

void rs_loop_release(struct rs_loop *l)
{
	if (l->sig.fd >= 0) {
		int fd = l->sig.fd;

		rs_loop_del(l, &l->sig);
		close(fd);
	}
	if (l->epoll_fd >= 0)
		close(l->epoll_fd);
	l->epoll_fd = -1;
}

int rs_loop_add(struct rs_loop *l, struct rs_loop_fd *w, int fd, uint32_t events, rs_loop_fd_fn fn,
		void *arg)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	*w = (struct rs_loop_fd){ .fn = fn, .arg = arg, .fd = -1 };
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return -errno;
	w->fd = fd;
	return 0;
}

int rs_loop_mod(struct rs_loop *l, struct rs_loop_fd *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	return epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, w->fd, &ev) ? -errno : 0;
}

void rs_loop_del(struct rs_loop *l, struct rs_loop_fd *w)
{
	if (w->fd < 0)
		return;
	epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	w->fd = -1;
	/* Its memory may be gone when this turn's remaining events are delivered. */
	for (int i = 0; i < l->nready; i++) {
		if (l->ready[i].data.ptr == w)
			l->ready[i].data.ptr = NULL;
	}
}

static void on_timer(void *arg, uint32_t events)
{
	struct rs_loop_timer *t = arg;
	uint64_t times;

	(void)events;
	/* The kernel restarts a periodic timer when it is read. */
	if (read(t->w.fd, &times, sizeof(times)) == (ssize_t)sizeof(times))
		t->fn(t->arg);
}

int rs_loop_timer_start(struct rs_loop *l, struct rs_loop_timer *t, uint64_t first_ns,
			uint64_t period_ns, rs_loop_timer_fn fn, void *arg)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	int err;

	t->w.fd = -1;
	t->fn = fn;
	t->arg = arg;
	if (fd < 0)
		return -errno;
	err = rs_loop_add(l, &t->w, fd, EPOLLIN, on_timer, t);
	if (err) {
		close(fd);
		return err;
	}
	err = rs_loop_timer_set(t, first_ns, period_ns);
	if (err)
		rs_loop_timer_stop(l, t);
	return err;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
				  .tv_nsec = (long)(ns % NS_PER_S) };
}

int rs_loop_timer_set(struct rs_loop_timer *t, uint64_t first_ns, uint64_t period_ns)
{
	struct itimerspec its = {
		/* A value of zero would disarm it. */
		.it_value = to_timespec(first_ns ? first_ns : 1),
		.it_interval = to_timespec(period_ns),
	};

	return timerfd_settime(t->w.fd, 0, &its, NULL) ? -errno : 0;
}

void rs_loop_timer_stop(struct rs_loop *l, struct rs_loop_timer *t)
{
	int fd = t->w.fd;

	if (fd < 0)
		return;
	rs_loop_del(l, &t->w);
	close(fd);
}

static void on_signal(void *arg, uint32_t events)
{
	struct rs_loop *l = arg;
	struct signalfd_siginfo si;

	(void)events;
	while (l->sig.fd >= 0 && read(l->sig.fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		l->on_signal(l->signal_arg, (int)si.ssi_signo, si.ssi_code <= 0);
}

static void our_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGIO);
}

int rs_loop_signals(struct rs_loop *l, rs_loop_signal_fn fn, void *arg)
{
	sigset_t set;
	int fd, err;

	our_signals(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	l->on_signal = fn;
	l->signal_arg = arg;
	err = rs_loop_add(l, &l->sig, fd, EPOLLIN, on_signal, l);
	if (err)
		close(fd);
	return err;
}

void rs_loop_signals_default(void)
{
	sigset_t set;

	our_signals(&set);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

int rs_loop_turn(struct rs_loop *l, int timeout_ms)
{
	int n = epoll_wait(l->epoll_fd, l->ready, RS_LOOP_BATCH, timeout_ms);
	int called = 0;

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	l->nready = n;
	for (int i = 0; i < n; i++) {
		struct rs_loop_fd *w = l->ready[i].data.ptr;

		if (!w)
			continue;
		w->fn(w->arg, l->ready[i].events);
		called++;
	}
	l->nready = 0;
	return called;
}

int rs_loop_run(struct rs_loop *l)
{
	while (!l->stop) {
		int n = rs_loop_turn(l, -1);

		if (n < 0)
			return n;
	}
	return 0;
}

void rs_loop_stop(struct rs_loop *l)
{
	l->stop = true;
}
