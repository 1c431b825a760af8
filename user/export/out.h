/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out — spans to a file descriptor: encoded, one payload after the other. The exporters `stdout` and
 * `file`, the output of `trace` and of `replay`.
 *
 * JSON payloads end in a newline, so that a file is JSON lines (OTLP file exporter's form). Writes are
 * made at once and may block as long as the descriptor does; a batch that could not be written whole is
 * counted as failed and not tried again, since part of it may be there. Not thread-safe.
 */
#ifndef RS_EXPORT_OUT_H
#define RS_EXPORT_OUT_H

#include <sys/types.h>

#include "base/counters.h"
#include "base/term.h"
#include "encoder.h"
#include "trace/span.h"

struct rs_text;

struct rs_out {
	int fd;
	bool own_fd;
	bool lines; /* a newline after each payload */
	struct rs_bufpool pool;
	struct rs_encoder *enc; /* NULL: text */
	struct rs_text *text;
	struct rs_counters *n;

	/* For status. Times: CLOCK_MONOTONIC, 0: never. */
	uint64_t sent, failed;
	uint64_t last_ok_ns, last_err_ns;
	int err; /* of the last failure, negative errno */
};

/* format: "text" or an encoder's name. path NULL or "-": standard output; else the file is appended to
 * (append) or written anew. 0, or -errno with a line in err; -ENOENT is an unknown format. */
int rs_out_open(struct rs_out *o, const char *format, const char *path, bool append,
		enum rs_color color, struct rs_counters *n, char *err, size_t err_len);

/* Opens for writing what may not be there yet; flags are O_APPEND or O_TRUNC. A named pipe that nobody reads is -EPIPE: while
 * we waited for a reader no signal would end us, as the loop has them blocked. A descriptor, or -errno. */
int rs_out_path(const char *path, int flags, mode_t mode);

/* Writes the batch. 0 or -errno (also in o->err). */
int rs_out_batch(struct rs_out *o, const struct rs_batch *b);

/* Time passes: prints what text output holds back, frees buffers long unused. 0 or -errno. */
int rs_out_tick(struct rs_out *o, uint64_t now_ns);

/* Prints what is held back, without waiting for more. 0 or -errno. */
int rs_out_flush(struct rs_out *o);

/* Prints what is held back, closes. 0 or -errno of that. Harmless on a zeroed struct. */
int rs_out_close(struct rs_out *o);

#endif
