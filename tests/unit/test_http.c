// SPDX-License-Identifier: Apache-2.0
/* An HTTP exchange's span: semantic conventions 1.44.0, one row per rule. */
#include <stdio.h>
#include <stdlib.h>

#include "proto/exchange.h"
#include "proto/http1.h"
#include "trace/build.h"
#include "trace/redact.h"
#include "unit.h"

/* Two ends; what is not said is a server on IPv4, HTTP/1.1, 200, ended well. */
struct http_row {
	const char *name;
	bool client;
	const char *method, *target, *version, *status; /* status "": no response */
	const char *host, *agent, *forwarded, *xff, *xfh, *xfp;
	const char *local, *peer;
	uint16_t lport, pport;
	uint8_t family;
	bool tls, cut, request_open;
	uint8_t end;
	uint64_t req_body, resp_body;
	const char
		*want; /* "kind name status" and then attributes, in any order; "-key": not there */
};

#define NET "network.protocol.version=1.1 network.transport=tcp network.type=ipv4 "

static const struct http_row rows[] = {
	{ .name = "server",
	  .host = "shop.example:8080",
	  .agent = "curl/8",
	  .target = "/a/b?x=1&y=2",
	  .resp_body = 12,
	  .want = "server GET unset http.request.method=GET url.scheme=http url.path=/a/b url.query=x=1&y=2 "
		  "server.address=shop.example server.port=8080 http.response.status_code=200 "
		  "client.address=10.0.0.9 user_agent.original=curl/8 " NET
		  "network.peer.address=10.0.0.9 "
		  "network.peer.port=40000 network.local.address=10.0.0.1 network.local.port=80 "
		  "http.response.body.size=12 -error.type -url.full -http.request.body.size -client.port "
		  "-network.protocol.name -http.request.method_original" },
	{ .name = "client",
	  .client = true,
	  .local = "10.0.0.9",
	  .lport = 40000,
	  .peer = "10.0.0.1",
	  .pport = 80,
	  .host = "shop.example",
	  .agent = "curl/8",
	  .method = "POST",
	  .target = "/a/b?x=1",
	  .req_body = 7,
	  .want = "client POST unset http.request.method=POST url.full=http://shop.example/a/b?x=1 "
		  "server.address=shop.example server.port=80 http.response.status_code=200 " NET
		  "network.peer.address=10.0.0.1 network.peer.port=80 network.local.address=10.0.0.9 "
		  "network.local.port=40000 http.request.body.size=7 http.response.body.size=0 "
		  "-client.address -user_agent.original -url.path -url.scheme -url.query -error.type" },
	/* methods */
	{ .name = "unknown method",
	  .method = "BREW",
	  .want = "server HTTP unset http.request.method=_OTHER http.request.method_original=BREW" },
	{ .name = "methods have case",
	  .method = "get",
	  .want = "server HTTP unset http.request.method=_OTHER http.request.method_original=get" },
	{ .name = "query is a method",
	  .method = "QUERY",
	  .want = "server QUERY unset http.request.method=QUERY" },
	/* status */
	{ .name = "server 404",
	  .status = "404",
	  .want = "server GET unset http.response.status_code=404 -error.type" },
	{ .name = "client 404",
	  .client = true,
	  .status = "404",
	  .want = "client GET error http.response.status_code=404 error.type=404" },
	{ .name = "server 500", .status = "500", .want = "server GET error error.type=500" },
	{ .name = "client 503",
	  .client = true,
	  .status = "503",
	  .want = "client GET error error.type=503" },
	{ .name = "redirect",
	  .client = true,
	  .status = "302",
	  .want = "client GET unset -error.type" },
	{ .name = "odd status",
	  .status = "999",
	  .want = "server GET error http.response.status_code=999" },
	{ .name = "closed without a response",
	  .status = "",
	  .end = RS_XEND_CLOSED,
	  .want = "server GET error error.type=connection_closed -http.response.status_code "
		  "-http.response.body.size" },
	{ .name = "closed within a response",
	  .end = RS_XEND_CLOSED,
	  .want = "server GET error error.type=connection_closed http.response.status_code=200 "
		  "-http.response.body.size" },
	{ .name = "an error that breaks off has its own word",
	  .status = "502",
	  .end = RS_XEND_CLOSED,
	  .want = "server GET error error.type=502" },
	{ .name = "reset",
	  .status = "",
	  .end = RS_XEND_RESET,
	  .want = "server GET error error.type=connection_reset" },
	{ .name = "process gone",
	  .status = "",
	  .end = RS_XEND_PROC_GONE,
	  .want = "server GET error error.type=process_exited" },
	{ .name = "timeout",
	  .client = true,
	  .status = "",
	  .end = RS_XEND_TIMEOUT,
	  .want = "client GET error error.type=timeout" },
	{ .name = "the agent ended first",
	  .status = "",
	  .end = RS_XEND_STOPPED,
	  .want = "server GET unset error.type=capture_ended" },
	{ .name = "response not captured",
	  .status = "",
	  .end = RS_XEND_LOST,
	  .want = "server GET unset error.type=capture_lost" },
	{ .name = "end not captured", .end = RS_XEND_LOST, .want = "server GET unset -error.type" },
	{ .name = "lost, but it was an error",
	  .status = "500",
	  .end = RS_XEND_LOST,
	  .want = "server GET error error.type=500" },
	/* sizes */
	{ .name = "cut: sizes are not known",
	  .cut = true,
	  .req_body = 4,
	  .resp_body = 4,
	  .want = "server GET unset -http.request.body.size -http.response.body.size" },
	{ .name = "request not at its end",
	  .request_open = true,
	  .req_body = 4,
	  .want = "server GET unset -http.request.body.size http.response.body.size=0" },
	/* targets */
	{ .name = "absolute-form, server",
	  .target = "http://other.example:81/p?q",
	  .host = "ignored.example",
	  .want = "server GET unset url.path=/p url.query=q url.scheme=http server.address=other.example server.port=81" },
	{ .name = "absolute-form, client",
	  .client = true,
	  .target = "https://u:p@ss@api.example/p?sig=1#frag",
	  .host = "api.example",
	  .want = "client GET unset url.full=https://REDACTED:REDACTED@api.example/p?sig=REDACTED "
		  "server.address=api.example server.port=443" },
	{ .name = "absolute-form without a path",
	  .target = "http://h",
	  .want = "server GET unset url.path=/ server.address=h server.port=80" },
	{ .name = "absolute-form, query only",
	  .client = true,
	  .target = "http://h?a",
	  .want = "client GET unset url.full=http://h?a" },
	{ .name = "a URL in a query is no scheme",
	  .target = "/r?u=http://x/y",
	  .want = "server GET unset url.path=/r url.query=u=http://x/y url.scheme=http" },
	{ .name = "authority-form, client",
	  .client = true,
	  .method = "CONNECT",
	  .target = "db.example:5432",
	  .host = "db.example:5432",
	  .want = "client CONNECT unset server.address=db.example server.port=5432 -url.full" },
	{ .name = "authority-form, server",
	  .method = "CONNECT",
	  .target = "[::1]:443",
	  .want = "server CONNECT unset server.address=::1 server.port=443 -url.path" },
	{ .name = "asterisk-form, server",
	  .method = "OPTIONS",
	  .target = "*",
	  .want = "server OPTIONS unset url.path=*" },
	{ .name = "asterisk-form, client",
	  .client = true,
	  .method = "OPTIONS",
	  .target = "*",
	  .host = "h:81",
	  .want = "client OPTIONS unset url.full=http://h:81" },
	{ .name = "empty query",
	  .target = "/p?",
	  .want = "server GET unset url.path=/p -url.query" },
	{ .name = "empty query, client",
	  .client = true,
	  .target = "/p?",
	  .host = "h",
	  .want = "client GET unset url.full=http://h/p?" },
	/* redaction */
	{ .name = "signatures",
	  .target =
		  "/s?a=1&X-Amz-Signature=s1&sig=s2&AWSAccessKeyId=s3&Signature=s4&X-Goog-Signature=s5&"
		  "X-Amz-Credential=s6&X-Amz-Security-Token=s7&SIG=shown&sig&sigx=1&",
	  .want = "server GET unset url.query=a=1&X-Amz-Signature=REDACTED&sig=REDACTED&AWSAccessKeyId=REDACTED&"
		  "Signature=REDACTED&X-Goog-Signature=REDACTED&X-Amz-Credential=REDACTED&"
		  "X-Amz-Security-Token=REDACTED&SIG=shown&sig&sigx=1&" },
	/* hosts */
	{ .name = "no host, server",
	  .version = "1.0",
	  .want = "server GET unset server.address=10.0.0.1 server.port=80 network.protocol.version=1.0" },
	{ .name = "no host, client",
	  .client = true,
	  .local = "10.0.0.9",
	  .peer = "10.0.0.1",
	  .pport = 8080,
	  .want = "client GET unset url.full=http://10.0.0.1:8080/x server.address=10.0.0.1 server.port=8080" },
	{ .name = "no host, client, IPv6",
	  .client = true,
	  .family = RS_FAMILY_INET6,
	  .local = "::1",
	  .peer = "fe80::2",
	  .pport = 80,
	  .want = "client GET unset url.full=http://[fe80::2]/x server.address=fe80::2 server.port=80 "
		  "network.type=ipv6 network.transport=tcp" },
	{ .name = "IPv6 in Host",
	  .host = "[2001:db8::1]:8443",
	  .want = "server GET unset server.address=2001:db8::1 server.port=8443" },
	{ .name = "tls",
	  .tls = true,
	  .host = "h",
	  .want = "server GET unset url.scheme=https server.port=443" },
	{ .name = "bad port in Host",
	  .host = "h:99999",
	  .want = "server GET unset server.address=h server.port=80" },
	/* proxies */
	{ .name = "Forwarded",
	  .forwarded =
		  "For=\"[2001:db8::7]:4711\";Proto=https;host=\"pub.example:444\";by=1.1.1.1, for=9.9.9.9",
	  .xff = "8.8.8.8",
	  .xfh = "no.example",
	  .xfp = "http",
	  .host = "in.example",
	  .want = "server GET unset client.address=2001:db8::7 url.scheme=https server.address=pub.example "
		  "server.port=444 network.peer.address=10.0.0.9" },
	{ .name = "X-Forwarded",
	  .xff = " 8.8.8.8:99, 10.1.1.1",
	  .xfh = "pub.example, in.example",
	  .xfp = "HTTPS",
	  .host = "in.example",
	  .want = "server GET unset client.address=8.8.8.8 url.scheme=https server.address=pub.example server.port=443" },
	{ .name = "X-Forwarded-For, bare IPv6",
	  .xff = "2001:db8::7",
	  .want = "server GET unset client.address=2001:db8::7" },
	{ .name = "forwarded for nobody",
	  .forwarded = "for=unknown;by=x",
	  .xff = "unknown",
	  .want = "server GET unset client.address=10.0.0.9" },
	{ .name = "forwarded, obfuscated",
	  .forwarded = "proto=gopher;for=_gazonk",
	  .want = "server GET unset client.address=_gazonk url.scheme=http" },
	{ .name = "a proxy's own request is not what it forwards",
	  .client = true,
	  .xfp = "https",
	  .xfh = "pub.example",
	  .host = "in.example",
	  .want = "client GET unset url.full=http://in.example/x server.address=in.example server.port=80" },
	/* Unix sockets */
	{ .name = "unix, server",
	  .family = RS_FAMILY_UNIX,
	  .local = "/run/app.sock",
	  .peer = "",
	  .host = "localhost",
	  .want = "server GET unset server.address=localhost server.port=80 network.transport=unix "
		  "network.local.address=/run/app.sock -network.type -network.peer.address -network.peer.port "
		  "-client.address" },
	{ .name = "unix, server, no host",
	  .family = RS_FAMILY_UNIX,
	  .local = "/run/app.sock",
	  .peer = "",
	  .want = "server GET unset server.address=/run/app.sock -server.port" },
	{ .name = "unix, client, no host",
	  .client = true,
	  .family = RS_FAMILY_UNIX,
	  .local = "",
	  .peer = "/run/app.sock",
	  .want = "client GET unset server.address=/run/app.sock network.peer.address=/run/app.sock -server.port -url.full" },
	/* text */
	{ .name = "folded agent",
	  .agent = "a\r\n b",
	  .want = "server GET unset user_agent.original=a~~~b" },
};

static struct str or (const char *s, const char *otherwise)
{
	return str_c(s ? s : otherwise);
}

static void add(struct rs_field *fields, uint8_t *n, uint16_t id, const char *value)
{
	if (value)
		fields[(*n)++] = (struct rs_field){ id, str_c(value) };
}

static void text_of(const struct rs_val *v, char *to, size_t room)
{
	if (v->type == RS_VAL_INT)
		snprintf(to, room, "%lld", (long long)v->i);
	else
		snprintf(to, room, "%.*s", (int)v->len, v->str);
	/* Blanks would end a word of `want`. */
	for (char *p = to; *p; p++)
		*p = *p == ' ' ? '~' : *p;
}

static const struct rs_attr *find(const struct rs_build *b, const char *key)
{
	const struct rs_attr *found = NULL;

	for (uint32_t i = 0; i < b->n; i++) {
		if (str_eq(b->attrs[i].key->name, str_c(key))) {
			if (found)
				fail_msg("%s is there twice", key);
			found = &b->attrs[i];
		}
	}
	return found;
}

static void check_row(const struct http_row *r)
{
	static const char *const kinds[] = {
		[RS_KIND_SERVER] = "server", [RS_KIND_CLIENT] = "client"
	};
	static const char *const codes[] = {
		[RS_STATUS_UNSET] = "unset", [RS_STATUS_ERROR] = "error"
	};
	struct rs_conn_info conn = { .family = r->family ? r->family : RS_FAMILY_INET,
				     .tls = r->tls };
	struct rs_exchange x = { .ops = rs_protos[RS_PROTO_http1], .conn = &conn };
	struct rs_span span = { .status = RS_STATUS_UNSET };
	struct rs_arena arena;
	static struct rs_build b;
	char want[2048], head[256], *word, *save;

	conn.l4 = conn.family == RS_FAMILY_UNIX ? RS_L4_UNKNOWN : RS_L4_TCP;
	rs_conn_set_addr(&conn, &conn.local, str_c(r->local ? r->local : "10.0.0.1"));
	rs_conn_set_addr(&conn, &conn.peer, str_c(r->peer ? r->peer : "10.0.0.9"));
	conn.local.port = r->local ? r->lport : 80;
	conn.peer.port = r->peer ? r->pport : 40000;
	x.role = r->client ? RS_ROLE_CLIENT : RS_ROLE_SERVER;
	x.end = r->end;
	x.cut = r->cut;
	x.request_done = !r->request_open;
	x.req_body = r->req_body;
	x.resp_body = r->resp_body;
	add(x.req, &x.nreq, RS_F_HTTP_METHOD, or (r->method, "GET").ptr);
	add(x.req, &x.nreq, RS_F_HTTP_TARGET, or (r->target, "/x").ptr);
	add(x.req, &x.nreq, RS_F_HTTP_VERSION, or (r->version, "1.1").ptr);
	add(x.req, &x.nreq, RS_F_HTTP_HOST, r->host);
	add(x.req, &x.nreq, RS_F_HTTP_USER_AGENT, r->agent);
	add(x.req, &x.nreq, RS_F_HTTP_FORWARDED, r->forwarded);
	add(x.req, &x.nreq, RS_F_HTTP_X_FORWARDED_FOR, r->xff);
	add(x.req, &x.nreq, RS_F_HTTP_X_FORWARDED_HOST, r->xfh);
	add(x.req, &x.nreq, RS_F_HTTP_X_FORWARDED_PROTO, r->xfp);
	x.has_response = !r->status || r->status[0];
	if (x.has_response)
		add(x.resp, &x.nresp, RS_F_HTTP_STATUS, or (r->status, "200").ptr);

	rs_arena_init(&arena, 65536, 0);
	rs_build_init(&b, &span, &arena);
	x.ops->describe(&x, &b);
	snprintf(head, sizeof(head), "%s %.*s %s", kinds[span.kind], STR_ARG(span.name),
		 codes[span.status]);
	snprintf(want, sizeof(want), "%s", r->want);
	if (strncmp(want, head, strlen(head)) != 0)
		fail_msg("%s: %s, wanted %s", r->name, head, want);
	for (word = strtok_r(want + strlen(head), " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '='), text[1024];
		const struct rs_attr *a;

		if (word[0] == '-') {
			if (find(&b, word + 1))
				fail_msg("%s: %s is there", r->name, word + 1);
			continue;
		}
		*value++ = 0;
		a = find(&b, word);
		if (!a)
			fail_msg("%s: %s is not there", r->name, word);
		text_of(&a->val, text, sizeof(text));
		if (strcmp(text, value) != 0)
			fail_msg("%s: %s is %s, not %s", r->name, word, text, value);
	}
	rs_arena_release(&arena);
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(&rows[i]);
}

/* Longest text: nothing is read or written beyond it. */
static void test_long_texts(void **state)
{
	static char target[9000], agent[40000];
	struct http_row r = { .name = "long", .target = target, .agent = agent, .host = "h" };

	(void)state;
	memset(target, 'a', sizeof(target) - 1);
	memcpy(target, "/p?", 3);
	for (size_t i = 3; i + 6 < sizeof(target); i += 6)
		memcpy(target + i, "sig=a&", 6);
	memset(agent, 'x', sizeof(agent) - 1);
	r.want = "server GET unset";
	check_row(&r);
	r.client = true;
	r.want = "client GET unset";
	check_row(&r);
}

static void take(struct str head, void *state, enum rs_ev_dir dir, struct rs_field *to, uint8_t *n,
		 uint8_t *ret_flags)
{
	struct rs_msg m;
	size_t used;

	assert_int_equal(rs_proto_http1.parse(state, dir, RS_ROLE_SERVER, head, &used, &m),
			 RS_PARSE_OK);
	memcpy(to, m.fields, sizeof(m.fields));
	*n = m.nfields;
	*ret_flags = m.flags;
	assert_int_equal(rs_proto_http1.parse(state, dir, RS_ROLE_SERVER, STR_NONE, &used, &m),
			 RS_PARSE_OK);
}

static void check_values(const struct rs_build *b, const char *key, const char *const *want,
			 uint32_t n)
{
	const struct rs_attr *a = find(b, key);

	if (!a)
		fail_msg("%s is not there", key);
	assert_int_equal(a->val.type, RS_VAL_ARRAY);
	assert_int_equal(a->val.len, n);
	for (uint32_t i = 0; i < n; i++) {
		struct str s = str_of(a->val.arr[i].str, a->val.arr[i].len);

		assert_int_equal(a->val.arr[i].type, RS_VAL_STR);
		if (!str_eq(s, str_c(want[i])))
			fail_msg("%s[%u] is '%.*s', not '%s'", key, i, STR_ARG(s), want[i]);
	}
}

#define VALUES(...)                                                                                \
	(const char *const[]){ __VA_ARGS__ },                                                      \
		sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)

/* Header fields that are asked for, query keys, attributes left out: from the bytes to the span. */
static void test_redact(void **state)
{
	static const struct rs_redact_lists lists = {
		.query = " token , Key",
		.drop = "url.path,user_agent.original,server.port,http.request.header.x-gone",
		.request = "X-Tenant,authorization,X-Gone, x-absent,Accept,x-tenant",
		.response = "Content-Type,Set-Cookie,x-many",
	};
	static struct rs_redact r;
	static struct rs_build b;
	struct rs_conn_info conn = { .family = RS_FAMILY_INET, .l4 = RS_L4_TCP };
	struct rs_exchange x = {
		.ops = &rs_proto_http1, .conn = &conn, .role = RS_ROLE_SERVER, .has_response = true
	};
	struct rs_span span = { 0 };
	struct rs_arena arena;
	uint8_t flags;
	void *st;

	(void)state;
	assert_int_equal(rs_redact_init(&r, &lists).len, 0);
	st = calloc(1, rs_proto_http1.state_size);
	assert_non_null(st);
	rs_proto_http1.start(st, &(struct rs_proto_env){ .redact = &r });
	take(STR("GET /p?token=1&Token=2&Key=3&sig=4&key HTTP/1.1\r\nHost: h:81\r\nUser-Agent: u\r\n"
		 "x-tenant: a\r\nX-TENANT:b\r\n  c\r\nAuthorization: Basic c2VjcmV0\r\nX-Gone: g\r\n"
		 "X-Tenants: no\r\nAccept:\r\n\r\n"),
	     st, RS_DIR_IN, x.req, &x.nreq, &flags);
	assert_int_equal(flags, 0);
	for (unsigned i = 0; i < x.nreq; i++) /* a secret does not even get so far */
		assert_int_equal(str_find(x.req[i].value, 'B'), x.req[i].value.len);
	take(STR("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nSet-Cookie: a=s\r\nSet-Cookie: b=s\r\n"
		 "x-many: 1\r\nx-many: 2\r\nx-many: 3\r\nx-many: 4\r\nx-many: 5\r\nx-many: 6\r\n"
		 "content-length: 0\r\n\r\n"),
	     st, RS_DIR_OUT, x.resp, &x.nresp, &flags);
	assert_int_equal(flags, RS_MSGF_CUT); /* the ninth value was one too many */

	rs_arena_init(&arena, 65536, 0);
	rs_build_init(&b, &span, &arena);
	b.redact = &r;
	x.ops->describe(&x, &b);
	rs_build_redact(&b);
	assert_int_equal(b.dropped, 0);
	assert_true(str_eq(str_of(find(&b, "url.query")->val.str, find(&b, "url.query")->val.len),
			   STR("token=REDACTED&Token=2&Key=REDACTED&sig=REDACTED&key")));
	check_values(&b, "http.request.header.x-tenant", VALUES("a", "b    c"));
	check_values(&b, "http.request.header.authorization", VALUES("REDACTED"));
	check_values(&b, "http.request.header.accept", VALUES(""));
	check_values(&b, "http.response.header.content-type", VALUES("text/plain"));
	check_values(&b, "http.response.header.set-cookie", VALUES("REDACTED", "REDACTED"));
	check_values(&b, "http.response.header.x-many", VALUES("1", "2", "3", "4", "5"));
	assert_null(find(&b, "http.request.header.x-absent"));
	assert_null(find(&b, "http.request.header.x-gone"));
	assert_null(find(&b, "url.path"));
	assert_null(find(&b, "user_agent.original"));
	assert_null(find(&b, "server.port"));
	assert_non_null(find(&b, "server.address"));
	rs_arena_release(&arena);
	free(st);
}

/* What cannot be done as asked is named; names that look like a secret's are taken for one. */
static void test_redact_lists(void **state)
{
	static const char *const secrets =
		"Proxy-Authorization,cookie,X-Api-Key,DD-API-KEY,X-Auth-Key,X-Csrf-Token";
	static struct rs_redact r;
	struct rs_redact_lists l = { .drop = "url.path,url.pth" };
	static char name[RS_REDACT_NAME + 2];

	(void)state;
	assert_true(str_eq(rs_redact_init(&r, &l), STR("url.pth")));
	l = (struct rs_redact_lists){ .request = "1,2,3,4,5,6,7,8,8,9" };
	assert_true(str_eq(rs_redact_init(&r, &l), STR("9")));
	memset(name, 'n', RS_REDACT_NAME);
	l = (struct rs_redact_lists){ .response = name, .query = ",, ," };
	assert_int_equal(rs_redact_init(&r, &l).len, 0);
	assert_int_equal(r.response.n, 1);
	assert_int_equal(r.nquery, 0);
	name[RS_REDACT_NAME] = 'n';
	assert_int_equal(rs_redact_init(&r, &l).len, RS_REDACT_NAME + 1);
	l = (struct rs_redact_lists){ .request = secrets };
	assert_int_equal(rs_redact_init(&r, &l).len, 0);
	assert_int_equal(r.request.n, 6);
	for (uint32_t i = 0; i < r.request.n; i++)
		assert_true(r.request.v[i].secret);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_long_texts),
		cmocka_unit_test(test_redact),
		cmocka_unit_test(test_redact_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
