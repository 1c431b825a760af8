/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring — the reader's end of a BPF ring buffer (linux/bpf.h, BPF_MAP_TYPE_RINGBUF).
 *
 * Not libbpf's: that maps the data twice in a row, so that a record never wraps, and both count as this
 * process's memory; here the data is mapped once, and the rare record that wraps is copied. It also
 * stops after a number of records, which libbpf 1.1 cannot.
 */
#ifndef RS_KERNEL_RING_H
#define RS_KERNEL_RING_H

#include <stddef.h>
#include <stdint.h>

#include "shared/events.h"

struct rs_ring {
	unsigned long *consumer; /* ours: how far we have read; its own page */
	const unsigned long
		*producer; /* the kernel's: how far it has reserved; its page, then the data */
	const char *data;
	size_t size; /* of the data, a power of two */
	size_t page;
	_Alignas(8) char bounce[sizeof(struct rs_ev_data) + RS_CAP_MAX]; /* a record that wraps */
};

/* size: the map's max_entries. 0 or -errno. r stays where it is until the close. */
int rs_ring_open(struct rs_ring *r, int map_fd, size_t size);
/* Harmless on a zeroed struct. */
void rs_ring_close(struct rs_ring *r);

/*
 * How far the kernel has reserved, and how far we have read, in bytes since the beginning: all records that were begun before
 * the first was asked for have been read when the second is there.
 */
static inline uint64_t rs_ring_written(const struct rs_ring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
}
static inline uint64_t rs_ring_read_pos(const struct rs_ring *r)
{
	return *r->consumer;
}

/* rec is valid during the call; size: what was reserved for it. */
typedef void (*rs_ring_fn)(void *arg, const void *rec, size_t size);

#define RS_RING_AHEAD 4 /* records */

/* Gives up to `budget` records to fn, and each to `ahead` (NULL: nobody asks) while fn still works on the RS_RING_AHEAD
 * before it, but for one that wraps. Returns how many. */
size_t rs_ring_read(struct rs_ring *r, size_t budget, rs_ring_fn ahead, rs_ring_fn fn, void *arg);

#endif
