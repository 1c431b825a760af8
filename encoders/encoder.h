/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder — a batch of spans in, the bytes of one protocol out.
 *
 * An encoder is a file that defines one RS_ENCODER_OPS(name) and a line in encoders.def. Its files are
 * compiled once per SIMD level (Makefile: LEVELS); rs_encoder_new() picks the level once. It never
 * allocates: it writes to sinks, and keeps tables in `state`, which lives as long as the encoder. What it
 * remembers of a resource it finds by the resource's id (trace/span.h).
 *
 * A call encodes spans from run->at on, until the batch ends or the message is full (opts.max_payload,
 * or the protocol's own rule, e.g. one transaction per envelope). Call until run->out.niov is 0:
 *
 *	struct rs_encode run = { .batch = b };
 *
 *	while (!(err = rs_encode(enc, &run)) && run.out.niov) {
 *		send(&run.out);                  (takes the payload, or copies it and …)
 *		rs_payload_release(&run.out);
 *	}
 *
 * A span that cannot be encoded is left out, alone, and counted in run->skipped by reason.
 */
#ifndef RS_ENC_ENCODER_H
#define RS_ENC_ENCODER_H

#include <errno.h>

#include "sink.h"
#include "trace/span.h"

/* Why a span was left out. */
enum rs_skip {
	RS_SKIP_NO_TRACE_ID, /* absent, zero or of a wrong length */
	RS_SKIP_NO_SPAN_ID,
	RS_SKIP_NO_PARENT_ID, /* not absent, but of a wrong length: without it the span would seem a root */
	RS_SKIP_BAD_TIME,    /* ends before it starts, or after the year 2262 (signed 64-bit ns) */
	RS_SKIP_TOO_BIG,     /* alone bigger than a message may be, or than memory allows */
	RS_SKIP_UNSUPPORTED, /* the protocol has no form for it */
	RS_SKIP_COUNT,
	RS_SKIP_NONE = RS_SKIP_COUNT,
};

/* "no trace id"… for people. */
const char *rs_skip_text(enum rs_skip why);

/* The next span to encode; all NULL: the batch's first. */
struct rs_cursor {
	const struct rs_resource_spans *rs;
	const struct rs_scope_spans *ss;
	const struct rs_span *span;
};

struct rs_encode {
	const struct rs_batch *batch;
	struct rs_cursor at;
	bool done;	       /* no spans are left */
	struct rs_payload out; /* the caller's after the call */
	uint32_t spans;	       /* encoded, all calls of this run together */
	uint32_t skipped[RS_SKIP_COUNT];
	uint64_t mark; /* the encoder's, to know this run by; 0 at first */
};

struct rs_encoder_opts {
	size_t max_payload; /* bytes of a message at most; 0: RS_ENC_MAX_PAYLOAD */
	/* Sentry: the DSN's public key and organisation (digits), for the trace context; NULL: left out. Borrowed. */
	const char *sentry_key, *sentry_org;
};

/* OTLP clients keep requests under 64 MiB; most servers take 4 MiB by default. */
#define RS_ENC_MAX_PAYLOAD (3584 * 1024)

struct rs_encoder;

struct rs_encoder_ops {
	const char *name;
	const char *content_type;
	const char *suffix; /* of a file with such bytes: "json" */
	size_t state_size;
	/* Optional. init: 0 or -errno. */
	int (*init)(struct rs_encoder *e);
	void (*release)(struct rs_encoder *e);
	/*
	 * Fills run->out (at most once), moves run->at behind what it took, sets run->done at the end.
	 * 0 or -errno (no buffer at all); nothing is lost then.
	 */
	int (*encode)(struct rs_encoder *e, struct rs_encode *run);
};

struct rs_encoder {
	const struct rs_encoder_ops *ops;
	struct rs_bufpool *pool;
	struct rs_encoder_opts opts;
	void *state;	     /* ops->state_size bytes, zeroed, 64-byte aligned */
	struct rs_arena mem; /* where encoder and state live */
};

/* SIMD levels an encoder is compiled for. */
enum rs_simd {
	RS_SIMD_BASE, /* what every machine of the architecture has */
	RS_SIMD_SSSE3,
	RS_SIMD_AVX2,	/* with BMI2 */
	RS_SIMD_AVX512, /* with BW, VL and VBMI2: Ice Lake, Zen 4 */
	RS_SIMD_COUNT,
};

/* The best level this machine has. */
enum rs_simd rs_simd_best(void);

/* Name, as in encoders.def. pool outlives the encoder. 0, -ENOENT (no such name), -ENOMEM. */
int rs_encoder_new(const char *name, struct rs_bufpool *pool, const struct rs_encoder_opts *opts,
		   struct rs_encoder **ret);
/* At a given level, which this machine has (tests, benchmarks). */
int rs_encoder_new_at(const char *name, enum rs_simd level, struct rs_bufpool *pool,
		      const struct rs_encoder_opts *opts, struct rs_encoder **ret);
void rs_encoder_free(struct rs_encoder *e);
/* "otlp-json"… the i-th name; NULL at the end. */
const char *rs_encoder_name(size_t i);

static inline int rs_encode(struct rs_encoder *e, struct rs_encode *run)
{
	run->out = (struct rs_payload){ 0 };
	return run->done ? 0 : e->ops->encode(e, run);
}

/* -- for encoder files -- */

#define RS_PASTE_(a, b) a##b
#define RS_PASTE(a, b)	RS_PASTE_(a, b)
#if defined(__AVX512VBMI2__)
#define RS_SYM(name) RS_PASTE(name, _avx512)
#elif defined(__AVX2__) && defined(__BMI2__)
#define RS_SYM(name) RS_PASTE(name, _avx2)
#elif defined(__SSSE3__)
#define RS_SYM(name) RS_PASTE(name, _ssse3)
#else
#define RS_SYM(name) RS_PASTE(name, _base)
#endif
/* Defines an encoder's table; symbols an encoder shares with another file are named RS_SYM(x) too. */
#define RS_ENCODER_OPS(file)                                                                       \
	extern const struct rs_encoder_ops RS_SYM(rs_encoder_##file);                              \
	const struct rs_encoder_ops RS_SYM(rs_encoder_##file)

static inline bool rs_id_is_zero(const uint8_t *id, size_t n)
{
	uint64_t or = 0;

	for (size_t i = 0; i < n; i += 8) {
		uint64_t v;

		memcpy(&v, id + i, 8);
		or |= v;
	}
	return ! or ;
}

/* What every protocol refuses. RS_SKIP_NONE: fine. */
static inline enum rs_skip rs_span_check(const struct rs_span *s)
{
	if (__builtin_expect(s->no_trace_id || rs_id_is_zero(s->trace_id, 16), 0))
		return RS_SKIP_NO_TRACE_ID;
	if (__builtin_expect(s->no_span_id || rs_id_is_zero(s->span_id, 8), 0))
		return RS_SKIP_NO_SPAN_ID;
	if (__builtin_expect(s->no_parent_id, 0))
		return RS_SKIP_NO_PARENT_ID;
	if (__builtin_expect(s->end_ns < s->start_ns || s->end_ns > INT64_MAX, 0))
		return RS_SKIP_BAD_TIME;
	return RS_SKIP_NONE;
}

/* A link whose context is invalid cannot be sent. */
static inline bool rs_link_ok(const struct rs_link *l)
{
	return !rs_id_is_zero(l->trace_id, 16) && !rs_id_is_zero(l->span_id, 8);
}

/* Walking a run's spans: for (rs = rs_first_resource(run); rs; rs = rs->next) for (ss = …) for (span = …). */
static inline const struct rs_resource_spans *rs_first_resource(const struct rs_encode *run)
{
	return run->at.rs ? run->at.rs : run->batch->first;
}

static inline const struct rs_scope_spans *rs_first_scope(const struct rs_encode *run,
							  const struct rs_resource_spans *rs)
{
	return rs == run->at.rs ? run->at.ss : rs->first;
}

static inline const struct rs_span *rs_first_span(const struct rs_encode *run,
						  const struct rs_scope_spans *ss)
{
	return ss == run->at.ss ? run->at.span : ss->first;
}

/* What became of a span that was written from `mark` on. */
enum rs_took {
	RS_TOOK,
	RS_TOOK_NOT, /* it is too big for any message: rolled back and counted */
	RS_TOOK_END, /* it does not fit into this message any more: rolled back, end the message */
};

/* n: spans in this message before it. Call after each span; *p is the cursor. */
static inline enum rs_took rs_span_took(const struct rs_encoder *e, struct rs_encode *run,
					struct rs_sink *s, char **p, size_t mark, uint32_t n)
{
	int err = s->err;

	if (__builtin_expect(!err && rs_sink_pos(s, *p) <= e->opts.max_payload, 1)) {
		run->spans++;
		return RS_TOOK;
	}
	*p = rs_sink_rollback(s, mark);
	if (n || (err && err != -EFBIG))
		return RS_TOOK_END;
	run->skipped[RS_SKIP_TOO_BIG]++;
	return RS_TOOK_NOT;
}

/* The next span comes into the cache: a batch is larger than that, and a busy node's has its spans in no order. */
static inline void rs_span_ahead(const struct rs_cursor *at)
{
	const struct rs_span *next = at->span->next;

	if (!next && at->rs->next && at->rs->next->first)
		next = at->rs->next->first->first;
	for (size_t i = 0; next && i < 1024; i += 64)
		__builtin_prefetch((const char *)next + i);
}

/*
 * The spans of a scope until the message is full; `put` writes one, and is inlined. n: spans in the message.
 * For protocols that send spans as they stand in the batch; by trace: chunks.h.
 */
static inline __attribute__((always_inline)) char *
rs_put_spans(struct rs_encoder *e, struct rs_encode *run, struct rs_sink *s, char *p,
	     const struct rs_resource_spans *rs, const struct rs_scope_spans *ss, uint32_t *n,
	     bool *full, char *(*put)(struct rs_encoder *e, char *p, const struct rs_cursor *at))
{
	struct rs_cursor at = { rs, ss, rs_first_span(run, ss) };

	for (; at.span; at.span = at.span->next) {
		enum rs_skip skip = rs_span_check(at.span);
		size_t mark = rs_sink_pos(s, p);

		rs_span_ahead(&at);
		if (__builtin_expect(skip != RS_SKIP_NONE, 0)) {
			run->skipped[skip]++;
			continue;
		}
		p = put(e, p, &at);
		switch (rs_span_took(e, run, s, &p, mark, *n)) {
		case RS_TOOK:
			++*n;
			break;
		case RS_TOOK_NOT:
			break;
		case RS_TOOK_END:
			run->at = at;
			*full = true;
			return p;
		}
	}
	return p;
}

/* Nesting of arrays and maps; what is deeper becomes the empty value (OpenTelemetry 1.60). */
#define RS_ENC_DEPTH 64

#endif
