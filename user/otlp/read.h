/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read — OTLP trace data (TracesData, ExportTraceServiceRequest) into a batch.
 *
 * JSON: everything OTLP's JSON rules allow a sender: members in any order, unknown ones ignored, 64-bit
 * integers as numbers or strings, hex in either case, base64 of either alphabet; several documents one
 * after the other (JSON lines). Protobuf: everything proto3 allows.
 *
 * Text is taken as it is, valid or not: encoders make it valid. A trace, span or parent id that is none (absent, of
 * a wrong length, not hex) is marked in the span (encoders leave it out, alone, and count why); what is not JSON or not
 * protobuf, or of another type than the field's, refuses the input and says where. JSON nests 512 deep at most. Arrays and maps nested deeper than
 * RS_READ_DEPTH become the empty value (OpenTelemetry specification 1.60).
 * Memory: all in the batch's arena; the input may go.
 */
#ifndef RS_OTLP_READ_H
#define RS_OTLP_READ_H

#include "trace/span.h"

#define RS_READ_DEPTH 64

/* Why an input was refused, and where. */
struct rs_read_error {
	const char *why;  /* static */
	size_t offset;	  /* bytes from the start */
	size_t line, col; /* JSON: from 1; protobuf: 0 */
};

/* Adds to b. 0, or -EINVAL and *ret_err, -ENOMEM (the batch's limit); b holds what was read before. */
int rs_read_otlp_json(struct rs_batch *b, struct str in, struct rs_read_error *ret_err);
int rs_read_otlp_pb(struct rs_batch *b, struct str in, struct rs_read_error *ret_err);

/* Enums of proto3 are open: any int32 may come. What our model has no room for is unspecified. */
static inline uint8_t rs_otlp_enum(int32_t v)
{
	return v >= 0 && v <= UINT8_MAX ? (uint8_t)v : 0;
}

/* Is it protobuf (or else JSON)? By its first bytes. */
bool rs_read_is_pb(struct str in);

#endif
