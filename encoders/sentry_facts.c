// SPDX-License-Identifier: Apache-2.0
#include "sentry_facts.h"

static const struct {
	struct str name;
	enum sentry_fact fact;
} names[] = {
#define N(x)                                                                                       \
	{                                                                                          \
		x, sizeof(x) - 1                                                                   \
	}
	{ N("http.request.method"), SENTRY_HTTP_METHOD },
	{ N("http.method"), SENTRY_HTTP_METHOD },
	{ N("http.route"), SENTRY_HTTP_ROUTE },
	{ N("http.response.status_code"), SENTRY_HTTP_STATUS },
	{ N("http.status_code"), SENTRY_HTTP_STATUS },
	{ N("url.full"), SENTRY_URL_FULL },
	{ N("http.url"), SENTRY_URL_FULL },
	{ N("url.path"), SENTRY_URL_PATH },
	{ N("rpc.grpc.status_code"), SENTRY_GRPC_STATUS },
	{ N("rpc.status_code"), SENTRY_RPC_STATUS },
	{ N("rpc.response.status_code"), SENTRY_RPC_STATUS },
	{ N("db.system.name"), SENTRY_DB_SYSTEM },
	{ N("db.system"), SENTRY_DB_SYSTEM },
	{ N("db.query.text"), SENTRY_DB_QUERY },
	{ N("db.statement"), SENTRY_DB_QUERY },
	{ N("rpc.system.name"), SENTRY_RPC_SYSTEM },
	{ N("rpc.system"), SENTRY_RPC_SYSTEM },
	{ N("messaging.system"), SENTRY_MESSAGING_SYSTEM },
	{ N("messaging.operation.type"), SENTRY_MESSAGING_OPERATION },
	{ N("messaging.operation"), SENTRY_MESSAGING_OPERATION },
	{ N("messaging.operation.name"), SENTRY_MESSAGING_OPERATION },
	{ N("graphql.operation.type"), SENTRY_GRAPHQL },
	{ N("faas.trigger"), SENTRY_FAAS_TRIGGER },
#undef N
};

void sentry_learn(struct sentry_facts *f, const struct rs_span *span)
{
	memset(f, 0, sizeof(*f));
	for (uint32_t i = 0; i < span->attrs.n; i++) {
		struct str name = span->attrs.a[i].key->name;

		if (name.len < 8 || name.len > 25)
			continue;
		for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
			if (!f->v[names[j].fact] && str_eq(name, names[j].name))
				f->v[names[j].fact] = &span->attrs.a[i].val;
		}
	}
}

struct str sentry_fact_str(const struct sentry_facts *f, enum sentry_fact i)
{
	const struct rs_val *v = f->v[i];

	return v && v->type == RS_VAL_STR ? (struct str){ v->str, v->len } : STR_NONE;
}

static int64_t sentry_fact_int(const struct sentry_facts *f, enum sentry_fact i)
{
	const struct rs_val *v = f->v[i];
	uint64_t u;

	if (v && v->type == RS_VAL_INT)
		return v->i;
	return str_u64(sentry_fact_str(f, i), &u) && u < INT64_MAX ? (int64_t)u : -1;
}

struct str sentry_find_str(const struct rs_attrs *as, struct str name)
{
	for (uint32_t i = 0; i < as->n; i++) {
		if (as->a[i].val.type == RS_VAL_STR && str_eq(as->a[i].key->name, name))
			return (struct str){ as->a[i].val.str, as->a[i].val.len };
	}
	return STR_NONE;
}

static struct str queue_op(struct str operation, uint8_t kind)
{
	static const struct {
		struct str operation, op;
	} list[] = {
#define N(x) { x, sizeof(x) - 1 }
		{ N("publish"), N("queue.publish") }, { N("send"), N("queue.publish") },
		{ N("create"), N("queue.create") },   { N("receive"), N("queue.receive") },
		{ N("process"), N("queue.process") }, { N("deliver"), N("queue.process") },
		{ N("settle"), N("queue.settle") },
#undef N
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (str_ieq(operation, list[i].operation))
			return list[i].op;
	}
	return kind == RS_KIND_PRODUCER ? STR("queue.publish") : STR("queue.process");
}

struct str sentry_op_of(const struct sentry_facts *f, uint8_t kind)
{
	if (f->v[SENTRY_HTTP_METHOD] && kind == RS_KIND_SERVER)
		return STR("http.server");
	if (f->v[SENTRY_HTTP_METHOD] && kind == RS_KIND_CLIENT)
		return STR("http.client");
	if (f->v[SENTRY_DB_SYSTEM])
		return str_eq(sentry_fact_str(f, SENTRY_DB_SYSTEM), STR("redis")) ? STR("db.redis")
										  : STR("db");
	if (f->v[SENTRY_RPC_SYSTEM])
		return STR("rpc");
	if (f->v[SENTRY_MESSAGING_SYSTEM])
		return queue_op(sentry_fact_str(f, SENTRY_MESSAGING_OPERATION), kind);
	if (f->v[SENTRY_GRAPHQL])
		return STR("graphql");
	if (f->v[SENTRY_FAAS_TRIGGER])
		return STR("function");
	return STR("default");
}

/* gRPC's codes are Sentry's statuses; of HTTP's, the ones that Sentry's OpenTelemetry bridge knows. */
struct str sentry_status_of(const struct sentry_facts *f, uint8_t status)
{
	static const struct str grpc[] = {
#define N(x) { x, sizeof(x) - 1 }
		N("ok"),
		N("cancelled"),
		N("unknown_error"),
		N("invalid_argument"),
		N("deadline_exceeded"),
		N("not_found"),
		N("already_exists"),
		N("permission_denied"),
		N("resource_exhausted"),
		N("failed_precondition"),
		N("aborted"),
		N("out_of_range"),
		N("unimplemented"),
		N("internal_error"),
		N("unavailable"),
		N("data_loss"),
		N("unauthenticated"),
#undef N
	};
	int64_t code;

	if (status != RS_STATUS_ERROR)
		return STR("ok");
	code = sentry_fact_int(f, SENTRY_GRPC_STATUS);
	if (code > 0 && code < (int64_t)(sizeof(grpc) / sizeof(grpc[0])))
		return grpc[code];
	for (size_t i = 1; i < sizeof(grpc) / sizeof(grpc[0]); i++) {
		struct str name = sentry_fact_str(f, SENTRY_RPC_STATUS),
			   rest = str_from(grpc[i], name.len);

		/* UNKNOWN and INTERNAL have "_error" behind them there. */
		if (name.len && str_ieq(str_at(grpc[i], 0, name.len), name) &&
		    (!rest.len || str_eq(rest, STR("_error"))))
			return grpc[i];
	}
	switch (sentry_fact_int(f, SENTRY_HTTP_STATUS)) {
	case 400:
		return STR("failed_precondition");
	case 401:
		return STR("unauthenticated");
	case 403:
		return STR("permission_denied");
	case 404:
		return STR("not_found");
	case 409:
		return STR("aborted");
	case 429:
		return STR("resource_exhausted");
	case 499:
		return STR("cancelled");
	case 500:
		return STR("internal_error");
	case 501:
		return STR("unimplemented");
	case 503:
		return STR("unavailable");
	case 504:
		return STR("deadline_exceeded");
	}
	return STR("unknown_error");
}

/* Who made the span: ringspan's own scope, or another instrumentation that we only pass on. */
struct str sentry_origin_of(const struct sentry_facts *f, const struct rs_scope *scope)
{
	if (!str_eq(scope->name, STR("ringspan")))
		return STR("auto.otel");
	if (f->v[SENTRY_HTTP_METHOD])
		return STR("auto.http.ebpf");
	if (f->v[SENTRY_DB_SYSTEM])
		return STR("auto.db.ebpf");
	return STR("auto.rpc.ebpf");
}

/* Name of a transaction or segment; *source says where it comes from. In pieces: a, then b behind a blank. */
void sentry_segment_name(const struct sentry_facts *f, const struct rs_span *span, struct str *a,
			 struct str *b, struct str *source)
{
	*a = sentry_fact_str(f, SENTRY_HTTP_METHOD);
	*b = sentry_fact_str(f, SENTRY_HTTP_ROUTE);
	*source = STR("route");
	if (a->len && b->len)
		return;
	*b = sentry_fact_str(f, SENTRY_URL_PATH);
	*source = STR("url");
	if (a->len && b->len && span->kind == RS_KIND_SERVER)
		return;
	*a = span->name;
	*b = STR_NONE;
	*source = STR("custom");
}

bool sentry_is_segment(const struct rs_span *span)
{
	return rs_id_is_zero(span->parent_id, 8) || (span->flags & 0x300) == 0x300 ||
	       span->kind == RS_KIND_SERVER || span->kind == RS_KIND_CONSUMER;
}

struct str sentry_release_of(const struct rs_resource *r)
{
	return sentry_find_str(&r->attrs, STR("service.version"));
}

struct str sentry_environment_of(const struct rs_resource *r)
{
	struct str s = sentry_find_str(&r->attrs, STR("deployment.environment.name"));

	return s.len ? s : sentry_find_str(&r->attrs, STR("deployment.environment"));
}
