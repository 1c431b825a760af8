/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp — what the OTLP exporters share: endpoint and headers from the configuration, the answer's
 * messages, and requests cut in two (opentelemetry-proto collector/trace/v1, google/rpc/status.proto).
 */
#ifndef RS_EXPORT_OTLP_H
#define RS_EXPORT_OTLP_H

#include "export/exporter.h"

/* Endpoint by OTEL_EXPORTER_OTLP_*'s rules; scheme: of an endpoint without one. 0 or -EINVAL and err. */
int rs_otlp_open(struct rs_exporter *e, const char *scheme, char *err, size_t size);
/* The configured headers ("k=v,k=v", percent-encoded) to the request. lower: names in lower case. */
void rs_otlp_headers(struct rs_send *s, bool lower);

/* An ExportTraceServiceResponse: rejected spans and the message. false: it is not one. */
bool rs_otlp_partial_pb(struct str body, uint64_t *ret_rejected, struct str *ret_message);
/* The same in JSON; message in the caller's arena. */
bool rs_otlp_partial_json(struct str body, struct rs_arena *a, uint64_t *ret_rejected,
			  struct str *ret_message);
/* google.rpc.Status: its message, and RetryInfo's delay (RS_HTTP_NO_WAIT: there is none). */
bool rs_otlp_status_pb(struct str body, struct str *ret_message, uint64_t *ret_delay_ns);

/* An ExportTraceServiceRequest as two of which each has half of the spans. As in ops->split. */
bool rs_otlp_split_pb(struct rs_exporter *e, const struct rs_item *it, struct rs_payload half[2],
		      uint32_t spans[2]);
bool rs_otlp_split_json(struct rs_exporter *e, const struct rs_item *it, struct rs_payload half[2],
			uint32_t spans[2]);

#endif
