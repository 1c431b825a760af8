// SPDX-License-Identifier: Apache-2.0
/*
 * zipkin — Zipkin v2 JSON: an array of spans. POST /api/v2/spans. Mapping: OpenTelemetry's for Zipkin.
 *
 * Losses: links, trace state, flags, schema URLs, dropped counts of events' attributes and of links; resource
 * attributes other than service.name and service.namespace; types of attributes (all tags are text: bytes base64,
 * arrays and maps JSON); nanoseconds (times are rounded down to microseconds, 1 at least); upper case of ASCII
 * letters in names of spans and services (others keep theirs: what lower case is depends on the language); of attributes with the same name the first stays; an attribute `error` of false, or of any value
 * when the status is an error; attributes with an empty key.
 */
#include <arpa/inet.h>

#include "encoder.h"
#include "json_value.h"
#include "keyset.h"

struct state {
	struct rs_sink sink;
	struct rs_keyset keys;
};

/* "text", its ASCII in lower case: Zipkin's names are. */
static char *put_lower(struct rs_sink *s, char *p, struct str v)
{
	size_t at = rs_sink_pos(s, p);

	p = rs_json_text(s, p, v);
	if (s->err)
		return p;
	/* Escapes have no upper-case letters. */
	for (size_t i = at; i < rs_sink_pos(s, p); i++)
		s->base[i] = str_lower_char(s->base[i]);
	return rs_sink_need(s, p, 0);
}

static const struct rs_val *find(const struct rs_attrs *as, struct str name)
{
	for (uint32_t i = 0; i < as->n; i++) {
		if (str_eq(as->a[i].key->name, name))
			return &as->a[i].val;
	}
	return NULL;
}

static struct str find_str(const struct rs_attrs *as, struct str name)
{
	const struct rs_val *v = find(as, name);

	return v && v->type == RS_VAL_STR ? (struct str){ v->str, v->len } : STR_NONE;
}

static char *put_port(char *p, const struct rs_val *port)
{
	if (!port || port->type != RS_VAL_INT || port->i < 1 || port->i > 65535)
		return p;
	p = RS_LIT(p, ",\"port\":");
	return rs_json_i64(p, port->i);
}

/* An address as ipv4 or ipv6 if it is one, else as a name. Leaves the object open. */
static char *put_address(struct rs_sink *s, char *p, struct str addr)
{
	char text[INET6_ADDRSTRLEN] = "", out[INET6_ADDRSTRLEN];
	struct in6_addr a6;
	struct in_addr a4;

	if (addr.len < sizeof(text)) {
		memcpy(text, addr.ptr, addr.len);
		if (inet_pton(AF_INET6, text, &a6) == 1) {
			if (IN6_IS_ADDR_V4MAPPED(&a6)) {
				inet_ntop(AF_INET, &a6.s6_addr[12], out, sizeof(out));
				p = RS_LIT(p, "{\"ipv4\":\"");
			} else {
				inet_ntop(AF_INET6, &a6, out, sizeof(out));
				p = RS_LIT(p, "{\"ipv6\":\"");
			}
		} else if (inet_pton(AF_INET, text, &a4) == 1) {
			inet_ntop(AF_INET, &a4, out, sizeof(out));
			p = RS_LIT(p, "{\"ipv4\":\"");
		} else {
			goto name;
		}
		memcpy(p, out, strlen(out));
		p += strlen(out);
		*p++ = '"';
		return p;
	}
name:
	p = RS_LIT(p, "{\"serviceName\":");
	return put_lower(s, p, addr);
}

static char *put_remote(struct rs_sink *s, char *p, const struct rs_attrs *as)
{
	static const struct {
		struct str name, port;
		bool address;
	} from[] = {
#define N(x) { x, sizeof(x) - 1 }
		{ N("peer.service"), { NULL, 0 }, false },
		{ N("service.peer.name"), { NULL, 0 }, false },
		{ N("server.address"), { NULL, 0 }, false },
		{ N("net.peer.name"), { NULL, 0 }, false },
		{ N("network.peer.address"), N("network.peer.port"), true },
		{ N("server.socket.domain"), { NULL, 0 }, false },
		{ N("server.socket.address"), N("server.socket.port"), true },
		{ N("net.sock.peer.name"), { NULL, 0 }, false },
		{ N("net.sock.peer.addr"), N("net.sock.peer.port"), true },
		{ N("peer.hostname"), { NULL, 0 }, false },
		{ N("peer.address"), { NULL, 0 }, false },
		{ N("db.name"), { NULL, 0 }, false },
#undef N
	};

	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		struct str v = find_str(as, from[i].name);

		if (!v.len)
			continue;
		p = RS_LIT(p, ",\"remoteEndpoint\":");
		if (from[i].address) {
			p = put_address(s, p, v);
			p = put_port(p, find(as, from[i].port));
		} else {
			p = RS_LIT(p, "{\"serviceName\":");
			p = put_lower(s, p, v);
		}
		*p++ = '}';
		break;
	}
	return p;
}

/* Times and lengths of time in microseconds, never 0: that is "unset". */
static char *put_micros(char *p, uint64_t ns)
{
	return rs_json_u64(p, ns < 1000 ? 1 : ns / 1000);
}

static char *put_annotation(struct rs_sink *s, char *p, const struct rs_event *e)
{
	p = RS_LIT(p, "{\"timestamp\":");
	p = put_micros(p, e->time_ns);
	p = RS_LIT(p, ",\"value\":\"");
	if (!rs_attrs_named(&e->attrs)) {
		p = rs_text_json(s, p, e->name);
	} else {
		size_t at = rs_sink_pos(s, p);

		p = rs_json_text(s, p, e->name);
		p = RS_LIT(p, ": ");
		p = rs_json_map(s, p, e->attrs.a, e->attrs.n, RS_JSON_NO_LIMIT);
		p = rs_json_quote(s, p, at);
	}
	p = RS_LIT(p, "\"},");
	return rs_sink_need(s, p, 0);
}

/* "name":"…, with the comma before it unless it is the first. */
static char *put_tag_head(struct rs_sink *s, char *p, struct str name)
{
	p = rs_sink_need(s, p, 0);
	if (p[-1] != '{')
		*p++ = ',';
	p = rs_json_text(s, p, name);
	return RS_LIT(p, ":\"");
}

static char *put_tag(struct state *st, char *p, struct str name, struct str value)
{
	struct rs_sink *s = &st->sink;

	if (!rs_keyset_add(&st->keys, name))
		return p;
	p = put_tag_head(s, p, name);
	p = rs_text_json(s, p, value);
	*p++ = '"';
	return rs_sink_need(s, p, 0);
}

static char *put_count(struct state *st, char *p, struct str name, uint32_t n)
{
	if (!n || !rs_keyset_add(&st->keys, name))
		return p;
	p = put_tag_head(&st->sink, p, name);
	p = rs_json_u64(p, n);
	*p++ = '"';
	return rs_sink_need(&st->sink, p, 0);
}

static bool is_false(const struct rs_val *v)
{
	if (v->type == RS_VAL_BOOL)
		return !v->b;
	return v->type == RS_VAL_STR && str_eq((struct str){ v->str, v->len }, STR("false"));
}

static char *put_tags(struct state *st, char *p, const struct rs_span *span,
		      const struct rs_resource *res, const struct rs_scope *scope)
{
	struct rs_sink *s = &st->sink;
	struct str ns = find_str(&res->attrs, STR("service.namespace"));

	rs_keyset_begin(&st->keys);
	p = RS_LIT(p, ",\"tags\":{");
	/* What the status says comes first: an attribute cannot say otherwise. */
	if (span->status == RS_STATUS_ERROR) {
		p = put_tag(st, p, RS_SPAN_STR("otel.status_code"), RS_SPAN_STR("ERROR"));
		p = put_tag(st, p, RS_SPAN_STR("error"), span->status_msg);
	} else if (span->status == RS_STATUS_OK) {
		p = put_tag(st, p, RS_SPAN_STR("otel.status_code"), RS_SPAN_STR("OK"));
	}
	for (uint32_t i = 0; i < span->attrs.n; i++) {
		const struct rs_attr *a = &span->attrs.a[i];

		if (!rs_attr_named(a) || (str_eq(a->key->name, STR("error")) && is_false(&a->val)))
			continue;
		if (!rs_keyset_add(&st->keys, a->key->name))
			continue;
		p = put_tag_head(s, p, a->key->name);
		p = rs_value_text(s, p, &a->val, RS_JSON_NO_LIMIT);
		*p++ = '"';
	}
	if (ns.len)
		p = put_tag(st, p, RS_SPAN_STR("service.namespace"), ns);
	if (scope->name.len)
		p = put_tag(st, p, RS_SPAN_STR("otel.scope.name"), scope->name);
	if (scope->version.len)
		p = put_tag(st, p, RS_SPAN_STR("otel.scope.version"), scope->version);
	p = put_count(st, p, RS_SPAN_STR("otel.dropped_attributes_count"), span->attrs.dropped);
	p = put_count(st, p, RS_SPAN_STR("otel.dropped_events_count"), span->dropped_events);
	p = rs_sink_need(s, p, 0);
	if (s->err)
		return p;
	if (p[-1] == '{') /* none: the member goes */
		return p - (sizeof(",\"tags\":{") - 1);
	*p++ = '}';
	return p;
}

static char *put_span(struct state *st, char *p, const struct rs_span *span,
		      const struct rs_resource *res, const struct rs_scope *scope)
{
	static const char *const kinds[] = { [RS_KIND_SERVER] = "SERVER",
					     [RS_KIND_CLIENT] = "CLIENT",
					     [RS_KIND_PRODUCER] = "PRODUCER",
					     [RS_KIND_CONSUMER] = "CONSUMER" };
	struct rs_sink *s = &st->sink;
	struct str service = find_str(&res->attrs, STR("service.name"));
	const char *kind = span->kind <= RS_KIND_CONSUMER ? kinds[span->kind] : NULL;

	p = rs_sink_need(s, p, 128);
	p = RS_LIT(p, "{\"traceId\":\"");
	p = rs_json_hex(p, span->trace_id, 16);
	p = RS_LIT(p, "\",\"id\":\"");
	p = rs_json_hex(p, span->span_id, 8);
	if (!rs_id_is_zero(span->parent_id, 8)) {
		p = RS_LIT(p, "\",\"parentId\":\"");
		p = rs_json_hex(p, span->parent_id, 8);
	}
	p = RS_LIT(p, "\",\"name\":");
	p = put_lower(s, p, span->name);
	if (kind) {
		p = RS_LIT(p, ",\"kind\":\"");
		memcpy(p, kind, strlen(kind));
		p += strlen(kind);
		*p++ = '"';
	}
	p = RS_LIT(p, ",\"timestamp\":");
	p = put_micros(p, span->start_ns);
	p = RS_LIT(p, ",\"duration\":");
	p = put_micros(p, span->end_ns - span->start_ns);
	p = RS_LIT(p, ",\"localEndpoint\":{\"serviceName\":");
	p = put_lower(s, p, service.len ? service : RS_SPAN_STR("unknown_service"));
	*p++ = '}';
	if (span->kind == RS_KIND_CLIENT || span->kind == RS_KIND_PRODUCER)
		p = put_remote(s, p, &span->attrs);
	if (span->nevents) {
		p = RS_LIT(p, ",\"annotations\":[");
		for (uint32_t i = 0; i < span->nevents; i++)
			p = put_annotation(s, p, &span->events[i]);
		p = rs_sink_need(s, p, 0);
		if (!s->err)
			p[-1] = ']'; /* the last comma */
	}
	p = put_tags(st, p, span, res, scope);
	*p++ = '}';
	return p;
}

static inline char *put_one(struct rs_encoder *e, char *p, const struct rs_cursor *at)
{
	struct state *st = e->state;

	p = put_span(st, p, at->span, &at->rs->resource, &at->ss->scope);
	p = rs_sink_need(&st->sink, p, 0);
	*p++ = ',';
	return p;
}

static int encode(struct rs_encoder *e, struct rs_encode *run)
{
	struct rs_sink *s = &((struct state *)e->state)->sink;
	char *p = rs_sink_open(s, e->pool, e->opts.max_payload);
	bool full = false;
	uint32_t n = 0;

	if (!p)
		return s->err;
	*p++ = '[';
	for (const struct rs_resource_spans *rs = rs_first_resource(run); rs && !full;
	     rs = rs->next) {
		for (const struct rs_scope_spans *ss = rs_first_scope(run, rs); ss && !full;
		     ss = ss->next)
			p = rs_put_spans(e, run, s, p, rs, ss, &n, &full, put_one);
	}
	if (s->err || (full && !n)) {
		int err = s->err ? s->err : -ENOBUFS;

		rs_sink_abort(s);
		return err;
	}
	run->done = !full;
	if (!n) {
		rs_sink_abort(s);
		return 0;
	}
	p[-1] = ']'; /* the last comma */
	rs_sink_close(s, p, &run->out);
	return 0;
}

static int init(struct rs_encoder *e)
{
	return rs_keyset_init(&((struct state *)e->state)->keys);
}

static void release(struct rs_encoder *e)
{
	rs_keyset_release(&((struct state *)e->state)->keys);
}

RS_ENCODER_OPS(zipkin) = {
	.name = "zipkin",
	.content_type = "application/json",
	.suffix = "json",
	.state_size = sizeof(struct state),
	.init = init,
	.release = release,
	.encode = encode,
};
