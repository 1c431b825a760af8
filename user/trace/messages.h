/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages — links of a span to the messages it consumed: a batch has as many as it has messages with a context.
 *
 * For protocols of messaging: rs_trace_link_message() once per message, in their order, while the exchange is open.
 * Beyond --max-links, and without memory, they are counted as dropped. Chunks come from a pool and go back
 * with rs_messages_forget().
 */
#ifndef RS_TRACE_MESSAGES_H
#define RS_TRACE_MESSAGES_H

#include "trace/trace.h"

#define RS_MESSAGE_CHUNK 15

struct rs_messages {
	struct rs_messages *next;
	uint32_t n;
	struct rs_open_link v[RS_MESSAGE_CHUNK];
};

/* The exchange's span is linked to the span that sent this message. */
void rs_trace_link_message(struct rs_trace *t, struct rs_open *o, const struct rs_wire_ctx *sender);

/* All links of the exchange, messages' last: their number, and the i-th. */
uint32_t rs_messages_count(const struct rs_open *o);
const struct rs_open_link *rs_messages_at(const struct rs_open *o, uint32_t i);

void rs_messages_forget(struct rs_trace *t, struct rs_open *o);

#endif
