// SPDX-License-Identifier: Apache-2.0
/* kernel/ring: records in order, each said ahead and not too early; wrapping, discarded, unfinished ones. */
#include <linux/bpf.h>
#include <string.h>

#include "kernel/ring.h"
#include "unit.h"

#define SIZE 1024

struct fake {
	unsigned long consumer, producer;
	_Alignas(8) char data[SIZE];
	struct rs_ring r;
	uint64_t ahead[64], got[64];
	unsigned nahead, ngot;
};

/* A record of `words` numbers, all the same. flags: BPF_RINGBUF_*_BIT. */
static void put(struct fake *f, uint64_t value, uint32_t words, uint32_t flags)
{
	uint32_t head[2] = { words * 8 | flags, 0 };

	memcpy(f->data + f->producer % SIZE, head, sizeof(head));
	for (uint32_t i = 0; i < words; i++)
		memcpy(f->data + (f->producer + 8 + i * 8) % SIZE, &value, 8);
	f->producer += 8 + words * 8;
}

static void on_ahead(void *arg, const void *rec, size_t size)
{
	struct fake *f = arg;

	assert_true(size >= 8);
	memcpy(&f->ahead[f->nahead++], rec, 8);
	assert_true(f->nahead <= f->ngot + RS_RING_AHEAD + 1);
}

static void on_record(void *arg, const void *rec, size_t size)
{
	struct fake *f = arg;
	uint64_t v;

	for (size_t i = 0; i < size; i += 8) {
		memcpy(&v, (const char *)rec + i, 8);
		assert_true(i == 0 || v == f->got[f->ngot]);
		f->got[f->ngot] = v;
	}
	f->ngot++;
}

static void start(struct fake *f, unsigned long at)
{
	*f = (struct fake){ .consumer = at, .producer = at };
	f->r = (struct rs_ring){
		.consumer = &f->consumer, .producer = &f->producer, .data = f->data, .size = SIZE
	};
}

static void test_order(void **state)
{
	static struct fake f;

	(void)state;
	start(&f, 0);
	for (uint64_t i = 1; i <= 12; i++)
		put(&f, i, 1 + i % 5, i % 4 ? 0 : BPF_RINGBUF_DISCARD_BIT);
	assert_int_equal(rs_ring_read(&f.r, 5, on_ahead, on_record, &f), 5);
	f.nahead = f.ngot; /* a new call says them again */
	assert_int_equal(rs_ring_read(&f.r, 100, on_ahead, on_record, &f), 4);
	assert_int_equal(f.nahead, 9);
	assert_int_equal(f.ngot, 9);
	for (unsigned i = 0, v = 1; i < 9; i++, v++) {
		v += v % 4 == 0;
		assert_int_equal(f.got[i], v);
	}
	assert_int_equal(f.consumer, f.producer);
	assert_int_equal(rs_ring_read(&f.r, 100, NULL, on_record, &f), 0);
}

/* What is being written holds up all that is behind it. */
static void test_unfinished(void **state)
{
	static struct fake f;
	uint32_t len = 16;

	(void)state;
	start(&f, 0);
	put(&f, 1, 1, 0);
	put(&f, 2, 2, BPF_RINGBUF_BUSY_BIT);
	put(&f, 3, 3, 0);
	assert_int_equal(rs_ring_read(&f.r, 100, on_ahead, on_record, &f), 1);
	assert_int_equal(f.nahead, 1);
	memcpy(f.data + 16, &len, sizeof(len));
	assert_int_equal(rs_ring_read(&f.r, 100, on_ahead, on_record, &f), 2);
	assert_int_equal(f.nahead, 3);
	assert_int_equal(f.got[2], 3);
	assert_int_equal(f.consumer, f.producer);
}

static void test_wrapping(void **state)
{
	static struct fake f;

	(void)state;
	start(&f, SIZE - 32);
	put(&f, 1, 1, 0);
	put(&f, 2, 10, 0); /* the last word before the end, nine behind it */
	put(&f, 3, 1, 0);
	assert_int_equal(rs_ring_read(&f.r, 100, on_ahead, on_record, &f), 3);
	assert_int_equal(f.got[1], 2);
	assert_int_equal(f.got[2], 3);
	/* It is not in one piece before its turn. */
	assert_int_equal(f.nahead, 2);
	assert_int_equal(f.ahead[1], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_wrapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
