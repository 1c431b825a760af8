/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http — an HTTP exchange's span: name, kind, status, attributes, whatever the version on the wire
 * (OpenTelemetry semantic conventions 1.44.0 for HTTP spans; redaction included).
 *
 * Routes are not known to a passive reader, so a span's name is its method.
 */
#ifndef RS_PROTO_HTTP_H
#define RS_PROTO_HTTP_H

#include "exchange.h"
#include "trace/build.h"

/* What the wire says. Empty: not there. */
struct rs_http {
	struct str method;
	struct str target;  /* request-target in any of its four forms (RFC 9112 3.2) */
	struct str scheme;  /* if the wire says so (HTTP/2), else empty */
	struct str host;    /* Host or :authority */
	struct str version; /* "1.0", "1.1", "2" */
	struct str status;  /* three digits */
	struct str user_agent;
	struct str forwarded; /* RFC 7239, first field */
	uint16_t
		header; /* field id of the values of the first field the user asks for; the others follow */
	struct str x_forwarded_for, x_forwarded_host, x_forwarded_proto;
};

void rs_http_describe(const struct rs_exchange *x, const struct rs_http *http, struct rs_build *b);

#endif
