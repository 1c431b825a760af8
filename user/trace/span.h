/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span — the model every encoder reads: OTLP's trace data (opentelemetry-proto trace/v1), nothing less.
 *
 * A batch is a tree: resources, under each scopes, under each spans; siblings are linked in order.
 * Lifetime: everything in a batch lives in the batch's arena and dies with rs_batch_reset(); strings
 * have RS_ARENA_PAD readable bytes behind them. Keys are interned: `key` points to an rs_key that
 * outlives the batch (the static table of keys.def) or lives in its arena.
 * Encoders read and never write. Ids are bytes in wire order; times are nanoseconds since 1970.
 */
#ifndef RS_TRACE_SPAN_H
#define RS_TRACE_SPAN_H

#include "base/arena.h"
#include "base/str.h"

/* Values of the OTLP SpanKind. */
enum rs_span_kind {
	RS_KIND_UNSPECIFIED = 0,
	RS_KIND_INTERNAL = 1,
	RS_KIND_SERVER = 2,
	RS_KIND_CLIENT = 3,
	RS_KIND_PRODUCER = 4,
	RS_KIND_CONSUMER = 5,
};

/* Values of the OTLP StatusCode. */
enum rs_status_code {
	RS_STATUS_UNSET = 0,
	RS_STATUS_OK = 1,
	RS_STATUS_ERROR = 2,
};

/* OTLP AnyValue's members. */
enum rs_val_type {
	RS_VAL_EMPTY = 0, /* no member set; len 1: `encode` only, the input had no value at all */
	RS_VAL_STR,
	RS_VAL_BOOL,
	RS_VAL_INT,
	RS_VAL_DOUBLE,
	RS_VAL_BYTES,
	RS_VAL_ARRAY,
	RS_VAL_MAP,
};

struct rs_attr;

struct rs_val {
	uint8_t type; /* enum rs_val_type */
	uint8_t pad_[3];
	uint32_t len; /* STR, BYTES: bytes; ARRAY, MAP: elements */
	union {
		const char *str; /* STR (any bytes; encoders make it valid UTF-8), BYTES */
		int64_t i;
		double d;
		bool b;
		const struct rs_val *arr;
		const struct rs_attr *map;
	};
};

/* Its bytes become the arena's, those of a list of scalars and texts too (nothing else is in a list here). False: no memory. */
bool rs_val_own(struct rs_arena *a, struct rs_val *v);

/* An attribute key: made once, written often. */
struct rs_key {
	struct str name;
	uint32_t id; /* static keys: their number in keys.def; others: RS_KEY_DYNAMIC */
	bool plain;  /* 1 to 64 ASCII bytes, none of which JSON escapes: may be copied unseen */
};

#define RS_KEY_DYNAMIC UINT32_MAX

/* A key of a name that is not in keys.def; borrows it (padded, as all strings of a batch). */
struct rs_key rs_key_make(struct str name);

struct rs_attr {
	const struct rs_key *key;
	struct rs_val val;
};

struct rs_attrs {
	const struct rs_attr *a;
	uint32_t n;
	uint32_t dropped; /* attributes left out by a limit */
};

struct rs_event {
	uint64_t time_ns;
	struct str name;
	struct rs_attrs attrs;
};

struct rs_link {
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint32_t flags; /* OTLP Span.flags */
	struct str trace_state;
	struct rs_attrs attrs;
};

struct rs_span {
	struct rs_span *next; /* in its scope */
	uint8_t trace_id[16];
	uint8_t span_id[8];
	uint8_t parent_id[8]; /* all zero: a root */
	uint8_t kind;	      /* enum rs_span_kind */
	uint8_t status;	      /* enum rs_status_code */
	bool no_trace_id;     /* `encode` only: the input's id was absent or of a wrong length */
	bool no_span_id;
	bool no_parent_id; /* `encode` only: there is one, but it is no span id */
	bool has_status;   /* `encode` only: the input had a status, be it empty */
	uint32_t
		flags; /* OTLP Span.flags: bits 0-7 W3C trace flags, 8 has-is-remote, 9 is-remote */
	uint64_t start_ns, end_ns;
	struct str name;
	struct str status_msg;
	struct str trace_state;
	struct rs_attrs attrs;
	const struct rs_event *events;
	const struct rs_link *links;
	uint32_t nevents, nlinks;
	uint32_t dropped_events, dropped_links;
};

struct rs_scope {
	struct str name;
	struct str version;
	struct rs_attrs attrs;
};

struct rs_scope_spans {
	struct rs_scope_spans *next;
	struct rs_scope scope;
	struct str schema_url;
	bool no_scope; /* `encode` only: the input had none */
	struct rs_span *first, *last;
	uint32_t nspans;
};

struct rs_resource {
	struct rs_attrs attrs;
	/* Two of one id have the same attributes, in all batches that an encoder sees. 0: nothing is known of it. */
	uint64_t id;
};

struct rs_resource_spans {
	struct rs_resource_spans *next;
	struct rs_resource resource;
	struct str schema_url;
	bool no_resource; /* `encode` only: the input had none */
	struct rs_scope_spans *first, *last;
};

struct rs_batch {
	struct rs_arena arena;
	struct rs_resource_spans *first, *last;
	uint32_t nspans;
	uint64_t
		serial; /* another one after every reset: tells a batch's pointers from an earlier one's */
};

/* limit: bytes of spans at most (0: none). Allocates nothing yet. */
void rs_batch_init(struct rs_batch *b, size_t limit);
void rs_batch_reset(struct rs_batch *b);
void rs_batch_release(struct rs_batch *b);

/* New, zeroed, linked at the end; NULL when the arena is at its limit. */
struct rs_resource_spans *rs_batch_add_resource(struct rs_batch *b);
struct rs_scope_spans *rs_batch_add_scope(struct rs_batch *b, struct rs_resource_spans *rs);
struct rs_span *rs_batch_add_span(struct rs_batch *b, struct rs_scope_spans *ss);
/* Takes the scope's last span out again; its memory comes back with the reset only. */
void rs_batch_drop_last(struct rs_batch *b, struct rs_scope_spans *ss);

/* A literal as a span's string: with the padding that encoders read. */
#define RS_PAD16	 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define RS_SPAN_STR(lit) ((struct str){ lit RS_PAD16 RS_PAD16 RS_PAD16 RS_PAD16, sizeof(lit) - 1 })

/* Keys of the static table: rs_key(RS_K_HTTP_REQUEST_METHOD). */
enum rs_known_key {
#define RS_KEY(id, name) RS_K_##id,
#include "keys.def"
#undef RS_KEY
	RS_K_COUNT,
};
extern const struct rs_key rs_known_keys[RS_K_COUNT];

static inline const struct rs_key *rs_key(enum rs_known_key k)
{
	return &rs_known_keys[k];
}

#endif
