// SPDX-License-Identifier: Apache-2.0
#include "connect.h"

void rs_connects_init(struct rs_connects *cs)
{
	*cs = (struct rs_connects){ 0 };
	rs_map_init(&cs->by_conn, RS_CONNECTS);
	rs_pool_init(&cs->pool, sizeof(struct rs_connect), RS_CONNECTS);
	rs_list_init(&cs->lru);
}

void rs_connects_release(struct rs_connects *cs)
{
	rs_map_release(&cs->by_conn);
	rs_pool_release(&cs->pool);
}

struct rs_connect *rs_connect_find(const struct rs_connects *cs, uint64_t conn)
{
	return rs_map_get(&cs->by_conn, conn);
}

void rs_connect_forget(struct rs_connects *cs, struct rs_connect *k)
{
	if (!k)
		return;
	if (k->opener) {
		k->opener->waits--;
		rs_thread_update(k->opener);
	}
	rs_list_del(&k->of_opener);
	rs_list_del(&k->lru);
	rs_map_del(&cs->by_conn, k->conn);
	rs_pool_put(&cs->pool, k);
}

void rs_connect_begin(struct rs_connects *cs, uint64_t conn, struct rs_open *opener, uint8_t sure)
{
	struct rs_connect *k;

	if (rs_connect_find(cs, conn))
		return;
	if (cs->pool.in_use == RS_CONNECTS)
		rs_connect_forget(cs, rs_list_entry(cs->lru.next, struct rs_connect, lru));
	k = rs_pool_get(&cs->pool);
	if (!k)
		return;
	*k = (struct rs_connect){ .conn = conn, .opener = opener, .sure = sure };
	rs_list_init(&k->of_opener);
	rs_list_init(&k->lru);
	if (rs_map_put(&cs->by_conn, conn, k)) {
		rs_pool_put(&cs->pool, k);
		return;
	}
	rs_list_add_tail(&cs->lru, &k->lru);
	if (opener) {
		rs_list_add_tail(&opener->opened, &k->of_opener);
		opener->waits++;
		rs_thread_update(opener);
	}
}

void rs_connect_done(struct rs_connects *cs, uint64_t conn, uint32_t took_us, uint64_t ts_ns)
{
	struct rs_connect *k = rs_connect_find(cs, conn);

	if (!k)
		return;
	k->took_us = took_us;
	k->done_ns = ts_ns;
}

void rs_connect_opener_calls(struct rs_open *opener)
{
	struct rs_list *pos;

	rs_list_for_each (pos, &opener->opened) {
		struct rs_connect *k = rs_list_entry(pos, struct rs_connect, of_opener);

		if (k->done_ns)
			k->sure = RS_SURE_NOT;
	}
}

void rs_connect_opener_ends(struct rs_open *opener)
{
	struct rs_list *pos, *tmp;

	rs_list_for_each_safe (pos, tmp, &opener->opened) {
		rs_list_entry(pos, struct rs_connect, of_opener)->opener = NULL;
		rs_list_del(pos);
	}
}
