// SPDX-License-Identifier: Apache-2.0
#include "ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Space is given back to the kernel after so many records: each time costs a cache line. */
#define GIVE_BACK 64

int rs_ring_open(struct rs_ring *r, int map_fd, size_t size)
{
	void *p;

	*r = (struct rs_ring){ .size = size, .page = (size_t)sysconf(_SC_PAGESIZE) };
	p = mmap(NULL, r->page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	r->consumer = p;
	p = mmap(NULL, r->page + size, PROT_READ, MAP_SHARED, map_fd, (off_t)r->page);
	if (p == MAP_FAILED) {
		int err = -errno;

		rs_ring_close(r);
		return err;
	}
	r->producer = p;
	r->data = (const char *)p + r->page;
	return 0;
}

void rs_ring_close(struct rs_ring *r)
{
	if (r->consumer)
		munmap(r->consumer, r->page);
	if (r->producer)
		munmap((void *)r->producer, r->page + r->size);
	*r = (struct rs_ring){ 0 };
}

/* The record's bytes in one piece; NULL: it wraps and is longer than any of ours. */
static const void *in_one_piece(struct rs_ring *r, size_t at, size_t len)
{
	size_t first = r->size - at;

	if (len <= first)
		return r->data + at;
	if (len > sizeof(r->bounce))
		return NULL;
	memcpy(r->bounce, r->data + at, first);
	memcpy(r->bounce + first, r->data, len - first);
	return r->bounce;
}

/* Where the record at `at` lies with its head, and how far it is to the next one; 0: it is not there yet. */
static size_t look(const struct rs_ring *r, unsigned long at, unsigned long end, uint32_t *ret_len)
{
	const uint32_t *hdr = (const void *)(r->data + (at & (r->size - 1)));
	uint32_t len = at < end ? __atomic_load_n(hdr, __ATOMIC_ACQUIRE) : BPF_RINGBUF_BUSY_BIT;

	*ret_len = len;
	if (len & BPF_RINGBUF_BUSY_BIT)
		return 0;
	return ((len & ~BPF_RINGBUF_DISCARD_BIT) + BPF_RINGBUF_HDR_SZ + 7u) & ~7u;
}

size_t rs_ring_read(struct rs_ring *r, size_t budget, rs_ring_fn ahead, rs_ring_fn fn, void *arg)
{
	unsigned long at = *r->consumer; /* nobody else writes it */
	unsigned long end = __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
	unsigned long next = at;	 /* what `ahead` has seen */
	size_t n = 0, between = 0, step; /* between: records from `at` to `next` */
	uint32_t len;

	while (n < budget) {
		for (; ahead && between <= RS_RING_AHEAD; between++) {
			size_t pos = (next + BPF_RINGBUF_HDR_SZ) & (r->size - 1);

			step = look(r, next, end, &len);
			if (!step)
				break;
			next += step;
			/* The next look finds it in the cache. */
			__builtin_prefetch(r->data + (next & (r->size - 1)));
			if (!(len & BPF_RINGBUF_DISCARD_BIT) && len <= r->size - pos)
				ahead(arg, r->data + pos, len);
		}
		step = look(r, at, end, &len);
		if (!step)
			break;
		if (!(len & BPF_RINGBUF_DISCARD_BIT)) {
			const void *rec =
				in_one_piece(r, (at + BPF_RINGBUF_HDR_SZ) & (r->size - 1), len);

			fn(arg, rec, rec ? len : 0);
			n++;
		}
		at += step;
		if (between)
			between--;
		else
			next = at; /* it came only just now */
		if (n % GIVE_BACK == 0)
			__atomic_store_n(r->consumer, at, __ATOMIC_RELEASE);
	}
	__atomic_store_n(r->consumer, at, __ATOMIC_RELEASE);
	return n;
}
