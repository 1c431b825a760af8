/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc — a gRPC call's span, instead of the HTTP request's that carries it (OpenTelemetry semantic conventions
 * 1.44.0 for RPC and gRPC; gRPC over HTTP/2, "PROTOCOL-HTTP2.md" of grpc/grpc).
 *
 * rpc.status_code is the name of what trailers, or a head that is all there is, say. Without them it is what
 * gRPC's clients make of the HTTP status or of RST_STREAM's error code; a client that cancels when the time it
 * gave the call (grpc-timeout) has passed has met its deadline. A connection that ends says nothing: error.type
 * is then as in HTTP spans. On a server a method that is not implemented is named _OTHER.
 * ringspan.rpc.request.messages and .response.messages count what went each way, when all of it was seen.
 */
#ifndef RS_PROTO_GRPC_H
#define RS_PROTO_GRPC_H

#include "exchange.h"
#include "trace/build.h"

/* Is this content-type gRPC's? (Not gRPC-Web's: its status is in the body.) */
bool rs_grpc_content(struct str content_type);

/* Is the exchange a gRPC call? Then this is its describe(), in place of HTTP's. */
bool rs_grpc_is(const struct rs_exchange *x);
void rs_grpc_describe(const struct rs_exchange *x, struct rs_build *b);

#endif
