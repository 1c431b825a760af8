// SPDX-License-Identifier: Apache-2.0
#include "sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/digits.h"

#define WHOLE	    (1ull << RS_SAMPLE_BITS)
#define DIGITS	    14 /* of 56 bits */
#define TH_DIGITS   4
#define STATE_MAX   512
#define OT_MAX	    256
#define RATES_BYTES (64u << 10)
#define NS_PER_S    1000000000ull

void rs_sampler_init(struct rs_sampler *s, enum rs_sampler_kind kind, double ratio)
{
	*s = (struct rs_sampler){ .kind = kind, .default_rate = RS_SAMPLE_NO_TH };
	if (kind == RS_SAMPLER_RATIO || kind == RS_SAMPLER_PARENT_RATIO)
		s->threshold = rs_sample_threshold(ratio, TH_DIGITS);
	else if (kind == RS_SAMPLER_OFF || kind == RS_SAMPLER_PARENT_OFF)
		s->threshold = WHOLE;
	rs_arena_init(&s->rates_mem, 4096, RATES_BYTES);
}

bool rs_sampler_configure(struct rs_sampler *s, const struct rs_config *cfg)
{
	const char *arg = cfg->sampler_arg;
	double ratio = 1;
	char *end;
	bool ok = true;

	if (arg) {
		ratio = strtod(arg, &end);
		ok = !*end && end != arg && ratio >= 0 && ratio <= 1;
	}
	rs_sampler_init(s, (enum rs_sampler_kind)cfg->sampler, ok ? ratio : 1);
	s->keep_errors = cfg->keep_errors;
	s->keep_slow_ns = cfg->keep_slow;
	s->per_second = cfg->max_span_rate;
	return ok;
}

void rs_sampler_release(struct rs_sampler *s)
{
	rs_arena_release(&s->rates_mem);
}

/* -- thresholds -- */

static unsigned digit(uint64_t t, int i)
{
	return (unsigned)(t >> (4 * (DIGITS - 1 - i))) & 0xf;
}

uint64_t rs_sample_threshold(double p, int digits)
{
	uint64_t t, unit;
	int n = 0;

	if (!(p > 0))
		return WHOLE;
	if (p >= 1)
		return 0;
	t = (uint64_t)roundl((1 - (long double)p) * (long double)WHOLE);
	if (t >= WHOLE)
		t = WHOLE - 1; /* p is below 2^-56 */
	while (n < DIGITS && digit(t, n) == 0xf)
		n++;
	if (n + digits >= DIGITS)
		return t;
	unit = 1ull << (4 * (DIGITS - n - digits));
	t = (t + unit / 2) / unit * unit;
	return t < WHOLE ? t : WHOLE - unit;
}

void rs_sample_th_text(uint64_t threshold, char out[RS_SAMPLE_TH_TEXT])
{
	int n = DIGITS;

	while (n > 1 && digit(threshold, n - 1) == 0)
		n--;
	for (int i = 0; i < n; i++)
		out[i] = "0123456789abcdef"[digit(threshold, i)];
	out[n] = 0;
}

/* Lower-case hexadecimal digits, left-aligned in 56 bits. */
static bool read_digits(struct str s, uint64_t *ret)
{
	uint64_t v = 0;

	if (!s.len || s.len > DIGITS)
		return false;
	for (size_t i = 0; i < DIGITS; i++) {
		int d = i < s.len ? rs_hex_lower_digit(s.ptr[i]) : 0;

		if (d < 0)
			return false;
		v = v << 4 | (unsigned)d;
	}
	*ret = v;
	return true;
}

/* The value of a tracestate's `ot` member, and what stands before and after it. */
static bool find_ot(struct str state, struct str *ret_value, struct str *ret_before,
		    struct str *ret_after)
{
	struct str rest = state, one;

	while (rest.len) {
		const char *at = rest.ptr;

		rest = str_cut(rest, ',', &one);
		one = str_trim(one);
		if (!str_starts(one, STR("ot=")))
			continue;
		*ret_value = str_from(one, 3);
		*ret_before = str_of(state.ptr, (size_t)(at - state.ptr));
		*ret_after = rest;
		return true;
	}
	return false;
}

void rs_sample_ot(struct str state, uint64_t *ret_th, uint64_t *ret_rv)
{
	struct str value, before, after, one, key;

	*ret_th = *ret_rv = RS_SAMPLE_NO_TH;
	if (!state.len || !find_ot(state, &value, &before, &after))
		return;
	while (value.len) {
		value = str_cut(value, ';', &one);
		one = str_cut(one, ':', &key);
		if (str_eq(key, STR("th")))
			read_digits(one, ret_th);
		else if (str_eq(key, STR("rv")) && one.len == DIGITS)
			read_digits(one, ret_rv);
	}
}

static uint64_t randomness(const uint8_t *trace_id, uint64_t rv)
{
	uint64_t r = 0;

	if (rv != RS_SAMPLE_NO_TH)
		return rv;
	for (int i = 9; i < 16; i++)
		r = r << 8 | trace_id[i];
	return r;
}

/* -- decisions -- */

void rs_sampler_rate(struct rs_sampler *s, struct str service, struct str env, double rate)
{
	uint64_t t = rs_sample_threshold(rate, TH_DIGITS);
	struct rs_sample_rate *r;

	if (!service.len) {
		s->default_rate = t;
		return;
	}
	for (uint32_t i = 0; i < s->nrates; i++) {
		r = &s->rates[i];
		if (str_ieq(r->service, service) && str_ieq(r->env, env)) {
			r->threshold = t;
			return;
		}
	}
	/* More services than we keep: they follow the rate for all. */
	if (s->nrates == RS_SAMPLE_RATES)
		return;
	r = &s->rates[s->nrates];
	*r = (struct rs_sample_rate){ rs_arena_str(&s->rates_mem, service),
				      rs_arena_str(&s->rates_mem, env), t };
	if (r->service.ptr && (r->env.ptr || !env.len))
		s->nrates++;
}

/* T for a trace that begins here. */
static uint64_t root_threshold(const struct rs_sampler *s, const struct rs_sample_trace *t)
{
	if (t->has_ratio)
		return rs_sample_threshold(t->ratio, TH_DIGITS);
	if (s->kind != RS_SAMPLER_PARENT_ON)
		return s->threshold;
	for (uint32_t i = 0; i < s->nrates; i++) {
		if (str_ieq(s->rates[i].service, t->service))
			return s->rates[i].threshold;
	}
	return s->default_rate != RS_SAMPLE_NO_TH ? s->default_rate : s->threshold;
}

static bool parent_based(const struct rs_sampler *s)
{
	return s->kind <= RS_SAMPLER_PARENT_RATIO;
}

bool rs_sample_head(const struct rs_sampler *s, const struct rs_sample_trace *t)
{
	uint64_t th, rv, need;

	if (t->from_wire && parent_based(s))
		return t->sampled;
	need = root_threshold(s, t);
	if (need == 0 || need == WHOLE)
		return need == 0;
	rs_sample_ot(t->state, &th, &rv);
	return randomness(t->trace_id, rv) >= need;
}

bool rs_sample_has_rules(const struct rs_sampler *s)
{
	return s->keep_errors || s->keep_slow_ns;
}

bool rs_sample_rule(const struct rs_sampler *s, const struct rs_span *span)
{
	return (s->keep_errors && span->status == RS_STATUS_ERROR) ||
	       (s->keep_slow_ns && span->end_ns - span->start_ns >= s->keep_slow_ns);
}

/* A second's worth may come at once; then as many as the time gives. In billionths of a span. */
bool rs_sample_room(struct rs_sampler *s, uint64_t now_ns)
{
	const uint64_t full = s->per_second * NS_PER_S;
	uint64_t passed = now_ns - s->refilled_ns;

	if (!s->per_second)
		return true;
	if (!s->refilled_ns || passed >= NS_PER_S || s->tokens + passed * s->per_second > full)
		s->tokens = full;
	else
		s->tokens += passed * s->per_second;
	s->refilled_ns = now_ns;
	if (s->tokens < NS_PER_S)
		return false;
	s->tokens -= NS_PER_S;
	return true;
}

/* -- what is written -- */

/* T that is true of a span that went out; RS_SAMPLE_NO_TH: not known, or not worth a word. */
static uint64_t true_threshold(const struct rs_sampler *s, const struct rs_sample_trace *t,
			       bool by_rule, uint64_t th, uint64_t r)
{
	uint64_t need;

	if (by_rule)
		return RS_SAMPLE_NO_TH;
	if (t->from_wire && parent_based(s))
		return t->sampled && th != RS_SAMPLE_NO_TH && r >= th ? th : RS_SAMPLE_NO_TH;
	need = root_threshold(s, t);
	if (need == 0 || need == WHOLE)
		return t->from_wire && th != RS_SAMPLE_NO_TH && r >= th ? th : RS_SAMPLE_NO_TH;
	/* Sampled before, too: what is rarer is true. */
	return th != RS_SAMPLE_NO_TH && r >= th && th > need ? th : need;
}

/* The member without th, and with the new one in front. */
static size_t make_ot(struct str value, uint64_t th, char *out, size_t room)
{
	char text[RS_SAMPLE_TH_TEXT];
	struct str one;
	size_t n = 0;

	if (th != RS_SAMPLE_NO_TH) {
		rs_sample_th_text(th, text);
		n = (size_t)snprintf(out, room, "th:%s", text);
	}
	while (value.len) {
		value = str_cut(value, ';', &one);
		if (!one.len || str_starts(one, STR("th:")) || n + one.len + 2 > room)
			continue;
		if (n)
			out[n++] = ';';
		memcpy(out + n, one.ptr, one.len);
		n += one.len;
	}
	return n;
}

static void set_state(struct rs_span *span, uint64_t th, struct rs_arena *a)
{
	struct str value = STR_NONE, before = span->trace_state, after = STR_NONE, text;
	char ot[OT_MAX], all[STATE_MAX];
	size_t n, len = 0;

	if (!find_ot(span->trace_state, &value, &before, &after) && th == RS_SAMPLE_NO_TH)
		return;
	n = make_ot(value, th, ot, sizeof(ot));
	while (before.len &&
	       (before.ptr[before.len - 1] == ',' || before.ptr[before.len - 1] == ' '))
		before.len--;
	/* A member that was changed goes to the left. */
	if (n)
		len = (size_t)snprintf(all, sizeof(all), "ot=%.*s", (int)n, ot);
	for (int i = 0; i < 2; i++) {
		struct str part = i ? str_trim(after) : before;

		if (!part.len || len + 1 + part.len > sizeof(all))
			continue;
		if (len)
			all[len++] = ',';
		memcpy(all + len, part.ptr, part.len);
		len += part.len;
	}
	text = rs_arena_str(a, str_of(all, len));
	span->trace_state = text.ptr ? text : STR_NONE;
}

void rs_sample_mark(const struct rs_sampler *s, const struct rs_sample_trace *t, bool by_rule,
		    struct rs_span *span, struct rs_arena *a)
{
	uint64_t th, rv, now;

	span->flags |= 1; /* it is kept: that is what the flag says */
	rs_sample_ot(span->trace_state, &th, &rv);
	now = true_threshold(s, t, by_rule, th, randomness(t->trace_id, rv));
	if (now != th)
		set_state(span, now, a);
}
