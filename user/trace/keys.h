/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys — attribute keys by name: ringspan's own (keys.def) or new ones in an arena.
 *
 * The same name gives the same pointer as long as the table has room for it; names beyond that get a
 * key each time, which encoders treat the same. A table lives as long as the arena's contents.
 */
#ifndef RS_TRACE_KEYS_H
#define RS_TRACE_KEYS_H

#include "span.h"

#define RS_KEYS_SLOTS 1024

struct rs_keys {
	const struct rs_key *slot[RS_KEYS_SLOTS];
};

/* Knows the static keys afterwards. Again after the arena's reset. */
void rs_keys_init(struct rs_keys *k);
/* NULL: the arena is full. name is copied when the key is new. */
const struct rs_key *rs_keys_get(struct rs_keys *k, struct rs_arena *a, struct str name);

#endif
