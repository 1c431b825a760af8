// SPDX-License-Identifier: Apache-2.0
#include "tev.h"

#include <errno.h>
#include <string.h>

#include "record.h"

#define RECORD_MAX (sizeof(struct rs_ev_data) + RS_CAP_MAX)

int rs_tev_write_header(FILE *f, int64_t wall_offset)
{
	const struct rs_tev_hdr h = {
		.magic = RS_TEV_MAGIC,
		.abi = RS_ABI,
		.hdr_len = sizeof(h),
		.wall_offset = wall_offset,
	};

	return fwrite(&h, sizeof(h), 1, f) == 1 ? 0 : -errno;
}

static size_t padded(size_t len)
{
	return (len + 7) & ~(size_t)7;
}

int rs_tev_write(FILE *f, const struct rs_ev_hdr *ev)
{
	static const char zeros[8];
	size_t pad = padded(ev->len) - ev->len;

	errno = EIO;
	if (fwrite(ev, ev->len, 1, f) != 1 || (pad && fwrite(zeros, pad, 1, f) != 1))
		return -errno;
	return 0;
}

static int read_header(FILE *f, struct rs_tev_hdr *h, char *err, size_t err_len)
{
	char skip[64];

	if (fread(h, sizeof(*h), 1, f) != 1 || h->magic != RS_TEV_MAGIC) {
		snprintf(err, err_len, "not a ringspan recording of this machine's byte order");
		return -EBADMSG;
	}
	if (h->abi != RS_ABI) {
		snprintf(err, err_len,
			 "recorded with record format %u; this ringspan reads format %d", h->abi,
			 RS_ABI);
		return -EPROTONOSUPPORT;
	}
	if (h->hdr_len < sizeof(*h) || h->hdr_len > sizeof(*h) + sizeof(skip) ||
	    (h->hdr_len > sizeof(*h) && fread(skip, h->hdr_len - sizeof(*h), 1, f) != 1)) {
		snprintf(err, err_len, "header of impossible length %u", h->hdr_len);
		return -EBADMSG;
	}
	return 0;
}

int rs_tev_read(FILE *f, int64_t *ret_wall_offset, rs_record_fn fn, void *arg, char *err,
		size_t err_len)
{
	_Alignas(8) char buf[RECORD_MAX + 8];
	struct rs_ev_hdr *ev = (void *)buf;
	struct rs_tev_hdr h;
	unsigned long long at;
	int rc = read_header(f, &h, err, err_len);

	if (rc)
		return rc;
	*ret_wall_offset = h.wall_offset;
	for (at = h.hdr_len;; at += padded(ev->len)) {
		size_t got = fread(ev, 1, sizeof(*ev), f);

		if (got == 0 && feof(f))
			return 0;
		if (got != sizeof(*ev) || ev->len < sizeof(*ev) || ev->len > RECORD_MAX) {
			snprintf(err, err_len, "byte %llu: %s", at,
				 got != sizeof(*ev) ? "the file ends within a record"
						    : "record of impossible length");
			return -EBADMSG;
		}
		if (padded(ev->len) > sizeof(*ev) &&
		    fread(buf + sizeof(*ev), padded(ev->len) - sizeof(*ev), 1, f) != 1) {
			snprintf(err, err_len, "byte %llu: the file ends within a record", at);
			return -EBADMSG;
		}
		if (!rs_record_valid(ev, ev->len)) {
			snprintf(err, err_len, "byte %llu: record of type %u contradicts itself",
				 at, ev->type);
			return -EBADMSG;
		}
		if (fn(arg, ev))
			return -ECANCELED;
	}
}
