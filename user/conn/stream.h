/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream — one direction of a connection: where it is, and the bytes of an unfinished unit.
 *
 * Bytes are parsed where they lie, in the record. Only what a parser could not finish is copied into
 * a window: at most one unit (a head, a chunk's size line), so its first byte came with one known
 * record and everything after it is contiguous.
 *
 * Invariants: held bytes end at `next`; skip > 0 only when nothing is held.
 * Windows come from size-classed pools and go back as soon as they are empty. Not thread-safe.
 */
#ifndef RS_CONN_STREAM_H
#define RS_CONN_STREAM_H

#include "base/pool.h"
#include "base/str.h"
#include "shared/limits.h"

#define RS_WINDOW_CLASSES 3
/* The longest head, and one record more: a parser sees that a head is too long before it is full. */
#define RS_WINDOW_MAX	  (RS_HEAD_MAX + RS_CAP_MAX)

struct rs_window {
	uint32_t pos;	    /* first byte held */
	uint32_t len;	    /* bytes held */
	uint32_t cap;	    /* of data[] */
	uint32_t cls;	    /* pool it came from */
	uint64_t first_ns;  /* the user's: time of the record with the first held byte */
	uint32_t first_seq; /* the user's: TCP sequence number of the first held byte, or 0 */
	char data[];
};

struct rs_windows {
	struct rs_pool pool[RS_WINDOW_CLASSES];
};

/* One cache line. */
struct rs_stream {
	uint64_t next;	       /* offset of the next byte to come */
	uint64_t skip;	       /* bytes from there on that the parser does not want to see */
	struct rs_window *win; /* held bytes; NULL: none */
	uint64_t last_ns;      /* of the last record */
	uint64_t lost_ns;      /* when bytes were last missing that were needed; 0: never */
	uint64_t last_task;    /* what its thread ran (struct rs_ev_task) */
	uint32_t last_tgid;    /* who moved the last record */
	uint32_t last_tid;
	bool out_of_step; /* looking for the start of a message */
	bool resynced;	  /* found one: the next message says so */
	bool ended;
	uint8_t last_slept; /* rs_ev_data.slept */
};
_Static_assert(sizeof(struct rs_stream) == 64, "a record touches one line of it");

/* The windows of all streams; all have been given back at the release. */
void rs_windows_init(struct rs_windows *w);
void rs_windows_release(struct rs_windows *w);

/* What is held. Valid until the next call on this stream. */
static inline struct str rs_stream_held(const struct rs_stream *s)
{
	return s->win ? (struct str){ s->win->data + s->win->pos, s->win->len } : STR_NONE;
}

/* Appends. 0, -EMSGSIZE over RS_WINDOW_MAX, -ENOMEM without a window: then nothing has changed. */
int rs_stream_hold(struct rs_stream *s, struct rs_windows *w, struct str bytes);
/* Forgets the first n (at most all) held bytes. */
void rs_stream_drop(struct rs_stream *s, struct rs_windows *w, size_t n);

#endif
