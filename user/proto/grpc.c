// SPDX-License-Identifier: Apache-2.0
#include "grpc.h"

#include "http.h"

enum code {
	OK,
	CANCELLED,
	UNKNOWN,
	INVALID_ARGUMENT,
	DEADLINE_EXCEEDED,
	NOT_FOUND,
	ALREADY_EXISTS,
	PERMISSION_DENIED,
	RESOURCE_EXHAUSTED,
	FAILED_PRECONDITION,
	ABORTED,
	OUT_OF_RANGE,
	UNIMPLEMENTED,
	INTERNAL,
	UNAVAILABLE,
	DATA_LOSS,
	UNAUTHENTICATED,
	CODES,
	NONE = CODES, /* nothing says */
};

static const struct str names[CODES] = {
	{ "OK", 2 },
	{ "CANCELLED", 9 },
	{ "UNKNOWN", 7 },
	{ "INVALID_ARGUMENT", 16 },
	{ "DEADLINE_EXCEEDED", 17 },
	{ "NOT_FOUND", 9 },
	{ "ALREADY_EXISTS", 14 },
	{ "PERMISSION_DENIED", 17 },
	{ "RESOURCE_EXHAUSTED", 18 },
	{ "FAILED_PRECONDITION", 19 },
	{ "ABORTED", 7 },
	{ "OUT_OF_RANGE", 12 },
	{ "UNIMPLEMENTED", 13 },
	{ "INTERNAL", 8 },
	{ "UNAVAILABLE", 11 },
	{ "DATA_LOSS", 9 },
	{ "UNAUTHENTICATED", 15 },
};

bool rs_grpc_content(struct str type)
{
	if (!str_starts(type, STR("application/grpc")))
		return false;
	type = str_from(type, sizeof("application/grpc") - 1);
	return !type.len || type.ptr[0] == '+' || type.ptr[0] == ';';
}

bool rs_grpc_is(const struct rs_exchange *x)
{
	/* Either may have been said before we listened. */
	return rs_grpc_content(rs_x_req(x, RS_F_HTTP_CONTENT_TYPE)) ||
	       rs_grpc_content(rs_x_resp(x, RS_F_HTTP_CONTENT_TYPE)) ||
	       rs_x_resp(x, RS_F_GRPC_STATUS).len;
}

/* grpc-timeout: up to eight digits and a unit. ns; 0: there is none. */
static uint64_t timeout_ns(struct str s)
{
	uint64_t n;

	if (s.len < 2 || s.len > 9 || !str_u64(str_at(s, 0, s.len - 1), &n))
		return 0;
	switch (s.ptr[s.len - 1]) {
	case 'H':
		return n * 3600000000000;
	case 'M':
		return n * 60000000000;
	case 'S':
		return n * 1000000000;
	case 'm':
		return n * 1000000;
	case 'u':
		return n * 1000;
	case 'n':
		return n;
	default:
		return 0;
	}
}

/* The client begins to count before its request is on the wire, and a server may read that late. */
static bool deadline_passed(const struct rs_exchange *x)
{
	uint64_t ns = timeout_ns(rs_x_req(x, RS_F_GRPC_TIMEOUT));

	return ns && x->end_ns - x->start_ns + 10000000 + ns / 20 >= ns;
}

static bool by_client(const struct rs_exchange *x)
{
	return str_eq(rs_x_resp(x, RS_F_HTTP_RESET_BY), STR("sent")) == (x->role == RS_ROLE_CLIENT);
}

/* PROTOCOL-HTTP2.md, "HTTP2 Transport Mapping, Errors" */
static enum code of_reset(const struct rs_exchange *x)
{
	struct str why = rs_x_resp(x, RS_F_HTTP_RESET);

	if (str_eq(why, STR("CANCEL")))
		return by_client(x) && deadline_passed(x) ? DEADLINE_EXCEEDED : CANCELLED;
	if (str_eq(why, STR("REFUSED_STREAM")))
		return UNAVAILABLE;
	if (str_eq(why, STR("ENHANCE_YOUR_CALM")))
		return RESOURCE_EXHAUSTED;
	if (str_eq(why, STR("INADEQUATE_SECURITY")))
		return PERMISSION_DENIED;
	if (str_eq(why, STR("STREAM_CLOSED")) || str_eq(why, STR("_OTHER")))
		return UNKNOWN;
	return INTERNAL;
}

/* "http-grpc-status-mapping.md" of grpc/grpc: an answer that is not gRPC's. */
static enum code of_http(uint64_t status)
{
	switch (status) {
	case 400:
		return INTERNAL;
	case 401:
		return UNAUTHENTICATED;
	case 403:
		return PERMISSION_DENIED;
	case 404:
		return UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return UNAVAILABLE;
	default:
		return UNKNOWN;
	}
}

static enum code code_of(const struct rs_exchange *x)
{
	struct str said = rs_x_resp(x, RS_F_GRPC_STATUS);
	uint64_t n;

	if (str_u64(said, &n))
		return n < CODES ? (enum code)n : UNKNOWN;
	if (x->end == RS_XEND_ABORTED)
		return of_reset(x);
	if (x->end != RS_XEND_OK || x->cut)
		return NONE;
	return str_u64(rs_x_resp(x, RS_F_HTTP_STATUS), &n) ? of_http(n) : NONE;
}

/* Of a server, what the client has done wrong is no error. */
static bool is_error(enum code code, bool server)
{
	switch (code) {
	case OK:
	case NONE:
		return false;
	case UNKNOWN:
	case DEADLINE_EXCEEDED:
	case UNIMPLEMENTED:
	case INTERNAL:
	case UNAVAILABLE:
	case DATA_LOSS:
		return true;
	default:
		return !server;
	}
}

static void describe_method(struct str path, bool unknown, struct rs_build *b)
{
	struct str method = str_starts(path, STR("/")) ? str_from(path, 1) : path;

	if (!method.len || unknown)
		rs_build_name(b, STR("grpc"));
	else
		rs_build_name(b, method);
	if (!method.len)
		return; /* it was not captured */
	rs_build_str(b, RS_K_RPC_METHOD, unknown ? STR("_OTHER") : method);
	if (unknown)
		rs_build_str(b, RS_K_RPC_METHOD_ORIGINAL, str_at(method, 0, 256));
}

static void describe_outcome(const struct rs_exchange *x, enum code code, bool server,
			     struct rs_build *b)
{
	struct str error = STR_NONE;

	if (code != NONE) {
		rs_build_str(b, RS_K_RPC_STATUS_CODE, names[code]);
		if (is_error(code, server))
			error = names[code];
	} else {
		error = rs_http_end_word(x);
	}
	if (!error.len)
		return;
	rs_build_str(b, RS_K_ERROR_TYPE, error);
	/* That we did not see the end is no error of the call. */
	if (code != NONE || (x->end != RS_XEND_LOST && x->end != RS_XEND_STOPPED))
		b->span->status = RS_STATUS_ERROR;
}

void rs_grpc_describe(const struct rs_exchange *x, struct rs_build *b)
{
	bool server = x->role != RS_ROLE_CLIENT;
	enum code code = code_of(x);
	struct rs_http http;

	rs_http_fields(x, &http);
	b->span->kind = server ? RS_KIND_SERVER : RS_KIND_CLIENT;
	rs_build_lit(b, RS_K_RPC_SYSTEM_NAME, RS_SPAN_STR("grpc"));
	describe_method(http.target, server && code == UNIMPLEMENTED, b);
	describe_outcome(x, code, server, b);
	rs_http_describe_server(x, &http, b);
	if (server)
		rs_http_describe_client(x, &http, b);
	rs_http_describe_network(x->conn, http.version, b);
	if (x->end == RS_XEND_ABORTED)
		rs_build_str(b, RS_K_RINGSPAN_HTTP2_RESET, rs_x_resp(x, RS_F_HTTP_RESET));
	if (x->end != RS_XEND_OK && x->end != RS_XEND_ABORTED)
		return; /* they were not counted to the end */
	if (x->parts[0] != RS_PARTS_UNKNOWN)
		rs_build_int(b, RS_K_RINGSPAN_RPC_REQUEST_MESSAGES, x->parts[0]);
	if (x->parts[1] != RS_PARTS_UNKNOWN)
		rs_build_int(b, RS_K_RINGSPAN_RPC_RESPONSE_MESSAGES, x->parts[1]);
}
