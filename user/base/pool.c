// SPDX-License-Identifier: Apache-2.0
#include "pool.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "asan.h"

#if RS_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)	  ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define LINE	   64 /* objects do not share cache lines, unless they are smaller */
#define SLAB_BYTES 65536
/* A pool that has become large grows by huge pages: its objects are all over them, and each small page would be a
 * place of its own for the processor to remember, which it cannot. */
#define HUGE_BYTES (2u << 20)
#define LARGE	   (HUGE_BYTES / 2)

struct slab {
	struct slab *next;
	size_t bytes; /* of data */
	_Alignas(LINE) char data[];
};

void rs_pool_init(struct rs_pool *p, size_t size, uint32_t max)
{
	if (size < sizeof(struct rs_pool_free))
		size = sizeof(struct rs_pool_free);
	size = size < LINE ? (size + 15) & ~(size_t)15 : (size + LINE - 1) & ~(size_t)(LINE - 1);
	*p = (struct rs_pool){ .size = size, .max = max };
}

void rs_pool_release(struct rs_pool *p)
{
	struct slab *s = p->slabs;

	while (s) {
		struct slab *next = s->next;

		ASAN_UNPOISON_MEMORY_REGION(s->data, s->bytes);
		free(s);
		s = next;
	}
	rs_pool_init(p, p->size, p->max);
}

static int grow(struct rs_pool *p)
{
	bool large = p->made * p->size >= LARGE && (p->max - p->made) * p->size >= LARGE;
	size_t bytes = large ? HUGE_BYTES : SLAB_BYTES;
	size_t n = (bytes - sizeof(struct slab)) / p->size;
	struct slab *s;

	if (n < 1)
		n = 1;
	if (n > p->max - p->made)
		n = p->max - p->made;
	if (!n)
		return -1;
	if (!large)
		bytes = (sizeof(*s) + n * p->size + LINE - 1) & ~(size_t)(LINE - 1);
	s = aligned_alloc(large ? HUGE_BYTES : LINE, bytes);
	if (!s)
		return -1;
	if (large)
		(void)madvise(s, bytes, MADV_HUGEPAGE);
	s->next = p->slabs;
	s->bytes = n * p->size;
	p->slabs = s;
	p->made += (uint32_t)n;
	p->fresh = s->data;
	p->fresh_end = s->data + s->bytes;
	ASAN_POISON_MEMORY_REGION(s->data, s->bytes);
	return 0;
}

void *rs_pool_get(struct rs_pool *p)
{
	struct rs_pool_free *f = p->free;

	if (f) {
		ASAN_UNPOISON_MEMORY_REGION(f, p->size);
		p->free = f->next;
	} else {
		if (p->fresh == p->fresh_end && grow(p))
			return NULL;
		f = (void *)p->fresh;
		p->fresh += p->size;
		ASAN_UNPOISON_MEMORY_REGION(f, p->size);
	}
	if (++p->in_use > p->high)
		p->high = p->in_use;
	return f;
}

void rs_pool_put(struct rs_pool *p, void *obj)
{
	struct rs_pool_free *f = obj;

	if (!f)
		return;
	f->next = p->free;
	p->free = f;
	p->in_use--;
	ASAN_POISON_MEMORY_REGION(f, p->size);
}
