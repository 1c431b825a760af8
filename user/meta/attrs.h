/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attrs — a resource's attributes while they are collected. The first to set a key wins: call the sources in
 * the order of their word. Bounded: what does not fit is counted in `dropped`. Strings are copied into `mem`.
 */
#ifndef RS_META_ATTRS_H
#define RS_META_ATTRS_H

#include "trace/span.h"

#define RS_RES_MAX	 96
#define RS_RES_VALUE_MAX 1024 /* bytes of a value; longer ones are cut */

struct rs_res {
	struct rs_arena *mem;
	struct rs_attr attrs[RS_RES_MAX];
	uint32_t n, dropped;
};

/* The text value of a key; empty: there is none. */
struct str rs_res_get(const struct rs_res *r, enum rs_known_key key);
/* Strings in val live as long as mem. */
void rs_res_val(struct rs_res *r, const struct rs_key *key, struct rs_val val);
/* An empty value sets nothing. */
void rs_res_str(struct rs_res *r, enum rs_known_key key, struct str value);
/* A list of one text. */
void rs_res_list(struct rs_res *r, enum rs_known_key key, struct str value);
/* A key by its name, at most 255 bytes. The value may be empty. */
void rs_res_named(struct rs_res *r, struct str name, struct str value);
/* The attributes in mem; NULL without memory. */
const struct rs_attr *rs_res_copy(const struct rs_res *r);

#endif
