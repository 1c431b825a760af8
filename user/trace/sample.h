/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample — which spans are kept: OpenTelemetry's samplers, consistent probability (W3C tracestate `ot=th`),
 * a backend's rates, exceptions for errors and slow spans, and a limit of spans per second.
 *
 * The head decision follows from the trace alone (its id, the flags and state it came with), so that all
 * spans of a trace, on all nodes, get the same one; it is taken before a span is assembled. Where it says
 * no, a span may still be kept for what it turned out to be (rs_sample_rule), when such rules are set.
 * A span that is kept has its sampled flag set, and `th` in its state only if that is true of it.
 *
 * Pure but for the limit's bucket. Not thread-safe. Allocates from the batch's arena only.
 */
#ifndef RS_TRACE_SAMPLE_H
#define RS_TRACE_SAMPLE_H

#include "config/config.h"
#include "trace/span.h"

/* The values of option --sampler, in its order. */
enum rs_sampler_kind {
	RS_SAMPLER_PARENT_ON,	 /* parentbased_always_on */
	RS_SAMPLER_PARENT_OFF,	 /* parentbased_always_off */
	RS_SAMPLER_PARENT_RATIO, /* parentbased_traceidratio */
	RS_SAMPLER_ON,
	RS_SAMPLER_OFF,
	RS_SAMPLER_RATIO,
};

#define RS_SAMPLE_RATES	  64
#define RS_SAMPLE_BITS	  56
#define RS_SAMPLE_NO_TH	  UINT64_MAX
#define RS_SAMPLE_TH_TEXT 16 /* bytes of th's text and a NUL */

struct rs_sample_rate {
	struct str service, env; /* in rates_mem */
	uint64_t threshold;
};

struct rs_sampler {
	enum rs_sampler_kind kind;
	uint64_t threshold; /* T: kept if R >= T */
	bool keep_errors;
	uint64_t keep_slow_ns; /* 0: no such rule */

	uint64_t per_second; /* 0: no limit */
	uint64_t tokens, refilled_ns;

	/* By service, from a backend; they stand in for the root's decision. */
	struct rs_sample_rate rates[RS_SAMPLE_RATES];
	uint32_t nrates;
	uint64_t default_rate; /* threshold; RS_SAMPLE_NO_TH: none was given */
	struct rs_arena rates_mem;
};

/* ratio: of kinds RATIO, 0..1. */
void rs_sampler_init(struct rs_sampler *s, enum rs_sampler_kind kind, double ratio);
/* As the options say. False: --sampler-arg is no ratio; 1 is taken. */
bool rs_sampler_configure(struct rs_sampler *s, const struct rs_config *cfg);
void rs_sampler_release(struct rs_sampler *s);
/* A backend's rate for a service; empty service: for all that have none. */
void rs_sampler_rate(struct rs_sampler *s, struct str service, struct str env, double rate);

/* What is known of a trace. */
struct rs_sample_trace {
	const uint8_t *trace_id; /* 16 bytes */
	bool from_wire;		 /* it came with a context */
	bool sampled;		 /* and that said so */
	struct str state;	 /* W3C tracestate */
	struct str service;
	bool has_ratio; /* a rule of discovery gives one for traces that begin there */
	double ratio;
};

bool rs_sample_head(const struct rs_sampler *s, const struct rs_sample_trace *t);
/* Is there a rule that may keep a span in spite of its trace? */
bool rs_sample_has_rules(const struct rs_sampler *s);
bool rs_sample_rule(const struct rs_sampler *s, const struct rs_span *span);
/* Room under the limit of spans per second? Takes it. */
bool rs_sample_room(struct rs_sampler *s, uint64_t now_ns);
/* The span goes out: its sampled flag, and th in its state. by_rule: in spite of its trace. */
void rs_sample_mark(const struct rs_sampler *s, const struct rs_sample_trace *t, bool by_rule,
		    struct rs_span *span, struct rs_arena *a);

/* T of a probability, with `digits` hexadecimal digits behind the leading f's. */
uint64_t rs_sample_threshold(double probability, int digits);
/* "8" of 1/2: the digits without trailing zeros. */
void rs_sample_th_text(uint64_t threshold, char out[RS_SAMPLE_TH_TEXT]);
/* th and rv of a tracestate's `ot` member; RS_SAMPLE_NO_TH where there is none, or none that is well-formed. */
void rs_sample_ot(struct str state, uint64_t *ret_th, uint64_t *ret_rv);

#endif
