/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split — objects out of a stream of JSON, each whole, in bounded memory whatever the stream's length.
 *
 * Of a list ({"metadata": {…}, "items": […]}) the metadata and each item; of a watch (objects one after the
 * other) each object. What is handed over is as it came: its inside is for the parser to judge. Objects over
 * the limit are passed over and counted.
 */
#ifndef RS_K8S_SPLIT_H
#define RS_K8S_SPLIT_H

#include "base/str.h"

#define RS_SPLIT_MAX (2u << 20) /* bytes of one object at most; etcd takes 1.5 MiB */

enum rs_split_mode {
	RS_SPLIT_LIST,
	RS_SPLIT_WATCH,
};

enum rs_split_kind {
	RS_SPLIT_METADATA, /* of the list */
	RS_SPLIT_ITEM,	   /* of the list, or of the watch */
};

struct rs_split {
	uint8_t mode; /* enum rs_split_mode */
	uint8_t kind; /* of what is being collected */
	bool collecting, over, in_items, in_string, escaped;
	bool list; /* metadata or items have begun */
	uint32_t depth, start_depth;
	char key[16]; /* last text seen directly in the list, as far as it fits */
	size_t nkey;
	char *buf;
	size_t len, cap;
	uint64_t too_big;
};

/* Begins a stream; memory of an earlier one is kept. The struct is zeroed before the first. */
void rs_split_begin(struct rs_split *s, enum rs_split_mode mode);
void rs_split_release(struct rs_split *s);

/* fn is called for each object; it lives until fn returns. False: this is no such stream, or fn said so. */
typedef bool (*rs_split_fn)(void *arg, enum rs_split_kind kind, struct str json);
bool rs_split_feed(struct rs_split *s, struct str bytes, rs_split_fn fn, void *arg);
/* Has the stream ended between objects, and was it a list, if one was wanted? */
bool rs_split_whole(const struct rs_split *s);

#endif
