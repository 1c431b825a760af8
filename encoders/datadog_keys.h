/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datadog_keys — names of tags, interned over payloads: what a name becomes, and its bytes.
 *
 * A name is looked up once per batch; after that its struct dd_key is found by the pointer of its rs_key. Texts that
 * the mapping itself writes (DD_CONSTS) are interned like names.
 *
 * Memory grows with the names that are seen; above DD_KEYS_MAX of them all are forgotten.
 */
#ifndef RS_ENC_DATADOG_KEYS_H
#define RS_ENC_DATADOG_KEYS_H

#include "encoder.h"
#include "strtab.h"

#define DD_MAX_KEY  200
#define DD_KEYS_MAX 8192

enum dd_slot {
#define DD_ATTR(id, name, use) DD_##id,
#include "datadog_attrs.def"
#undef DD_ATTR
	DD_SLOTS,
	DD_NO_SLOT = 0xff,
};
_Static_assert(DD_SLOTS <= 64, "a bit of a mask each");

/* What becomes of a well-known attribute; datadog_attrs.def. */
enum dd_use {
	DD_TAG,
	DD_EATEN,
	DD_FIELD,
	DD_OURS,
};

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
	X(NAME_CONSUMER, "Consumer")                                                               \
	X(EMPTY, "")

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
	uint32_t ctx; /* number of the last context that had it */
	/* datadog_strings.h: its number in payload `epoch`; the payload in which it was interned */
	uint32_t epoch, at, born;
	bool as_is;	 /* name and raw are the same */
	struct str name; /* as sent: valid, at most DD_MAX_KEY bytes */
	struct str raw;	 /* in the source */
	uint64_t raw_hash;
	const struct rs_key *fixed; /* the name is that of this static key; NULL: of none */
};

/* A value that is an interned text: val.type; val.str is the struct dd_key. */
#define DD_VAL_KEY 0x40

#define DD_CACHE 1024

struct dd_keys {
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
	uint32_t epoch; /* of the payload that is being written (datadog_strings.h) */
	uint32_t life; /* counts how often all was forgotten: a struct dd_key is of one life only */
};

#define dd_keys_init	RS_SYM(dd_keys_init)
#define dd_keys_release RS_SYM(dd_keys_release)
#define dd_keys_batch	RS_SYM(dd_keys_batch)
#define dd_key_intern	RS_SYM(dd_key_intern)
#define dd_key_of_name	RS_SYM(dd_key_of_name)

/* ks is zeroed. 0 or -ENOMEM; dd_keys_release() afterwards in any case. */
int dd_keys_init(struct dd_keys *ks);
void dd_keys_release(struct dd_keys *ks);
/* What follows is of this batch. 0 or -ENOMEM. */
int dd_keys_batch(struct dd_keys *ks, const struct rs_batch *b);

/* The key of a name, made if it is new; NULL: no memory. name has RS_ARENA_PAD readable bytes behind it. */
struct dd_key *dd_key_of_name(struct dd_keys *ks, struct str name);
/* Slow half of dd_key_of(); NULL: no memory. */
struct dd_key *dd_key_intern(struct dd_keys *ks, const struct rs_key *k);

/* Both have 32 readable bytes behind them. */
static inline bool dd_same(struct str a, struct str b)
{
	return a.len == b.len && rs_strtab_same(a.ptr, b.ptr, a.len);
}

/* Is it the name that this key was made for? */
static inline bool dd_key_is(const struct dd_key *k, const struct rs_key *name)
{
	return k->fixed == name || dd_same(k->raw, name->name);
}

/* A text that is interned as it is, or NULL; hash is its rs_strtab_hash(). */
static inline struct dd_key *dd_key_find(const struct dd_keys *ks, struct str s, uint64_t hash)
{
	for (uint32_t i = (uint32_t)hash & (ks->cap - 1);; i = (i + 1) & (ks->cap - 1)) {
		struct dd_key *k = ks->table[i];

		if (!k)
			return NULL;
		if (k->raw_hash == hash && dd_same(k->raw, s))
			return k->as_is ? k : NULL;
	}
}

/* The key of an attribute's name, in the batch that dd_keys_batch() named. */
static inline struct dd_key *dd_key_of(struct dd_keys *ks, const struct rs_key *k)
{
	size_t i;

	if (k->id != RS_KEY_DYNAMIC)
		return ks->known[k->id];
	i = ((uintptr_t)k >> 4 ^ (uintptr_t)k >> 14) % DD_CACHE;
	if (__builtin_expect(ks->cache[i].rk == k && ks->cache[i].batch == ks->batch_no, 1))
		return ks->cache[i].k;
	return dd_key_intern(ks, k);
}

static inline struct dd_key *dd_val_key(const struct rs_val *v)
{
	return (struct dd_key *)(uintptr_t)v->str;
}

#endif
