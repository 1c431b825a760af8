/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build — a span's attributes while they are collected; what protocols' describe() writes to.
 *
 * Strings given are copied into the span's arena at once; the caller's may go. Attributes over
 * RS_BUILD_ATTRS or without memory are dropped and counted on the span. Keys are not checked for
 * being unique: a describe() sets each once. What the user wants left out is no loss: it is not counted.
 */
#ifndef RS_TRACE_BUILD_H
#define RS_TRACE_BUILD_H

#include "redact.h"
#include "span.h"

#define RS_BUILD_ATTRS 128

struct rs_build {
	struct rs_span *span;
	struct rs_arena *arena;
	const struct rs_redact *redact; /* what the user wants of spans; NULL: the defaults */
	uint32_t n, dropped;
	struct rs_attr attrs[RS_BUILD_ATTRS];
};

/* redact may be set after it. */
void rs_build_init(struct rs_build *b, struct rs_span *span, struct rs_arena *arena);
void rs_build_str(struct rs_build *b, enum rs_known_key k, struct str value);
/* A literal with its padding (RS_SPAN_STR): it is not copied. */
void rs_build_lit(struct rs_build *b, enum rs_known_key k, struct str lit);
void rs_build_int(struct rs_build *b, enum rs_known_key k, int64_t value);
void rs_build_bool(struct rs_build *b, enum rs_known_key k, bool value);
void rs_build_add(struct rs_build *b, enum rs_known_key k,
		  struct rs_val val); /* borrowed, for the batch's life */
/* Likewise, of a key that is not in keys.def. */
void rs_build_key(struct rs_build *b, const struct rs_key *key, struct rs_val val);
void rs_build_name(struct rs_build *b, struct str name);
/* Takes out what the user wants left out: once everything is there, before limits are applied. */
void rs_build_redact(struct rs_build *b);
/* Copies the collected attributes to the span. */
void rs_build_finish(struct rs_build *b);

#endif
