/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns — what addresses are called: answers of name servers (RFC 1035, RFC 3596) as processes receive them.
 *
 * An answer's question is the name that its A and AAAA records get, whatever aliases lie between. A name holds in
 * the network namespace that asked, as long as its TTL says, but at least RS_DNS_MIN_NS: programs keep
 * addresses longer than they may. The newest answer counts. Bounded; the name longest unheard of gives way.
 * The parser is pure. Not thread-safe.
 */
#ifndef RS_META_DNS_H
#define RS_META_DNS_H

#include "base/counters.h"
#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/str.h"

#define RS_DNS_NAME   253 /* characters of a name, RFC 1035 section 2.3.4 */
#define RS_DNS_ADDRS  32  /* addresses of one answer that are kept */
#define RS_DNS_MIN_NS 60000000000ull
#define RS_DNS_MAX_NS 86400000000000ull

struct rs_dns_addr {
	uint8_t family; /* enum rs_ev_family: INET, INET6 */
	uint8_t addr[16];
	uint32_t ttl; /* seconds */
};

struct rs_dns_answer {
	char name[RS_DNS_NAME + 1]; /* lower case, without a dot at its end */
	uint8_t len;
	uint32_t n;
	struct rs_dns_addr a[RS_DNS_ADDRS];
};

/* False: no well-formed answer to one question for addresses, or none that has any. */
bool rs_dns_parse(struct str msg, struct rs_dns_answer *ret);

/* A name, shared by addresses and connections. */
struct rs_dns_name {
	uint32_t refs;
	uint8_t len;
	char text[RS_DNS_NAME];
};

static inline struct str rs_dns_text(const struct rs_dns_name *n)
{
	return n ? str_of(n->text, n->len) : STR_NONE;
}

struct rs_dns {
	struct rs_map by_addr; /* hash of namespace and address -> its entry */
	struct rs_pool entries, names;
	struct rs_list lru; /* longest unheard of first */
	struct rs_counters *n;
};

/* max: addresses; max_names: names that they and connections hold. */
void rs_dns_init(struct rs_dns *d, uint32_t max, uint32_t max_names, struct rs_counters *n);
void rs_dns_release(struct rs_dns *d);

/* A message that a process of this network namespace received. */
void rs_dns_message(struct rs_dns *d, uint32_t netns, struct str msg, uint64_t now_ns);
/* What the address is called, a reference of the caller's; NULL: not known. */
struct rs_dns_name *rs_dns_find(struct rs_dns *d, uint32_t netns, uint8_t family,
				const uint8_t addr[16], uint64_t now_ns);
/* Gives a reference back; NULL is fine. */
void rs_dns_put(struct rs_dns *d, struct rs_dns_name *name);

#endif
