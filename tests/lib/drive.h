/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive — one connection through l7, its messages written down as text, one line each:
 *
 *   > GET /x 1.1 host=a     request (fields that are there)      > end 5    its end, bytes of content
 *   < 200 1.1               response                             < end 5    "?": not known
 *   < interim 100 1.1       interim response
 *
 * '>' goes to the server. A message's number, if it has one, comes first: "> #1 GET". Flags follow as words: cut
 * aborted tunnel resync switch reset pushed. With `times`, also
 * "start-end seq tid". Sends are seen from the server unless `client` is set.
 */
#ifndef RS_TESTS_DRIVE_H
#define RS_TESTS_DRIVE_H

#include "conn/l7.h"

struct drive {
	struct rs_counters counters;
	struct rs_l7_env env;
	struct rs_l7 l7;
	bool client; /* this end sends the requests */
	bool times;
	uint64_t now; /* time of the next record; goes up by 1 with each */
	uint64_t off[2];
	uint32_t seq[2]; /* 0: none */
	struct rs_bpf_policy policy;
	unsigned policies;
	uint64_t messages;
	uint64_t parts;	 /* of them; they are not written down */
	uint32_t pushed; /* the last stream that was */
	size_t len;
	size_t cap;
	char *text; /* NUL-terminated */
};

/* Requests go to the server, responses come from it. */
enum drive_side {
	TO_SERVER,
	TO_CLIENT,
};

void drive_init(struct drive *d);
void drive_release(struct drive *d);
/* A new connection with the same environment; the text starts anew. */
void drive_again(struct drive *d);
/* One record with all of the bytes. */
void drive_send(struct drive *d, enum drive_side side, struct str bytes);

/* How bytes are cut into records: sizes from 1 to max that follow from the seed. */
struct drive_pieces {
	uint32_t seed;
	size_t max; /* 0: whole */
};
void drive_send_pieces(struct drive *d, enum drive_side side, struct str bytes,
		       struct drive_pieces *p);
/* One record of `len` bytes of which the first `bytes` were captured; tail as the kernel side fills it. */
void drive_cut(struct drive *d, enum drive_side side, struct str bytes, uint32_t len,
	       struct str tail);
/* Any record. */
void drive_record(struct drive *d, const struct rs_ev_data *ev);
/* len bytes of which no record came. */
void drive_lose(struct drive *d, enum drive_side side, uint64_t len);
void drive_close(struct drive *d, enum rs_ev_how how);
/* In = out + dropped + held in the stages stream and proto. */
bool drive_conserved(const struct drive *d);
/* The connection is gone: conserved, and nothing of it is held in any pool. */
bool drive_left_nothing(struct drive *d);

#endif
