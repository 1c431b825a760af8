// SPDX-License-Identifier: Apache-2.0
/*
 * node_load — a node's worth of processes: SERVERS processes that answer on a port each, CLIENTS that keep
 * CONNS connections open to them and ask RATE times a second in all, in turn on each connection, for SECONDS.
 * Prints "ready" when all connections stand, waits for a line, then asks; prints
 *   sent answered late seconds cpu_ns control_ns
 * and keeps the connections until its input ends, so that what asking cost can be looked at before what closing costs.
 * late: requests that could not be sent when they were due, because the connection still waited or the process
 * had no turn; they are sent later. cpu_ns: of all processes, while they asked.
 * control_ns: CPU time of a turn of a program that wakes as often as an agent and touches no memory. It always does the
 * same: what a turn costs more in one case than in another is interrupts and switches that are the others'.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull
#define S  1000000000ull
#define REQUEST                                                                                    \
	"GET /items/42?page=7 HTTP/1.1\r\nHost: localhost\r\nUser-Agent: load\r\nAccept: */*\r\n\r\n"
#define RESPONSE                                                                                   \
	"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 16\r\n\r\n0123456789abcde\n"

struct shared {
	atomic_ulong connected, sent, answered, late, cpu_ns, control_ns;
	atomic_int done; /* processes that have asked or answered all */
	atomic_bool go, over;
};

static struct shared *shared;
static int servers, clients, conns, rate, seconds, port;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * S + (uint64_t)ts.tv_nsec;
}

static uint64_t cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * S + (uint64_t)ts.tv_nsec;
}

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in address(int i)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)(port + i)),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static volatile sig_atomic_t ended;
static uint64_t cpu_before;

static void on_term(int signo)
{
	(void)signo;
	ended = 1;
}

/* All was asked or answered: the process keeps its connections until everybody has. */
static void finish(void)
{
	atomic_fetch_add(&shared->cpu_ns, cpu() - cpu_before);
	atomic_fetch_add(&shared->done, 1);
	while (!atomic_load(&shared->over))
		usleep(10000);
	exit(0);
}

static void server(int i)
{
	struct sockaddr_in sin = address(i);
	int lfd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), ep = epoll_create1(0), one = 1;
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = lfd }, got[64];
	char buf[4096];
	bool asked = false;

	setsockopt(lfd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(lfd, (struct sockaddr *)&sin, sizeof(sin)) || listen(lfd, 1024))
		die("listen");
	epoll_ctl(ep, EPOLL_CTL_ADD, lfd, &ev);
	while (!ended) {
		int n = epoll_wait(ep, got, 64, 1000);

		if (!asked && atomic_load(&shared->go)) {
			asked = true;
			cpu_before = cpu();
		}
		for (int k = 0; k < n; k++) {
			int fd = got[k].data.fd;
			ssize_t len;

			if (fd == lfd) {
				fd = accept4(lfd, NULL, NULL, SOCK_NONBLOCK);
				ev.data.fd = fd;
				if (fd >= 0)
					epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
				continue;
			}
			len = read(fd, buf, sizeof(buf));
			if (len == 0 || (len < 0 && errno != EAGAIN))
				close(fd);
			else if (len > 0 && write(fd, RESPONSE, sizeof(RESPONSE) - 1) < 0)
				close(fd);
		}
	}
	finish();
}

static int connect_to(int i)
{
	struct sockaddr_in sin = address(i);
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	for (int tries = 0; connect(fd, (struct sockaddr *)&sin, sizeof(sin)); tries++) {
		if (tries == 500)
			die("connect");
		usleep(10000);
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void client(int c)
{
	int n = conns / clients, ep = epoll_create1(0), next = 0;
	int *fds = calloc((size_t)n, sizeof(*fds));
	bool *busy = calloc((size_t)n, sizeof(*busy));
	uint64_t start, end, sent = 0, answered = 0, late = 0;
	struct epoll_event ev = { .events = EPOLLIN }, got[256];
	char buf[4096];

	for (int i = 0; i < n; i++) {
		fds[i] = connect_to((c * n + i) % servers);
		ev.data.u32 = (uint32_t)i;
		epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &ev);
		atomic_fetch_add(&shared->connected, 1);
	}
	while (!atomic_load(&shared->go))
		usleep(1000);
	start = now();
	end = start + (uint64_t)seconds * S;
	cpu_before = cpu();
	for (;;) {
		uint64_t t = now();
		uint64_t due = (t < end ? t - start : end - start) / 1000 * (uint64_t)rate /
			       (uint64_t)clients / 1000000;
		int m;

		for (int looked = 0; sent < due && looked < n; looked++) {
			int i = next;

			next = (next + 1) % n;
			if (busy[i])
				continue;
			if (write(fds[i], REQUEST, sizeof(REQUEST) - 1) != sizeof(REQUEST) - 1)
				die("write");
			busy[i] = true;
			sent++;
		}
		late += due - sent > 1;
		if (t >= end && answered == sent)
			break;
		if (t >= end + 10 * S)
			break;
		m = epoll_wait(ep, got, 256, 1);
		for (int k = 0; k < m; k++) {
			uint32_t i = got[k].data.u32;

			if (read(fds[i], buf, sizeof(buf)) <= 0)
				die("read");
			busy[i] = false;
			answered++;
		}
	}
	atomic_fetch_add(&shared->sent, sent);
	atomic_fetch_add(&shared->answered, answered);
	atomic_fetch_add(&shared->late, late);
	finish();
}

/* False: one that could not do its part ends all. */
static bool wait_done(int n)
{
	while (atomic_load(&shared->done) < n) {
		if (waitpid(-1, NULL, WNOHANG) > 0)
			return false;
		usleep(1000);
	}
	return true;
}

#define TURN_NS	   (20 * MS)
#define TURN_STEPS 500000 /* 0.8 ms: what 20,000 requests/s cost an agent in TURN_NS and some */
#define AGENT_NICE (-10)

/* Until all clients have asked for all. */
static _Noreturn void control(void)
{
	struct timespec pause = { 0, TURN_NS };
	uint64_t x = 1, turns = 0, begin;

	if (setpriority(PRIO_PROCESS, 0, AGENT_NICE))
		die("nice");
	while (!atomic_load(&shared->go))
		usleep(1000);
	begin = cpu();
	while (!turns || atomic_load(&shared->done) < clients) {
		nanosleep(&pause, NULL);
		for (int i = 0; i < TURN_STEPS; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		turns++;
	}
	atomic_store(&shared->control_ns, (cpu() - begin) / turns);
	while (!atomic_load(&shared->over))
		usleep(1000);
	_exit(x == 0); /* it never is; and the loop is not optimized away */
}

int main(int argc, char **argv)
{
	struct rlimit lim;
	uint64_t start;
	pid_t *pid;
	char c;

	if (argc != 7) {
		fprintf(stderr, "usage: node_load SERVERS CLIENTS CONNS RATE SECONDS PORT\n");
		return 2;
	}
	servers = atoi(argv[1]);
	clients = atoi(argv[2]);
	conns = atoi(argv[3]);
	rate = atoi(argv[4]);
	seconds = atoi(argv[5]);
	port = atoi(argv[6]);
	getrlimit(RLIMIT_NOFILE, &lim);
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	pid = calloc((size_t)(servers + clients), sizeof(*pid));
	if (shared == MAP_FAILED || !pid)
		die("memory");
	signal(SIGTERM, on_term);
	for (int i = 0; i < servers + clients; i++) {
		pid[i] = fork();
		if (pid[i] < 0)
			die("fork");
		if (pid[i] > 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (i < servers)
			server(i);
		client(i - servers);
	}
	while (atomic_load(&shared->connected) < (unsigned long)(conns / clients * clients)) {
		/* One that could not do its part ends all. */
		if (waitpid(-1, NULL, WNOHANG) > 0)
			return 1;
		usleep(10000);
	}
	switch (fork()) {
	case -1:
		die("fork");
	case 0:
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		control();
	}
	puts("ready");
	fflush(stdout);
	if (read(STDIN_FILENO, &c, 1) < 0)
		die("read");
	start = now();
	atomic_store(&shared->go, true);
	if (!wait_done(clients))
		return 1;
	start = now() - start;
	while (!atomic_load(&shared->control_ns))
		usleep(1000);
	for (int i = 0; i < servers; i++)
		kill(pid[i], SIGTERM);
	if (!wait_done(clients + servers))
		return 1;
	printf("%lu %lu %lu %.3f %lu %lu\n", atomic_load(&shared->sent),
	       atomic_load(&shared->answered), atomic_load(&shared->late), (double)start / 1e9,
	       atomic_load(&shared->cpu_ns), atomic_load(&shared->control_ns));
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	atomic_store(&shared->over, true);
	while (wait(NULL) > 0)
		;
	return 0;
}
