// SPDX-License-Identifier: Apache-2.0
/*
 * uring: a connection to itself over which one thread sends and receives by io_uring and by system
 * calls. Says "PORT" of the client's end, waits for a line, works, and exits with 0; 77 when io_uring
 * is not to be had. Driven by check_capture.py.
 */
#include <arpa/inet.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ring {
	int fd;
	struct io_uring_params p;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int setup(struct ring *r)
{
	memset(r, 0, sizeof(*r));
	r->fd = (int)syscall(SYS_io_uring_setup, 8, &r->p);
	if (r->fd < 0)
		return -1;
	r->sq = mmap(NULL, r->p.sq_off.array + r->p.sq_entries * sizeof(unsigned),
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQ_RING);
	r->cq = mmap(NULL, r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe),
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_CQ_RING);
	r->sqes = mmap(NULL, r->p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
	return r->sq == MAP_FAILED || r->cq == MAP_FAILED || r->sqes == MAP_FAILED ? -1 : 0;
}

static void submit(struct ring *r, unsigned char op, int fd, void *buf, unsigned len)
{
	unsigned *tail = (void *)(r->sq + r->p.sq_off.tail);
	unsigned mask = *(unsigned *)(r->sq + r->p.sq_off.ring_mask), at = *tail & mask;

	memset(&r->sqes[at], 0, sizeof(r->sqes[at]));
	r->sqes[at].opcode = op;
	r->sqes[at].fd = fd;
	r->sqes[at].addr = (uintptr_t)buf;
	r->sqes[at].len = len;
	((unsigned *)(r->sq + r->p.sq_off.array))[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, r->fd, 1, 0, 0, NULL, 0) != 1)
		die("io_uring_enter");
}

static int complete(struct ring *r)
{
	unsigned *head = (void *)(r->cq + r->p.cq_off.head),
		 *tail = (void *)(r->cq + r->p.cq_off.tail);
	unsigned mask = *(unsigned *)(r->cq + r->p.cq_off.ring_mask);
	int res;

	while (__atomic_load_n(tail, __ATOMIC_ACQUIRE) == *head) {
		if (syscall(SYS_io_uring_enter, r->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
			die("io_uring_enter");
	}
	res = ((struct io_uring_cqe *)(r->cq + r->p.cq_off.cqes))[*head & mask].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return res;
}

static void connect_pair(int *client, int *server)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	*client = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(l, (void *)&a, len) || listen(l, 1) || getsockname(l, (void *)&a, &len) ||
	    connect(*client, (void *)&a, len))
		die("connect");
	*server = accept(l, NULL, NULL);
	close(l);
	if (getsockname(*client, (void *)&a, &len))
		die("getsockname");
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
}

int main(void)
{
	static char req[] = "GET /uring HTTP/1.1\r\nHost: localhost\r\n\r\n";
	static char rsp[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	char in[4096], line[16];
	int client, server;
	struct ring r;

	if (setup(&r))
		return 77;
	connect_pair(&client, &server);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	/* sent by io_uring, read by a system call */
	submit(&r, IORING_OP_SEND, client, req, sizeof(req) - 1);
	if (complete(&r) != sizeof(req) - 1 || read(server, in, sizeof(in)) != sizeof(req) - 1)
		return 1;
	/* a receive that waits, and completes in the write of the answer: not with the write's buffer */
	submit(&r, IORING_OP_RECV, client, in, sizeof(in));
	if (write(server, rsp, sizeof(rsp) - 1) != sizeof(rsp) - 1 ||
	    complete(&r) != sizeof(rsp) - 1)
		return 1;
	/* system calls of a thread that has a ring */
	if (write(client, req, sizeof(req) - 1) != sizeof(req) - 1 ||
	    read(server, in, sizeof(in)) != sizeof(req) - 1)
		return 1;
	return 0;
}
