/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits — how much a span may hold (OTEL_SPAN_*_LIMIT and its like): what is over a count is left out and
 * counted, a longer text value is cut after a whole character (which is not counted).
 */
#ifndef RS_TRACE_LIMITS_H
#define RS_TRACE_LIMITS_H

#include "trace/build.h"

struct rs_limits {
	uint32_t attributes, events, links;	    /* of a span */
	uint32_t event_attributes, link_attributes; /* of each */
	uint32_t value_length;			    /* characters of a text value; 0: no limit */
};

#define RS_LIMITS_DEFAULT ((struct rs_limits){ 128, 128, 128, 128, 128, 0 })

/* The span's events and links, built and in the batch's arena, and the attributes in b. */
void rs_limits_apply(const struct rs_limits *l, struct rs_build *b);

/* Bytes of the first n characters of s; a malformed byte is a character. */
size_t rs_limits_cut(const char *s, size_t len, uint32_t n);

#endif
