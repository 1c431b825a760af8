// SPDX-License-Identifier: Apache-2.0
#include "datadog_map.h"

#include <errno.h>
#include <stdlib.h>

#include "json_value.h"
#include "strtab.h"

#define DD_TEXT	    (64 * 1024) /* composed texts of a span */
#define DD_KEYS_MAX 8192	/* names remembered over payloads */

enum dd_use {
	TAG,
	EATEN,
	FIELD,
	OURS,
};

/* -- keys -------------------------------------------------------------------------------------- */

struct well_known {
	struct str name;
	enum dd_use use;
	const char *renamed;
};

static const struct well_known well_known[DD_SLOTS] = {
#define RENAMED(x)	       TAG, x
#define DD_ATTR(id, text, use) [DD_##id] = { { text, sizeof(text) - 1 }, use },
#include "datadog_attrs.def"
#undef DD_ATTR
#undef RENAMED
};

static const struct str const_text[DD_CONSTS_COUNT] = {
#define X(id, text) [DD_C_##id] = { text, sizeof(text) - 1 },
	DD_CONSTS(X)
#undef X
};

/* s, valid and at most max bytes, in the keys' arena. */
static struct str clean(struct rs_arena *a, struct str s, size_t max)
{
	struct str in = rs_utf8_limit(s, max);
	char *p = rs_arena_alloc(a, in.len * RS_TEXT_RAW_MAX + RS_ARENA_PAD);

	if (!p)
		return STR_NONE;
	return rs_utf8_limit(
		(struct str){ p, (size_t)(RS_SYM(rs_text_raw_any)(p, in.ptr, in.len, true) - p) },
		max);
}

static struct dd_key *find(const struct dd_map *m, struct str name, uint64_t hash)
{
	for (uint32_t i = (uint32_t)hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
		struct dd_key *k = m->table[i];

		if (!k || (k->raw_hash == hash && dd_same(k->raw, name)))
			return k;
	}
}

static void link_key(struct dd_map *m, struct dd_key *k)
{
	uint32_t i = (uint32_t)k->raw_hash & (m->cap - 1);

	while (m->table[i])
		i = (i + 1) & (m->cap - 1);
	m->table[i] = k;
}

static bool table_grow(struct dd_map *m)
{
	struct dd_key **old = m->table;
	uint32_t n = m->cap;

	m->table = calloc(n * 2, sizeof(*m->table));
	if (!m->table) {
		m->table = old;
		return false;
	}
	m->cap = n * 2;
	for (uint32_t i = 0; i < n; i++) {
		if (old[i])
			link_key(m, old[i]);
	}
	free(old);
	return true;
}

/* The key of a name, made if it is new. name has RS_ARENA_PAD readable bytes behind it. */
static struct dd_key *key_of_name(struct dd_map *m, struct str name)
{
	uint64_t hash = rs_strtab_hash(name.ptr, name.len);
	struct dd_key *k = find(m, name, hash);
	char *mp;

	if (k)
		return k;
	if (m->count * 2 >= m->cap && !table_grow(m))
		return NULL;
	k = rs_arena_alloc(&m->arena, sizeof(*k));
	if (!k)
		return NULL;
	*k = (struct dd_key){ .raw = rs_arena_str(&m->arena, name),
			      .raw_hash = hash,
			      .slot = DD_NO_SLOT };
	k->name = clean(&m->arena, name, DD_MAX_KEY);
	mp = rs_arena_alloc(&m->arena, k->name.len + 3 + RS_ARENA_PAD);
	if (!mp || (name.len && !k->raw.ptr) || !k->name.ptr)
		return NULL;
	k->mp = mp;
	mp = rs_mp_str_head(mp, k->name.len);
	memcpy(mp, k->name.ptr, k->name.len);
	k->mp_len = (uint32_t)(mp - k->mp + (ptrdiff_t)k->name.len);
	k->hash = rs_strtab_hash(k->name.ptr, k->name.len);
	k->to = k;
	k->use = k->name.len ? TAG : EATEN; /* tags without a name do not exist */
	link_key(m, k);
	m->count++;
	/* Names that differ only in what does not survive are one tag. */
	if (k->name.len && !str_eq(k->name, k->raw)) {
		k->to = key_of_name(m, k->name);
		if (!k->to)
			return NULL;
		k->to = k->to->to;
	}
	return k;
}

static struct dd_key *key_of_literal(struct dd_map *m, struct str lit)
{
	struct str own = rs_arena_str(&m->arena, lit);

	return own.ptr ? key_of_name(m, own) : NULL;
}

/* http.request.header.X is http.request.headers.X at Datadog. */
static struct dd_key *header_key(struct dd_map *m, struct str name)
{
	static const struct str prefix = { "http.request.header.", 20 };
	char buf[DD_MAX_KEY + RS_ARENA_PAD] = "http.request.headers.";
	struct str rest;

	if (!str_starts(name, prefix))
		return NULL;
	rest = str_at(name, prefix.len, DD_MAX_KEY - 21);
	memcpy(buf + 21, rest.ptr, rest.len);
	return key_of_name(m, (struct str){ buf, 21 + rest.len });
}

struct dd_key *dd_key_intern(struct dd_map *m, const struct rs_key *rk)
{
	size_t i = ((uintptr_t)rk >> 4 ^ (uintptr_t)rk >> 14) % DD_CACHE;
	uint32_t before = m->count;
	struct dd_key *k, *header;

	/* The same place, in another batch: often the same name again. */
	if (m->cache[i].rk == rk && dd_same(m->cache[i].k->raw, rk->name)) {
		m->cache[i].batch = m->batch_no;
		return m->cache[i].k;
	}
	k = key_of_name(m, rk->name);
	if (!k)
		return NULL;
	if (m->count != before && k->slot == DD_NO_SLOT) {
		header = header_key(m, rk->name);
		if (header)
			k->to = header;
	}
	m->cache[i].rk = rk;
	m->cache[i].k = k;
	m->cache[i].batch = m->batch_no;
	return k;
}

/* Empties the table of names and enters those that are always there. */
static bool keys_reset(struct dd_map *m)
{
	memset(m->table, 0, m->cap * sizeof(*m->table));
	memset(m->cache, 0, sizeof(m->cache));
	m->count = 0;
	rs_arena_reset(&m->arena);
	for (int i = 0; i < DD_SLOTS; i++) {
		const struct well_known *w = &well_known[i];
		struct dd_key *k = key_of_literal(m, w->name);

		if (!k)
			return false;
		k->slot = (uint8_t)i;
		k->use = (uint8_t)w->use;
		if (w->renamed) {
			k->to = key_of_literal(m, str_c(w->renamed));
			if (!k->to)
				return false;
		}
	}
	for (int i = 0; i < DD_CONSTS_COUNT; i++) {
		m->c[i] = key_of_literal(m, const_text[i]);
		if (!m->c[i])
			return false;
		m->cval[i] = (struct rs_val){ .type = DD_VAL_KEY, .str = (const char *)m->c[i] };
	}
	for (int i = 0; i < RS_K_COUNT; i++) {
		m->known[i] = key_of_literal(m, rs_known_keys[i].name);
		if (!m->known[i])
			return false;
	}
	return true;
}

int dd_map_init(struct dd_map *m, bool v1, size_t max_payload)
{
	m->v1 = v1;
	m->cap = 1024;
	rs_arena_init(&m->arena, 32 * 1024, 0);
	m->table = calloc(m->cap, sizeof(*m->table));
	m->text = malloc(DD_TEXT + RS_ARENA_PAD);
	m->w.by_resource = true;
	m->w.low_half =
		!v1; /* v0.x sends the low half alone, and the agent drops chunks where it is 0 */
	if (!m->table || !m->text || rs_chunks_init(&m->w, max_payload) || !keys_reset(m)) {
		dd_map_release(m);
		return -ENOMEM;
	}
	return 0;
}

void dd_map_release(struct dd_map *m)
{
	rs_arena_release(&m->arena);
	free(m->table);
	free(m->text);
	free(m->meta);
	free(m->metrics);
	free(m->ctx_tag);
	rs_chunks_release(&m->w);
}

/* -- windows ----------------------------------------------------------------------------------- */

int dd_window(struct dd_map *m, const struct rs_encode *run)
{
	if (m->count > DD_KEYS_MAX && !keys_reset(m))
		return -ENOMEM;
	if (m->batch != run->batch || m->serial != run->batch->serial) {
		m->batch = run->batch;
		m->serial = run->batch->serial;
		if (!++m->batch_no) {
			memset(m->cache, 0, sizeof(m->cache));
			m->batch_no = 1;
		}
	}
	m->ss = NULL;
	m->again = false;
	m->ctx_present = 0;
	return rs_chunks_collect(&m->w, run);
}

/* -- looking up -------------------------------------------------------------------------------- */

static const struct rs_val *slot_val(const struct dd_map *m, enum dd_slot i)
{
	if (m->present >> i & 1)
		return m->slot[i];
	return m->ctx_present >> i & 1 ? m->ctx_slot[i] : NULL;
}

#define BIT(slot) (1ull << DD_##slot)

/* Does the span or its resource have one of these? */
static inline bool have(const struct dd_map *m, uint64_t slots)
{
	return (m->present | m->ctx_present) & slots;
}

/* A text attribute that is not empty: the span's, else the resource's. */
static struct str slot_str(const struct dd_map *m, enum dd_slot i)
{
	const struct rs_val *v;

	if (m->present >> i & 1) {
		v = m->slot[i];
		if (v->type == RS_VAL_STR && v->len)
			return (struct str){ v->str, v->len };
	}
	if (m->ctx_present >> i & 1) {
		v = m->ctx_slot[i];
		if (v->type == RS_VAL_STR && v->len)
			return (struct str){ v->str, v->len };
	}
	return STR_NONE;
}

/* The first of two names for the same thing. */
static struct str slot_str2(const struct dd_map *m, enum dd_slot a, enum dd_slot b)
{
	struct str s = slot_str(m, a);

	return s.len ? s : slot_str(m, b);
}

/* -- texts ------------------------------------------------------------------------------------- */

static struct dd_text constant(const struct dd_map *m, enum dd_const c)
{
	return (struct dd_text){ m->c[c]->name, m->c[c] };
}

static struct dd_text plain(struct str s)
{
	return (struct dd_text){ s, NULL };
}

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
static struct str tag_value(char *out, struct str s)
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
static char *text_room(struct dd_map *m, size_t n)
{
	char *p = m->text + m->text_at;

	if (m->text_at + n + RS_ARENA_PAD > DD_TEXT)
		return NULL;
	m->text_at += (uint32_t)(n + RS_ARENA_PAD);
	return p;
}

/* a + between + b + end, each text cut to `max`, normalised if wanted. */
static struct str compose(struct dd_map *m, struct str a, struct str between, struct str b,
			  struct str end, bool norm, size_t max)
{
	char *p, *q;

	a = rs_utf8_limit(a, max);
	b = rs_utf8_limit(b, max);
	p = q = text_room(m, a.len + between.len + b.len + end.len);
	if (!p)
		return STR_NONE;
	if (norm) {
		q += tag_value(q, a).len;
	} else if (a.len) {
		memcpy(q, a.ptr, a.len);
		q += a.len;
	}
	memcpy(q, between.ptr, between.len);
	q += between.len;
	if (norm) {
		q += tag_value(q, b).len;
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
	return plain(compose(m, before, STR(""), s, behind, true, DD_MAX_NAME));
}

/* -- service, name, resource, type -------------------------------------------------------------- */

static struct dd_text service_of(struct dd_map *m, struct str s, char *buf)
{
	struct str norm;

	if (!s.len)
		return constant(m, DD_C_NO_SERVICE);
	norm = tag_value(buf, rs_utf8_limit(s, DD_MAX_NAME));
	/* Nothing is left: the agent has a name for such services. */
	return norm.len ? plain(norm) : constant(m, DD_C_NO_SERVICE);
}

/* Not for HTTP or nothing at all. */
static struct dd_text special_name(struct dd_map *m, uint8_t kind)
{
	bool client = kind == RS_KIND_CLIENT, server = kind == RS_KIND_SERVER;
	struct str a, b;

	if (client) {
		a = slot_str2(m, DD_DB_SYSTEM_NAME, DD_DB_SYSTEM);
		if (a.len)
			return around(m, STR(""), a, STR(".query"));
	}
	a = slot_str(m, DD_MESSAGING_SYSTEM);
	b = slot_str(m, DD_MESSAGING_OPERATION);
	if (a.len && b.len && kind >= RS_KIND_SERVER)
		return plain(compose(m, a, STR("."), b, STR(""), true, DD_MAX_NAME));
	a = slot_str(m, DD_RPC_SYSTEM);
	if (a.len && client && str_ieq(a, STR("aws-api"))) {
		b = slot_str(m, DD_RPC_SERVICE);
		return b.len ? around(m, STR("aws."), b, STR(".request"))
			     : constant(m, DD_C_NAME_AWS);
	}
	if (a.len && (client || server))
		return around(m, STR(""), a,
			      client ? STR(".client.request") : STR(".server.request"));
	a = slot_str(m, DD_FAAS_INVOKED_PROVIDER);
	b = slot_str(m, DD_FAAS_INVOKED_NAME);
	if (a.len && b.len && client)
		return plain(compose(m, a, STR("."), b, STR(".invoke"), true, DD_MAX_NAME));
	a = slot_str(m, DD_FAAS_TRIGGER);
	if (a.len && server)
		return around(m, STR(""), a, STR(".invoke"));
	if (slot_str(m, DD_GRAPHQL_OPERATION_TYPE).len)
		return constant(m, DD_C_NAME_GRAPHQL);
	a = slot_str(m, DD_NETWORK_PROTOCOL_NAME);
	if (a.len && (client || server))
		return around(m, STR(""), a,
			      client ? STR(".client.request") : STR(".server.request"));
	return plain(STR_NONE);
}

/* The first rule that applies, as the agent has them. */
static struct dd_text name_of(struct dd_map *m, uint8_t kind)
{
	static const uint8_t plain_names[] = { DD_C_NAME_INTERNAL, DD_C_NAME_INTERNAL,
					       DD_C_NAME_SERVER,   DD_C_NAME_CLIENT,
					       DD_C_NAME_PRODUCER, DD_C_NAME_CONSUMER };
	const uint64_t special = BIT(DB_SYSTEM_NAME) | BIT(DB_SYSTEM) | BIT(MESSAGING_SYSTEM) |
				 BIT(RPC_SYSTEM) | BIT(FAAS_INVOKED_PROVIDER) | BIT(FAAS_TRIGGER) |
				 BIT(GRAPHQL_OPERATION_TYPE) | BIT(NETWORK_PROTOCOL_NAME);
	struct dd_text t;

	if (have(m, BIT(OPERATION_NAME))) {
		t = around(m, STR(""), slot_str(m, DD_OPERATION_NAME), STR(""));
		if (t.s.len)
			return t;
	}
	if ((kind == RS_KIND_CLIENT || kind == RS_KIND_SERVER) &&
	    have(m, BIT(HTTP_REQUEST_METHOD) | BIT(HTTP_METHOD)) &&
	    slot_str2(m, DD_HTTP_REQUEST_METHOD, DD_HTTP_METHOD).len)
		return constant(m, kind == RS_KIND_SERVER ? DD_C_NAME_HTTP_SERVER
							  : DD_C_NAME_HTTP_CLIENT);
	if (have(m, special)) {
		t = special_name(m, kind);
		if (t.s.len)
			return t;
	}
	return constant(m, plain_names[kind <= RS_KIND_CONSUMER ? kind : 0]);
}

/* Two words with a blank between them. */
static struct str words(struct dd_map *m, struct str a, struct str b)
{
	return b.len ? compose(m, a, STR(" "), b, STR(""), false, DD_MAX_RESOURCE)
		     : rs_utf8_limit(a, DD_MAX_RESOURCE);
}

static struct str resource_of(struct dd_map *m, const struct rs_span *s)
{
	const uint64_t special = BIT(RESOURCE_NAME) | BIT(MESSAGING_OPERATION) | BIT(RPC_METHOD) |
				 BIT(GRAPHQL_OPERATION_TYPE) | BIT(DB_SYSTEM_NAME) | BIT(DB_SYSTEM);
	struct str a, b = STR_NONE;

	if (have(m, BIT(RESOURCE_NAME))) {
		a = slot_str(m, DD_RESOURCE_NAME);
		if (a.len)
			return rs_utf8_limit(a, DD_MAX_RESOURCE);
	}
	if (have(m, BIT(HTTP_REQUEST_METHOD) | BIT(HTTP_METHOD))) {
		a = slot_str2(m, DD_HTTP_REQUEST_METHOD, DD_HTTP_METHOD);
		if (a.len == 6 && str_eq(a, STR("_OTHER")))
			a = RS_SPAN_STR("HTTP");
		if (s->kind == RS_KIND_CLIENT && have(m, BIT(URL_TEMPLATE)))
			b = slot_str(m, DD_URL_TEMPLATE);
		else if (s->kind == RS_KIND_SERVER && have(m, BIT(HTTP_ROUTE)))
			b = slot_str(m, DD_HTTP_ROUTE);
		if (a.len)
			return words(m, a, b);
	}
	if (!have(m, special))
		return rs_utf8_limit(s->name, DD_MAX_RESOURCE);
	a = slot_str(m, DD_MESSAGING_OPERATION);
	if (a.len)
		return words(m, a,
			     slot_str2(m, DD_MESSAGING_DESTINATION, DD_MESSAGING_DESTINATION_NAME));
	a = slot_str(m, DD_RPC_METHOD);
	if (a.len)
		return words(m, a, slot_str(m, DD_RPC_SERVICE));
	a = slot_str(m, DD_GRAPHQL_OPERATION_TYPE);
	if (a.len)
		return words(m, a, slot_str(m, DD_GRAPHQL_OPERATION_NAME));
	a = slot_str2(m, DD_DB_SYSTEM_NAME, DD_DB_SYSTEM);
	if (a.len)
		a = slot_str2(m, DD_DB_STATEMENT, DD_DB_QUERY_TEXT);
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

static struct dd_text type_of(struct dd_map *m, uint8_t kind)
{
	static const struct str own[] = { { "redis", 5 },	{ "memcached", 9 },
					  { "mongodb", 7 },	{ "elasticsearch", 13 },
					  { "opensearch", 10 }, { "cassandra", 9 } };
	struct str a = have(m, BIT(SPAN_TYPE)) ? slot_str(m, DD_SPAN_TYPE) : STR_NONE;

	if (a.len)
		return plain(rs_utf8_limit(a, DD_MAX_NAME));
	if (kind == RS_KIND_SERVER)
		return constant(m, DD_C_WEB);
	if (kind != RS_KIND_CLIENT)
		return constant(m, DD_C_CUSTOM);
	if (have(m, BIT(DB_SYSTEM_NAME) | BIT(DB_SYSTEM)))
		a = slot_str2(m, DD_DB_SYSTEM_NAME, DD_DB_SYSTEM);
	if (!a.len)
		return constant(m, DD_C_HTTP);
	a = around(m, STR(""), a, STR("")).s;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (str_eq(a, own[i]))
			return plain(a);
	}
	return constant(m, is_sql(a) ? DD_C_SQL : DD_C_DB);
}

/* -- context ----------------------------------------------------------------------------------- */

/* Adds a tag of all spans unless there is one of that name. */
static void ctx_add(struct dd_map *m, struct dd_key *k, const struct rs_val *v)
{
	if (k->ctx == m->ctx_no)
		return;
	k->ctx = m->ctx_no;
	m->ctx_tag[m->nctx++] = (struct dd_ctx_tag){ .key = k, .val = v };
}

static void ctx_add_text(struct dd_map *m, enum dd_const c, struct rs_val *v, struct str s)
{
	if (!s.len)
		return;
	*v = (struct rs_val){ .type = RS_VAL_STR, .len = (uint32_t)s.len, .str = s.ptr };
	ctx_add(m, m->c[c], v);
}

static bool ctx_add_attrs(struct dd_map *m, const struct rs_attrs *as, bool resource)
{
	for (uint32_t i = 0; i < as->n; i++) {
		struct dd_key *k = dd_key_of(m, as->a[i].key);

		if (!k)
			return false;
		if (k->slot != DD_NO_SLOT) {
			if (resource && !(m->ctx_present >> k->slot & 1)) {
				m->ctx_present |= 1ull << k->slot;
				m->ctx_slot[k->slot] = &as->a[i].val;
			}
		}
		if (k->use == EATEN || (m->v1 && k->use != TAG))
			continue;
		ctx_add(m, k->to, &as->a[i].val);
	}
	return true;
}

static bool set_context(struct dd_map *m, const struct rs_item *it)
{
	const struct rs_scope *sc = &it->ss->scope;
	const struct rs_attrs *ra = &it->rs->resource.attrs;
	char *buf = m->ctx_buf;
	struct str env, version;

	if (!rs_grow(&m->ctx_tag, &m->ctx_cap, ra->n + sc->attrs.n + 8, sizeof(*m->ctx_tag)))
		return false;
	m->ss = it->ss;
	m->ctx_no++;
	m->nctx = 0;
	m->ctx_present = 0;
	m->present = 0;
	ctx_add_text(m, DD_C_OTEL_SCOPE_NAME, &m->ctx_val[0], sc->name);
	ctx_add_text(m, DD_C_OTEL_LIBRARY_NAME, &m->ctx_val[0], sc->name);
	ctx_add_text(m, DD_C_OTEL_SCOPE_VERSION, &m->ctx_val[1], sc->version);
	ctx_add_text(m, DD_C_OTEL_LIBRARY_VERSION, &m->ctx_val[1], sc->version);
	if (!ctx_add_attrs(m, &sc->attrs, false) || !ctx_add_attrs(m, ra, true))
		return false;
	m->ctx_service = service_of(m, slot_str(m, DD_SERVICE_NAME), buf);
	if (!m->ctx_service.key) {
		/* Interned: it is every span's. */
		m->ctx_service.key = key_of_name(m, m->ctx_service.s);
		if (!m->ctx_service.key)
			return false;
		m->ctx_service.key = m->ctx_service.key->to;
	}
	buf += 4 * DD_MAX_NAME + RS_ARENA_PAD;
	env = slot_str2(m, DD_DEPLOYMENT_ENV_NAME, DD_DEPLOYMENT_ENV);
	version = slot_str(m, DD_SERVICE_VERSION);
	env = tag_value(buf, rs_utf8_limit(env, DD_MAX_KEY));
	buf += 4 * DD_MAX_NAME + RS_ARENA_PAD;
	version = tag_value(buf, rs_utf8_limit(version, DD_MAX_KEY));
	if (m->v1) {
		m->ctx_env = plain(env.len ? env : slot_str(m, DD_ENV));
		m->ctx_version = plain(version.len ? version : slot_str(m, DD_VERSION));
		return true;
	}
	ctx_add_text(m, DD_C_ENV, &m->ctx_val[2], env);
	ctx_add_text(m, DD_C_VERSION, &m->ctx_val[3], version);
	return true;
}

/* -- spans ------------------------------------------------------------------------------------- */

/* v1 has one list for both kinds of tags. */
static inline void put_meta(struct dd_map *m, struct dd_key *k, const struct rs_val *v)
{
	if (k->as_meta == m->span_no || (m->v1 && k->as_metric == m->span_no))
		return;
	k->as_meta = m->span_no;
	m->out.nctx -= k->ctx == m->ctx_no;
	m->meta[m->out.nmeta++] = (struct dd_tag){ k, v };
}

static inline void put_metric(struct dd_map *m, struct dd_key *k, const struct rs_val *v)
{
	if (k->as_metric == m->span_no || (m->v1 && k->as_meta == m->span_no))
		return;
	k->as_metric = m->span_no;
	if (m->v1)
		m->out.nctx -= k->ctx == m->ctx_no;
	m->metrics[m->out.nmetrics++] = (struct dd_tag){ k, v };
}

static void put_meta_str(struct dd_map *m, enum dd_const c, struct str s)
{
	struct rs_val *v = &m->val[m->nval++];

	*v = (struct rs_val){ .type = RS_VAL_STR,
			      .len = (uint32_t)(s.len < UINT32_MAX ? s.len : UINT32_MAX),
			      .str = s.ptr };
	put_meta(m, m->c[c], v);
}

static void put_metric_int(struct dd_map *m, enum dd_const c, int64_t i)
{
	struct rs_val *v = &m->val[m->nval++];

	*v = (struct rs_val){ .type = RS_VAL_INT, .i = i };
	put_metric(m, m->c[c], v);
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
	const struct rs_val *v = slot_val(m, DD_HTTP_STATUS_CODE);

	return v ? v : slot_val(m, DD_HTTP_RESPONSE_STATUS_CODE);
}

/* error.msg and error.message: the status' message, else the HTTP status in words. */
static void put_error_message(struct dd_map *m, const struct rs_span *s)
{
	struct str msg = s->status_msg;
	uint64_t code;

	if (!msg.len && val_u64(http_status(m), &code)) {
		struct str why = reason_phrase(code);
		char *p = text_room(m, 64), *q;

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
	put_meta_str(m, DD_C_ERROR_MSG, msg);
	put_meta_str(m, DD_C_ERROR_MESSAGE, msg);
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
			put_meta(m, m->c[DD_C_ERROR_TYPE], &a->val);
		else if (str_eq(a->key->name, STR("exception.stacktrace")))
			put_meta(m, m->c[DD_C_ERROR_STACK], &a->val);
		else if (str_eq(a->key->name, STR("exception.message")) && a->val.len)
			put_meta(m, m->c[DD_C_ERROR_MESSAGE], &a->val);
	}
}

static const struct rs_event *last_exception(const struct rs_span *s)
{
	for (uint32_t i = s->nevents; i-- > 0;) {
		if (s->events[i].name.len == 9 && !memcmp(s->events[i].name.ptr, "exception", 9))
			return &s->events[i];
	}
	return NULL;
}

/* A span that Datadog's own tracers made, or that speaks like one. */
static bool is_datadogs(const struct dd_map *m)
{
	const uint64_t three =
		1ull << DD_OPERATION_NAME | 1ull << DD_RESOURCE_NAME | 1ull << DD_SPAN_TYPE;

	return (m->present & three) == three || m->present >> DD_SAMPLING_PRIORITY_V1 & 1;
}

static void put_kind(struct dd_map *m, const struct rs_span *s)
{
	static const uint8_t kinds[] = { DD_C_KIND_UNSPECIFIED, DD_C_KIND_INTERNAL,
					 DD_C_KIND_SERVER,	DD_C_KIND_CLIENT,
					 DD_C_KIND_PRODUCER,	DD_C_KIND_CONSUMER };

	put_meta(m, m->c[DD_C_SPAN_KIND],
		 &m->cval[kinds[s->kind <= RS_KIND_CONSUMER ? s->kind : 0]]);
}

static void put_otel(struct dd_map *m, const struct rs_span *s)
{
	static const uint8_t codes[] = { DD_C_STATUS_UNSET, DD_C_STATUS_OK, DD_C_STATUS_ERROR };

	if (!m->v1)
		put_kind(m, s);
	put_meta(m, m->c[DD_C_OTEL_TRACE_ID], &m->trace_val);
	put_meta(m, m->c[DD_C_OTEL_STATUS_CODE],
		 &m->cval[codes[s->status <= RS_STATUS_ERROR ? s->status : 0]]);
	if (s->status_msg.len)
		put_meta_str(m, DD_C_OTEL_STATUS_DESCRIPTION, s->status_msg);
	if (s->nevents) {
		const struct rs_event *e = last_exception(s);

		if (e) {
			put_meta(m, m->c[DD_C_HAS_EXCEPTION], &m->cval[DD_C_TRUE]);
			if (s->status == RS_STATUS_ERROR)
				put_exception(m, e);
		}
	}
	if (s->status == RS_STATUS_ERROR)
		put_error_message(m, s);
}

/* What few spans have. */
static void put_rare(struct dd_map *m)
{
	const uint64_t two = BIT(HTTP_STATUS_CODE) | BIT(HTTP_RESPONSE_STATUS_CODE);
	struct str db = slot_str(m, DD_DB_NAMESPACE);
	const struct rs_val *v = http_status(m);
	uint64_t code;

	if (db.len && m->c[DD_C_DB_NAME]->ctx != m->ctx_no)
		put_meta_str(m, DD_C_DB_NAME, db);
	if (v && v->type == RS_VAL_STR && !m->v1 && val_u64(v, &code))
		put_metric_int(m, DD_C_HTTP_STATUS_CODE, (int64_t)code);
	/* Of two, the one that has Datadog's name. */
	if ((m->present & two) == two && v->type == RS_VAL_INT) {
		for (uint32_t i = 0; i < m->out.nmetrics; i++) {
			if (m->metrics[i].key == m->c[DD_C_HTTP_STATUS_CODE])
				m->metrics[i].val = v;
		}
	}
	if (m->present & BIT(ANALYTICS_EVENT)) {
		v = m->slot[DD_ANALYTICS_EVENT];
		if (v->type == RS_VAL_BOOL)
			put_metric_int(m, DD_C_ANALYTICS_RATE, v->b);
		else if (v->type == RS_VAL_STR)
			put_metric_int(m, DD_C_ANALYTICS_RATE,
				       str_eq((struct str){ v->str, v->len }, STR("true")));
	}
	if (!m->v1 && m->present & (BIT(DEPLOYMENT_ENV_NAME) | BIT(DEPLOYMENT_ENV))) {
		db = slot_str2(m, DD_DEPLOYMENT_ENV_NAME, DD_DEPLOYMENT_ENV);
		put_meta_str(m, DD_C_ENV,
			     compose(m, db, STR(""), STR_NONE, STR(""), true, DD_MAX_KEY));
	}
	if (!m->v1 && m->present & BIT(SERVICE_VERSION)) {
		db = slot_str(m, DD_SERVICE_VERSION);
		put_meta_str(m, DD_C_VERSION,
			     compose(m, db, STR(""), STR_NONE, STR(""), true, DD_MAX_KEY));
	}
}

static bool has_rare(const struct dd_map *m)
{
	const uint64_t rare = BIT(ANALYTICS_EVENT) | BIT(DEPLOYMENT_ENV_NAME) |
			      BIT(DEPLOYMENT_ENV) | BIT(SERVICE_VERSION) | BIT(HTTP_STATUS_CODE);

	if (m->present & rare || have(m, BIT(DB_NAMESPACE)) ||
	    m->ctx_present & BIT(HTTP_STATUS_CODE))
		return true;
	return have(m, BIT(HTTP_RESPONSE_STATUS_CODE)) &&
	       slot_val(m, DD_HTTP_RESPONSE_STATUS_CODE)->type == RS_VAL_STR;
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

static void set_fields(struct dd_map *m, const struct rs_span *s)
{
	struct dd_span *o = &m->out;
	struct str t;

	o->kind = s->kind <= RS_KIND_CONSUMER ? s->kind : 0;
	if (!o->kind && m->present >> DD_SPAN_KIND & 1) {
		t = slot_str(m, DD_SPAN_KIND);
		o->kind = kind_of_word(t);
	}
	o->env = m->ctx_env;
	o->version = m->ctx_version;
	o->component = plain(slot_str(m, DD_COMPONENT));
	if (m->present &
	    (1ull << DD_ENV | 1ull << DD_DEPLOYMENT_ENV_NAME | 1ull << DD_DEPLOYMENT_ENV)) {
		t = m->present >> DD_ENV & 1 ? slot_str(m, DD_ENV) : STR_NONE;
		if (!t.len)
			t = compose(m, slot_str2(m, DD_DEPLOYMENT_ENV_NAME, DD_DEPLOYMENT_ENV),
				    STR(""), STR_NONE, STR(""), true, DD_MAX_KEY);
		if (t.len)
			o->env = plain(t);
	}
	if (m->present & (1ull << DD_VERSION | 1ull << DD_SERVICE_VERSION)) {
		t = m->present >> DD_VERSION & 1 ? slot_str(m, DD_VERSION) : STR_NONE;
		if (!t.len)
			t = compose(m, slot_str(m, DD_SERVICE_VERSION), STR(""), STR_NONE, STR(""),
				    true, DD_MAX_KEY);
		if (t.len)
			o->version = plain(t);
	}
	o->env.s = rs_utf8_limit(o->env.s, DD_MAX_VALUE);
	o->version.s = rs_utf8_limit(o->version.s, DD_MAX_VALUE);
	o->component.s = rs_utf8_limit(o->component.s, DD_MAX_VALUE);
}

/* Attributes into meta and metrics, and into slots. The loop of the encoder: all it needs is in registers. */
static inline __attribute__((always_inline)) bool put_attrs(struct dd_map *m,
							    const struct rs_span *s, const bool v1)
{
	const struct rs_attr *a = s->attrs.a, *end = a + s->attrs.n;
	struct dd_tag *meta = m->meta, *metrics = m->metrics;
	const uint32_t span_no = m->span_no, ctx_no = m->ctx_no;
	uint32_t nctx = m->nctx;
	uint64_t present = 0;

	for (; a < end; a++) {
		struct dd_key *k = dd_key_of(m, a->key);

		if (__builtin_expect(!k, 0))
			return false;
		if (k->slot != DD_NO_SLOT && !(present >> k->slot & 1)) {
			present |= 1ull << k->slot;
			m->slot[k->slot] = &a->val;
		}
		if (__builtin_expect(k->use != TAG, 0)) {
			if (k->use == EATEN || (v1 && k->use == FIELD))
				continue;
			/* Ours are written under these names. */
			if (k->use == OURS &&
			    (v1 || (k->slot == DD_EVENTS ? s->nevents : s->nlinks)))
				continue;
		}
		k = k->to;
		if (v1 && (k->as_meta == span_no || k->as_metric == span_no))
			continue;
		if (a->val.type == RS_VAL_INT || a->val.type == RS_VAL_DOUBLE) {
			if (!v1 && k->as_metric == span_no)
				continue;
			k->as_metric = span_no;
			if (v1)
				nctx -= k->ctx == ctx_no;
			*metrics++ = (struct dd_tag){ k, &a->val };
		} else {
			if (!v1 && k->as_meta == span_no)
				continue;
			k->as_meta = span_no;
			nctx -= k->ctx == ctx_no;
			*meta++ = (struct dd_tag){ k, &a->val };
		}
	}
	m->present = present;
	m->out.nctx = nctx;
	m->out.nmeta = (uint32_t)(meta - m->meta);
	m->out.nmetrics = (uint32_t)(metrics - m->metrics);
	return true;
}

static bool priority_of(const struct rs_val *v, int32_t *ret)
{
	if (v->type == RS_VAL_INT && v->i >= INT32_MIN && v->i <= INT32_MAX) {
		*ret = (int32_t)v->i;
		return true;
	}
	if (v->type == RS_VAL_DOUBLE && v->d > -1e9 && v->d < 1e9) {
		*ret = (int32_t)v->d;
		return true;
	}
	return false;
}

/* What the span's slots say about its chunk. */
static void chunk_learn(struct dd_map *m, struct dd_chunk *c)
{
	static const enum dd_slot slots[] = { DD_SAMPLING_PRIORITY_V1, DD_SAMPLING_PRIORITY };

	for (int i = 0; i < 2 && !c->has_priority; i++) {
		if (!(m->present >> slots[i] & 1) || !priority_of(m->slot[slots[i]], &c->priority))
			continue;
		c->has_priority = true;
		if (i && c->priority > 0 && !c->dm.s.len)
			c->dm = constant(m, DD_C_DM_MANUAL);
	}
	if (m->present >> DD_P_DM & 1 && (!c->dm.s.len || c->dm.key))
		c->dm = plain(rs_utf8_limit(slot_str(m, DD_P_DM), DD_MAX_NAME));
	if (m->v1 && m->present >> DD_ORIGIN & 1 && !c->origin.s.len)
		c->origin = plain(rs_utf8_limit(slot_str(m, DD_ORIGIN), DD_MAX_NAME));
}

#define CHUNK_SLOTS                                                                                \
	(1ull << DD_SAMPLING_PRIORITY_V1 | 1ull << DD_SAMPLING_PRIORITY | 1ull << DD_P_DM |        \
	 1ull << DD_ORIGIN)

static bool scan(struct dd_map *m, const struct rs_item *it)
{
	m->present = 0;
	for (uint32_t i = 0; i < it->s->attrs.n; i++) {
		struct dd_key *k = dd_key_of(m, it->s->attrs.a[i].key);

		if (!k)
			return false;
		if (k->slot != DD_NO_SLOT && !(m->present >> k->slot & 1)) {
			m->present |= 1ull << k->slot;
			m->slot[k->slot] = &it->s->attrs.a[i].val;
		}
	}
	return true;
}

bool dd_map_span(struct dd_map *m, const struct rs_item *it)
{
	const struct rs_span *s = it->s;
	struct dd_span *o = &m->out;
	uint32_t want;

	if (it->ss != m->ss && !set_context(m, it))
		return false;
	want = s->attrs.n + m->nctx + 24;
	if (want > m->tag_cap) {
		uint32_t cap = m->tag_cap;

		if (!rs_grow(&m->meta, &cap, want, sizeof(*m->meta)))
			return false;
		cap = m->tag_cap;
		if (!rs_grow(&m->metrics, &cap, want, sizeof(*m->metrics)))
			return false;
		m->tag_cap = cap;
	}
	m->span_no++;
	m->nval = 0;
	m->text_at = 0;
	o->s = s;
	if (!(m->v1 ? put_attrs(m, s, true) : put_attrs(m, s, false)))
		return false;
	/* Found too late for what is already written of this chunk. */
	if (m->present & CHUNK_SLOTS && !m->prescan && it != m->chunk.first)
		m->again = m->prescan = true;
	if (!is_datadogs(m))
		put_otel(m, s);
	else if (!m->v1 && s->kind)
		put_kind(m, s);
	if (s->trace_state.len)
		put_meta_str(m, DD_C_TRACESTATE, s->trace_state);
	if (has_rare(m))
		put_rare(m);
	o->service = m->present >> DD_SERVICE_NAME & 1
			     ? service_of(m, slot_str(m, DD_SERVICE_NAME), m->service_buf)
			     : m->ctx_service;
	o->name = name_of(m, s->kind);
	o->resource = plain(resource_of(m, s));
	o->type = type_of(m, s->kind);
	if (m->v1)
		set_fields(m, s);
	return true;
}

bool dd_chunk_begin(struct dd_map *m, const struct rs_chunk *of)
{
	struct dd_chunk *c = &m->chunk;
	const struct rs_item *first = &m->w.item[of->first];

	rs_json_hex(m->trace_hex, first->s->trace_id, 16);
	m->trace_val = (struct rs_val){ .type = RS_VAL_STR, .len = 32, .str = m->trace_hex };
	*c = (struct dd_chunk){ .first = first };
	c->tid_high = dd_id(first->s->trace_id);
	if (m->prescan) {
		for (uint32_t i = of->first; i != RS_CHUNK_END; i = m->w.item[i].next) {
			if (!scan(m, &m->w.item[i]))
				return false;
			if (m->present & CHUNK_SLOTS)
				chunk_learn(m, c);
		}
	}
	if (!dd_map_span(m, first))
		return false;
	if (m->present & CHUNK_SLOTS)
		chunk_learn(m, c);
	if (!c->has_priority && !is_datadogs(m)) {
		c->has_priority = true;
		c->priority = 1;
		if (!c->dm.s.len)
			c->dm = constant(m, DD_C_DM_OTLP);
	}
	return true;
}

/* What the context says about payload field 2 + i. */
static struct str ctx_field(struct dd_map *m, int i)
{
	m->present = 0;
	switch (i + 2) {
	case 2:
		return slot_str2(m, DD_CONTAINER_ID, DD_K8S_POD_UID);
	case 3:
		return slot_str(m, DD_SDK_LANGUAGE);
	case 4:
		return slot_str(m, DD_RUNTIME_VERSION);
	case 5:
		return slot_str(m, DD_SDK_VERSION);
	case 6:
		return slot_str(m, DD_RUNTIME_ID);
	case 7:
		return m->ctx_env.s;
	case 8:
		return slot_str(m, DD_HOST_NAME);
	}
	return m->ctx_version.s;
}

bool dd_common(struct dd_map *m)
{
	char *p = m->common_buf;

	if (!set_context(m, &m->w.item[0]))
		return false;
	for (int i = 0; i < DD_COMMON; i++, p += DD_MAX_KEY + RS_ARENA_PAD) {
		struct str s = rs_utf8_limit(ctx_field(m, i), DD_MAX_KEY - 5);
		size_t n = 0;

		/* A tracer that is not Datadog's says so. */
		if (i + 2 == 5 && s.len) {
			n = 5;
			memcpy(p, "otlp-", n);
		}
		memcpy(p + n, s.len ? s.ptr : "", s.len);
		m->common[i] = (struct str){ p, n + s.len };
	}
	for (uint32_t j = 1; j < m->w.nitem; j++) {
		if (m->w.item[j].rs == m->w.item[j - 1].rs)
			continue;
		if (!set_context(m, &m->w.item[j]))
			return false;
		for (int i = 0; i < DD_COMMON; i++) {
			struct str mine = str_from(m->common[i], i + 2 == 5 ? 5 : 0);

			if (!str_eq(mine, rs_utf8_limit(ctx_field(m, i), DD_MAX_KEY - 5)))
				m->common[i].len = 0;
		}
	}
	return true;
}

/* -- values as text ---------------------------------------------------------------------------- */

/* Cuts what was written since `at` to DD_MAX_VALUE bytes. Only valid text is there. */
static char *cut(struct rs_sink *s, char *p, size_t at)
{
	if (s->err || rs_sink_pos(s, p) - at <= DD_MAX_VALUE)
		return p;
	return s->base + at +
	       rs_utf8_limit((struct str){ s->base + at, rs_sink_pos(s, p) - at }, DD_MAX_VALUE)
		       .len;
}

char *dd_close_text(struct rs_sink *s, char *p, size_t at)
{
	char head[8];
	size_t len, n;

	p = rs_sink_need(s, p, 16);
	if (s->err)
		return p;
	len = rs_sink_pos(s, p) - at - 3;
	n = (size_t)(rs_mp_str_head(head, len) - head);
	if (n != 3)
		memmove(s->base + at + n, s->base + at + 3, len);
	memcpy(s->base + at, head, n);
	return s->base + at + n + len;
}

char *dd_put_long(struct rs_sink *s, char *p, const struct rs_val *v, size_t max)
{
	size_t at;

	p = rs_sink_need(s, p, 16);
	at = rs_sink_pos(s, p);
	p = dd_val_text(s, p + 3, v);
	if (!s->err && rs_sink_pos(s, p) - at - 3 > max)
		p = s->base + at + 3 +
		    rs_utf8_limit((struct str){ s->base + at + 3, rs_sink_pos(s, p) - at - 3 }, max)
			    .len;
	return dd_close_text(s, p, at);
}

char *dd_val_text(struct rs_sink *s, char *p, const struct rs_val *v)
{
	size_t at;

	p = rs_sink_need(s, p, 64);
	at = rs_sink_pos(s, p);
	switch (v->type) {
	case RS_VAL_STR:
		p = rs_text_raw(s, p, dd_val_str(v));
		return cut(s, p, at);
	case RS_VAL_BYTES:
		p = rs_json_base64(s, p, v->str, v->len < DD_MAX_VALUE ? v->len : DD_MAX_VALUE);
		return cut(s, p, at);
	case RS_VAL_DOUBLE:
		if (v->d != v->d)
			return RS_LIT(p, "NaN");
		if (v->d - v->d != 0)
			return v->d > 0 ? RS_LIT(p, "+Inf") : RS_LIT(p, "-Inf");
		return rs_json_double_digits(p, v->d);
	case RS_VAL_EMPTY:
		return p;
	}
	p = rs_json_value(s, p, v, &(struct rs_json_limit){ at + DD_MAX_VALUE, DD_MAX_VALUE });
	return cut(s, p, at);
}

static char *json_attrs(struct rs_sink *s, char *p, const struct rs_attrs *as,
			const struct rs_json_limit *max, bool text)
{
	p = RS_LIT(p, ",\"attributes\":");
	if (!text)
		return rs_json_map(s, p, as->a, as->n, max);
	*p++ = '{';
	for (uint32_t i = 0; i < as->n && rs_sink_pos(s, p) <= max->stop && !s->err; i++) {
		if (i)
			*p++ = ',';
		p = rs_json_text(s, p, rs_utf8_limit(as->a[i].key->name, DD_MAX_VALUE));
		p = RS_LIT(p, ":\"");
		p = rs_value_text(s, p, &as->a[i].val, max);
		*p++ = '"';
		p = rs_sink_need(s, p, 0);
	}
	*p++ = '}';
	return p;
}

static char *json_dropped(char *p, uint32_t n)
{
	if (!n)
		return p;
	p = RS_LIT(p, ",\"dropped_attributes_count\":");
	return rs_json_u64(p, n);
}

static char *json_link(struct rs_sink *s, char *p, const struct rs_link *l,
		       const struct rs_json_limit *max)
{
	p = RS_LIT(p, "{\"trace_id\":\"");
	p = rs_json_hex(p, l->trace_id, 16);
	p = RS_LIT(p, "\",\"span_id\":\"");
	p = rs_json_hex(p, l->span_id, 8);
	*p++ = '"';
	if (l->attrs.n)
		p = json_attrs(s, p, &l->attrs, max, true);
	p = rs_sink_need(s, p, 64);
	if (l->flags & 0xff) {
		p = RS_LIT(p, ",\"flags\":");
		p = rs_json_u64(p, l->flags & 0xff);
	}
	if (l->trace_state.len) {
		p = RS_LIT(p, ",\"tracestate\":");
		p = rs_json_text(s, p, rs_utf8_limit(l->trace_state, DD_MAX_VALUE));
	}
	p = json_dropped(p, l->attrs.dropped);
	*p++ = '}';
	return p;
}

static char *json_event(struct rs_sink *s, char *p, const struct rs_event *e,
			const struct rs_json_limit *max)
{
	p = RS_LIT(p, "{\"time_unix_nano\":");
	p = rs_json_u64(p, e->time_ns);
	p = RS_LIT(p, ",\"name\":");
	p = rs_json_text(s, p, rs_utf8_limit(e->name, DD_MAX_VALUE));
	if (e->attrs.n)
		p = json_attrs(s, p, &e->attrs, max, false);
	p = rs_sink_need(s, p, 64);
	p = json_dropped(p, e->attrs.dropped);
	*p++ = '}';
	return p;
}

char *dd_links_json(struct rs_sink *s, char *p, const struct rs_span *span)
{
	struct rs_json_limit max = { 0, DD_MAX_VALUE };

	p = rs_sink_need(s, p, 16);
	/* With the closing bracket, below the limit. */
	max.stop = rs_sink_pos(s, p) + DD_MAX_VALUE - 1;
	*p++ = '[';
	for (uint32_t i = 0; i < span->nlinks && !s->err; i++) {
		size_t mark = rs_sink_pos(s, p);

		if (!rs_link_ok(&span->links[i]))
			continue;
		p = rs_sink_need(s, p, 128);
		if (p[-1] != '[')
			*p++ = ',';
		p = json_link(s, p, &span->links[i], &max);
		p = rs_sink_need(s, p, 16);
		if (rs_sink_pos(s, p) >= max.stop && !s->err) {
			p = s->base + mark;
			break;
		}
	}
	*p++ = ']';
	return p;
}

char *dd_events_json(struct rs_sink *s, char *p, const struct rs_span *span)
{
	struct rs_json_limit max = { 0, DD_MAX_VALUE };

	p = rs_sink_need(s, p, 16);
	max.stop = rs_sink_pos(s, p) + DD_MAX_VALUE - 1;
	*p++ = '[';
	for (uint32_t i = 0; i < span->nevents && !s->err; i++) {
		size_t mark = rs_sink_pos(s, p);

		p = rs_sink_need(s, p, 128);
		if (i)
			*p++ = ',';
		p = json_event(s, p, &span->events[i], &max);
		p = rs_sink_need(s, p, 16);
		if (rs_sink_pos(s, p) >= max.stop && !s->err) {
			p = s->base + mark;
			break;
		}
	}
	*p++ = ']';
	return p;
}
