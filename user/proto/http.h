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

/* Fields of messages, of HTTP/1 and HTTP/2. */
enum rs_http_field {
	RS_F_HTTP_METHOD = RS_F_PROTO,
	RS_F_HTTP_TARGET,
	RS_F_HTTP_VERSION, /* "1.1" */
	RS_F_HTTP_STATUS,  /* "200" */
	RS_F_HTTP_HOST,
	RS_F_HTTP_USER_AGENT,
	RS_F_HTTP_FORWARDED,
	RS_F_HTTP_X_FORWARDED_FOR,
	RS_F_HTTP_X_FORWARDED_HOST,
	RS_F_HTTP_X_FORWARDED_PROTO,
	RS_F_HTTP_SCHEME,	/* ":scheme" */
	RS_F_HTTP_PROTOCOL,	/* ":protocol": what an extended CONNECT asks for (RFC 8441) */
	RS_F_HTTP_UPGRADE,	/* what a 101 goes over to */
	RS_F_HTTP_CONTENT_TYPE, /* where it says that the body is a stream of its own kind */
	RS_F_HTTP_RESET,	/* name of the error code of an RST_STREAM */
	RS_F_HTTP_RESET_BY,	/* "sent" or "received" */
	RS_F_GRPC_STATUS,	/* number */
	RS_F_GRPC_TIMEOUT,	/* as on the wire: "100m" */
	RS_F_HTTP_HEADER, /* values of the first field the user asks for (trace/redact.h); the others follow */
};

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
	struct str x_forwarded_for, x_forwarded_host, x_forwarded_proto;
	struct str protocol; /* of an extended CONNECT (RFC 8441) */
};

/* A response's content-type: does its body go on for as long as there is something to tell? */
bool rs_http_event_stream(struct str content_type);

/* ops->describe of both versions. */
void rs_http_describe(const struct rs_exchange *x, struct rs_build *b);

/* Parts of it that other spans over HTTP have too: what the heads say; a server's attributes, a client's; addresses and
 * protocol. */
void rs_http_fields(const struct rs_exchange *x, struct rs_http *ret);
void rs_http_describe_server(const struct rs_exchange *x, const struct rs_http *h,
			     struct rs_build *b);
void rs_http_describe_client(const struct rs_exchange *x, const struct rs_http *h,
			     struct rs_build *b);
void rs_http_describe_network(const struct rs_conn_info *conn, struct str version,
			      struct rs_build *b);
/* The word for an exchange that did not end well, or empty. */
struct str rs_http_end_word(const struct rs_exchange *x);

#endif
