// SPDX-License-Identifier: Apache-2.0
#include "page.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "send.h"

#define TICK_NS	  1000000000u
#define HEAD_ROOM 256

/* -- clients -- */

static void drop(struct rs_page_client *cl)
{
	int fd = cl->w.fd;

	rs_loop_del(cl->p->loop, &cl->w);
	close(fd);
	free(cl->answer);
	cl->answer = NULL;
}

static void send_some(struct rs_page_client *cl)
{
	size_t before = cl->sent;
	int r = rs_send_rest(cl->w.fd, cl->answer, cl->len, &cl->sent);

	if (cl->sent != before)
		cl->active_ns = rs_clock_mono();
	if (r <= 0 || rs_loop_mod(cl->p->loop, &cl->w, EPOLLOUT))
		drop(cl);
}

static void answer(struct rs_page_client *cl, const char *status, const char *type,
		   const char *body, size_t len, bool head_only)
{
	int n;

	cl->answer = malloc(HEAD_ROOM + len);
	if (!cl->answer) {
		drop(cl);
		return;
	}
	n = snprintf(
		cl->answer, HEAD_ROOM,
		"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		status, type, len);
	if (!head_only)
		memcpy(cl->answer + n, body, len);
	cl->len = (size_t)n + (head_only ? 0 : len);
	send_some(cl);
}

static void answer_text(struct rs_page_client *cl, const char *status, const char *text)
{
	answer(cl, status, "text/plain; charset=utf-8", text, strlen(text), false);
}

static void metrics(struct rs_page_client *cl, const struct rs_status *s, bool head_only)
{
	size_t len = 0;
	char *text = rs_status_prometheus(s, &len);

	if (text)
		answer(cl, "200 OK", "text/plain; version=0.0.4; charset=utf-8", text, len,
		       head_only);
	else
		answer_text(cl, "500 Internal Server Error", "out of memory\n");
	free(text);
}

static void ready(struct rs_page_client *cl, const struct rs_status *s)
{
	char text[256];

	if (s->state == RS_STATE_CAPTURING) {
		answer_text(cl, "200 OK", "capturing\n");
		return;
	}
	snprintf(text, sizeof(text), "not capturing: %s\n", s->reason ? s->reason : "");
	answer_text(cl, "503 Service Unavailable", text);
}

static void respond(struct rs_page_client *cl, struct str line)
{
	struct str method, target, path;
	struct rs_status s;

	line = str_cut(line, ' ', &method);
	str_cut(line, ' ', &target);
	str_cut(target, '?', &path);
	if (!str_eq(method, STR("GET")) && !str_eq(method, STR("HEAD"))) {
		answer_text(cl, "405 Method Not Allowed", "only GET\n");
		return;
	}
	if (str_eq(path, STR("/healthz"))) {
		answer_text(cl, "200 OK", "ok\n");
		return;
	}
	if (!str_eq(path, STR("/metrics")) && !str_eq(path, STR("/readyz"))) {
		answer_text(cl, "404 Not Found", "there are: /metrics /healthz /readyz\n");
		return;
	}
	rs_status_init(&s);
	cl->p->fill(cl->p->arg, &s);
	if (str_eq(path, STR("/metrics")))
		metrics(cl, &s, str_eq(method, STR("HEAD")));
	else
		ready(cl, &s);
	rs_status_release(&s);
}

static void receive(struct rs_page_client *cl)
{
	ssize_t n =
		recv(cl->w.fd, cl->request + cl->got, sizeof(cl->request) - cl->got, MSG_DONTWAIT);
	struct str all, line;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop(cl);
		return;
	}
	cl->got += (size_t)n;
	cl->active_ns = rs_clock_mono();
	all = str_of(cl->request, cl->got);
	/* The whole head: what is unread when we close would reset the connection. */
	if (memmem(all.ptr, all.len, "\r\n\r\n", 4)) {
		str_cut(all, '\r', &line);
		respond(cl, line);
	} else if (cl->got == sizeof(cl->request)) {
		answer_text(cl, "431 Request Header Fields Too Large", "too long\n");
	}
}

static void on_client(void *arg, uint32_t events)
{
	struct rs_page_client *cl = arg;

	(void)events;
	if (cl->answer)
		send_some(cl);
	else
		receive(cl);
}

static void on_tick(void *arg)
{
	struct rs_page *p = arg;
	uint64_t now = rs_clock_mono();

	for (int i = 0; i < RS_PAGE_CLIENTS; i++) {
		if (p->client[i].w.fd >= 0 && now - p->client[i].active_ns > RS_PAGE_TIMEOUT_NS)
			drop(&p->client[i]);
	}
}

static void on_connect(void *arg, uint32_t events)
{
	struct rs_page *p = arg;
	struct rs_page_client *cl = NULL;
	int fd = accept4(p->w.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0)
		return;
	for (int i = 0; i < RS_PAGE_CLIENTS && !cl; i++) {
		if (p->client[i].w.fd < 0)
			cl = &p->client[i];
	}
	if (!cl) {
		close(fd);
		return;
	}
	cl->p = p;
	cl->got = cl->sent = cl->len = 0;
	cl->answer = NULL;
	cl->active_ns = rs_clock_mono();
	if (rs_loop_add(p->loop, &cl->w, fd, EPOLLIN, on_client, cl))
		close(fd);
}

/* -- the socket -- */

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static bool parse_address(const char *text, union address *a, socklen_t *ret_len)
{
	const char *colon = strrchr(text, ':');
	struct str port = str_c(colon ? colon + 1 : text),
		   host = str_of(text, colon ? (size_t)(colon - text) : 0);
	char name[64];
	uint64_t n;

	if (!str_u64(port, &n) || n < 1 || n > 65535)
		return false;
	if (host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
		host = str_at(host, 1, host.len - 2);
	if (!colon || str_eq(host, STR("localhost")))
		host = STR("127.0.0.1");
	snprintf(name, sizeof(name), "%.*s", STR_ARG(host));
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, name, &a->in.sin_addr) == 1) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons((uint16_t)n);
		*ret_len = sizeof(a->in);
		return true;
	}
	a->in6.sin6_family = AF_INET6;
	a->in6.sin6_port = htons((uint16_t)n);
	*ret_len = sizeof(a->in6);
	return inet_pton(AF_INET6, name, &a->in6.sin6_addr) == 1;
}

static int bad_address(const char *address, char *err, size_t size)
{
	snprintf(err, size, "'%s' is not PORT or ADDRESS:PORT, with an IP address", address);
	return -EINVAL;
}

int rs_page_check(const char *address, char *err, size_t size)
{
	union address a;
	socklen_t len;

	return parse_address(address, &a, &len) ? 0 : bad_address(address, err, size);
}

int rs_page_open(struct rs_page *p, struct rs_loop *loop, const char *address,
		 void (*fill)(void *arg, struct rs_status *s), void *arg, char *err, size_t size)
{
	union address a;
	socklen_t len;
	int fd, rc, on = 1;

	*p = (struct rs_page){ .fill = fill, .arg = arg };
	p->w.fd = p->timer.w.fd = -1;
	for (int i = 0; i < RS_PAGE_CLIENTS; i++)
		p->client[i].w.fd = -1;
	if (!parse_address(address, &a, &len))
		return bad_address(address, err, size);
	fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = fd < 0 ? -errno : 0;
	if (!rc && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
		    bind(fd, &a.sa, len) || listen(fd, RS_PAGE_CLIENTS)))
		rc = -errno;
	if (!rc)
		rc = rs_loop_add(loop, &p->w, fd, EPOLLIN, on_connect, p);
	if (!rc)
		rc = rs_loop_timer_start(loop, &p->timer, TICK_NS, TICK_NS, on_tick, p);
	if (rc) {
		snprintf(err, size, "cannot listen on %s: %s; choose another --listen", address,
			 strerror(-rc));
		rs_loop_del(loop, &p->w);
		if (fd >= 0)
			close(fd);
		return rc;
	}
	p->loop = loop;
	return 0;
}

void rs_page_close(struct rs_page *p)
{
	int fd = p->w.fd;

	if (!p->loop)
		return;
	for (int i = 0; i < RS_PAGE_CLIENTS; i++) {
		if (p->client[i].w.fd >= 0)
			drop(&p->client[i]);
	}
	rs_loop_timer_stop(p->loop, &p->timer);
	rs_loop_del(p->loop, &p->w);
	close(fd);
	p->loop = NULL;
}
