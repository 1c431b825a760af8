// SPDX-License-Identifier: Apache-2.0
#include "compress.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#define GZIP_LEVEL 1 /* spans compress well at any level: time counts */
#define GZIP_BITS  (15 + 16)
#define GZIP_HEAD  32
#define ZSTD_LEVEL 1

const char *rs_compression_name(enum rs_compression c)
{
	static const char *const name[] = { NULL, "gzip", "zstd" };

	return name[c];
}

static int gzip(struct rs_zip *zip, const struct iovec *iov, int niov, struct rs_buf *to,
		size_t *ret_len)
{
	z_stream *z = zip->gzip;
	int rc = Z_OK;

	if (!z) {
		z = calloc(1, sizeof(*z));
		if (!z)
			return -ENOMEM;
		if (deflateInit2(z, GZIP_LEVEL, Z_DEFLATED, GZIP_BITS, 8, Z_DEFAULT_STRATEGY) !=
		    Z_OK) {
			free(z);
			return -ENOMEM;
		}
		zip->gzip = z;
	}
	deflateReset(z);
	z->next_out = (Bytef *)to->data;
	z->avail_out = (uInt)to->cap;
	for (int i = 0; i < niov && (rc == Z_OK || rc == Z_BUF_ERROR); i++) {
		z->next_in = iov[i].iov_base;
		z->avail_in = (uInt)iov[i].iov_len;
		rc = deflate(z, i == niov - 1 ? Z_FINISH : Z_NO_FLUSH);
	}
	*ret_len = z->total_out;
	return rc == Z_STREAM_END ? 0 : -EFBIG;
}

static int zstd(struct rs_zip *zip, const struct iovec *iov, int niov, struct rs_buf *to,
		size_t *ret_len)
{
	ZSTD_outBuffer out = { to->data, to->cap, 0 };
	size_t rc = 0;

	if (!zip->zstd)
		zip->zstd = ZSTD_createCCtx();
	if (!zip->zstd)
		return -ENOMEM;
	ZSTD_CCtx_reset(zip->zstd, ZSTD_reset_session_only);
	ZSTD_CCtx_setParameter(zip->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	for (int i = 0; i < niov; i++) {
		ZSTD_inBuffer in = { iov[i].iov_base, iov[i].iov_len, 0 };

		rc = ZSTD_compressStream2(zip->zstd, &out, &in,
					  i == niov - 1 ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(rc) || in.pos < in.size)
			return -EFBIG;
	}
	*ret_len = out.pos;
	return rc ? -EFBIG : 0;
}

int rs_compress(struct rs_zip *z, enum rs_compression how, struct rs_bufpool *pool,
		const struct iovec *iov, int niov, struct rs_payload *out)
{
	size_t len = 0, got = 0, bound;
	struct rs_buf *to;
	int rc;

	for (int i = 0; i < niov; i++)
		len += iov[i].iov_len;
	bound = how == RS_COMPRESS_GZIP ? compressBound(len) + GZIP_HEAD : ZSTD_compressBound(len);
	rc = rs_bufpool_get(pool, bound, &to);
	if (rc)
		return rc;
	rc = how == RS_COMPRESS_GZIP ? gzip(z, iov, niov, to, &got) : zstd(z, iov, niov, to, &got);
	if (rc) {
		rs_bufpool_put(pool, to);
		return rc;
	}
	*out = (struct rs_payload){ .pool = pool, .niov = 1, .len = got };
	out->buf[0] = to;
	out->iov[0] = (struct iovec){ to->data, got };
	return 0;
}

void rs_zip_release(struct rs_zip *z)
{
	if (z->gzip)
		deflateEnd(z->gzip);
	free(z->gzip);
	ZSTD_freeCCtx(z->zstd);
	*z = (struct rs_zip){ 0 };
}
