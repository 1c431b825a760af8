// SPDX-License-Identifier: Apache-2.0
/*
 * OTLP JSON lines on standard output.
 *
 * The descriptor is shared with whoever started us, so it is not made non-blocking. A pipe that poll()
 * calls writable takes PIPE_BUF bytes at once: no more is written at a time, and a reader that has
 * stopped reading stops nobody.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/exporter.h"

struct out {
	bool regular; /* a file: never blocks for long */
};

static int open_stdout(struct rs_exporter *e, char *err, size_t size)
{
	struct out *o = e->state;
	struct stat st;

	if (fstat(STDOUT_FILENO, &st)) {
		snprintf(err, size, "exporter stdout: standard output is closed");
		return -EBADF;
	}
	o->regular = S_ISREG(st.st_mode);
	e->target = "-";
	snprintf(e->protocol, sizeof(e->protocol), "OTLP JSON lines");
	return 0;
}

static void close_stdout(struct rs_exporter *e)
{
	rs_loop_del(e->loop, &e->writable);
}

static void on_writable(void *arg, uint32_t events)
{
	struct rs_exporter *e = arg;

	(void)events;
	rs_loop_del(e->loop, &e->writable);
	rs_exporter_tick(e, 0);
}

static bool can_write(void)
{
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return poll(&p, 1, 0) == 1;
}

/* The bytes from it->at on, up to the end of their iovec or the final newline. */
static struct str piece(const struct rs_item *it)
{
	size_t at = it->at;

	for (int i = 0; i < it->data.niov; i++) {
		if (at < it->data.iov[i].iov_len)
			return str_of((const char *)it->data.iov[i].iov_base + at,
				      it->data.iov[i].iov_len - at);
		at -= it->data.iov[i].iov_len;
	}
	return STR("\n");
}

static void write_stdout(struct rs_exporter *e, struct rs_item *it, struct rs_verdict *v)
{
	struct out *o = e->state;

	while (it->at <= it->data.len) {
		struct str s = piece(it);
		ssize_t n;

		if (!o->regular && !can_write()) {
			v->kind = RS_V_LATER;
			/* If it cannot be watched the tick tries again. */
			if (e->writable.fd < 0)
				(void)rs_loop_add(e->loop, &e->writable, STDOUT_FILENO, EPOLLOUT,
						  on_writable, e);
			return;
		}
		n = write(STDOUT_FILENO, s.ptr, o->regular || s.len < PIPE_BUF ? s.len : PIPE_BUF);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			/* A reader that is gone does not come back; a full disk may have room later. */
			v->kind = errno == EPIPE ? RS_V_DROP : RS_V_RETRY;
			v->loss = RS_LOSS_GAVE_UP;
			snprintf(v->why, sizeof(v->why), "cannot write: %s", strerror(errno));
			return;
		}
		it->at += (size_t)n;
	}
	v->kind = RS_V_DONE;
}

const struct rs_exporter_ops rs_exporter_stdout = {
	.name = "stdout",
	.encoder = { "otlp-json" },
	.state_size = sizeof(struct out),
	.open = open_stdout,
	.close = close_stdout,
	.write = write_stdout,
};
