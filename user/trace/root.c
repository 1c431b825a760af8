// SPDX-License-Identifier: Apache-2.0
#include "root.h"

struct rs_root *rs_root_new(struct rs_pool *pool)
{
	struct rs_root *r = rs_pool_get(pool);

	if (!r)
		return NULL;
	memset(r, 0, offsetof(struct rs_root, state));
	r->refs = 1;
	return r;
}

struct rs_root *rs_root_ref(struct rs_root *r)
{
	r->refs++;
	return r;
}

void rs_root_put(struct rs_pool *pool, struct rs_root *r)
{
	while (r && --r->refs == 0) {
		struct rs_root *into = r->into;

		rs_pool_put(pool, r);
		r = into;
	}
}

struct rs_root *rs_root_of(struct rs_root *r)
{
	while (r && r->into)
		r = r->into;
	return r;
}

bool rs_root_merge(struct rs_root *from, struct rs_root *to)
{
	from = rs_root_of(from);
	to = rs_root_of(to);
	if (from == to)
		return true;
	if (from->fixed || from->emitted)
		return false;
	from->into = rs_root_ref(to);
	from->waiting = false;
	to->quiet |= from->quiet;
	return true;
}
