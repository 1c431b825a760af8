// SPDX-License-Identifier: Apache-2.0
/* OTLP over gRPC: unary calls as HTTP/2 requests (grpc/grpc doc/PROTOCOL-HTTP2.md). */
#include <stdio.h>
#include <stdlib.h>

#include "base/digits.h"
#include "export/otlp.h"

enum grpc_code {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_ABORTED = 10,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16,
};

static const char *const code_name[] = {
	"OK",
	"CANCELLED",
	"UNKNOWN",
	"INVALID_ARGUMENT",
	"DEADLINE_EXCEEDED",
	"NOT_FOUND",
	"ALREADY_EXISTS",
	"PERMISSION_DENIED",
	"RESOURCE_EXHAUSTED",
	"FAILED_PRECONDITION",
	"ABORTED",
	"OUT_OF_RANGE",
	"UNIMPLEMENTED",
	"INTERNAL",
	"UNAVAILABLE",
	"DATA_LOSS",
	"UNAUTHENTICATED",
};

static int open_grpc(struct rs_exporter *e, char *err, size_t size)
{
	snprintf(e->protocol, sizeof(e->protocol), "gRPC");
	/* An endpoint without a scheme means TLS, unless told otherwise. */
	return rs_otlp_open(e, e->cfg->insecure ? "http" : "https", err, size);
}

static void request(struct rs_send *s)
{
	struct rs_exporter *e = s->e;

	rs_http_header(&s->req, "Content-Type: application/grpc");
	rs_http_header(&s->req, "TE: trailers");
	if (e->cfg->export_timeout)
		rs_http_header(&s->req, "grpc-timeout: %llum",
			       (unsigned long long)(e->cfg->export_timeout / 1000000 % 100000000));
	if (s->zip.niov)
		rs_http_header(&s->req, "grpc-encoding: %s", rs_compression_name(e->compression));
	rs_http_header(&s->req, "grpc-accept-encoding: identity");
	rs_otlp_headers(s, true);
}

static size_t decode_base64(struct str in, uint8_t *out, size_t room)
{
	uint32_t acc = 0;
	int bits = 0;
	size_t n = 0;

	for (size_t i = 0; i < in.len && rs_base64_digit(in.ptr[i]) >= 0; i++) {
		acc = acc << 6 | (uint32_t)rs_base64_digit(in.ptr[i]);
		bits += 6;
		if (bits < 8)
			continue;
		if (n == room)
			return 0; /* a part of it would be misread */
		bits -= 8;
		out[n++] = (uint8_t)(acc >> bits);
	}
	return n;
}

/* In the headers of an answer without a message, else in the trailers. */
static void header(struct rs_send *s, struct str name, struct str value)
{
	uint64_t code;

	if (str_ieq(name, STR("grpc-status")) && str_u64(value, &code) && code < 1000)
		s->grpc_status = (int)code;
	else if (str_ieq(name, STR("grpc-message")))
		s->grpc_message[rs_percent_decode(value, s->grpc_message,
						  sizeof(s->grpc_message) - 1)] = 0;
	else if (str_ieq(name, STR("grpc-status-details-bin")))
		s->grpc_details_len =
			decode_base64(value, s->grpc_details, sizeof(s->grpc_details));
}

static int code_of_http(long status)
{
	switch (status) {
	case 400:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_UNKNOWN;
	}
}

/* A stream that was reset: libcurl gives HTTP/2's error code in words only, "… (err 7)". */
static int code_of_reset(const char *error)
{
	const char *p = strstr(error, "(err ");

	switch (p ? strtol(p + 5, NULL, 10) : -1) {
	case 7: /* REFUSED_STREAM: it was not looked at */
		return GRPC_UNAVAILABLE;
	case 8:
		return GRPC_CANCELLED;
	case 11: /* ENHANCE_YOUR_CALM */
		return GRPC_RESOURCE_EXHAUSTED;
	case 12:
		return GRPC_PERMISSION_DENIED;
	case -1:
		return GRPC_UNAVAILABLE;
	default:
		return GRPC_INTERNAL;
	}
}

static int code_of(const struct rs_send *s)
{
	const struct rs_http_req *r = &s->req;

	if (s->grpc_status >= 0)
		return s->grpc_status;
	if (r->rc == CURLE_HTTP2_STREAM)
		return code_of_reset(r->error);
	if (r->rc != CURLE_OK)
		return GRPC_UNAVAILABLE;
	return code_of_http(r->status);
}

static bool retryable(int code, bool has_retry_info)
{
	switch (code) {
	case GRPC_CANCELLED:
	case GRPC_DEADLINE_EXCEEDED:
	case GRPC_ABORTED:
	case GRPC_OUT_OF_RANGE:
	case GRPC_UNAVAILABLE:
	case GRPC_DATA_LOSS:
		return true;
	case GRPC_RESOURCE_EXHAUSTED:
		return has_retry_info;
	default:
		return false;
	}
}

static void explain(const struct rs_send *s, int code, struct rs_verdict *v)
{
	char why[200] = "";

	if (s->grpc_status < 0)
		rs_http_explain(&s->req, why, sizeof(why));
	snprintf(v->why, sizeof(v->why), "gRPC %s: %.200s",
		 (size_t)code < sizeof(code_name) / sizeof(code_name[0]) ? code_name[code]
									 : "unknown code",
		 s->grpc_status < 0 ? why : s->grpc_message);
}

static void done(struct rs_send *s, struct rs_verdict *v)
{
	const struct rs_http_req *r = &s->req;
	struct str message;

	/* One message: a flag, its length, its bytes. Compressed ones were not asked for. */
	if (r->body_len < 5 || r->body[0] ||
	    !rs_otlp_partial_pb(str_of(r->body + 5, r->body_len - 5), &v->rejected, &message))
		return;
	if (v->rejected || message.len)
		snprintf(v->why, sizeof(v->why), "%llu spans rejected: %.*s",
			 (unsigned long long)v->rejected,
			 (int)(message.len < 200 ? message.len : 200),
			 message.ptr ? message.ptr : "");
}

/* How servers say that a message is too big: there is no code of its own for it. */
static bool says_too_big(const struct rs_send *s, int code)
{
	return code == GRPC_RESOURCE_EXHAUSTED &&
	       (strstr(s->grpc_message, "larger than max") || strstr(s->grpc_message, "too large"));
}

static void verdict(struct rs_send *s, struct rs_verdict *v)
{
	uint64_t delay = RS_HTTP_NO_WAIT;
	int code = code_of(s);
	struct str message;

	if (s->req.too_big) {
		rs_verdict_http(s, v);
		return;
	}
	if (code == GRPC_OK) {
		v->kind = RS_V_DONE;
		done(s, v);
		return;
	}
	explain(s, code, v);
	if (s->grpc_details_len)
		rs_otlp_status_pb(str_of((const char *)s->grpc_details, s->grpc_details_len),
				  &message, &delay);
	if (retryable(code, delay != RS_HTTP_NO_WAIT)) {
		v->kind = RS_V_RETRY;
		v->wait_ns = delay != RS_HTTP_NO_WAIT			? delay
			     : s->req.retry_after_ns != RS_HTTP_NO_WAIT ? s->req.retry_after_ns
									: 0;
	} else if (says_too_big(s, code)) {
		v->kind = RS_V_SPLIT;
	} else {
		v->kind = RS_V_DROP;
		v->loss = RS_LOSS_REJECTED;
	}
}

const struct rs_exporter_ops rs_exporter_otlp_grpc = {
	.name = "otlp-grpc",
	.encoder = { "otlp-proto" },
	.endpoint = "http://localhost:4317",
	.path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	.gzip = true,
	.grpc = true,
	.open = open_grpc,
	.request = request,
	.header = header,
	.verdict = verdict,
	.split = rs_otlp_split_pb,
};
