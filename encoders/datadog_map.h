/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datadog_map — OpenTelemetry spans as Datadog spans: what the three Datadog encoders share.
 *
 * The rules are those of the Datadog agent's OTLP ingest (its "V2" names; spec: docs of each rule stand at
 * its code in datadog_map.c). Span attributes come before resource attributes; integers and doubles are
 * metrics, everything else is meta: booleans "true"/"false", bytes base64, arrays and maps JSON, the empty
 * value "". HTTP names are renamed to Datadog's. Resource and scope attributes are text tags of every span.
 *
 * A span that states operation.name, resource.name and span.type, or _sampling_priority_v1, is a Datadog
 * span already: its tags go out as they are and nothing of OpenTelemetry (otel.*, error.*, span.kind of an
 * unspecified kind, default priority) is added.
 *
 * Losses, all versions: dropped counts of attributes, events and links (the JSON forms keep those of events
 * and links); schema URLs; the span's flags; NaN and infinities become text in
 * JSON; of tags with the same name after renaming the first stays; names are cut to 200 bytes, values to 25,000, resources to 5,000, service, name
 * and type to 100, always on a character boundary; attributes with an empty key are left out.
 *
 * A payload is a window of the batch, in chunks of one trace of one resource (chunks.h).
 *
 * Memory: everything lives in struct dd_map and is kept; nothing is allocated once it has seen as many keys
 * and attributes per span as it is going to see.
 */
#ifndef RS_ENC_DATADOG_MAP_H
#define RS_ENC_DATADOG_MAP_H

#include "chunks.h"
#include "wire_json.h"
#include "wire_msgpack.h"

#define DD_MAX_VALUE	25000
#define DD_MAX_RESOURCE 5000
#define DD_MAX_NAME	100 /* service, name, type */
#define DD_MAX_KEY	200

enum dd_slot {
#define DD_ATTR(id, name, use) DD_##id,
#include "datadog_attrs.def"
#undef DD_ATTR
	DD_SLOTS,
	DD_NO_SLOT = 0xff,
};
_Static_assert(DD_SLOTS <= 64, "a bit of a mask each");

/* Texts the mapping writes itself, interned like keys. */
#define DD_CONSTS(X)                                                                               \
	X(SPAN_KIND, "span.kind")                                                                  \
	X(KIND_UNSPECIFIED, "unspecified")                                                         \
	X(KIND_INTERNAL, "internal")                                                               \
	X(KIND_SERVER, "server")                                                                   \
	X(KIND_CLIENT, "client")                                                                   \
	X(KIND_PRODUCER, "producer")                                                               \
	X(KIND_CONSUMER, "consumer")                                                               \
	X(OTEL_TRACE_ID, "otel.trace_id")                                                          \
	X(OTEL_STATUS_CODE, "otel.status_code")                                                    \
	X(STATUS_UNSET, "Unset")                                                                   \
	X(STATUS_OK, "Ok")                                                                         \
	X(STATUS_ERROR, "Error")                                                                   \
	X(OTEL_STATUS_DESCRIPTION, "otel.status_description")                                      \
	X(OTEL_SCOPE_NAME, "otel.scope.name")                                                      \
	X(OTEL_SCOPE_VERSION, "otel.scope.version")                                                \
	X(OTEL_LIBRARY_NAME, "otel.library.name")                                                  \
	X(OTEL_LIBRARY_VERSION, "otel.library.version")                                            \
	X(TRACESTATE, "w3c.tracestate")                                                            \
	X(HAS_EXCEPTION, "_dd.span_events.has_exception")                                          \
	X(ANALYTICS_RATE, "_dd1.sr.eausr")                                                         \
	X(PRIORITY, "_sampling_priority_v1")                                                       \
	X(TID, "_dd.p.tid")                                                                        \
	X(DM, "_dd.p.dm")                                                                          \
	X(DM_MANUAL, "-4")                                                                         \
	X(DM_OTLP, "-9")                                                                           \
	X(ENV, "env")                                                                              \
	X(VERSION, "version")                                                                      \
	X(DB_NAME, "db.name")                                                                      \
	X(HTTP_STATUS_CODE, "http.status_code")                                                    \
	X(ERROR_MSG, "error.msg")                                                                  \
	X(ERROR_MESSAGE, "error.message")                                                          \
	X(ERROR_TYPE, "error.type")                                                                \
	X(ERROR_STACK, "error.stack")                                                              \
	X(SPAN_LINKS, "_dd.span_links")                                                            \
	X(EVENTS, "events")                                                                        \
	X(TRUE, "true")                                                                            \
	X(FALSE, "false")                                                                          \
	X(NO_SERVICE, "otlpresourcenoservicename")                                                 \
	X(WEB, "web")                                                                              \
	X(HTTP, "http")                                                                            \
	X(CUSTOM, "custom")                                                                        \
	X(DB, "db")                                                                                \
	X(SQL, "sql")                                                                              \
	X(NAME_HTTP_SERVER, "http.server.request")                                                 \
	X(NAME_HTTP_CLIENT, "http.client.request")                                                 \
	X(NAME_SERVER, "server.request")                                                           \
	X(NAME_CLIENT, "client.request")                                                           \
	X(NAME_AWS, "aws.client.request")                                                          \
	X(NAME_GRAPHQL, "graphql.server.request")                                                  \
	X(NAME_INTERNAL, "Internal")                                                               \
	X(NAME_PRODUCER, "Producer")                                                               \
	X(NAME_CONSUMER, "Consumer")

enum dd_const {
#define X(id, text) DD_C_##id,
	DD_CONSTS(X)
#undef X
	DD_CONSTS_COUNT,
};

/* A name: where it comes from and as what it is sent; lives until the table is emptied. */
struct dd_key {
	struct dd_key *to; /* the tag it becomes: itself, or another */
	const char
		*mp; /* the name as a MessagePack string, RS_ARENA_PAD readable bytes behind it */
	uint32_t mp_len;
	uint8_t slot;	  /* enum dd_slot */
	uint8_t use;	  /* enum dd_use */
	uint32_t as_meta; /* number of the last span that had it in meta, in metrics */
	uint32_t as_metric;
	uint32_t ctx;	    /* number of the last context that had it */
	uint32_t epoch, at; /* string table: its index in payload `epoch` */
	uint64_t hash;	    /* rs_strtab_hash(name) */
	struct str name;    /* as sent: valid, at most DD_MAX_KEY bytes */
	struct str raw;	    /* in the source */
	uint64_t raw_hash;
};

/* A value that is an interned text: val.type; val.str is the struct dd_key. */
#define DD_VAL_KEY 0x40

struct dd_tag {
	struct dd_key *key;
	const struct rs_val *val;
};

/* A tag of all spans of a context; text, whatever its value's type. */
struct dd_ctx_tag {
	struct dd_key *key;
	const struct rs_val *val;
	/* The encoder's: where it ends in what was written of the context; its value's number in `epoch`. */
	uint32_t end, epoch, at;
};

/* Text of a field; key: it is this interned one. */
struct dd_text {
	struct str s;
	struct dd_key *key;
};

/* The span being encoded. */
struct dd_span {
	const struct rs_span *s;
	struct dd_text service, name, resource, type;
	struct dd_text env, version, component; /* v1 only; else they are tags */
	uint8_t kind;				/* v1 only */
	uint32_t nctx; /* of the context's tags those that the span has not itself */
	uint32_t nmeta, nmetrics;
};

/* The chunk being encoded. */
struct dd_chunk {
	const struct rs_item *first;
	uint64_t tid_high;
	bool has_priority;
	int32_t priority;
	struct dd_text dm;     /* decision maker, "-4"; empty: none */
	struct dd_text origin; /* v1 */
};

#define DD_CACHE  1024
#define DD_COMMON 8

struct dd_map {
	bool v1; /* one attribute list, fields; else v0.x */

	/* keys */
	struct rs_arena arena;
	struct dd_key **table;
	uint32_t cap, count;
	struct dd_key *known[RS_K_COUNT];
	struct dd_key *c[DD_CONSTS_COUNT];
	struct rs_val cval[DD_CONSTS_COUNT]; /* c[] as values */
	struct {
		const struct rs_key *rk;
		struct dd_key *k;
		uint32_t batch;
	} cache[DD_CACHE];
	/* Keys of a batch keep their places until its serial changes. */
	const struct rs_batch *batch;
	uint64_t serial;
	uint32_t batch_no;

	/* context: resource and scope */
	const struct rs_scope_spans *ss;
	uint32_t ctx_no;
	uint64_t ctx_present;
	const struct rs_val *ctx_slot[DD_SLOTS];
	struct dd_ctx_tag *ctx_tag;
	uint32_t nctx, ctx_cap;
	struct dd_text ctx_service, ctx_env, ctx_version;
	char ctx_buf[3 * (DD_MAX_NAME * 4 + RS_ARENA_PAD)];
	struct rs_val ctx_val[4];

	/* v1: fields 2 to 9 of the payload, where all resources of the window agree; empty: they do not */
	struct str common[DD_COMMON];
	char common_buf[DD_COMMON * (DD_MAX_KEY + RS_ARENA_PAD)];

	/* span */
	struct dd_span out;
	uint32_t span_no;
	uint64_t present;
	const struct rs_val *slot[DD_SLOTS];
	struct dd_tag *meta, *metrics;
	uint32_t tag_cap;
	struct rs_val val[12]; /* made for this span */
	uint32_t nval;
	char *text; /* composed for this span: DD_TEXT bytes */
	uint32_t text_at;
	char service_buf[DD_MAX_NAME + RS_ARENA_PAD];
	char trace_hex[32 + RS_ARENA_PAD];
	struct rs_val trace_val;

	/* window */
	struct rs_chunks w;
	struct dd_chunk chunk;
	bool prescan; /* look at all spans of a chunk for its priority before writing it */
	bool again;   /* a later span of the chunk decides: encode this payload again */
};

#define dd_map_init    RS_SYM(dd_map_init)
#define dd_map_release RS_SYM(dd_map_release)
#define dd_window      RS_SYM(dd_window)
#define dd_chunk_begin RS_SYM(dd_chunk_begin)
#define dd_map_span    RS_SYM(dd_map_span)
#define dd_val_text    RS_SYM(dd_val_text)
#define dd_put_long    RS_SYM(dd_put_long)
#define dd_close_text  RS_SYM(dd_close_text)
#define dd_common      RS_SYM(dd_common)
#define dd_links_json  RS_SYM(dd_links_json)
#define dd_events_json RS_SYM(dd_events_json)
#define dd_key_intern  RS_SYM(dd_key_intern)

/* m is zeroed. 0 or -ENOMEM. */
int dd_map_init(struct dd_map *m, bool v1, size_t max_payload);
void dd_map_release(struct dd_map *m);

/* A new payload: collects m->w. 0 or -ENOMEM. */
int dd_window(struct dd_map *m, const struct rs_encode *run);

/* Maps the chunk's first span; finds its priority, decision maker and origin. False: no memory. */
bool dd_chunk_begin(struct dd_map *m, const struct rs_chunk *c);
/* Fills m->out, m->meta[], m->metrics[]. False: no memory. */
bool dd_map_span(struct dd_map *m, const struct rs_item *it);

/* v1: fills m->common[]. False: no memory. */
bool dd_common(struct dd_map *m);

/* Any value as text, at most DD_MAX_VALUE bytes. Asks for its room. */
char *dd_val_text(struct rs_sink *s, char *p, const struct rs_val *v);
/* The text that stands 3 bytes behind offset `at` becomes a MessagePack string there. */
char *dd_close_text(struct rs_sink *s, char *p, size_t at);
/* The other values and lengths of dd_put_str() and dd_put_val(). */
char *dd_put_long(struct rs_sink *s, char *p, const struct rs_val *v, size_t max);
/* JSON arrays of less than DD_MAX_VALUE bytes: what does not fit is left out, from the end. */
char *dd_links_json(struct rs_sink *s, char *p, const struct rs_span *span);
char *dd_events_json(struct rs_sink *s, char *p, const struct rs_span *span);

/* Slow half of dd_key_of(); NULL: no memory. */
struct dd_key *dd_key_intern(struct dd_map *m, const struct rs_key *k);

static inline bool dd_same(struct str a, struct str b)
{
	uint64_t x, y;

	if (a.len != b.len)
		return false;
	/* Both have readable bytes behind them. */
	for (size_t i = 0; i < a.len; i += 8) {
		memcpy(&x, a.ptr + i, 8);
		memcpy(&y, b.ptr + i, 8);
		if (x != y) {
			size_t left = a.len - i;

			return left < 8 && !((x ^ y) << (64 - 8 * left));
		}
	}
	return true;
}

static inline struct dd_key *dd_key_of(struct dd_map *m, const struct rs_key *k)
{
	size_t i;

	if (k->id != RS_KEY_DYNAMIC)
		return m->known[k->id];
	i = ((uintptr_t)k >> 4 ^ (uintptr_t)k >> 14) % DD_CACHE;
	if (__builtin_expect(m->cache[i].rk == k && m->cache[i].batch == m->batch_no, 1))
		return m->cache[i].k;
	return dd_key_intern(m, k);
}

static inline struct str dd_val_str(const struct rs_val *v)
{
	return rs_utf8_limit((struct str){ v->str, v->len }, DD_MAX_VALUE);
}

static inline const struct dd_key *dd_val_key(const struct rs_val *v)
{
	return (const struct dd_key *)(const void *)v->str;
}

/* Does the span have a tag of that name itself? */
static inline bool dd_hidden(const struct dd_map *m, const struct dd_key *k)
{
	return k->as_meta == m->span_no || (m->v1 && k->as_metric == m->span_no);
}

/* Ids and times: big numbers as a rule. */
static inline char *dd_put_u64(char *p, uint64_t v)
{
	uint64_t be = __builtin_bswap64(v);

	if (__builtin_expect(!(v >> 32), 0))
		return rs_mp_uint(p, v);
	*p = (char)0xcf;
	memcpy(p + 1, &be, 8);
	return p + 9;
}

/* An interned name as a MessagePack string. */
#define DD_KEY_ROOM (DD_MAX_KEY + 3)
static inline char *dd_put_key_unchecked(char *p, const struct dd_key *k)
{
	memcpy(p, k->mp, 32);
	if (__builtin_expect(k->mp_len > 32, 0))
		memcpy(p + 32, k->mp + 32, k->mp_len - 32);
	return p + k->mp_len;
}

static inline char *dd_put_key(struct rs_sink *s, char *p, const struct dd_key *k)
{
	return dd_put_key_unchecked(rs_sink_need(s, p, DD_KEY_ROOM), k);
}

/* v, at most RS_TEXT_PIECE bytes, as a MessagePack string; its room (DD_STR_ROOM) has been asked for. */
#define DD_STR_ROOM(len) ((len)*RS_TEXT_RAW_MAX + 8)
static inline char *dd_put_str_unchecked(struct rs_sink *s, char *p, struct str v)
{
	char *body, *end;

	if (__builtin_expect(v.len < 32, 1)) {
		*p = (char)(0xa0 | v.len);
		body = p + 1;
	} else {
		body = rs_mp_str_head(p, v.len);
	}
	end = rs_text_raw_unchecked(body, v);
	if (__builtin_expect(end != body + v.len, 0))
		return RS_SYM(rs_mp_text_moved)(s, end, rs_sink_pos(s, p), (size_t)(body - p));
	return end;
}

/* s as a MessagePack string of at most max bytes. */
static inline char *dd_put_str(struct rs_sink *s, char *p, struct str v, size_t max)
{
	/* So short that repairing it keeps it below the limit. */
	if (__builtin_expect(v.len <= max / RS_TEXT_RAW_MAX, 1))
		return rs_mp_text(s, p, v);
	v = rs_utf8_limit(v, max);
	return dd_put_long(
		s, p, &(struct rs_val){ .type = RS_VAL_STR, .len = (uint32_t)v.len, .str = v.ptr },
		max);
}

/* Any value but DD_VAL_KEY as a MessagePack string. */
static inline char *dd_put_val(struct rs_sink *s, char *p, const struct rs_val *v)
{
	if (__builtin_expect(v->type == RS_VAL_STR && v->len <= DD_MAX_VALUE / RS_TEXT_RAW_MAX, 1))
		return rs_mp_text(s, p, (struct str){ v->str, v->len });
	return dd_put_long(s, p, v, DD_MAX_VALUE);
}

static inline bool dd_is_scalar(uint8_t type)
{
	return type == RS_VAL_STR || type == RS_VAL_BOOL || type == RS_VAL_INT ||
	       type == RS_VAL_DOUBLE;
}

static inline bool dd_is_scalar_array(const struct rs_val *v)
{
	for (uint32_t i = 0; i < v->len; i++) {
		if (!dd_is_scalar(v->arr[i].type))
			return false;
	}
	return true;
}

/* Those that can be sent. */
static inline uint32_t dd_links(const struct rs_span *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->nlinks; i++)
		n += rs_link_ok(&s->links[i]);
	return n;
}

static inline uint32_t dd_attrs(const struct rs_attrs *as)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < as->n; i++)
		n += as->a[i].key->name.len != 0;
	return n;
}

static inline uint64_t dd_id(const uint8_t *b)
{
	uint64_t v;

	memcpy(&v, b, 8);
	return __builtin_bswap64(v);
}

/* W3C flags with the bit that says they are known; 0: unknown. */
static inline uint32_t dd_link_flags(const struct rs_link *l)
{
	return l->flags ? (l->flags & 0xff) | 0x80000000u : 0;
}

#endif
