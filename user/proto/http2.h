/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2 — HTTP/2 (RFC 9113): frames of both directions, header blocks (hpack.h), streams as exchanges.
 *
 * With the preface, after `Upgrade: h2c` (RFC 7540 3.2), or from the middle of a connection: then a header block tells
 * which end asks. After a gap the next frames are looked for, the tables begin anew (see hpack.h), and what a
 * message lacks by that makes it CUT. Numbers of streams only grow: that tells a request from a trailer.
 *
 * A header block is read up to RS_HEAD_MAX bytes, CONTINUATION included; a longer one is CUT and its table lost.
 * Content of DATA frames is not looked at, but for the prefixes of gRPC's messages. Streams are remembered for
 * sizes and counts only: without memory for them these are unknown. A stream that ends by RST_STREAM, or that a
 * GOAWAY says was not looked at, is a response's END with RS_MSGF_RESET and RS_F_HTTP_RESET.
 * An extended or plain CONNECT ends with its answer's head (RFC 8441, RFC 9113 8.5).
 */
#ifndef RS_PROTO_HTTP2_H
#define RS_PROTO_HTTP2_H

#include "http.h"

extern const struct rs_proto_ops rs_proto_http2;

#endif
