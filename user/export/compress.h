/* SPDX-License-Identifier: Apache-2.0 */
/* compress — bodies in gzip or zstd, into one pooled buffer. State is kept between messages. */
#ifndef RS_EXPORT_COMPRESS_H
#define RS_EXPORT_COMPRESS_H

#include "base/bufpool.h"

/* The values of option --compression. */
enum rs_compression {
	RS_COMPRESS_NONE,
	RS_COMPRESS_GZIP,
	RS_COMPRESS_ZSTD,
};

struct rs_zip {
	void *gzip; /* z_stream */
	void *zstd; /* ZSTD_CCtx */
};

/* "gzip"… NULL for none: the name in Content-Encoding. */
const char *rs_compression_name(enum rs_compression c);
/* out is empty before. 0, -ENOMEM, or what the pool says. */
int rs_compress(struct rs_zip *z, enum rs_compression how, struct rs_bufpool *pool,
		const struct iovec *iov, int niov, struct rs_payload *out);
void rs_zip_release(struct rs_zip *z);

#endif
