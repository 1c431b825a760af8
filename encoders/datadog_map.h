/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datadog_map — OpenTelemetry spans as Datadog spans: what the three Datadog encoders share.
 *
 * The rules are those of the Datadog agent's OTLP ingest (its "V2" names; spec: docs of each rule stand at
 * its code). Span attributes come before resource attributes; integers and doubles are
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
 * What the agent removes itself (an http.status_code outside 100 to 599) goes out as it is.
 *
 * A payload is a window of the batch, in chunks of one trace of one resource (chunks.h).
 *
 * Memory: everything lives in struct dd_map and is kept; nothing is allocated once it has seen as many keys
 * and attributes per span as it is going to see.
 */
#ifndef RS_ENC_DATADOG_MAP_H
#define RS_ENC_DATADOG_MAP_H

#include "chunks.h"
#include "datadog_text.h"

/* The text that stood in the same place of the last spans: interned, when it was there often. */
struct dd_memo {
	struct dd_key *text; /* NULL: none */
	uint64_t hash;	     /* of the last other one */
	uint32_t seen;
};

struct dd_tag {
	struct dd_key *key;
	const struct rs_val *val;
	struct dd_memo memo; /* for formats that number strings */
};

/* A tag of all spans of a context; text, whatever its value's type. */
struct dd_ctx_tag {
	struct dd_key *key;
	const struct rs_val *val;
	struct rs_val text; /* val points to it: a text that is interned */
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
};

/* Fields of a span that are texts. */
enum dd_field_no {
	DD_F_SERVICE,
	DD_F_NAME,
	DD_F_RESOURCE,
	DD_F_TYPE,
	DD_F_ENV,
	DD_F_VERSION,
	DD_F_COMPONENT,
	DD_FIELDS,
};

/* A run of a context's tags. */
struct dd_run {
	uint32_t from, to;
};

#define DD_SHAPES      32
#define DD_SHAPE_ATTRS 32 /* attributes of a span whose shape is remembered */
#define DD_SHAPE_TAGS  (DD_SHAPE_ATTRS + 24)

/*
 * What spans of one kind become: all that follows from the names and types of their attributes, not from the values.
 * Programs make the same few spans all day long; a span whose shape is known has its tags at once.
 */
struct dd_shape {
	/* What it is known by. */
	uint32_t n;	/* attributes; DD_NO_SHAPE: it is known by nothing */
	uint32_t like;	/* kind, status… */
	uint32_t batch; /* attr[].name are of this batch */
	uint32_t ctx;	/* dd_context.kind */
	struct dd_shape_attr {
		const struct rs_key *name;
		const struct dd_key *key;
		const struct rs_val **to; /* its tag's value */
		uint8_t type;
		uint8_t slot; /* DD_SLOTS: none */
	} attr[DD_SHAPE_ATTRS];
	uint64_t present; /* bits of the slots */

	struct dd_tag *meta, *metrics;
	uint32_t nmeta, nmetrics;
	/* Of the context's tags those that the span has not itself. */
	struct dd_run *run;
	uint32_t nrun, nctx;
	uint32_t no; /* another one each time it is made; 0: it has all of the context's tags */
	struct dd_memo field[DD_FIELDS];

	struct dd_tag tag[2][DD_SHAPE_TAGS];
	struct dd_run runs[DD_SHAPE_TAGS];
};

#define DD_NO_SHAPE UINT32_MAX

/* The chunk being encoded. */
struct dd_chunk {
	const struct rs_item *first;
	uint64_t tid_high;
	bool has_priority;
	int32_t priority;
	struct dd_text dm;     /* decision maker, "-4"; empty: none */
	struct dd_text origin; /* v1 */
};

#define DD_COMMON   8
#define DD_CONTEXTS 512		/* of resources that are remembered, about 6 KB each */
#define DD_WAYS	    4		/* places that a resource may have */
#define DD_TEXT	    (64 * 1024) /* composed texts of a span */

/* An attribute of a scope or resource. */
struct dd_source {
	struct dd_key *key;
	const struct rs_val *val;
};

/* What a resource and a scope are to their spans. */
struct dd_context {
	uint64_t hash;	  /* what it is looked up by; 0: it is not known again */
	uint32_t payload; /* the last one that used it */
	uint32_t no;	  /* another one each time it is made */
	uint32_t kind;	  /* the same in those that differ in nothing but values */
	/* What it was made of. */
	uint64_t id; /* the resource's */
	struct str scope_name, scope_version;
	const struct dd_source *src;
	uint32_t nscope, nsrc; /* the scope's come first */
	/* Well-known attributes of the resource. */
	uint64_t present;
	const struct rs_val *slot[DD_SLOTS];

	struct dd_ctx_tag *tag;
	uint32_t ntag, nmade;
	struct rs_val made[6];
	struct dd_text service, env, version;
	struct dd_key *field[DD_COMMON]; /* v1; NULL: none */
	/* The tags as MessagePack, v0.4; nbytes 0: not written yet. */
	char *bytes;
	uint32_t nbytes, bytes_cap;
	struct rs_arena arena;
};

struct dd_map {
	bool v1; /* one attribute list, fields; else v0.x */
	struct dd_keys keys;
	uint32_t life; /* of the keys that shapes know */

	/* context: resource and scope */
	const struct rs_scope_spans *ss; /* … of the spans that ctx is for */
	struct dd_context *ctx, *last;
	struct dd_context *context[DD_CONTEXTS]; /* NULL: not needed yet */
	struct dd_context passing;		 /* of those that are not kept */
	struct dd_context none;			 /* until there is one */
	uint32_t context_next, context_no;
	uint32_t payload;

	/* v1: fields 2 to 9 of the payload, where all resources of the window agree; NULL: they do not */
	struct dd_key *common[DD_COMMON];

	/* span */
	struct dd_span out;
	uint32_t span_no;
	uint64_t present;
	const struct rs_val *slot[DD_SLOTS + 1]; /* the last one: of nothing */
	uint32_t shape_no;
	struct dd_shape *sh;
	struct dd_shape shape[DD_SHAPES], other; /* `other`: what is not worth remembering */
	uint32_t tag_cap, run_cap;
	const struct rs_val *nowhere;
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

#define dd_map_init	    RS_SYM(dd_map_init)
#define dd_map_release	    RS_SYM(dd_map_release)
#define dd_window	    RS_SYM(dd_window)
#define dd_chunk_begin	    RS_SYM(dd_chunk_begin)
#define dd_map_span	    RS_SYM(dd_map_span)
#define dd_shape_of	    RS_SYM(dd_shape_of)
#define dd_shapes_forget    RS_SYM(dd_shapes_forget)
#define dd_shapes_release   RS_SYM(dd_shapes_release)
#define dd_contexts_init    RS_SYM(dd_contexts_init)
#define dd_contexts_forget  RS_SYM(dd_contexts_forget)
#define dd_contexts_release RS_SYM(dd_contexts_release)
#define dd_set_context	    RS_SYM(dd_set_context)
#define dd_common	    RS_SYM(dd_common)
#define dd_tag_value	    RS_SYM(dd_tag_value)
#define dd_text_room	    RS_SYM(dd_text_room)
#define dd_compose	    RS_SYM(dd_compose)
#define dd_service_of	    RS_SYM(dd_service_of)
#define dd_name_of	    RS_SYM(dd_name_of)
#define dd_resource_of	    RS_SYM(dd_resource_of)
#define dd_type_of	    RS_SYM(dd_type_of)
#define dd_put_meta_str	    RS_SYM(dd_put_meta_str)
#define dd_put_kind	    RS_SYM(dd_put_kind)
#define dd_put_otel	    RS_SYM(dd_put_otel)
#define dd_put_rare	    RS_SYM(dd_put_rare)
#define dd_has_rare	    RS_SYM(dd_has_rare)
#define dd_last_exception   RS_SYM(dd_last_exception)
#define dd_is_datadogs	    RS_SYM(dd_is_datadogs)
#define dd_set_fields	    RS_SYM(dd_set_fields)

/* -- for the encoders (datadog_map.c) -- */

/* m is zeroed. 0 or -ENOMEM. */
int dd_map_init(struct dd_map *m, bool v1, size_t max_payload);
void dd_map_release(struct dd_map *m);

/* A new payload: collects m->w. 0 or -ENOMEM. */
int dd_window(struct dd_map *m, const struct rs_encode *run);

/* Maps the chunk's first span; finds its priority, decision maker and origin. False: no memory. */
bool dd_chunk_begin(struct dd_map *m, const struct rs_chunk *c);
/* Fills m->out and m->sh. False: no memory. */
bool dd_map_span(struct dd_map *m, const struct rs_item *it);

/* v1: fills m->common[]. False: no memory. */
bool dd_common(struct dd_map *m);

/* -- tags (datadog_shape.c) -- */

/* Fills m->sh, m->slot[], m->present. False: no memory. */
bool dd_shape_of(struct dd_map *m, const struct rs_span *s);
void dd_shapes_forget(struct dd_map *m);
void dd_shapes_release(struct dd_map *m);

/* Those tags of the context that the span has not itself. */
#define DD_EACH_CTX_TAG(m, t)                                                                      \
	for (const struct dd_run *r_ = (m)->sh->run; r_ < (m)->sh->run + (m)->sh->nrun; r_++)      \
		for (struct dd_ctx_tag *t = &(m)->ctx->tag[r_->from]; t < &(m)->ctx->tag[r_->to];  \
		     t++)

/* -- what is shared by all spans of a scope (datadog_context.c) -- */

void dd_contexts_init(struct dd_map *m);
void dd_contexts_forget(struct dd_map *m);
void dd_contexts_release(struct dd_map *m);
/* Sets m->ctx. False: no memory. */
bool dd_set_context(struct dd_map *m, const struct rs_item *it);

/* -- well-known attributes -- */

#define DD_BIT(slot) (1ull << DD_##slot)

/* Does the span or its resource have one of these? */
static inline bool dd_have(const struct dd_map *m, uint64_t slots)
{
	return (m->present | m->ctx->present) & slots;
}

static inline const struct rs_val *dd_slot_val(const struct dd_map *m, enum dd_slot i)
{
	if (m->present >> i & 1)
		return m->slot[i];
	return m->ctx->present >> i & 1 ? m->ctx->slot[i] : NULL;
}

/* A text attribute that is not empty: the span's, else the resource's. */
static inline struct str dd_slot_str(const struct dd_map *m, enum dd_slot i)
{
	const struct rs_val *v;

	if (m->present >> i & 1) {
		v = m->slot[i];
		if (v->type == RS_VAL_STR && v->len)
			return (struct str){ v->str, v->len };
	}
	if (m->ctx->present >> i & 1) {
		v = m->ctx->slot[i];
		if (v->type == RS_VAL_STR && v->len)
			return (struct str){ v->str, v->len };
	}
	return STR_NONE;
}

/* The first of two names for the same thing. */
static inline struct str dd_slot_str2(const struct dd_map *m, enum dd_slot a, enum dd_slot b)
{
	struct str s = dd_slot_str(m, a);

	return s.len ? s : dd_slot_str(m, b);
}

/* -- service, name, resource, type (datadog_names.c) -- */

static inline struct dd_text dd_constant(const struct dd_map *m, enum dd_const c)
{
	return (struct dd_text){ m->keys.c[c]->name, m->keys.c[c] };
}

static inline struct dd_text dd_plain(struct str s)
{
	return (struct dd_text){ s, NULL };
}

/* Datadog's normal form of tag values. out: s.len bytes and the pad. */
struct str dd_tag_value(char *out, struct str s);
/* Room for n bytes of text composed for this span; NULL when a span asks for absurdly much. */
char *dd_text_room(struct dd_map *m, size_t n);
/* a + between + b + end, each text cut to `max`, normalised if wanted. */
struct str dd_compose(struct dd_map *m, struct str a, struct str between, struct str b,
		      struct str end, bool norm, size_t max);
/* buf: DD_MAX_NAME bytes and the pad. */
struct dd_text dd_service_of(struct dd_map *m, struct str s, char *buf);
struct dd_text dd_name_of(struct dd_map *m, uint8_t kind);
struct str dd_resource_of(struct dd_map *m, const struct rs_span *s);
struct dd_text dd_type_of(struct dd_map *m, uint8_t kind);

/* -- tags beside the attributes (datadog_tags.c) -- */

/* v1 has one list for both kinds of tags. */
static inline void dd_put_meta(struct dd_map *m, struct dd_key *k, const struct rs_val *v)
{
	if (k->as_meta == m->span_no || (m->v1 && k->as_metric == m->span_no))
		return;
	k->as_meta = m->span_no;
	m->sh->meta[m->sh->nmeta++] = (struct dd_tag){ .key = k, .val = v };
}

static inline void dd_put_metric(struct dd_map *m, struct dd_key *k, const struct rs_val *v)
{
	if (k->as_metric == m->span_no || (m->v1 && k->as_meta == m->span_no))
		return;
	k->as_metric = m->span_no;
	m->sh->metrics[m->sh->nmetrics++] = (struct dd_tag){ .key = k, .val = v };
}

void dd_put_meta_str(struct dd_map *m, enum dd_const c, struct str s);
void dd_put_kind(struct dd_map *m, const struct rs_span *s);
/* What OpenTelemetry knows and Datadog's own spans do not have. */
void dd_put_otel(struct dd_map *m, const struct rs_span *s);
/* What few spans have, and whether this one does. */
void dd_put_rare(struct dd_map *m);
bool dd_has_rare(const struct dd_map *m);
/* A span that Datadog's own tracers made, or that speaks like one. */
bool dd_is_datadogs(const struct dd_map *m);
/* The last event that is an exception; NULL: none. */
const struct rs_event *dd_last_exception(const struct rs_span *s);
/* v1: fields that are tags elsewhere. */
void dd_set_fields(struct dd_map *m, const struct rs_span *s);

#endif
