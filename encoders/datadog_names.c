// SPDX-License-Identifier: Apache-2.0
/* Service, name, resource and type of a span: the first rule that applies, as the agent has them. */
#include "datadog_map.h"

static bool tag_char(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == ':' || c == '.' ||
	       c == '/' || c == '-' || c >= 0x80;
}

/*
 * Datadog's normal form of tag values: lower case, runs of other characters than letters, digits, `:./-`
 * become one `_`, none at the ends. Only ASCII is changed here: for other letters the agent, which does all of
 * this again, has the tables. out: s.len bytes and the pad.
 */
struct str dd_tag_value(char *out, struct str s)
{
	char *p = out;
	bool gap = false;

	for (size_t i = 0; i < s.len; i++) {
		char c = str_lower_char(s.ptr[i]);

		if (!tag_char((unsigned char)c)) {
			gap = true;
			continue;
		}
		/* A run at the start counts as well: it becomes one `_`. */
		if (gap)
			*p++ = '_';
		gap = false;
		*p++ = c;
	}
	return (struct str){ out, (size_t)(p - out) };
}

/* Room for n bytes of text composed for this span; NULL when a span asks for absurdly much. */
char *dd_text_room(struct dd_map *m, size_t n)
{
	char *p = m->text + m->text_at;

	if (m->text_at + n + RS_ARENA_PAD > DD_TEXT)
		return NULL;
	m->text_at += (uint32_t)(n + RS_ARENA_PAD);
	return p;
}

/* a + between + b + end, each text cut to `max`, normalised if wanted. */
struct str dd_compose(struct dd_map *m, struct str a, struct str between, struct str b,
		      struct str end, bool norm, size_t max)
{
	char *p, *q;

	a = rs_utf8_limit(a, max);
	b = rs_utf8_limit(b, max);
	p = q = dd_text_room(m, a.len + between.len + b.len + end.len);
	if (!p)
		return STR_NONE;
	if (norm) {
		q += dd_tag_value(q, a).len;
	} else if (a.len) {
		memcpy(q, a.ptr, a.len);
		q += a.len;
	}
	memcpy(q, between.ptr, between.len);
	q += between.len;
	if (norm) {
		q += dd_tag_value(q, b).len;
	} else if (b.len) {
		memcpy(q, b.ptr, b.len);
		q += b.len;
	}
	memcpy(q, end.ptr, end.len);
	return rs_utf8_limit((struct str){ p, (size_t)(q - p) + end.len }, max);
}

/* A normalised name between two constants. */
static struct dd_text around(struct dd_map *m, struct str before, struct str s, struct str behind)
{
	return dd_plain(dd_compose(m, before, STR(""), s, behind, true, DD_MAX_NAME));
}

struct dd_text dd_service_of(struct dd_map *m, struct str s, char *buf)
{
	struct str norm;

	if (!s.len)
		return dd_constant(m, DD_C_NO_SERVICE);
	norm = dd_tag_value(buf, rs_utf8_limit(s, DD_MAX_NAME));
	/* Nothing is left: the agent has a name for such services. */
	return norm.len ? dd_plain(norm) : dd_constant(m, DD_C_NO_SERVICE);
}

/* Not for HTTP or nothing at all. */
static struct dd_text special_name(struct dd_map *m, uint8_t kind)
{
	bool client = kind == RS_KIND_CLIENT, server = kind == RS_KIND_SERVER;
	struct str a, b;

	if (client) {
		a = dd_slot_str2(m, DD_DB_SYSTEM_NAME, DD_DB_SYSTEM);
		if (a.len)
			return around(m, STR(""), a, STR(".query"));
	}
	a = dd_slot_str(m, DD_MESSAGING_SYSTEM);
	b = dd_slot_str(m, DD_MESSAGING_OPERATION);
	if (a.len && b.len && kind >= RS_KIND_SERVER)
		return dd_plain(dd_compose(m, a, STR("."), b, STR(""), true, DD_MAX_NAME));
	a = dd_slot_str2(m, DD_RPC_SYSTEM_NAME, DD_RPC_SYSTEM);
	if (a.len && client && str_ieq(a, STR("aws-api"))) {
		b = dd_slot_str(m, DD_RPC_SERVICE);
		return b.len ? around(m, STR("aws."), b, STR(".request"))
			     : dd_constant(m, DD_C_NAME_AWS);
	}
	if (a.len && (client || server))
		return around(m, STR(""), a,
			      client ? STR(".client.request") : STR(".server.request"));
	a = dd_slot_str(m, DD_FAAS_INVOKED_PROVIDER);
	b = dd_slot_str(m, DD_FAAS_INVOKED_NAME);
	if (a.len && b.len && client)
		return dd_plain(dd_compose(m, a, STR("."), b, STR(".invoke"), true, DD_MAX_NAME));
	a = dd_slot_str(m, DD_FAAS_TRIGGER);
	if (a.len && server)
		return around(m, STR(""), a, STR(".invoke"));
	if (dd_slot_str(m, DD_GRAPHQL_OPERATION_TYPE).len)
		return dd_constant(m, DD_C_NAME_GRAPHQL);
	a = dd_slot_str(m, DD_NETWORK_PROTOCOL_NAME);
	if (a.len && (client || server))
		return around(m, STR(""), a,
			      client ? STR(".client.request") : STR(".server.request"));
	return dd_plain(STR_NONE);
}

/* The first rule that applies, as the agent has them. */
struct dd_text dd_name_of(struct dd_map *m, uint8_t kind)
{
	static const uint8_t plain_names[] = { DD_C_NAME_INTERNAL, DD_C_NAME_INTERNAL,
					       DD_C_NAME_SERVER,   DD_C_NAME_CLIENT,
					       DD_C_NAME_PRODUCER, DD_C_NAME_CONSUMER };
	const uint64_t special = DD_BIT(DB_SYSTEM_NAME) | DD_BIT(DB_SYSTEM) |
				 DD_BIT(MESSAGING_SYSTEM) | DD_BIT(RPC_SYSTEM_NAME) |
				 DD_BIT(RPC_SYSTEM) | DD_BIT(FAAS_INVOKED_PROVIDER) |
				 DD_BIT(FAAS_TRIGGER) | DD_BIT(GRAPHQL_OPERATION_TYPE) |
				 DD_BIT(NETWORK_PROTOCOL_NAME);
	struct dd_text t;

	if (dd_have(m, DD_BIT(OPERATION_NAME))) {
		t = around(m, STR(""), dd_slot_str(m, DD_OPERATION_NAME), STR(""));
		if (t.s.len)
			return t;
	}
	if ((kind == RS_KIND_CLIENT || kind == RS_KIND_SERVER) &&
	    dd_have(m, DD_BIT(HTTP_REQUEST_METHOD) | DD_BIT(HTTP_METHOD)) &&
	    dd_slot_str2(m, DD_HTTP_REQUEST_METHOD, DD_HTTP_METHOD).len)
		return dd_constant(m, kind == RS_KIND_SERVER ? DD_C_NAME_HTTP_SERVER
							     : DD_C_NAME_HTTP_CLIENT);
	if (dd_have(m, special)) {
		t = special_name(m, kind);
		if (t.s.len)
			return t;
	}
	return dd_constant(m, plain_names[kind <= RS_KIND_CONSUMER ? kind : 0]);
}

/* Two words with a blank between them. */
static struct str words(struct dd_map *m, struct str a, struct str b)
{
	char *p, *q;

	a = rs_utf8_limit(a, DD_MAX_RESOURCE);
	if (!b.len)
		return a;
	b = rs_utf8_limit(b, DD_MAX_RESOURCE);
	p = dd_text_room(m, a.len + 1 + b.len);
	if (!p)
		return STR_NONE;
	q = rs_text_copy(p, a.ptr, a.len);
	*q++ = ' ';
	q = rs_text_copy(q, b.ptr, b.len);
	return rs_utf8_limit((struct str){ p, (size_t)(q - p) }, DD_MAX_RESOURCE);
}

struct str dd_resource_of(struct dd_map *m, const struct rs_span *s)
{
	const uint64_t special = DD_BIT(RESOURCE_NAME) | DD_BIT(MESSAGING_OPERATION) |
				 DD_BIT(RPC_METHOD) | DD_BIT(GRAPHQL_OPERATION_TYPE) |
				 DD_BIT(DB_SYSTEM_NAME) | DD_BIT(DB_SYSTEM);
	struct str a, b = STR_NONE;

	if (dd_have(m, DD_BIT(RESOURCE_NAME))) {
		a = dd_slot_str(m, DD_RESOURCE_NAME);
		if (a.len)
			return rs_utf8_limit(a, DD_MAX_RESOURCE);
	}
	if (dd_have(m, DD_BIT(HTTP_REQUEST_METHOD) | DD_BIT(HTTP_METHOD))) {
		a = dd_slot_str2(m, DD_HTTP_REQUEST_METHOD, DD_HTTP_METHOD);
		if (a.len == 6 && str_eq(a, STR("_OTHER")))
			a = RS_SPAN_STR("HTTP");
		if (s->kind == RS_KIND_CLIENT && dd_have(m, DD_BIT(URL_TEMPLATE)))
			b = dd_slot_str(m, DD_URL_TEMPLATE);
		else if (s->kind == RS_KIND_SERVER && dd_have(m, DD_BIT(HTTP_ROUTE)))
			b = dd_slot_str(m, DD_HTTP_ROUTE);
		if (a.len)
			return words(m, a, b);
	}
	if (!dd_have(m, special))
		return rs_utf8_limit(s->name, DD_MAX_RESOURCE);
	a = dd_slot_str(m, DD_MESSAGING_OPERATION);
	if (a.len)
		return words(
			m, a,
			dd_slot_str2(m, DD_MESSAGING_DESTINATION, DD_MESSAGING_DESTINATION_NAME));
	a = dd_slot_str(m, DD_RPC_METHOD);
	if (a.len)
		return words(m, a, dd_slot_str(m, DD_RPC_SERVICE));
	a = dd_slot_str(m, DD_GRAPHQL_OPERATION_TYPE);
	if (a.len)
		return words(m, a, dd_slot_str(m, DD_GRAPHQL_OPERATION_NAME));
	a = dd_slot_str2(m, DD_DB_SYSTEM_NAME, DD_DB_SYSTEM);
	if (a.len)
		a = dd_slot_str2(m, DD_DB_STATEMENT, DD_DB_QUERY_TEXT);
	return rs_utf8_limit(a.len ? a : s->name, DD_MAX_RESOURCE);
}

/* Database systems whose spans are of type `sql`; those with a type of their own; all others are `db`. */
static bool is_sql(struct str s)
{
	static const char *const names[] = {
		/* clang-format off */
		"other_sql", "mssql", "microsoft.sql_server", "mysql", "oracle", "oracle.db",
		"db2", "ibm.db2", "postgresql", "redshift", "aws.redshift", "cloudscape",
		"hsqldb", "maxdb", "sap.maxdb", "ingres", "actian.ingres", "firstsql", "edb",
		"cache", "intersystems.cache", "firebird", "firebirdsql", "derby", "informix",
		"ibm.informix", "mariadb", "sqlite", "sybase", "teradata", "vertica", "h2",
		"h2database", "coldfusion", "cockroachdb", "progress", "hanadb", "sap.hana",
		"adabas", "softwareag.adabas", "filemaker", "instantdb", "interbase", "netezza",
		"ibm.netezza", "pervasive", "pointbase", "clickhouse",
		/* clang-format on */
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (str_eq(s, str_c(names[i])))
			return true;
	}
	return false;
}

struct dd_text dd_type_of(struct dd_map *m, uint8_t kind)
{
	static const struct str own[] = { { "redis", 5 },	{ "memcached", 9 },
					  { "mongodb", 7 },	{ "elasticsearch", 13 },
					  { "opensearch", 10 }, { "cassandra", 9 } };
	struct str a = dd_have(m, DD_BIT(SPAN_TYPE)) ? dd_slot_str(m, DD_SPAN_TYPE) : STR_NONE;

	if (a.len)
		return dd_plain(rs_utf8_limit(a, DD_MAX_NAME));
	if (kind == RS_KIND_SERVER)
		return dd_constant(m, DD_C_WEB);
	if (kind != RS_KIND_CLIENT)
		return dd_constant(m, DD_C_CUSTOM);
	if (dd_have(m, DD_BIT(DB_SYSTEM_NAME) | DD_BIT(DB_SYSTEM)))
		a = dd_slot_str2(m, DD_DB_SYSTEM_NAME, DD_DB_SYSTEM);
	if (!a.len)
		return dd_constant(m, DD_C_HTTP);
	a = around(m, STR(""), a, STR("")).s;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (str_eq(a, own[i]))
			return dd_plain(a);
	}
	return dd_constant(m, is_sql(a) ? DD_C_SQL : DD_C_DB);
}
