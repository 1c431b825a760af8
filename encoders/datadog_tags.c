// SPDX-License-Identifier: Apache-2.0
/* Tags and fields that a span has beside its attributes: of OpenTelemetry's kind, status, exceptions, trace state. */
#include "datadog_map.h"

void dd_put_meta_str(struct dd_map *m, enum dd_const c, struct str s)
{
	struct rs_val *v = &m->val[m->nval++];

	*v = (struct rs_val){ .type = RS_VAL_STR,
			      .len = (uint32_t)(s.len < UINT32_MAX ? s.len : UINT32_MAX),
			      .str = s.ptr };
	dd_put_meta(m, m->keys.c[c], v);
}

static void put_metric_int(struct dd_map *m, enum dd_const c, int64_t i)
{
	struct rs_val *v = &m->val[m->nval++];

	*v = (struct rs_val){ .type = RS_VAL_INT, .i = i };
	dd_put_metric(m, m->keys.c[c], v);
}

static struct str reason_phrase(uint64_t code)
{
	static const struct {
		uint16_t code;
		const char *text;
	} list[] = {
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 402, "Payment Required" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 407, "Proxy Authentication Required" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 410, "Gone" },
		{ 411, "Length Required" },
		{ 412, "Precondition Failed" },
		{ 413, "Request Entity Too Large" },
		{ 414, "Request URI Too Long" },
		{ 415, "Unsupported Media Type" },
		{ 416, "Requested Range Not Satisfiable" },
		{ 417, "Expectation Failed" },
		{ 418, "I'm a teapot" },
		{ 421, "Misdirected Request" },
		{ 422, "Unprocessable Entity" },
		{ 423, "Locked" },
		{ 424, "Failed Dependency" },
		{ 425, "Too Early" },
		{ 426, "Upgrade Required" },
		{ 428, "Precondition Required" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 451, "Unavailable For Legal Reasons" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
		{ 506, "Variant Also Negotiates" },
		{ 507, "Insufficient Storage" },
		{ 508, "Loop Detected" },
		{ 510, "Not Extended" },
		{ 511, "Network Authentication Required" },
		{ 200, "OK" },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (list[i].code == code)
			return str_c(list[i].text);
	}
	return STR_NONE;
}

static bool val_u64(const struct rs_val *v, uint64_t *ret)
{
	if (!v)
		return false;
	if (v->type == RS_VAL_INT && v->i >= 0) {
		*ret = (uint64_t)v->i;
		return true;
	}
	return v->type == RS_VAL_STR && str_u64((struct str){ v->str, v->len }, ret);
}

static const struct rs_val *http_status(const struct dd_map *m)
{
	const struct rs_val *v = dd_slot_val(m, DD_HTTP_STATUS_CODE);

	return v ? v : dd_slot_val(m, DD_HTTP_RESPONSE_STATUS_CODE);
}

/* error.msg and error.message: the status' message, else the HTTP status in words. */
static void put_error_message(struct dd_map *m, const struct rs_span *s)
{
	struct str msg = s->status_msg;
	uint64_t code;

	if (!msg.len && val_u64(http_status(m), &code)) {
		struct str why = reason_phrase(code);
		char *p = dd_text_room(m, 64), *q;

		if (!p)
			return;
		q = rs_json_u64(p, code);
		if (why.len) {
			*q++ = ' ';
			memcpy(q, why.ptr, why.len);
			q += why.len;
		}
		msg = (struct str){ p, (size_t)(q - p) };
	}
	if (!msg.len)
		return;
	dd_put_meta_str(m, DD_C_ERROR_MSG, msg);
	dd_put_meta_str(m, DD_C_ERROR_MESSAGE, msg);
}

/*
 * error.type and error.stack from the last exception event, as Datadog's own OpenTelemetry shims do: its error
 * tracking groups by them.
 */
static void put_exception(struct dd_map *m, const struct rs_event *e)
{
	for (uint32_t i = 0; i < e->attrs.n; i++) {
		const struct rs_attr *a = &e->attrs.a[i];

		if (a->val.type != RS_VAL_STR)
			continue;
		if (str_eq(a->key->name, STR("exception.type")))
			dd_put_meta(m, m->keys.c[DD_C_ERROR_TYPE], &a->val);
		else if (str_eq(a->key->name, STR("exception.stacktrace")))
			dd_put_meta(m, m->keys.c[DD_C_ERROR_STACK], &a->val);
		else if (str_eq(a->key->name, STR("exception.message")) && a->val.len)
			dd_put_meta(m, m->keys.c[DD_C_ERROR_MESSAGE], &a->val);
	}
}

const struct rs_event *dd_last_exception(const struct rs_span *s)
{
	for (uint32_t i = s->nevents; i-- > 0;) {
		if (s->events[i].name.len == 9 && !memcmp(s->events[i].name.ptr, "exception", 9))
			return &s->events[i];
	}
	return NULL;
}

/* A span that Datadog's own tracers made, or that speaks like one. */
bool dd_is_datadogs(const struct dd_map *m)
{
	const uint64_t three = DD_BIT(OPERATION_NAME) | DD_BIT(RESOURCE_NAME) | DD_BIT(SPAN_TYPE);

	return (m->present & three) == three || m->present & DD_BIT(SAMPLING_PRIORITY_V1);
}

void dd_put_kind(struct dd_map *m, const struct rs_span *s)
{
	static const uint8_t kinds[] = { DD_C_KIND_UNSPECIFIED, DD_C_KIND_INTERNAL,
					 DD_C_KIND_SERVER,	DD_C_KIND_CLIENT,
					 DD_C_KIND_PRODUCER,	DD_C_KIND_CONSUMER };

	dd_put_meta(m, m->keys.c[DD_C_SPAN_KIND],
		    &m->keys.cval[kinds[s->kind <= RS_KIND_CONSUMER ? s->kind : 0]]);
}

void dd_put_otel(struct dd_map *m, const struct rs_span *s)
{
	static const uint8_t codes[] = { DD_C_STATUS_UNSET, DD_C_STATUS_OK, DD_C_STATUS_ERROR };

	if (!m->v1)
		dd_put_kind(m, s);
	dd_put_meta(m, m->keys.c[DD_C_OTEL_TRACE_ID], &m->trace_val);
	dd_put_meta(m, m->keys.c[DD_C_OTEL_STATUS_CODE],
		    &m->keys.cval[codes[s->status <= RS_STATUS_ERROR ? s->status : 0]]);
	if (s->status_msg.len)
		dd_put_meta_str(m, DD_C_OTEL_STATUS_DESCRIPTION, s->status_msg);
	if (s->nevents) {
		const struct rs_event *e = dd_last_exception(s);

		if (e) {
			dd_put_meta(m, m->keys.c[DD_C_HAS_EXCEPTION], &m->keys.cval[DD_C_TRUE]);
			if (s->status == RS_STATUS_ERROR)
				put_exception(m, e);
		}
	}
	if (s->status == RS_STATUS_ERROR)
		put_error_message(m, s);
}

static bool in_context(const struct dd_map *m, const struct dd_key *k)
{
	for (uint32_t i = 0; i < m->ctx->ntag; i++) {
		if (m->ctx->tag[i].key == k)
			return true;
	}
	return false;
}

/* What few spans have. */
void dd_put_rare(struct dd_map *m)
{
	const uint64_t two = DD_BIT(HTTP_STATUS_CODE) | DD_BIT(HTTP_RESPONSE_STATUS_CODE);
	struct str db = dd_slot_str(m, DD_DB_NAMESPACE);
	const struct rs_val *v = http_status(m);
	uint64_t code;

	if (db.len && !in_context(m, m->keys.c[DD_C_DB_NAME]))
		dd_put_meta_str(m, DD_C_DB_NAME, db);
	if (v && v->type == RS_VAL_STR && !m->v1 && val_u64(v, &code))
		put_metric_int(m, DD_C_HTTP_STATUS_CODE, (int64_t)code);
	/* Of two, the one that has Datadog's name. */
	if ((m->present & two) == two && v->type == RS_VAL_INT) {
		for (uint32_t i = 0; i < m->sh->nmetrics; i++) {
			if (m->sh->metrics[i].key == m->keys.c[DD_C_HTTP_STATUS_CODE])
				m->sh->metrics[i].val = v;
		}
	}
	if (m->present & DD_BIT(ANALYTICS_EVENT)) {
		v = m->slot[DD_ANALYTICS_EVENT];
		if (v->type == RS_VAL_BOOL)
			put_metric_int(m, DD_C_ANALYTICS_RATE, v->b);
		else if (v->type == RS_VAL_STR)
			put_metric_int(m, DD_C_ANALYTICS_RATE,
				       str_eq((struct str){ v->str, v->len }, STR("true")));
	}
	if (!m->v1 && m->present & (DD_BIT(DEPLOYMENT_ENV_NAME) | DD_BIT(DEPLOYMENT_ENV))) {
		db = dd_slot_str2(m, DD_DEPLOYMENT_ENV_NAME, DD_DEPLOYMENT_ENV);
		dd_put_meta_str(m, DD_C_ENV,
				dd_compose(m, db, STR(""), STR_NONE, STR(""), true, DD_MAX_KEY));
	}
	if (!m->v1 && m->present & DD_BIT(SERVICE_VERSION)) {
		db = dd_slot_str(m, DD_SERVICE_VERSION);
		dd_put_meta_str(m, DD_C_VERSION,
				dd_compose(m, db, STR(""), STR_NONE, STR(""), true, DD_MAX_KEY));
	}
}

bool dd_has_rare(const struct dd_map *m)
{
	const uint64_t two = DD_BIT(HTTP_STATUS_CODE) | DD_BIT(HTTP_RESPONSE_STATUS_CODE);
	const uint64_t rare = DD_BIT(ANALYTICS_EVENT) | DD_BIT(DEPLOYMENT_ENV_NAME) |
			      DD_BIT(DEPLOYMENT_ENV) | DD_BIT(SERVICE_VERSION);

	if (m->present & rare || dd_have(m, DD_BIT(DB_NAMESPACE)) || (m->present & two) == two)
		return true;
	return dd_have(m, two) && http_status(m)->type == RS_VAL_STR;
}

static uint8_t kind_of_word(struct str s)
{
	static const struct str words[] = { { "unspecified", 11 }, { "internal", 8 },
					    { "server", 6 },	   { "client", 6 },
					    { "producer", 8 },	   { "consumer", 8 } };

	for (uint8_t i = 0; i < 6; i++) {
		if (str_ieq(s, words[i]))
			return i;
	}
	return RS_KIND_INTERNAL;
}

void dd_set_fields(struct dd_map *m, const struct rs_span *s)
{
	struct dd_span *o = &m->out;
	struct str t;

	o->kind = s->kind <= RS_KIND_CONSUMER ? s->kind : 0;
	if (!o->kind && m->present & DD_BIT(SPAN_KIND)) {
		t = dd_slot_str(m, DD_SPAN_KIND);
		o->kind = kind_of_word(t);
	}
	o->env = m->ctx->env;
	o->version = m->ctx->version;
	o->component = dd_plain(dd_slot_str(m, DD_COMPONENT));
	if (m->present & (DD_BIT(ENV) | DD_BIT(DEPLOYMENT_ENV_NAME) | DD_BIT(DEPLOYMENT_ENV))) {
		t = m->present & DD_BIT(ENV) ? dd_slot_str(m, DD_ENV) : STR_NONE;
		if (!t.len)
			t = dd_compose(m,
				       dd_slot_str2(m, DD_DEPLOYMENT_ENV_NAME, DD_DEPLOYMENT_ENV),
				       STR(""), STR_NONE, STR(""), true, DD_MAX_KEY);
		if (t.len)
			o->env = dd_plain(t);
	}
	if (m->present & (DD_BIT(VERSION) | DD_BIT(SERVICE_VERSION))) {
		t = m->present & DD_BIT(VERSION) ? dd_slot_str(m, DD_VERSION) : STR_NONE;
		if (!t.len)
			t = dd_compose(m, dd_slot_str(m, DD_SERVICE_VERSION), STR(""), STR_NONE,
				       STR(""), true, DD_MAX_KEY);
		if (t.len)
			o->version = dd_plain(t);
	}
	o->env.s = rs_utf8_limit(o->env.s, DD_MAX_VALUE);
	o->version.s = rs_utf8_limit(o->version.s, DD_MAX_VALUE);
	o->component.s = rs_utf8_limit(o->component.s, DD_MAX_VALUE);
}
