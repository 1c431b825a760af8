/* SPDX-License-Identifier: Apache-2.0 */
/* msgpack — walking over a message in MessagePack that is spread over iovecs, without decoding it. */
#ifndef RS_EXPORT_MSGPACK_H
#define RS_EXPORT_MSGPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct rs_walk {
	const struct iovec *iov;
	int niov;
	size_t at; /* offset in all of it */
	bool bad;  /* it ended too early, or is no MessagePack */
};

/* The head of an array or a map: its number of elements (of pairs). */
bool rs_walk_array_head(struct rs_walk *m, uint32_t *ret_n);
bool rs_walk_map_head(struct rs_walk *m, uint32_t *ret_n);
/* A small unsigned integer. */
bool rs_walk_small(struct rs_walk *m, uint32_t *ret);
/* Over one value, whatever is in it. */
bool rs_walk_skip(struct rs_walk *m);
/* Copies the bytes [from, to) to out. */
void rs_walk_copy(const struct rs_walk *m, size_t from, size_t to, char *out);

#endif
