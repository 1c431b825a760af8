/* SPDX-License-Identifier: Apache-2.0 */
/*
 * propagate — the context that a request's headers carry, in every format in use. Pure functions.
 *
 *   tracecontext  traceparent, tracestate               W3C Trace Context, levels 1 and 2
 *   datadog       x-datadog-trace-id, -parent-id, -sampling-priority, -tags (_dd.p.tid)
 *   b3            b3: {trace}-{span}[-{0|1|d}[-{parent}]]
 *   b3multi       X-B3-TraceId, -SpanId, -Sampled, -Flags
 *   jaeger        uber-trace-id: {trace}:{span}:{parent}:{flags}
 *   sentry        sentry-trace: {trace}-{span}[-{0|1}], baggage's sentry-sampled
 *   xray          X-Amzn-Trace-Id: Root=1-{8}-{24};Parent={16};Sampled={0|1}
 *
 * The names are those of OTEL_PROPAGATORS. A header that is malformed, or there twice, is as good as
 * absent; a format in which only a decision is carried, and no ids, gives no context.
 * A missing sampling decision reads as sampled.
 */
#ifndef RS_TRACE_PROPAGATE_H
#define RS_TRACE_PROPAGATE_H

#include "proto/proto.h"

enum rs_propagator {
	RS_PROP_TRACECONTEXT,
	RS_PROP_DATADOG,
	RS_PROP_B3,
	RS_PROP_B3MULTI,
	RS_PROP_JAEGER,
	RS_PROP_SENTRY,
	RS_PROP_XRAY,
	RS_PROP_COUNT,
};

/* Formats to look for, in order. */
struct rs_propagators {
	uint8_t n;
	uint8_t v[RS_PROP_COUNT]; /* enum rs_propagator */
};

#define RS_TRACE_SAMPLED 0x01 /* W3C trace flags */
#define RS_TRACE_RANDOM	 0x02

struct rs_wire_ctx {
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint8_t flags;	/* RS_TRACE_*; other bits are read as 0 */
	uint8_t format; /* enum rs_propagator */
};

/*
 * A list as in OTEL_PROPAGATORS: names with commas between. Names said twice count once; `baggage` is
 * known and does nothing, `none` too. False when a name is unknown: *ret_unknown is the first such, and
 * the others are taken.
 */
bool rs_propagators_parse(struct str list, struct rs_propagators *ret, struct str *ret_unknown);

/* The first valid context of a request, in the order of p. False (and *ret untouched): there is none. */
bool rs_context_extract(const struct rs_propagators *p, const struct rs_msg *m,
			struct rs_wire_ctx *ret);

/* A valid context in the same request that belongs to another trace than `c`. */
bool rs_context_other(const struct rs_propagators *p, const struct rs_msg *m,
		      const struct rs_wire_ctx *c, struct rs_wire_ctx *ret);

#define RS_TRACE_STATE_MAX 1024 /* bytes of tracestate kept; a longer one loses whole members */

/*
 * The tracestate that goes with context c, written to buf: a traceparent's, or what a Datadog header says
 * as `dd=` member. Returns its length, 0: none.
 */
size_t rs_context_state(const struct rs_msg *m, const struct rs_wire_ctx *c,
			char buf[RS_TRACE_STATE_MAX]);

/* traceparent alone. False: not to be used; *ret is untouched. */
bool rs_traceparent_parse(struct str header, struct rs_wire_ctx *ret);

/* Is a tracestate header worth passing on? At most 32 members of key=value, as section 3.3 says. */
bool rs_tracestate_valid(struct str header);

#endif
