// SPDX-License-Identifier: Apache-2.0
#include "out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "text.h"

#define POOL_BYTES (64u << 20)

static void unknown_format(const char *format, char *err, size_t err_len)
{
	const char *name;
	size_t n = 0;
	int w = snprintf(err, err_len, "unknown format '%s'; it is one of text", format);

	for (size_t i = 0; w > 0 && (name = rs_encoder_name(i)); i++) {
		n += (size_t)w;
		if (n >= err_len)
			return;
		w = snprintf(err + n, err_len - n, ", %s", name);
	}
}

/* The encoder, or the text writer when format is "text". Needs o->fd. */
static int open_format(struct rs_out *o, const char *format, enum rs_color color, char *err,
		       size_t err_len)
{
	int rc;

	if (!strcmp(format, "text")) {
		o->text = rs_text_new(&(struct rs_text_opts){
			.fd = o->fd,
			.color = rs_term_color(o->fd, color),
			.width = rs_term_width(o->fd),
			.header = isatty(o->fd),
		});
		rc = o->text ? 0 : -ENOMEM;
	} else {
		rc = rs_encoder_new(format, &o->pool, NULL, &o->enc);
		if (!rc)
			o->lines = strcmp(o->enc->ops->suffix, "json") == 0;
	}
	if (rc == -ENOENT)
		unknown_format(format, err, err_len);
	else if (rc)
		snprintf(err, err_len, "format '%s': %s", format, strerror(-rc));
	return rc;
}

static bool known_format(const char *format)
{
	const char *name;

	for (size_t i = 0; (name = rs_encoder_name(i)); i++) {
		if (!strcmp(name, format))
			return true;
	}
	return !strcmp(format, "text");
}

int rs_out_path(const char *path, int flags, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags, mode);

	if (fd < 0)
		return errno == ENXIO ? -EPIPE : -errno;
	if (fcntl(fd, F_SETFL, flags & O_APPEND)) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

int rs_out_open(struct rs_out *o, const char *format, const char *path, bool append,
		enum rs_color color, struct rs_counters *n, char *err, size_t err_len)
{
	int rc;

	*o = (struct rs_out){ .fd = STDOUT_FILENO, .n = n };
	/* A wrong word must not empty a file. */
	if (!known_format(format)) {
		unknown_format(format, err, err_len);
		return -ENOENT;
	}
	rc = rs_bufpool_init(&o->pool, POOL_BYTES);
	if (rc) {
		snprintf(err, err_len, "out of memory");
		return rc;
	}
	if (path && strcmp(path, "-")) {
		o->fd = rs_out_path(path, append ? O_APPEND : O_TRUNC, 0644);
		if (o->fd < 0) {
			rc = o->fd;
			snprintf(err, err_len, "cannot write %s: %s", path, strerror(-rc));
			o->fd = STDOUT_FILENO;
			rs_out_close(o);
			return rc == -ENOENT ? -ENOTDIR : rc;
		}
		o->own_fd = true;
	}
	rc = open_format(o, format, color, err, err_len);
	if (rc)
		rs_out_close(o);
	return rc;
}

static int write_all(int fd, struct iovec *iov, int n)
{
	while (n) {
		ssize_t r = writev(fd, iov, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		while (n && (size_t)r >= iov->iov_len) {
			r -= (ssize_t)iov->iov_len;
			iov++;
			n--;
		}
		if (n) {
			iov->iov_base = (char *)iov->iov_base + r;
			iov->iov_len -= (size_t)r;
		}
	}
	return 0;
}

static void note(struct rs_out *o, uint64_t spans, int rc)
{
	if (rc) {
		o->err = rc;
		o->last_err_ns = rs_clock_mono();
		o->failed += spans;
		o->n->v[RS_C_EXPORT_FAILED] += spans;
	} else {
		o->last_ok_ns = rs_clock_mono();
		o->sent += spans;
		o->n->v[RS_C_EXPORT_SENT] += spans;
	}
}

static int encode_batch(struct rs_out *o, const struct rs_batch *b)
{
	struct rs_encode run = { .batch = b };
	uint32_t before = 0;
	int rc;

	while (!(rc = rs_encode(o->enc, &run)) && run.out.niov) {
		struct iovec iov[RS_PAYLOAD_BUFS + 1];
		int n = run.out.niov;

		memcpy(iov, run.out.iov, sizeof(run.out.iov[0]) * (size_t)n);
		if (o->lines)
			iov[n++] = (struct iovec){ (void *)"\n", 1 };
		rc = write_all(o->fd, iov, n);
		rs_payload_release(&run.out);
		note(o, run.spans - before, rc);
		before = run.spans;
		if (rc)
			break;
	}
	for (int i = 0; i < RS_SKIP_COUNT; i++) {
		o->n->v[RS_C_EXPORT_ENCODE] += run.skipped[i];
		before += run.skipped[i];
	}
	/* What a failed write or a lack of memory left behind. */
	if (rc && before < b->nspans)
		note(o, b->nspans - before, rc);
	return rc;
}

int rs_out_batch(struct rs_out *o, const struct rs_batch *b)
{
	int rc;

	if (!o->text)
		return encode_batch(o, b);
	rc = rs_text_batch(o->text, b, rs_clock_mono());
	note(o, b->nspans, rc);
	return rc;
}

int rs_out_tick(struct rs_out *o, uint64_t now_ns)
{
	rs_bufpool_tick(&o->pool, now_ns);
	return o->text ? rs_text_tick(o->text, now_ns) : 0;
}

int rs_out_flush(struct rs_out *o)
{
	return o->text ? rs_text_flush(o->text) : 0;
}

int rs_out_close(struct rs_out *o)
{
	int rc = rs_out_flush(o);

	rs_text_free(o->text);
	rs_encoder_free(o->enc);
	if (o->pool.scratch)
		rs_bufpool_release(&o->pool);
	if (o->own_fd && close(o->fd))
		rc = -errno;
	*o = (struct rs_out){ .fd = -1 };
	return rc;
}
