// SPDX-License-Identifier: Apache-2.0
#include "dns.h"

#include "base/hash.h"
#include "shared/events.h"

#define HEADER	  12
#define TYPE_A	  1
#define TYPE_AAAA 28
#define CLASS_IN  1
#define POINTERS  16 /* compression pointers followed in one name */
#define RECORDS	  256

/* -- messages -- */

static unsigned u16_at(struct str s, size_t at)
{
	return (unsigned)(unsigned char)s.ptr[at] << 8 | (unsigned char)s.ptr[at + 1];
}

static bool name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* A name from `pos` on, in ret (NULL: only passed over). Returns what follows it, or 0: malformed. */
static size_t read_name(struct str msg, size_t pos, struct rs_dns_answer *ret)
{
	size_t after = 0, n = 0;

	for (int jumps = 0; pos < msg.len;) {
		unsigned len = (unsigned char)msg.ptr[pos];

		if (!len) {
			if (ret)
				ret->len = (uint8_t)n;
			return after ? after : pos + 1;
		}
		if ((len & 0xc0) == 0xc0) {
			size_t to;

			if (pos + 1 >= msg.len || jumps++ == POINTERS)
				return 0;
			to = u16_at(msg, pos) & 0x3fff;
			if (!after)
				after = pos + 2;
			if (!ret) /* where it leads is of no interest */
				return after;
			if (to >= pos) /* only back: no circles */
				return 0;
			pos = to;
			continue;
		}
		if (len > 63 || pos + 1 + len > msg.len)
			return 0;
		if (ret) {
			if (n + (n > 0) + len > RS_DNS_NAME)
				return 0;
			if (n)
				ret->name[n++] = '.';
			for (unsigned i = 0; i < len; i++) {
				char c = str_lower_char(msg.ptr[pos + 1 + i]);

				if (!name_char(c))
					return 0;
				ret->name[n++] = c;
			}
		}
		pos += 1 + len;
	}
	return 0;
}

static void take_record(struct rs_dns_answer *ret, unsigned type, uint32_t ttl, struct str data)
{
	struct rs_dns_addr *a = &ret->a[ret->n];

	if (ret->n == RS_DNS_ADDRS)
		return;
	if (type == TYPE_A && data.len == 4)
		*a = (struct rs_dns_addr){ .family = RS_FAMILY_INET, .ttl = ttl };
	else if (type == TYPE_AAAA && data.len == 16)
		*a = (struct rs_dns_addr){ .family = RS_FAMILY_INET6, .ttl = ttl };
	else
		return;
	memcpy(a->addr, data.ptr, data.len);
	ret->n++;
}

bool rs_dns_parse(struct str msg, struct rs_dns_answer *ret)
{
	unsigned flags, answers, type;
	size_t pos;

	ret->n = 0;
	ret->len = 0;
	if (msg.len < HEADER)
		return false;
	flags = u16_at(msg, 2);
	answers = u16_at(msg, 6);
	/* A response, opcode QUERY, no error; one question. */
	if ((flags & 0xf80f) != 0x8000 || u16_at(msg, 4) != 1 || !answers || answers > RECORDS)
		return false;
	pos = read_name(msg, HEADER, ret);
	if (!pos || !ret->len || pos + 4 > msg.len)
		return false;
	type = u16_at(msg, pos);
	if ((type != TYPE_A && type != TYPE_AAAA) || u16_at(msg, pos + 2) != CLASS_IN)
		return false;
	pos += 4;
	for (unsigned i = 0; i < answers; i++) {
		unsigned len;
		uint32_t ttl;

		pos = read_name(msg, pos, NULL);
		if (!pos || pos + 10 > msg.len)
			return false;
		ttl = (uint32_t)u16_at(msg, pos + 4) << 16 | u16_at(msg, pos + 6);
		len = u16_at(msg, pos + 8);
		if (pos + 10 + len > msg.len)
			return false;
		if (u16_at(msg, pos + 2) == CLASS_IN)
			take_record(ret, u16_at(msg, pos), ttl, str_at(msg, pos + 10, len));
		pos += 10 + len;
	}
	return ret->n > 0;
}

/* -- names of addresses -- */

struct entry {
	struct rs_list lru;
	uint64_t key, expires_ns;
	struct rs_dns_name *name;
	uint32_t netns;
	uint8_t family;
	uint8_t addr[16];
};

void rs_dns_init(struct rs_dns *d, uint32_t max, uint32_t max_names, struct rs_counters *n)
{
	*d = (struct rs_dns){ .n = n };
	rs_map_init(&d->by_addr, max);
	rs_pool_init(&d->entries, sizeof(struct entry), max);
	rs_pool_init(&d->names, sizeof(struct rs_dns_name), max_names);
	rs_list_init(&d->lru);
}

void rs_dns_release(struct rs_dns *d)
{
	rs_map_release(&d->by_addr);
	rs_pool_release(&d->entries);
	rs_pool_release(&d->names);
}

void rs_dns_put(struct rs_dns *d, struct rs_dns_name *name)
{
	if (name && --name->refs == 0)
		rs_pool_put(&d->names, name);
}

static uint64_t key_of(uint32_t netns, uint8_t family, const uint8_t addr[16])
{
	uint64_t lo, hi;

	memcpy(&lo, addr, 8);
	memcpy(&hi, addr + 8, 8);
	return rs_hash_mix(lo ^ rs_hash_mix(hi ^ rs_hash_mix((uint64_t)netns << 8 | family)));
}

static bool is_for(const struct entry *e, uint32_t netns, uint8_t family, const uint8_t addr[16])
{
	return e->netns == netns && e->family == family && memcmp(e->addr, addr, 16) == 0;
}

static void drop(struct rs_dns *d, struct entry *e)
{
	rs_map_del(&d->by_addr, e->key);
	rs_list_del(&e->lru);
	rs_dns_put(d, e->name);
	rs_pool_put(&d->entries, e);
}

static struct rs_dns_name *new_name(struct rs_dns *d, const struct rs_dns_answer *a)
{
	struct rs_dns_name *name = rs_pool_get(&d->names);

	while (!name && !rs_list_empty(&d->lru)) {
		drop(d, rs_list_entry(d->lru.next, struct entry, lru));
		d->n->v[RS_C_DNS_EVICTED]++;
		name = rs_pool_get(&d->names);
	}
	if (!name)
		return NULL;
	name->refs = 1;
	name->len = a->len;
	memcpy(name->text, a->name, a->len);
	return name;
}

static struct entry *entry_for(struct rs_dns *d, uint32_t netns, const struct rs_dns_addr *a)
{
	uint64_t key = key_of(netns, a->family, a->addr);
	struct entry *e = rs_map_get(&d->by_addr, key);

	if (e && is_for(e, netns, a->family, a->addr)) {
		rs_list_del(&e->lru);
		rs_list_add_tail(&d->lru, &e->lru);
		return e;
	}
	if (e) /* another's, with the same hash */
		drop(d, e);
	if (d->entries.in_use == d->entries.max && !rs_list_empty(&d->lru)) {
		drop(d, rs_list_entry(d->lru.next, struct entry, lru));
		d->n->v[RS_C_DNS_EVICTED]++;
	}
	e = rs_pool_get(&d->entries);
	if (!e)
		return NULL;
	*e = (struct entry){ .key = key, .netns = netns, .family = a->family };
	memcpy(e->addr, a->addr, sizeof(e->addr));
	if (rs_map_put(&d->by_addr, key, e)) {
		rs_pool_put(&d->entries, e);
		return NULL;
	}
	rs_list_add_tail(&d->lru, &e->lru);
	return e;
}

void rs_dns_message(struct rs_dns *d, uint32_t netns, struct str msg, uint64_t now_ns)
{
	struct rs_dns_name *name = NULL;
	struct rs_dns_answer a;

	if (!rs_dns_parse(msg, &a))
		return;
	d->n->v[RS_C_DNS_ANSWERS]++;
	for (uint32_t i = 0; i < a.n; i++) {
		struct entry *e = entry_for(d, netns, &a.a[i]);
		uint64_t ttl = a.a[i].ttl * 1000000000ull;

		if (!e)
			continue;
		e->expires_ns = now_ns + (ttl < RS_DNS_MIN_NS	? RS_DNS_MIN_NS
					  : ttl > RS_DNS_MAX_NS ? RS_DNS_MAX_NS
								: ttl);
		if (e->name && str_eq(rs_dns_text(e->name), str_of(a.name, a.len)))
			continue;
		if (!name)
			name = new_name(d, &a);
		if (!name ||
		    (rs_map_get(&d->by_addr, key_of(netns, a.a[i].family, a.a[i].addr)) != e))
			break;
		rs_dns_put(d, e->name);
		e->name = name;
		name->refs++;
	}
	rs_dns_put(d, name);
}

struct rs_dns_name *rs_dns_find(struct rs_dns *d, uint32_t netns, uint8_t family,
				const uint8_t addr[16], uint64_t now_ns)
{
	struct entry *e = rs_map_get(&d->by_addr, key_of(netns, family, addr));

	if (!e || !e->name || !is_for(e, netns, family, addr) || now_ns >= e->expires_ns)
		return NULL;
	e->name->refs++;
	return e->name;
}
