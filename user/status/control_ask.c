// SPDX-License-Identifier: Apache-2.0
/* The end of the control socket that asks: `ringspan status` and others. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "control_parts.h"

#define ANSWER_MAX (32u << 20) /* bytes a client accepts */
#define WAIT_S	   5	       /* a client waits for one piece */
#define BUSY_TRIES 30
#define BUSY_NS	   100000000 /* between them */

int rs_control_path(struct sockaddr_un *sun, const char *path, char *err, size_t size)
{
	size_t n = strlen(path);

	if (n >= sizeof(sun->sun_path)) {
		snprintf(err, size,
			 "%s: the path is longer than %zu characters; choose a shorter --socket",
			 path, sizeof(sun->sun_path) - 1);
		return -ENAMETOOLONG;
	}
	*sun = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(sun->sun_path, path, n + 1);
	return 0;
}

static int explain(const char *path, int e, char *err, size_t size)
{
	if (e == ENOENT || e == ECONNREFUSED)
		snprintf(
			err, size,
			"no agent is running on %s; start one with `ringspan run`, or give its --socket",
			path);
	else if (e == EACCES || e == EPERM)
		snprintf(err, size, "%s: not allowed; run as root", path);
	else if (e == EAGAIN || e == ETIMEDOUT)
		snprintf(err, size, "the agent on %s does not answer", path);
	else if (e == EPIPE || e == ECONNRESET)
		snprintf(err, size, "the agent on %s is busy with others or ending; try again",
			 path);
	else
		snprintf(err, size, "%s: %s", path, strerror(e));
	return -e;
}

static int read_all(int fd, char **ret, size_t *ret_len)
{
	size_t len = 0, cap = 64 * 1024;
	char *text = malloc(cap + 1);

	while (text) {
		ssize_t n = recv(fd, text + len, cap - len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int e = -errno;

			free(text);
			return e;
		}
		if (n == 0) {
			text[len] = 0;
			*ret = text;
			*ret_len = len;
			return 0;
		}
		len += (size_t)n;
		if (len == cap) {
			char *more = cap < ANSWER_MAX ? realloc(text, 2 * cap + 1) : NULL;

			if (!more)
				free(text);
			text = more;
			cap *= 2;
		}
	}
	return -ENOMEM;
}

/* Connects and sends the line. A descriptor, or -errno. */
static int ask(const char *path, const char *request, unsigned wait_s, char *err, size_t size)
{
	const struct timeval wait = { .tv_sec = wait_s };
	char line[RS_CONTROL_REQUEST];
	struct sockaddr_un sun;
	int fd, n, e = rs_control_path(&sun, path, err, size);

	if (e)
		return e;
	n = snprintf(line, sizeof(line), "%s\n", request);
	if (n < 0 || (size_t)n >= sizeof(line))
		return -EINVAL;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return explain(path, errno, err, size);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) ||
	    send(fd, line, (size_t)n, MSG_NOSIGNAL) != n) {
		e = explain(path, errno, err, size);
		close(fd);
		return e;
	}
	return fd;
}

int rs_control_ask(const char *path, const char *request, char **ret, size_t *ret_len, char *err,
		   size_t size)
{
	for (int left = BUSY_TRIES;; left--) {
		const struct timespec wait = { .tv_nsec = BUSY_NS };
		int fd = ask(path, request, WAIT_S, err, size), e;

		if (fd < 0)
			return fd;
		e = read_all(fd, ret, ret_len);
		close(fd);
		if (e)
			return explain(path, -e, err, size);
		if (!left || strcmp(*ret, RS_CONTROL_BUSY) != 0)
			return 0;
		free(*ret);
		nanosleep(&wait, NULL);
	}
}

int rs_control_listen(const char *path, const char *request, unsigned wait_s,
		      bool (*fn)(void *arg, const char *bits, size_t len), void *arg, char *err,
		      size_t size)
{
	int fd = ask(path, request, wait_s, err, size), e = 0;
	char bits[4096];
	ssize_t n;

	if (fd < 0)
		return fd;
	do {
		n = recv(fd, bits, sizeof(bits), 0);
		if (n < 0 && errno != EINTR)
			e = explain(path, errno, err, size);
	} while (!e && n && (n < 0 || fn(arg, bits, (size_t)n)));
	close(fd);
	return e;
}
