/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1 — HTTP/1.0 and HTTP/1.1 (RFC 9110, RFC 9112): framing of both directions, and a span's
 * attributes (OpenTelemetry semantic conventions for HTTP spans, stable).
 *
 * Limits: a head of RS_HEAD_MAX bytes, its start line included (longer: the message is CUT there). A passive reader is lenient: bare LF, leading empty lines,
 * header lines without a colon, obs-fold, blanks before a colon are read as servers do. Field values
 * with obs-fold keep their line ends.
 *
 * error.type: the status code when it is an error; else, for an exchange that did not end well,
 *   connection_closed  the connection ended before the response was complete
 *   connection_reset   it was reset
 *   process_exited     the traced process ended
 *   timeout            nothing came for longer than the configured time, or the agent ended
 *   capture_lost       no response was captured. Status stays unset: nothing is known against it
 */
#ifndef RS_PROTO_HTTP1_H
#define RS_PROTO_HTTP1_H

#include "http.h"

extern const struct rs_proto_ops rs_proto_http1;

#endif
