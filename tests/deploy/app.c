// SPDX-License-Identifier: Apache-2.0
/*
 * A server and a client in one static program, for pods:
 *   app serve PORT             answers GET /error with 500, else 200, keep-alive
 *   app ask HOST PORT N PATH   N requests on one connection, one after the other; exit 0: all were answered
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A head; its length, or 0 at the end. */
static size_t head(int fd, char *buf, size_t size)
{
	size_t got = 0;
	ssize_t n;

	while (got < size - 1 && (n = read(fd, buf + got, size - 1 - got)) > 0) {
		got += (size_t)n;
		buf[got] = 0;
		if (strstr(buf, "\r\n\r\n"))
			return got;
	}
	return 0;
}

static void answer(int fd)
{
	char buf[4096], out[256];

	while (head(fd, buf, sizeof(buf))) {
		int error = !strncmp(buf, "GET /error", 10);
		int n = snprintf(out, sizeof(out), "HTTP/1.1 %s\r\nContent-Length: 2\r\n\r\nok",
				 error ? "500 Internal Server Error" : "200 OK");

		if (write(fd, out, (size_t)n) != n)
			break;
	}
	close(fd);
}

static int serve(int port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, c;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&sin, sizeof(sin)) || listen(fd, 64))
		return 1;
	while ((c = accept(fd, NULL, NULL)) >= 0) {
		if (fork() == 0) {
			close(fd);
			answer(c);
			return 0;
		}
		close(c);
	}
	return 1;
}

static int ask(const char *host, int port, int n, const char *path)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };
	char out[512], buf[4096];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (inet_pton(AF_INET, host, &sin.sin_addr) != 1)
		return 2;
	for (int tries = 0; connect(fd, (struct sockaddr *)&sin, sizeof(sin)); tries++) {
		if (tries == 100)
			return 1;
		usleep(100000);
	}
	for (int i = 0; i < n; i++) {
		int len = snprintf(out, sizeof(out), "GET %s HTTP/1.1\r\nHost: shop\r\n\r\n", path);

		if (write(fd, out, (size_t)len) != len || !head(fd, buf, sizeof(buf)))
			return 1;
	}
	printf("%d answered\n", n);
	return 0;
}

int main(int argc, char **argv)
{
	signal(SIGCHLD, SIG_IGN);
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(atoi(argv[2]));
	if (argc == 6 && !strcmp(argv[1], "ask"))
		return ask(argv[2], atoi(argv[3]), atoi(argv[4]), argv[5]);
	return 2;
}
