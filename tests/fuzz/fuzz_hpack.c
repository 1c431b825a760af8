// SPDX-License-Identifier: Apache-2.0
/*
 * Header blocks through our decoder and nghttp2's: two bytes of length (big-endian), a block, and so on.
 *
 * Checked: what nghttp2 takes is taken, with the same fields. One that joins after the first block, and one
 * that misses every fourth, say the same of each field or that it is unknown, until nghttp2 refuses one.
 */
#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "fuzz.h"
#include "proto/hpack.h"

#define FIELDS 4096

struct list {
	unsigned n;
	struct {
		bool known;
		uint64_t hash;
	} name[FIELDS], value[FIELDS];
};

static uint64_t hash(const void *p, size_t n)
{
	uint64_t h = n;

	for (size_t i = 0; i < n; i++)
		h = (h ^ ((const uint8_t *)p)[i]) * 0x100000001b3u;
	return h;
}

static bool on_field(void *arg, const struct rs_hpack_field *f)
{
	struct list *l = arg;

	FUZZ_CHECK(l->n < FIELDS);
	l->name[l->n].known = f->name.ptr != NULL;
	l->name[l->n].hash = hash(f->name.ptr, f->name.len);
	l->value[l->n].known = f->value.ptr != NULL;
	l->value[l->n].hash = hash(f->value.ptr, f->value.len);
	FUZZ_CHECK(f->index <= RS_HPACK_STATIC);
	return l->n++ % 3 == 0;
}

static bool inflate(nghttp2_hd_inflater *inf, struct str block, struct list *l)
{
	l->n = 0;
	for (;;) {
		nghttp2_nv nv;
		int flags = 0;
		ssize_t n = nghttp2_hd_inflate_hd2(inf, &nv, &flags, (const uint8_t *)block.ptr,
						   block.len, 1);

		if (n < 0)
			return false;
		block = str_from(block, (size_t)n);
		if (flags & NGHTTP2_HD_INFLATE_EMIT) {
			FUZZ_CHECK(l->n < FIELDS);
			l->name[l->n].hash = hash(nv.name, nv.namelen);
			l->value[l->n++].hash = hash(nv.value, nv.valuelen);
		}
		if (flags & NGHTTP2_HD_INFLATE_FINAL) {
			nghttp2_hd_inflate_end_headers(inf);
			return true;
		}
		if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && !block.len)
			return false;
	}
}

static bool decode(struct rs_hpack *h, struct str block, struct list *l)
{
	static char scratch[4 * 4096];
	struct rs_hpack_mem mem = { scratch, scratch + sizeof(scratch) };

	l->n = 0;
	return rs_hpack_decode(h, block, &mem, on_field, l);
}

static void compare(const struct list *truth, const struct list *l, bool whole)
{
	FUZZ_CHECK(l->n == truth->n);
	for (unsigned i = 0; i < l->n; i++) {
		FUZZ_CHECK(!whole || (l->name[i].known && l->value[i].known));
		FUZZ_CHECK(!l->name[i].known || l->name[i].hash == truth->name[i].hash);
		FUZZ_CHECK(!l->value[i].known || l->value[i].hash == truth->value[i].hash);
	}
}

enum {
	WHOLE,
	LATE,
	LOSSY,
	DECODERS,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct list *truth = malloc(sizeof(*truth)), *l = malloc(sizeof(*l));
	struct str in = { (const char *)data, size };
	struct rs_hpack h[DECODERS];
	struct rs_pool small, large;
	nghttp2_hd_inflater *inf;

	FUZZ_CHECK(truth && l && nghttp2_hd_inflate_new(&inf) == 0);
	nghttp2_hd_inflate_change_table_size(inf, 1 << 20);
	rs_pool_init(&small, RS_HPACK_BLOCK(RS_HPACK_SMALL), DECODERS);
	rs_pool_init(&large, RS_HPACK_BLOCK(RS_HPACK_LARGE), 2); /* one has to do without */
	for (int i = 0; i < DECODERS; i++)
		rs_hpack_init(&h[i], i != LATE, &small, &large);
	for (unsigned n = 0; in.len > 2; n++) {
		struct str block =
			str_at(in, 2, (size_t)((uint8_t)in.ptr[0] << 8 | (uint8_t)in.ptr[1]));

		in = str_from(in, 2 + block.len);
		if (!inflate(inf, block, truth)) {
			decode(&h[WHOLE], block, l);
			break;
		}
		FUZZ_CHECK(decode(&h[WHOLE], block, l));
		compare(truth, l, !h[WHOLE].partial);
		if (n) {
			FUZZ_CHECK(decode(&h[LATE], block, l));
			compare(truth, l, false);
		}
		if (n % 4 == 3) {
			rs_hpack_lose(&h[LOSSY]);
		} else {
			FUZZ_CHECK(decode(&h[LOSSY], block, l));
			compare(truth, l, false);
		}
	}
	for (int i = 0; i < DECODERS; i++)
		rs_hpack_release(&h[i]);
	rs_pool_release(&small);
	rs_pool_release(&large);
	nghttp2_hd_inflate_del(inf);
	free(truth);
	free(l);
	return 0;
}
