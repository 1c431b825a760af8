/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool — objects of one size, reused last in first out, bounded.
 *
 * Memory comes in slabs, of huge pages when there are many objects, and stays until rs_pool_release(). Objects are not zeroed by the pool.
 * Under AddressSanitizer freed objects are poisoned. Not thread-safe.
 */
#ifndef RS_BASE_POOL_H
#define RS_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

struct rs_pool_free {
	struct rs_pool_free *next;
};

struct rs_pool {
	struct rs_pool_free *free;
	void *slabs;
	char *fresh, *fresh_end; /* of the newest slab, what was never used */
	size_t size;		 /* of an object, rounded up */
	uint32_t max;		 /* objects at most */
	uint32_t in_use;
	uint32_t high; /* most ever in use */
	uint32_t made; /* objects that have memory */
};

/* size: of an object; max: how many may be in use at once. Allocates nothing yet. */
void rs_pool_init(struct rs_pool *p, size_t size, uint32_t max);
/* Frees all memory; objects still in use die too. */
void rs_pool_release(struct rs_pool *p);
/* NULL when `max` are in use or memory is out. Contents are undefined. */
void *rs_pool_get(struct rs_pool *p);
/* obj came from this pool, or is NULL. */
void rs_pool_put(struct rs_pool *p, void *obj);

#endif
