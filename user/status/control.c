// SPDX-License-Identifier: Apache-2.0
#include "control_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "send.h"

#define TICK_NS 1000000000u

/* -- server: clients -- */

static void drop(struct rs_control_client *cl)
{
	int fd = cl->w.fd;

	if (cl->open && cl->c->gone)
		cl->c->gone(cl->c->arg, cl);
	cl->open = false;
	rs_loop_del(cl->c->loop, &cl->w);
	close(fd);
	free(cl->answer);
	cl->answer = NULL;
	if (--cl->c->nclients == 0)
		rs_loop_timer_stop(cl->c->loop, &cl->c->timer);
}

static void send_some(struct rs_control_client *cl)
{
	size_t before = cl->sent;
	int r = rs_send_rest(cl->w.fd, cl->answer, cl->len, &cl->sent);

	if (cl->sent != before)
		cl->active_ns = rs_clock_mono();
	if (r > 0) {
		if (rs_loop_mod(cl->c->loop, &cl->w, EPOLLOUT))
			drop(cl);
		return;
	}
	if (!cl->open || r < 0) {
		drop(cl);
		return;
	}
	cl->sent = cl->len = 0;
	if (rs_loop_mod(cl->c->loop, &cl->w, 0))
		drop(cl);
}

int rs_control_say(struct rs_control_client *cl, const char *text, size_t len)
{
	if (!cl->answer) {
		cl->answer = malloc(RS_CONTROL_SAY);
		cl->sent = cl->len = 0;
	}
	if (!cl->answer)
		return -ENOMEM;
	if (cl->sent) {
		memmove(cl->answer, cl->answer + cl->sent, cl->len - cl->sent);
		cl->len -= cl->sent;
		cl->sent = 0;
	}
	if (len > RS_CONTROL_SAY - cl->len)
		return -ENOSPC;
	memcpy(cl->answer + cl->len, text, len);
	cl->len += len;
	return rs_loop_mod(cl->c->loop, &cl->w, EPOLLOUT);
}

void rs_control_end(struct rs_control_client *cl)
{
	cl->open = false;
	if (!cl->answer || rs_loop_mod(cl->c->loop, &cl->w, EPOLLOUT))
		drop(cl);
}

static void answer(struct rs_control_client *cl, struct str request)
{
	static const char unknown[] = "{\"error\":\"unknown request; status is one\"}\n";
	struct rs_control *c = cl->c;

	if (str_eq(request, STR("status"))) {
		struct rs_status s;

		rs_status_init(&s);
		cl->c->fill(cl->c->arg, &s);
		cl->answer = rs_status_json(&s, &cl->len);
		rs_status_release(&s);
	} else if (c->request) {
		int rc;

		/* It has said all; only that it leaves is of interest, and that is always reported. */
		cl->open = true;
		rc = rs_loop_mod(c->loop, &cl->w, 0);
		if (!rc)
			rc = c->request(c->arg, cl, request);
		if (!rc)
			return;
		cl->open = false;
	}
	if (!cl->answer && (cl->answer = strdup(unknown)))
		cl->len = sizeof(unknown) - 1;
	if (cl->answer)
		send_some(cl);
	else
		drop(cl);
}

static void receive(struct rs_control_client *cl)
{
	ssize_t n =
		recv(cl->w.fd, cl->request + cl->got, sizeof(cl->request) - cl->got, MSG_DONTWAIT);
	struct str all, line;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		drop(cl);
		return;
	}
	cl->got += (size_t)n;
	cl->active_ns = rs_clock_mono();
	all = str_of(cl->request, cl->got);
	str_cut(all, '\n', &line);
	if (line.len && line.ptr[line.len - 1] == '\r')
		line.len--;
	/* A line, the end of the stream, or more than any request has: answer. */
	if (str_find(all, '\n') < all.len || cl->got == sizeof(cl->request))
		answer(cl, line);
	else if (n == 0 && cl->got)
		answer(cl, line);
	else if (n == 0)
		drop(cl);
}

static void on_client(void *arg, uint32_t events)
{
	struct rs_control_client *cl = arg;

	if (cl->open && (events & (EPOLLHUP | EPOLLERR)))
		drop(cl);
	else if (cl->answer)
		send_some(cl);
	else
		receive(cl);
}

/* For how long have we waited for it? 0: it waits for us. */
static uint64_t stalled_ns(const struct rs_control_client *cl, uint64_t now)
{
	if ((cl->open && cl->sent == cl->len) || now < cl->active_ns)
		return 0;
	return now - cl->active_ns;
}

static void on_tick(void *arg)
{
	struct rs_control *c = arg;
	uint64_t now = rs_clock_mono();

	for (int i = 0; i < RS_CONTROL_CLIENTS; i++) {
		struct rs_control_client *cl = &c->client[i];

		if (cl->w.fd < 0)
			continue;
		if (!stalled_ns(cl, now))
			cl->active_ns = now;
		else if (stalled_ns(cl, now) > RS_CONTROL_TIMEOUT_NS)
			drop(cl);
	}
}

/* A free slot; without one, that of who has kept us waiting for longest. NULL: none has for long. */
static struct rs_control_client *place(struct rs_control *c)
{
	uint64_t now = rs_clock_mono(), most = RS_CONTROL_PATIENCE_NS;
	struct rs_control_client *slowest = NULL;

	for (int i = 0; i < RS_CONTROL_CLIENTS; i++) {
		struct rs_control_client *cl = &c->client[i];

		if (cl->w.fd < 0)
			return cl;
		if (stalled_ns(cl, now) >= most) {
			most = stalled_ns(cl, now);
			slowest = cl;
		}
	}
	if (slowest)
		drop(slowest);
	return slowest;
}

static void on_connect(void *arg, uint32_t events)
{
	struct rs_control *c = arg;
	int fd = accept4(c->w.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct rs_control_client *cl;

	(void)events;
	if (fd < 0)
		return;
	cl = place(c);
	if (!cl) {
		/* A new socket's buffer has room for this. */
		if (send(fd, RS_CONTROL_BUSY, sizeof(RS_CONTROL_BUSY) - 1,
			 MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			errno = 0;
		close(fd);
		return;
	}
	if (c->nclients == 0 &&
	    rs_loop_timer_start(c->loop, &c->timer, TICK_NS, TICK_NS, on_tick, c)) {
		close(fd);
		return;
	}
	c->nclients++;
	cl->c = c;
	cl->got = cl->sent = cl->len = 0;
	cl->answer = NULL;
	cl->active_ns = rs_clock_mono();
	if (rs_loop_add(c->loop, &cl->w, fd, EPOLLIN, on_client, cl)) {
		close(fd);
		if (--c->nclients == 0)
			rs_loop_timer_stop(c->loop, &c->timer);
	}
}

/* -- server: the socket -- */

/* 0: the way is free (a dead agent's socket was removed), or -errno and err. */
static int take_over(const struct sockaddr_un *sun, char *err, size_t size)
{
	struct stat st;
	int fd, e;

	if (lstat(sun->sun_path, &st)) {
		if (errno == ENOENT)
			return 0;
		e = -errno;
		snprintf(err, size, "%s: %s", sun->sun_path, strerror(-e));
		return e;
	}
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(err, size, "%s exists and is not a socket; choose another --socket",
			 sun->sun_path);
		return -ENOTSOCK;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	e = connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) ? errno : 0;
	close(fd);
	if (e == ECONNREFUSED || e == ENOENT) {
		if (e == ECONNREFUSED && unlink(sun->sun_path) && errno != ENOENT) {
			e = errno;
			snprintf(err, size, "%s: cannot remove a dead agent's socket: %s",
				 sun->sun_path, strerror(e));
			return -e;
		}
		return 0;
	}
	if (e == EACCES || e == EPERM) {
		snprintf(err, size, "%s belongs to another user's agent; choose another --socket",
			 sun->sun_path);
		return -EACCES;
	}
	/* Connected, or its queue is full (EAGAIN): somebody lives there. */
	snprintf(err, size,
		 "another agent is running on %s; stop it, or give this one another --socket",
		 sun->sun_path);
	return -EADDRINUSE;
}

/* The directory of path, locked: two agents that start at once must not take over from each other. */
static int lock_directory(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)] = ".";
	const char *slash = strrchr(path, '/');
	int fd;

	if (slash)
		snprintf(dir, sizeof(dir), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && flock(fd, LOCK_EX)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int bind_listen(int fd, const struct sockaddr_un *sun)
{
	mode_t old = umask(0177);
	int err = bind(fd, (const struct sockaddr *)sun, sizeof(*sun)) ? -errno : 0;

	umask(old);
	if (!err && listen(fd, RS_CONTROL_CLIENTS)) {
		err = -errno;
		unlink(sun->sun_path);
	}
	return err;
}

static int make_socket(const struct sockaddr_un *sun, char *err, size_t size)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int e = fd < 0 ? -errno : bind_listen(fd, sun);

	if (!e)
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(err, size, "cannot listen on %s: %s; choose another --socket", sun->sun_path,
		 strerror(-e));
	return e;
}

int rs_control_open(struct rs_control *c, struct rs_loop *loop, const char *path,
		    rs_control_fill_fn fill, void *arg, char *err, size_t size)
{
	struct sockaddr_un sun;
	struct stat st;
	int lock, fd, e;

	memset(c, 0, sizeof(*c));
	c->w.fd = c->timer.w.fd = -1;
	for (int i = 0; i < RS_CONTROL_CLIENTS; i++)
		c->client[i].w.fd = -1;
	e = rs_control_path(&sun, path, err, size);
	if (e)
		return e;
	c->loop = loop;
	c->fill = fill;
	c->arg = arg;
	lock = lock_directory(path); /* without it, bind() says what is wrong */
	e = take_over(&sun, err, size);
	fd = e ? e : make_socket(&sun, err, size);
	if (lock >= 0)
		close(lock);
	if (fd < 0)
		return fd;
	memcpy(c->path, sun.sun_path, sizeof(c->path));
	if (!lstat(c->path, &st)) {
		c->dev = st.st_dev;
		c->ino = st.st_ino;
	}
	e = rs_loop_add(loop, &c->w, fd, EPOLLIN, on_connect, c);
	if (e) {
		snprintf(err, size, "cannot watch %s: %s", path, strerror(-e));
		unlink(c->path);
		close(fd);
	}
	return e;
}

void rs_control_close(struct rs_control *c)
{
	struct stat st;
	int fd = c->w.fd;

	if (!c->loop || fd < 0)
		return;
	for (int i = 0; i < RS_CONTROL_CLIENTS; i++) {
		if (c->client[i].w.fd >= 0)
			drop(&c->client[i]);
	}
	rs_loop_del(c->loop, &c->w);
	/* Somebody may have removed ours and put another agent's in its place. */
	if (!lstat(c->path, &st) && st.st_dev == c->dev && st.st_ino == c->ino)
		unlink(c->path);
	close(fd);
}
