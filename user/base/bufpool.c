// SPDX-License-Identifier: Apache-2.0
#include "bufpool.h"

#include <errno.h>
#include <stdlib.h>

#define SCRATCH_CLASS 4
_Static_assert(RS_BUF_SCRATCH == 1u << (RS_BUF_MIN_SHIFT + SCRATCH_CLASS), "its class");

static size_t class_bytes(uint32_t cls)
{
	return (size_t)1 << (RS_BUF_MIN_SHIFT + cls);
}

/* The smallest class with room for that many bytes. */
static uint32_t class_of(size_t bytes)
{
	size_t n = bytes + sizeof(struct rs_buf) - 1;

	return n >> RS_BUF_MIN_SHIFT ? 64 - (uint32_t)__builtin_clzll(n) - RS_BUF_MIN_SHIFT : 0;
}

static void free_one(struct rs_bufpool *p, uint32_t cls)
{
	struct rs_buf *b = p->free[cls];

	p->free[cls] = b->next;
	p->nfree[cls]--;
	p->held -= class_bytes(cls);
	free(b);
}

static struct rs_buf *alloc(uint32_t cls)
{
	struct rs_buf *b = aligned_alloc(64, class_bytes(cls));

	if (b) {
		b->next = NULL;
		b->cls = cls;
		b->cap = class_bytes(cls) - sizeof(*b);
	}
	return b;
}

/* A new buffer; at the limit, free ones of other sizes make room. */
static int make(struct rs_bufpool *p, uint32_t cls, struct rs_buf **ret)
{
	size_t bytes = class_bytes(cls);
	struct rs_buf *b;

	for (uint32_t i = 0; i < RS_BUF_CLASSES; i++) {
		while (p->held + bytes > p->limit && p->free[i])
			free_one(p, i);
	}
	if (p->held + bytes > p->limit) {
		p->refused++;
		return -ENOBUFS;
	}
	b = alloc(cls);
	if (!b)
		return -ENOMEM;
	p->held += bytes;
	p->made++;
	*ret = b;
	return 0;
}

int rs_bufpool_get(struct rs_bufpool *p, size_t bytes, struct rs_buf **ret)
{
	struct rs_buf *b;
	uint32_t cls;
	int err;

	if (bytes > class_bytes(RS_BUF_CLASSES - 1) - sizeof(*b))
		return -EFBIG;
	cls = class_of(bytes);
	b = p->free[cls];
	if (b) {
		p->free[cls] = b->next;
		if (--p->nfree[cls] < p->low[cls])
			p->low[cls] = p->nfree[cls];
	} else {
		err = make(p, cls, &b);
		if (err)
			return err;
	}
	p->in_use += class_bytes(cls);
	if (p->in_use > p->high)
		p->high = p->in_use;
	*ret = b;
	return 0;
}

void rs_bufpool_put(struct rs_bufpool *p, struct rs_buf *b)
{
	p->in_use -= class_bytes(b->cls);
	b->next = p->free[b->cls];
	p->free[b->cls] = b;
	p->nfree[b->cls]++;
}

int rs_bufpool_init(struct rs_bufpool *p, size_t limit)
{
	*p = (struct rs_bufpool){ .limit = limit ? limit : SIZE_MAX / 2 };
	p->scratch = alloc(SCRATCH_CLASS);
	return p->scratch ? 0 : -ENOMEM;
}

void rs_bufpool_release(struct rs_bufpool *p)
{
	for (uint32_t i = 0; i < RS_BUF_CLASSES; i++) {
		while (p->free[i])
			free_one(p, i);
	}
	free(p->scratch);
	p->scratch = NULL;
}

void rs_bufpool_trim(struct rs_bufpool *p)
{
	for (uint32_t i = 0; i < RS_BUF_CLASSES; i++) {
		for (uint32_t n = p->low[i]; n && p->free[i]; n--)
			free_one(p, i);
		p->low[i] = p->nfree[i];
	}
}

void rs_bufpool_tick(struct rs_bufpool *p, uint64_t now_ns)
{
	if (now_ns < p->trim_ns)
		return;
	if (p->trim_ns)
		rs_bufpool_trim(p);
	p->trim_ns = now_ns + RS_BUFPOOL_QUIET_NS;
}

void rs_payload_release(struct rs_payload *pl)
{
	for (int i = 0; i < pl->niov; i++)
		rs_bufpool_put(pl->pool, pl->buf[i]);
	*pl = (struct rs_payload){ 0 };
}
