/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hpack — header compression of HTTP/2 (RFC 7541), as one who listens must read it: from the middle of a
 * connection on, and after bytes were lost.
 *
 * The dynamic table is numbered from its newest entry. What was inserted since we listen is therefore known
 * by its index for certain, whatever stands behind it; an index beyond is of an entry that we do not know,
 * and so is the name of a literal that refers to one. Such fields are given as unknown, never guessed. A
 * table is whole when it was followed from the connection's start, or since the encoder emptied it; then
 * an index beyond its end is an error of the encoder.
 *
 * Entries are kept in blocks from two pools, for tables of 4096 bytes and up to 65536; without one, or of a larger
 * table, the oldest entries are unknown. How large a table may be is said in the stream of header blocks
 * itself (RFC 7541 6.3), so that SETTINGS need not be read.
 */
#ifndef RS_PROTO_HPACK_H
#define RS_PROTO_HPACK_H

#include "base/pool.h"
#include "base/str.h"

#define RS_HPACK_STATIC	      61 /* entries of the static table */
#define RS_HPACK_SMALL	      4096
#define RS_HPACK_LARGE	      65536
/* Bytes of the pools' objects. */
#define RS_HPACK_BLOCK(bytes) (16 + (bytes) + (bytes) / 32 * 4)

struct rs_hpack_block;

/* One direction's table. */
struct rs_hpack {
	struct rs_hpack_block *b;      /* NULL: no entry is kept */
	struct rs_pool *small, *large; /* NULL: entries are not kept */
	uint32_t max;		       /* bytes, as the encoder says */
	uint32_t size;		       /* bytes of the known entries, by RFC 7541 4.1 */
	uint32_t count;		       /* known entries */
	bool partial;		       /* others may stand behind them */
};

struct rs_hpack_field {
	struct str name, value; /* ptr NULL: unknown */
	uint8_t index;		/* of the static table's first entry of this name, or 0 */
	bool fleeting; /* the value is valid during the call only; else as long as block and scratch are. Names are never longer */
};

/* whole: the connection is seen from its start. The pools, of RS_HPACK_BLOCK(SMALL, LARGE), or NULL. */
void rs_hpack_init(struct rs_hpack *h, bool whole, struct rs_pool *small, struct rs_pool *large);
/* Gives the block back. */
void rs_hpack_release(struct rs_hpack *h);
/* A header block was missed, or some of one: nothing is known of the table. */
void rs_hpack_lose(struct rs_hpack *h);

/* Gets each field, in order. Returns whether strings that are not fleeting are kept. */
typedef bool (*rs_hpack_fn)(void *arg, const struct rs_hpack_field *f);

/* Memory for decoded strings: used from pos on as far as they are kept. */
struct rs_hpack_mem {
	char *pos, *end;
};

/*
 * One header block. True: all of it was read. False: it is not valid, or it ends within a field; what stands
 * before was given, and the table is as it was left: rs_hpack_lose() it.
 */
bool rs_hpack_decode(struct rs_hpack *h, struct str block, struct rs_hpack_mem *mem, rs_hpack_fn fn,
		     void *arg);

#endif
