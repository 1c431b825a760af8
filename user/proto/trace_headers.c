// SPDX-License-Identifier: Apache-2.0
#include "trace_headers.h"

static const struct {
	struct str name;
	enum rs_field_id id;
} headers[] = {
	{ { "b3", 2 }, RS_F_B3 },
	{ { "baggage", 7 }, RS_F_BAGGAGE },
	{ { "tracestate", 10 }, RS_F_TRACESTATE },
	{ { "x-b3-flags", 10 }, RS_F_B3_FLAGS },
	{ { "traceparent", 11 }, RS_F_TRACEPARENT },
	{ { "x-b3-spanid", 11 }, RS_F_B3_SPAN_ID },
	{ { "sentry-trace", 12 }, RS_F_SENTRY_TRACE },
	{ { "x-b3-traceid", 12 }, RS_F_B3_TRACE_ID },
	{ { "x-b3-sampled", 12 }, RS_F_B3_SAMPLED },
	{ { "uber-trace-id", 13 }, RS_F_UBER_TRACE_ID },
	{ { "x-datadog-tags", 14 }, RS_F_DATADOG_TAGS },
	{ { "x-amzn-trace-id", 15 }, RS_F_AMZN_TRACE_ID },
	{ { "x-datadog-trace-id", 18 }, RS_F_DATADOG_TRACE_ID },
	{ { "x-datadog-parent-id", 19 }, RS_F_DATADOG_PARENT_ID },
	{ { "x-datadog-sampling-priority", 27 }, RS_F_DATADOG_PRIORITY },
};

enum rs_field_id rs_trace_header(struct str name)
{
	for (size_t i = 0;
	     i < sizeof(headers) / sizeof(headers[0]) && headers[i].name.len <= name.len; i++) {
		if (headers[i].name.len == name.len && str_ieq(headers[i].name, name))
			return headers[i].id;
	}
	return RS_F_NONE;
}
