/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map — 64-bit key to pointer, open addressing with linear probing, bounded.
 *
 * Grows by doubling up to `max` entries, then refuses. Key 0 is valid. Does not own what it points to.
 * Deleting moves entries back (no tombstones), so lookups stay short for ever. Not thread-safe.
 */
#ifndef RS_BASE_MAP_H
#define RS_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct rs_map_slot {
	uint64_t key;
	void *val; /* NULL: free */
};

struct rs_map {
	struct rs_map_slot *slots;
	uint32_t cap; /* power of two, or 0 */
	uint32_t count;
	uint32_t max;
};

/* Allocates nothing before the first put. */
void rs_map_init(struct rs_map *m, uint32_t max);
void rs_map_release(struct rs_map *m);
/* NULL when there is none. */
void *rs_map_get(const struct rs_map *m, uint64_t key);
/* The memory of what rs_map_get() will be asked for comes nearer. */
void rs_map_ahead(const struct rs_map *m, uint64_t key);
/* val is not NULL. Replaces. 0, -ENOSPC at `max`, -ENOMEM. */
int rs_map_put(struct rs_map *m, uint64_t key, void *val);
/* Returns what was there, or NULL. */
void *rs_map_del(struct rs_map *m, uint64_t key);
/* Visits every entry; *pos starts at 0; returns NULL at the end. No put or del of another key meanwhile. */
void *rs_map_next(const struct rs_map *m, uint32_t *pos);

#endif
