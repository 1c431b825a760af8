/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tev — recordings: the ring's records in a file, as they were.
 *
 * A header (struct rs_tev_hdr), then records (shared/events.h), each h.len bytes and zeros up to the
 * next multiple of eight. All in the recording machine's byte order: a file of another one, or of
 * another ABI number, is refused by name.
 */
#ifndef RS_SOURCE_TEV_H
#define RS_SOURCE_TEV_H

#include <stdint.h>
#include <stdio.h>

#include "shared/events.h"

#define RS_TEV_MAGIC                                                                               \
	0x0a0d1a5645545352ull /* "RSTEV", ^Z, CR, LF: text-mode transfers break it visibly */

struct rs_tev_hdr {
	uint64_t magic;
	uint32_t abi;	     /* RS_ABI */
	uint32_t hdr_len;    /* bytes of this header; records follow */
	int64_t wall_offset; /* ns to add to records' CLOCK_MONOTONIC to get the wall time */
};

/* A recording begins with its header, then record by record. 0 or -errno. */
int rs_tev_write_header(FILE *f, int64_t wall_offset);
int rs_tev_write(FILE *f, const struct rs_ev_hdr *ev);

/* Calls fn for each record. 0 at the end of the file; -errno with a line of text in err (len bytes), what
 * was read before it having been given to fn. -ECANCELED when fn returned nonzero. */
typedef int (*rs_record_fn)(void *arg, const struct rs_ev_hdr *ev);
int rs_tev_read(FILE *f, int64_t *ret_wall_offset, rs_record_fn fn, void *arg, char *err,
		size_t err_len);

#endif
