// SPDX-License-Identifier: Apache-2.0
#include "http.h"

/* Text put together here: longer than the longest target, redaction included. More is cut off. */
struct text {
	size_t len;
	char buf[16384];
};

static void put(struct text *t, struct str s)
{
	size_t room = sizeof(t->buf) - t->len;
	size_t n = s.len < room ? s.len : room;

	if (n)
		memcpy(t->buf + t->len, s.ptr, n);
	t->len += n;
}

static struct str text_str(const struct text *t)
{
	return (struct str){ t->buf, t->len };
}

/* host[:port], an IPv6 address in brackets or bare. */
struct authority {
	struct str host; /* without brackets */
	uint16_t port;	 /* 0: not said */
};

static struct authority authority(struct str s)
{
	struct authority a = { .host = s };
	struct str port = STR_NONE;
	size_t at = str_find(s, ':');
	uint64_t n;

	if (s.len && s.ptr[0] == '[') {
		struct str rest = str_cut(str_from(s, 1), ']', &a.host);

		if (rest.len && rest.ptr[0] == ':')
			port = str_from(rest, 1);
	} else if (at < s.len && str_find(str_from(s, at + 1), ':') == s.len - at - 1) {
		a.host = str_at(s, 0, at);
		port = str_from(s, at + 1);
	}
	if (str_u64(port, &n) && n <= UINT16_MAX)
		a.port = (uint16_t)n;
	return a;
}

/* The request-target's parts, whatever its form. */
struct target {
	struct str scheme;    /* absolute-form only */
	struct str userinfo;  /* absolute-form only; what stands before the '@' */
	struct str authority; /* absolute-form and authority-form */
	struct str path;
	struct str query;
	bool has_query;
};

static size_t find_any(struct str s, char a, char b)
{
	size_t i = str_find(s, a), k = str_find(s, b);

	return i < k ? i : k;
}

static struct target split_target(struct str method, struct str s)
{
	struct target t = { 0 };
	size_t at;

	/* One that is extended has a path. */
	if (str_eq(method, STR("CONNECT")) && (!s.len || s.ptr[0] != '/')) {
		t.authority = s;
		return t;
	}
	s = str_at(s, 0, str_find(s, '#'));
	at = str_find(s, ':');
	if (s.len && s.ptr[0] != '/' && str_starts(str_from(s, at), STR("://"))) {
		t.scheme = str_at(s, 0, at);
		s = str_from(s, at + 3);
		at = find_any(s, '/', '?');
		t.authority = str_at(s, 0, at);
		s = str_from(s, at);
		/* The last '@': a password may hold one. */
		for (size_t i = t.authority.len; i-- > 0;) {
			if (t.authority.ptr[i] == '@') {
				t.userinfo = str_at(t.authority, 0, i + 1);
				t.authority = str_from(t.authority, i + 1);
				break;
			}
		}
	}
	at = str_find(s, '?');
	t.path = str_at(s, 0, at);
	t.has_query = at < s.len;
	t.query = str_from(s, at + 1);
	return t;
}

static bool secret_key(struct str key)
{
	static const struct str keys[] = {
		{ "X-Amz-Signature", 15 },
		{ "X-Amz-Credential", 16 },
		{ "X-Amz-Security-Token", 20 },
		{ "AWSAccessKeyId", 14 },
		{ "Signature", 9 },
		{ "sig", 3 },
		{ "X-Goog-Signature", 16 },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (str_eq(key, keys[i]))
			return true;
	}
	return false;
}

/* The query with the values of the well-known signature keys gone, and of those the user names. */
static void put_query(struct text *t, struct str query, const struct rs_redact *redact)
{
	while (query.len) {
		size_t at = str_find(query, '&');
		struct str pair = str_at(query, 0, at), key;

		str_cut(pair, '=', &key);
		if (key.len < pair.len && (secret_key(key) || rs_redact_query(redact, key))) {
			put(t, key);
			put(t, STR("=REDACTED"));
		} else {
			put(t, pair);
		}
		if (at < query.len)
			put(t, STR("&"));
		query = str_from(query, at + 1);
	}
}

static struct str unquote(struct str s)
{
	s = str_trim(s);
	if (s.len >= 2 && s.ptr[0] == '"' && s.ptr[s.len - 1] == '"')
		s = str_at(s, 1, s.len - 2);
	return s;
}

/* Up to the first `sep` that is not inside a quoted string. */
static struct str cut_quoted(struct str s, char sep, struct str *ret_head)
{
	bool quoted = false;
	size_t i;

	for (i = 0; i < s.len && (quoted || s.ptr[i] != sep); i++) {
		if (s.ptr[i] == '"')
			quoted = !quoted;
		else if (quoted && s.ptr[i] == '\\')
			i++;
	}
	*ret_head = str_at(s, 0, i);
	return str_from(s, i + 1);
}

/* RFC 7239 4: a parameter of the first element, or empty. */
static struct str forwarded(struct str field, struct str name)
{
	struct str element;

	cut_quoted(field, ',', &element);
	while (element.len) {
		struct str pair, key, value;

		element = cut_quoted(element, ';', &pair);
		value = str_cut(pair, '=', &key);
		if (str_ieq(str_trim(key), name))
			return unquote(value);
	}
	return STR_NONE;
}

/* The first, that is the original, member of an X-Forwarded-* list. */
static struct str first_member(struct str list)
{
	struct str one;

	str_cut(list, ',', &one);
	return unquote(one);
}

static struct str known_scheme(struct str s)
{
	if (str_ieq(s, STR("http")))
		return STR("http");
	return str_ieq(s, STR("https")) ? STR("https") : STR_NONE;
}

static struct str first_of(struct str a, struct str b)
{
	return a.len ? a : b;
}

static struct str scheme_of(const struct rs_exchange *x, const struct rs_http *h,
			    const struct target *t)
{
	struct str s = STR_NONE;

	if (x->role == RS_ROLE_SERVER)
		s = first_of(known_scheme(forwarded(h->forwarded, STR("proto"))),
			     known_scheme(first_member(h->x_forwarded_proto)));
	s = first_of(s, first_of(h->scheme, t->scheme));
	return first_of(s, x->conn->tls ? STR("https") : STR("http"));
}

/* Of the known methods (RFC 9110 9, RFC 5789, and QUERY), the same text as a literal. */
static struct str known_method(struct str s)
{
	static const struct str known[] = {
		RS_SPAN_STR("GET"),	RS_SPAN_STR("POST"),   RS_SPAN_STR("PUT"),
		RS_SPAN_STR("HEAD"),	RS_SPAN_STR("DELETE"), RS_SPAN_STR("OPTIONS"),
		RS_SPAN_STR("CONNECT"), RS_SPAN_STR("TRACE"),  RS_SPAN_STR("PATCH"),
		RS_SPAN_STR("QUERY"),
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (str_eq(s, known[i]))
			return known[i];
	}
	return STR_NONE;
}

static void describe_method(const struct rs_http *h, struct rs_build *b)
{
	struct str method = known_method(h->method);

	if (method.len) {
		b->span->name = method;
		rs_build_lit(b, RS_K_HTTP_REQUEST_METHOD, method);
		return;
	}
	b->span->name = RS_SPAN_STR("HTTP");
	if (!h->method.len)
		return; /* it was not captured */
	rs_build_lit(b, RS_K_HTTP_REQUEST_METHOD, RS_SPAN_STR("_OTHER"));
	rs_build_str(b, RS_K_HTTP_REQUEST_METHOD_ORIGINAL, str_at(h->method, 0, 64));
}

static void put_number(struct text *t, uint64_t n)
{
	char digits[20];
	size_t i = sizeof(digits);

	do
		digits[--i] = (char)('0' + n % 10);
	while (n /= 10);
	put(t, str_of(digits + i, sizeof(digits) - i));
}

static uint16_t default_port(struct str scheme)
{
	return str_ieq(scheme, STR("https")) ? 443 : 80;
}

/* url.full: absolute, without credentials. */
static void describe_full(const struct rs_http *h, const struct target *t, struct str scheme,
			  struct str at, struct authority server, struct rs_build *b)
{
	struct text url;

	if (str_eq(h->method, STR("CONNECT")) && !t->path.len)
		return; /* asks for a connection: there is no resource to name */
	if (!h->target.len)
		return; /* it was not captured */
	url.len = 0;
	put(&url, scheme);
	put(&url, STR("://"));
	if (t->userinfo.len)
		put(&url, STR("REDACTED:REDACTED@"));
	if (at.len) {
		put(&url, at);
	} else if (server.host.len && server.port) {
		bool v6 = str_find(server.host, ':') < server.host.len;

		put(&url, v6 ? STR("[") : STR_NONE);
		put(&url, server.host);
		put(&url, v6 ? STR("]") : STR_NONE);
		if (server.port != default_port(scheme)) {
			put(&url, STR(":"));
			put_number(&url, server.port);
		}
	} else {
		return; /* a Unix socket and no Host: no URL names it */
	}
	/* RFC 9112 3.3: the asterisk stands for the server as a whole */
	if (!str_eq(t->path, STR("*")))
		put(&url, t->path);
	if (t->has_query) {
		put(&url, STR("?"));
		put_query(&url, t->query, b->redact);
	}
	rs_build_str(b, RS_K_URL_FULL, text_str(&url));
}

/* server.address, server.port. */
static void describe_server(const struct rs_exchange *x, const struct rs_http *h,
			    const struct target *t, struct rs_build *b)
{
	bool client = x->role == RS_ROLE_CLIENT;
	const struct rs_endpoint *server = client ? &x->conn->peer : &x->conn->local;
	struct str at = first_of(t->authority, h->host);
	struct authority a;

	if (!client)
		at = first_of(first_of(forwarded(h->forwarded, STR("host")),
				       first_member(h->x_forwarded_host)),
			      at);
	/* A connection's address is not the name that was said and not captured. */
	if (!at.len && x->cut && str_eq(h->version, STR("2")))
		return;
	a = authority(at);
	if (!a.host.len && client && x->peer_is_name)
		a = (struct authority){ x->peer, server->port };
	else if (!a.host.len)
		a = (struct authority){ rs_conn_addr(x->conn, server), server->port };
	else if (!a.port)
		a.port = default_port(scheme_of(x, h, t));
	if (!a.host.len)
		return;
	rs_build_str(b, RS_K_SERVER_ADDRESS, a.host);
	if (a.port)
		rs_build_int(b, RS_K_SERVER_PORT, a.port);
}

void rs_http_describe_server(const struct rs_exchange *x, const struct rs_http *h,
			     struct rs_build *b)
{
	struct target none = { 0 };

	describe_server(x, h, &none, b);
}

static void describe_url(const struct rs_exchange *x, const struct rs_http *h, struct rs_build *b)
{
	struct target t = split_target(h->method, h->target);
	struct str scheme = scheme_of(x, h, &t);

	if (x->role == RS_ROLE_CLIENT) {
		describe_full(h, &t, scheme, first_of(t.authority, h->host),
			      (struct authority){ rs_conn_addr(x->conn, &x->conn->peer),
						  x->conn->peer.port },
			      b);
	} else {
		rs_build_str(b, RS_K_URL_SCHEME, scheme);
		if (t.path.len || (h->target.len && !str_eq(h->method, STR("CONNECT"))))
			rs_build_str(b, RS_K_URL_PATH, t.path.len ? t.path : STR("/"));
		if (t.query.len) {
			struct text query;

			query.len = 0;
			put_query(&query, t.query, b->redact);
			rs_build_str(b, RS_K_URL_QUERY, text_str(&query));
		}
	}
	describe_server(x, h, &t, b);
}

/* A field's value on one line: obs-fold and what else it may hold become blanks. */
static void put_value(struct text *t, struct str value)
{
	t->len = 0;
	put(t, value);
	for (size_t i = 0; i < t->len; i++) {
		if (t->buf[i] == '\r' || t->buf[i] == '\n')
			t->buf[i] = ' ';
	}
}

static void describe_agent(struct str agent, struct rs_build *b)
{
	struct text t; /* too large to be zeroed for each span */

	put_value(&t, agent);
	rs_build_str(b, RS_K_USER_AGENT_ORIGINAL, text_str(&t));
}

/* http.request.header.<key>, http.response.header.<key>: an array, a member for each time it is there. */
static void describe_header(const struct rs_field *f, unsigned n, uint16_t id,
			    const struct rs_key *key, struct rs_build *b)
{
	struct rs_val vals[RS_REDACT_HEADERS], *own;
	uint32_t nvals = 0;

	for (unsigned i = 0; i < n && nvals < RS_REDACT_HEADERS; i++) {
		struct text t;
		struct str s;

		if (f[i].id != id)
			continue;
		put_value(&t, f[i].value);
		s = rs_arena_str(b->arena, text_str(&t));
		if (!s.ptr) {
			b->dropped++;
			return;
		}
		vals[nvals++] =
			(struct rs_val){ .type = RS_VAL_STR, .len = (uint32_t)s.len, .str = s.ptr };
	}
	if (!nvals)
		return;
	own = rs_arena_alloc(b->arena, nvals * sizeof(*own));
	if (!own) {
		b->dropped++;
		return;
	}
	memcpy(own, vals, nvals * sizeof(*own));
	rs_build_key(b, key, (struct rs_val){ .type = RS_VAL_ARRAY, .len = nvals, .arr = own });
}

__attribute__((noinline)) /* large on the stack, and rarely wanted */
static void
describe_headers(const struct rs_exchange *x, uint16_t first, struct rs_build *b)
{
	const struct rs_redact *r = b->redact;

	for (uint32_t i = 0; i < r->request.n; i++)
		describe_header(x->req, x->nreq, (uint16_t)(first + i), &r->request.v[i].key, b);
	for (uint32_t i = 0; i < r->response.n; i++)
		describe_header(x->resp, x->nresp, (uint16_t)(first + i), &r->response.v[i].key, b);
}

void rs_http_describe_client(const struct rs_exchange *x, const struct rs_http *h,
			     struct rs_build *b)
{
	struct str node =
		first_of(forwarded(h->forwarded, STR("for")), first_member(h->x_forwarded_for));
	struct authority a = authority(node);

	if (!a.host.len || str_ieq(a.host, STR("unknown")))
		a.host = rs_conn_addr(x->conn, &x->conn->peer);
	if (a.host.len)
		rs_build_str(b, RS_K_CLIENT_ADDRESS, a.host);
	if (h->user_agent.len)
		describe_agent(h->user_agent, b);
}

static void describe_endpoint(const struct rs_conn_info *conn, const struct rs_endpoint *e,
			      enum rs_known_key addr, enum rs_known_key port, struct rs_build *b)
{
	struct str s = rs_conn_addr(conn, e);

	if (s.len)
		rs_build_str(b, addr, s);
	if (e->port)
		rs_build_int(b, port, e->port);
}

void rs_http_describe_network(const struct rs_conn_info *conn, struct str version,
			      struct rs_build *b)
{
	if (version.len)
		rs_build_str(b, RS_K_NETWORK_PROTOCOL_VERSION, version);
	switch ((enum rs_ev_family)conn->family) {
	case RS_FAMILY_INET:
	case RS_FAMILY_INET6:
		rs_build_lit(b, RS_K_NETWORK_TRANSPORT,
			     conn->l4 == RS_L4_UDP ? RS_SPAN_STR("udp") : RS_SPAN_STR("tcp"));
		rs_build_lit(b, RS_K_NETWORK_TYPE,
			     conn->family == RS_FAMILY_INET ? RS_SPAN_STR("ipv4")
							    : RS_SPAN_STR("ipv6"));
		break;
	case RS_FAMILY_UNIX:
		rs_build_lit(b, RS_K_NETWORK_TRANSPORT, RS_SPAN_STR("unix"));
		break;
	case RS_FAMILY_UNKNOWN:
		break;
	}
	describe_endpoint(conn, &conn->peer, RS_K_NETWORK_PEER_ADDRESS, RS_K_NETWORK_PEER_PORT, b);
	describe_endpoint(conn, &conn->local, RS_K_NETWORK_LOCAL_ADDRESS, RS_K_NETWORK_LOCAL_PORT,
			  b);
	if (conn->tls)
		rs_tls_describe(rs_conn_facts(conn), b);
}

struct str rs_http_end_word(const struct rs_exchange *x)
{
	switch ((enum rs_xend)x->end) {
	case RS_XEND_OK:
		return x->has_response ? STR_NONE : STR("_OTHER");
	case RS_XEND_CLOSED:
		return STR("connection_closed");
	case RS_XEND_RESET:
		return STR("connection_reset");
	case RS_XEND_PROC_GONE:
		return STR("process_exited");
	case RS_XEND_TIMEOUT:
		return STR("timeout");
	case RS_XEND_STOPPED:
		return x->has_response ? STR_NONE : STR("capture_ended");
	case RS_XEND_LOST:
		/* With a status, what is missing is ours to explain, not the request's. */
		return x->has_response ? STR_NONE : STR("capture_lost");
	case RS_XEND_ABORTED:
		/* A client that needs the answer no longer has not failed. */
		if (x->role == RS_ROLE_CLIENT &&
		    str_eq(rs_x_resp(x, RS_F_HTTP_RESET_BY), STR("sent")) &&
		    str_eq(rs_x_resp(x, RS_F_HTTP_RESET), STR("CANCEL")))
			return STR_NONE;
		return rs_x_resp(x, RS_F_HTTP_RESET);
	}
	return STR("_OTHER");
}

static void describe_outcome(const struct rs_exchange *x, struct str status, struct rs_build *b)
{
	struct str error = rs_http_end_word(x);
	uint64_t code = 0;

	if (x->has_response && str_u64(status, &code)) {
		rs_build_int(b, RS_K_HTTP_RESPONSE_STATUS_CODE, (int64_t)code);
		if (code >= 500 || (code >= 400 && x->role == RS_ROLE_CLIENT))
			error = status;
	}
	if (!error.len)
		return;
	rs_build_str(b, RS_K_ERROR_TYPE, error);
	/* That we did not see the response is no error of the request. */
	if ((x->end != RS_XEND_LOST && x->end != RS_XEND_STOPPED) || code)
		b->span->status = RS_STATUS_ERROR;
}

static void describe_sizes(const struct rs_exchange *x, struct rs_build *b)
{
	if (x->cut)
		return;
	if (x->request_done && x->req_body && x->req_body != RS_BODY_UNKNOWN)
		rs_build_int(b, RS_K_HTTP_REQUEST_BODY_SIZE, (int64_t)x->req_body);
	if (x->has_response && x->end == RS_XEND_OK && x->resp_body != RS_BODY_UNKNOWN)
		rs_build_int(b, RS_K_HTTP_RESPONSE_BODY_SIZE, (int64_t)x->resp_body);
}

bool rs_http_event_stream(struct str content_type)
{
	struct str type;

	str_cut(content_type, ';', &type);
	return str_ieq(str_trim(type), STR("text/event-stream"));
}

/* ringspan.stream: what goes on after the span has ended (websocket, tunnel), or made it long (sse). */
static void describe_stream(const struct rs_exchange *x, const struct rs_http *h,
			    struct rs_build *b)
{
	struct str upgrade = rs_x_resp(x, RS_F_HTTP_UPGRADE);
	char kind[32];

	if (str_eq(h->method, STR("CONNECT")) && h->status.len && h->status.ptr[0] == '2')
		upgrade = h->protocol.len ? h->protocol : STR("tunnel");
	else if (rs_x_resp(x, RS_F_HTTP_CONTENT_TYPE).len)
		upgrade = STR("sse");
	if (!upgrade.len)
		return;
	upgrade = str_at(upgrade, 0, sizeof(kind));
	for (size_t i = 0; i < upgrade.len; i++)
		kind[i] = str_lower_char(upgrade.ptr[i]);
	rs_build_str(b, RS_K_RINGSPAN_STREAM, str_of(kind, upgrade.len));
}

void rs_http_fields(const struct rs_exchange *x, struct rs_http *ret)
{
	*ret = (struct rs_http){
		.version = rs_x_req(x, RS_F_HTTP_VERSION),
		.status = rs_x_resp(x, RS_F_HTTP_STATUS),
	};
	for (unsigned i = 0; i < x->nreq; i++) {
		struct str v = x->req[i].value;

		switch (x->req[i].id) {
		case RS_F_HTTP_METHOD:
			ret->method = v;
			break;
		case RS_F_HTTP_TARGET:
			ret->target = v;
			break;
		case RS_F_HTTP_SCHEME:
			ret->scheme = v;
			break;
		case RS_F_HTTP_PROTOCOL:
			ret->protocol = v;
			break;
		case RS_F_HTTP_HOST:
			ret->host = v;
			break;
		case RS_F_HTTP_USER_AGENT:
			ret->user_agent = v;
			break;
		case RS_F_HTTP_FORWARDED:
			if (!ret->forwarded.len)
				ret->forwarded = v;
			break;
		case RS_F_HTTP_X_FORWARDED_FOR:
			if (!ret->x_forwarded_for.len)
				ret->x_forwarded_for = v;
			break;
		case RS_F_HTTP_X_FORWARDED_HOST:
			ret->x_forwarded_host = v;
			break;
		case RS_F_HTTP_X_FORWARDED_PROTO:
			ret->x_forwarded_proto = v;
			break;
		default:
			break;
		}
	}
	/* The request line was cut; or the connection went over to HTTP/2 between the two. */
	if (!ret->version.len || str_eq(rs_x_resp(x, RS_F_HTTP_VERSION), STR("2")))
		ret->version = rs_x_resp(x, RS_F_HTTP_VERSION);
}

void rs_http_describe(const struct rs_exchange *x, struct rs_build *b)
{
	bool server = x->role != RS_ROLE_CLIENT;
	struct rs_http http;

	rs_http_fields(x, &http);
	b->span->kind = server ? RS_KIND_SERVER : RS_KIND_CLIENT;
	describe_method(&http, b);
	describe_url(x, &http, b);
	describe_outcome(x, http.status, b);
	if (server)
		rs_http_describe_client(x, &http, b);
	rs_http_describe_network(x->conn, http.version, b);
	describe_sizes(x, b);
	describe_stream(x, &http, b);
	if (x->end == RS_XEND_ABORTED)
		rs_build_str(b, RS_K_RINGSPAN_HTTP2_RESET, rs_x_resp(x, RS_F_HTTP_RESET));
	if (b->redact && (b->redact->request.n || b->redact->response.n))
		describe_headers(x, RS_F_HTTP_HEADER, b);
}
