// SPDX-License-Identifier: Apache-2.0
#include "services.h"

#include "base/hash.h"

void rs_services_init(struct rs_services *s)
{
	*s = (struct rs_services){ 0 };
	s->others[1].client = true;
	rs_map_init(&s->by_key, RS_SERVICES);
	rs_pool_init(&s->pool, sizeof(struct rs_service), RS_SERVICES);
}

void rs_services_release(struct rs_services *s)
{
	rs_map_release(&s->by_key);
	rs_pool_release(&s->pool);
}

unsigned rs_latency_bucket(uint64_t ns)
{
	uint64_t us = ns / 1000;
	unsigned log, b;

	if (us < 8)
		return (unsigned)us;
	log = 63 - (unsigned)__builtin_clzll(us); /* >= 3 */
	b = 8 * (log - 2) + (unsigned)(us >> (log - 3) & 7);
	return b < RS_LATENCY_BUCKETS - 1 ? b : RS_LATENCY_BUCKETS - 1;
}

uint64_t rs_latency_end(unsigned bucket)
{
	unsigned log = bucket / 8 + 2;

	if (bucket >= RS_LATENCY_BUCKETS - 1)
		return UINT64_MAX;
	if (bucket < 8)
		return (bucket + 1) * 1000ull;
	return ((uint64_t)(8 + bucket % 8 + 1) << (log - 3)) * 1000;
}

static struct rs_service *find(struct rs_services *s, struct str name, bool client)
{
	uint64_t key = rs_hash_str(client, name);
	struct rs_service *row = rs_map_get(&s->by_key, key);

	/* Two names of one hash: one of them is among the others. */
	if (row)
		return str_eq(str_of(row->name, row->nname), name) ? row : &s->others[client];
	row = rs_pool_get(&s->pool);
	if (!row)
		return &s->others[client];
	*row = (struct rs_service){ .client = client, .nname = (uint8_t)name.len };
	memcpy(row->name, name.ptr, name.len);
	if (rs_map_put(&s->by_key, key, row)) {
		rs_pool_put(&s->pool, row);
		return &s->others[client];
	}
	return row;
}

struct rs_service *rs_services_row(struct rs_services *s, struct str name, bool client)
{
	name = str_at(name, 0, RS_SERVICE_NAME);
	return name.len ? find(s, name, client) : &s->others[client];
}

const struct rs_service *rs_services_next(const struct rs_services *s, uint32_t *pos)
{
	const struct rs_service *row;
	uint32_t at;

	while (*pos < 2) {
		row = &s->others[(*pos)++];
		if (row->spans)
			return row;
	}
	at = *pos - 2;
	row = rs_map_next(&s->by_key, &at);
	*pos = at + 2;
	return row;
}
