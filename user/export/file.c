// SPDX-License-Identifier: Apache-2.0
/*
 * OTLP JSON lines in a file (the OTLP file exporter's form), rotated by size: FILE, FILE.1 (newest), FILE.2, …
 *
 * A message that could not be written whole is taken back and tried again later, so that lines stay
 * lines. A file that somebody else has moved away (logrotate) is made anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/exporter.h"
#include "export/out.h"

struct file {
	int fd;
	uint64_t size;
	dev_t dev;
	ino_t ino;
	bool regular;
	uint64_t looked_ns;
};

#define LOOK_NS 1000000000ull

static int open_path(struct rs_exporter *e)
{
	struct file *f = e->state;
	struct stat st;

	f->fd = rs_out_path(e->target, O_APPEND, 0640);
	if (f->fd < 0)
		return f->fd;
	if (fstat(f->fd, &st))
		return -errno;
	f->size = (uint64_t)st.st_size;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->regular = S_ISREG(st.st_mode);
	return 0;
}

static int open_file(struct rs_exporter *e, char *err, size_t size)
{
	struct file *f = e->state;
	int rc;

	f->fd = -1;
	e->target = e->asked ? e->asked : e->cfg->file;
	if (!e->target) {
		snprintf(err, size, "exporter file: where to? give --file FILE");
		return -EINVAL;
	}
	snprintf(e->protocol, sizeof(e->protocol), "OTLP JSON lines");
	rc = open_path(e);
	if (rc)
		snprintf(err, size, "cannot write %s: %s", e->target, strerror(-rc));
	return rc;
}

static void close_file(struct rs_exporter *e)
{
	struct file *f = e->state;

	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

/* FILE.n-1 becomes FILE.n, …, FILE becomes FILE.1. */
static int rotate(struct rs_exporter *e)
{
	uint64_t keep = e->cfg->file_count;
	char from[4096], to[4096];

	for (uint64_t i = keep; i > 0; i--) {
		if (i == 1)
			snprintf(from, sizeof(from), "%s", e->target);
		else
			snprintf(from, sizeof(from), "%s.%llu", e->target,
				 (unsigned long long)(i - 1));
		snprintf(to, sizeof(to), "%s.%llu", e->target, (unsigned long long)i);
		if (rename(from, to) && errno != ENOENT)
			return -errno;
	}
	if (!keep && unlink(e->target) && errno != ENOENT)
		return -errno;
	close_file(e);
	return open_path(e);
}

static int look_whether_moved(struct rs_exporter *e, uint64_t now_ns)
{
	struct file *f = e->state;
	struct stat st;

	if (f->fd >= 0 && (!f->regular || now_ns - f->looked_ns < LOOK_NS))
		return 0;
	f->looked_ns = now_ns;
	if (f->fd >= 0 && stat(e->target, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)
		return 0;
	close_file(e);
	return open_path(e);
}

static int write_line(struct file *f, const struct rs_payload *pl)
{
	struct iovec iov[RS_PAYLOAD_BUFS + 1];
	struct iovec *at = iov;
	int n = pl->niov;

	memcpy(iov, pl->iov, sizeof(iov[0]) * (size_t)n);
	iov[n++] = (struct iovec){ (void *)"\n", 1 };
	while (n) {
		ssize_t r = writev(f->fd, at, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		while (n && (size_t)r >= at->iov_len) {
			r -= (ssize_t)at->iov_len;
			at++;
			n--;
		}
		if (n) {
			at->iov_base = (char *)at->iov_base + r;
			at->iov_len -= (size_t)r;
		}
	}
	f->size += pl->len + 1;
	return 0;
}

static void write_file(struct rs_exporter *e, struct rs_item *it, struct rs_verdict *v)
{
	struct file *f = e->state;
	int rc = look_whether_moved(e, it->queued_ns);

	if (!rc && f->regular && e->cfg->file_max_bytes && f->size &&
	    f->size + it->data.len + 1 > e->cfg->file_max_bytes)
		rc = rotate(e);
	if (!rc)
		rc = write_line(f, &it->data);
	if (!rc) {
		v->kind = RS_V_DONE;
		return;
	}
	/* Half a line must not stay. */
	if (f->fd >= 0 && f->regular && ftruncate(f->fd, (off_t)f->size))
		errno = 0;
	v->kind = RS_V_RETRY;
	snprintf(v->why, sizeof(v->why), "cannot write %s: %s", e->target, strerror(-rc));
}

const struct rs_exporter_ops rs_exporter_file = {
	.name = "file",
	.encoder = { "otlp-json" },
	.state_size = sizeof(struct file),
	.open = open_file,
	.close = close_file,
	.write = write_file,
};
