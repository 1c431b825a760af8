// SPDX-License-Identifier: Apache-2.0
/*
 * traffic: 200 HTTP requests between a server and a client process of its own, by different system
 * calls and kinds of sockets; says how many were answered. Static, so that it runs in any guest.
 *
 *   100 IPv4 keep-alive, write and read        40 IPv6 keep-alive, writev and readv
 *    40 Unix keep-alive, sendmsg and recvmsg   20 IPv4, a connection each, sendto and recvfrom
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum how {
	PLAIN,
	VECTOR,
	MESSAGE,
	SOCKET
};

#define PORT 21080
#define PATH "/tmp/ringspan-traffic.sock"

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static ssize_t put(int fd, enum how how, const char *p, size_t n)
{
	size_t half = n / 2;
	struct iovec iov[2] = { { (char *)p, half }, { (char *)p + half, n - half } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	switch (how) {
	case PLAIN:
		return write(fd, p, n);
	case VECTOR:
		return writev(fd, iov, 2);
	case MESSAGE:
		return sendmsg(fd, &msg, 0);
	case SOCKET:
		return sendto(fd, p, n, 0, NULL, 0);
	}
	return -1;
}

static ssize_t get(int fd, enum how how, char *p, size_t n)
{
	struct iovec iov[2] = { { p, 16 }, { p + 16, n - 16 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	switch (how) {
	case PLAIN:
		return read(fd, p, n);
	case VECTOR:
		return readv(fd, iov, 2);
	case MESSAGE:
		return recvmsg(fd, &msg, 0);
	case SOCKET:
		return recvfrom(fd, p, n, 0, NULL, NULL);
	}
	return -1;
}

static socklen_t address(struct sockaddr_storage *ss, int family)
{
	struct sockaddr_in *in = (void *)ss;
	struct sockaddr_in6 *in6 = (void *)ss;
	struct sockaddr_un *un = (void *)ss;

	memset(ss, 0, sizeof(*ss));
	ss->ss_family = (sa_family_t)family;
	switch (family) {
	case AF_INET:
		in->sin_port = htons(PORT);
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(*in);
	case AF_INET6:
		in6->sin6_port = htons(PORT + 1);
		in6->sin6_addr = in6addr_loopback;
		return sizeof(*in6);
	default:
		strcpy(un->sun_path, PATH);
		return sizeof(*un);
	}
}

static int listener(int family)
{
	struct sockaddr_storage ss;
	socklen_t len = address(&ss, family);
	int one = 1, fd = socket(family, SOCK_STREAM, 0);

	unlink(PATH);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (void *)&ss, len) || listen(fd, 64))
		die("listen");
	return fd;
}

static void serve(int lfd, int conns, enum how how)
{
	char req[4096], answer[512];
	int n;

	for (int i = 0; i < conns; i++) {
		int fd = accept(lfd, NULL, NULL), seen = 0;

		if (fd < 0)
			die("accept");
		for (;;) {
			ssize_t got = get(fd, how, req, sizeof(req));

			if (got <= 0)
				break;
			n = snprintf(
				answer, sizeof(answer),
				"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nanswer%3d\n",
				seen++);
			if (put(fd, how, answer, (size_t)n) != n)
				die("answer");
		}
		close(fd);
	}
}

static int ask(int family, int conns, int requests, enum how how)
{
	struct sockaddr_storage ss;
	socklen_t len = address(&ss, family);
	char buf[4096];
	int ok = 0;

	for (int c = 0; c < conns; c++) {
		int fd = socket(family, SOCK_STREAM, 0);

		if (fd < 0 || connect(fd, (void *)&ss, len))
			die("connect");
		for (int i = 0; i < requests; i++) {
			int n = snprintf(buf, sizeof(buf),
					 "GET /r/%d/%d HTTP/1.1\r\nHost: traffic\r\n\r\n", c, i);

			if (put(fd, how, buf, (size_t)n) != n)
				die("request");
			if (get(fd, how, buf, sizeof(buf)) > 0 &&
			    memcmp(buf, "HTTP/1.1 200", 12) == 0)
				ok++;
		}
		close(fd);
	}
	return ok;
}

int main(void)
{
	static const struct {
		int family, conns, requests;
		enum how how;
	} runs[] = {
		{ AF_INET, 4, 25, PLAIN },
		{ AF_INET6, 2, 20, VECTOR },
		{ AF_UNIX, 2, 20, MESSAGE },
		{ AF_INET, 20, 1, SOCKET },
	};
	int ok = 0;

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		int lfd = listener(runs[i].family), status = 0;
		pid_t pid = fork();

		if (pid == 0) {
			serve(lfd, runs[i].conns, runs[i].how);
			_exit(0);
		}
		close(lfd);
		ok += ask(runs[i].family, runs[i].conns, runs[i].requests, runs[i].how);
		waitpid(pid, &status, 0);
		if (status)
			return 1;
	}
	unlink(PATH);
	printf("traffic: %d requests answered\n", ok);
	return ok == 200 ? 0 : 1;
}
