/* SPDX-License-Identifier: Apache-2.0 */
/* text_span — a span in a few words: what one line of text shows of it. */
#ifndef RS_EXPORT_TEXT_SPAN_H
#define RS_EXPORT_TEXT_SPAN_H

#include "trace/span.h"

/* Texts are safe for a terminal, cut where they are too long, "" where there is nothing to say. */
struct rs_text_span {
	uint8_t kind; /* enum rs_span_kind */
	bool error;
	bool ok;		   /* gRPC's status is OK */
	uint16_t code;		   /* HTTP status, 0: none */
	uint64_t start_ns, end_ns; /* as the span's; end >= start */
	char service[48];
	char request[512];
	char peer[72];
	char note[256]; /* errors and events that are no routine */
};

/* Fills in *h; nothing of the span is kept. */
void rs_text_describe(struct rs_text_span *h, const struct rs_span *s, const struct rs_resource *r);

#endif
