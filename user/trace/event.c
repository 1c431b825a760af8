// SPDX-License-Identifier: Apache-2.0
#include "event.h"

/* What an event's attribute, and the summary, say. */
enum says {
	SAYS_COUNT,
	SAYS_VALUE,
	SAYS_RECEIVE,
	SAYS_TRANSMIT,
	SAYS_EXIT,
	SAYS_THAT, /* that it was: no attribute; true in summary */
};

struct kind {
	uint8_t fact;
	uint8_t says; /* enum says */
	enum rs_known_key key, summary;
	struct str name;
};

static const struct kind kinds[] = {
	{ RS_FACT_RETRANSMIT, SAYS_COUNT, RS_K_RINGSPAN_COUNT, RS_K_RINGSPAN_TCP_RETRANSMITS,
	  RS_SPAN_STR("tcp.retransmit") },
	{ RS_FACT_RTO, SAYS_COUNT, RS_K_RINGSPAN_COUNT, RS_K_RINGSPAN_TCP_RTOS,
	  RS_SPAN_STR("tcp.rto") },
	{ RS_FACT_ZERO_WINDOW, SAYS_COUNT, RS_K_RINGSPAN_COUNT, RS_K_RINGSPAN_TCP_ZERO_WINDOWS,
	  RS_SPAN_STR("tcp.zero_window") },
	{ RS_FACT_RESET_IN, SAYS_RECEIVE, RS_K_NETWORK_IO_DIRECTION, RS_K_RINGSPAN_TCP_RESET,
	  RS_SPAN_STR("tcp.reset") },
	{ RS_FACT_RESET_OUT, SAYS_TRANSMIT, RS_K_NETWORK_IO_DIRECTION, RS_K_RINGSPAN_TCP_RESET,
	  RS_SPAN_STR("tcp.reset") },
	{ RS_FACT_CONNECTED, SAYS_VALUE, RS_K_RINGSPAN_DURATION_US, RS_K_RINGSPAN_TCP_CONNECT_US,
	  RS_SPAN_STR("tcp.connect") },
	{ RS_FACT_TLS_HANDSHAKE, SAYS_VALUE, RS_K_RINGSPAN_DURATION_US,
	  RS_K_RINGSPAN_TLS_HANDSHAKE_US, RS_SPAN_STR("tls.handshake") },
	{ RS_FACT_RUN_QUEUE, SAYS_VALUE, RS_K_RINGSPAN_DURATION_US, RS_K_RINGSPAN_RUN_QUEUE_WAIT_US,
	  RS_SPAN_STR("thread.run_queue_wait") },
	{ RS_FACT_PROC + RS_PROC_SIGNAL, SAYS_VALUE, RS_K_RINGSPAN_SIGNAL,
	  RS_K_RINGSPAN_PROCESS_SIGNAL, RS_SPAN_STR("process.signal") },
	{ RS_FACT_PROC + RS_PROC_OOM, SAYS_THAT, RS_K_RINGSPAN_PROCESS_OOM_KILL,
	  RS_K_RINGSPAN_PROCESS_OOM_KILL, RS_SPAN_STR("process.oom_kill") },
	{ RS_FACT_PROC + RS_PROC_EXIT, SAYS_EXIT, RS_K_PROCESS_EXIT_CODE,
	  RS_K_RINGSPAN_PROCESS_EXIT, RS_SPAN_STR("process.exit") },
};

static const struct kind *kind_of(const struct rs_open_fact *f)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i].fact == f->kind)
			return &kinds[i];
	}
	return NULL;
}

static struct rs_val number(int64_t v)
{
	return (struct rs_val){ .type = RS_VAL_INT, .i = v };
}

static struct rs_val direction(bool in)
{
	static const struct str receive = RS_SPAN_STR("receive"),
				transmit = RS_SPAN_STR("transmit");
	struct str dir = in ? receive : transmit;

	return (struct rs_val){ .type = RS_VAL_STR, .len = (uint32_t)dir.len, .str = dir.ptr };
}

static struct rs_val value_of(const struct kind *k, const struct rs_open_fact *f)
{
	switch ((enum says)k->says) {
	case SAYS_COUNT:
		return number(f->count);
	case SAYS_VALUE:
		return number(f->value);
	case SAYS_EXIT:
		return number((f->value >> 8) & 0xff);
	case SAYS_RECEIVE:
	case SAYS_TRANSMIT:
		return direction(k->says == SAYS_RECEIVE);
	case SAYS_THAT:
		break;
	}
	return (struct rs_val){ .type = RS_VAL_BOOL, .b = true };
}

#define EVENT_ATTRS 2

static uint32_t attrs_of(const struct kind *k, const struct rs_open_fact *f, struct rs_attr *to)
{
	uint32_t n = 0;

	if (k->says != SAYS_THAT)
		to[n++] = (struct rs_attr){ rs_key(k->key), value_of(k, f) };
	if (k->says == SAYS_EXIT && f->value & 0x7f)
		to[n++] = (struct rs_attr){ rs_key(RS_K_RINGSPAN_SIGNAL), number(f->value & 0x7f) };
	if (f->kind == RS_FACT_RUN_QUEUE)
		to[n++] = (struct rs_attr){ rs_key(RS_K_RINGSPAN_COUNT), number(f->count) };
	return n;
}

static bool slow_answer(const struct rs_exchange *x)
{
	return x->has_response && x->end_ns - x->resp_start_ns >= RS_FIRST_BYTE_NS &&
	       x->resp_start_ns >= x->start_ns;
}

/* Both resets have one attribute, and attributes are unique: the first says who it was. */
static bool said(const struct rs_open *o, uint32_t n, enum rs_known_key summary)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct kind *k = kind_of(&o->facts[i]);

		if (k && k->summary == summary)
			return true;
	}
	return false;
}

static void summarise(const struct rs_open *o, struct rs_build *b)
{
	for (uint32_t i = 0; i < o->nfacts; i++) {
		const struct kind *k = kind_of(&o->facts[i]);

		if (k && !said(o, i, k->summary))
			rs_build_add(b, k->summary, value_of(k, &o->facts[i]));
	}
	if (slow_answer(&o->x))
		rs_build_int(b, RS_K_RINGSPAN_FIRST_BYTE_US,
			     (int64_t)(o->x.resp_start_ns - o->x.start_ns) / 1000);
}

void rs_trace_events(const struct rs_trace *t, const struct rs_open *o, struct rs_build *b)
{
	static const struct str first_byte = RS_SPAN_STR("response.first_byte"),
				rpc_message = RS_SPAN_STR("rpc.message");
	uint32_t max = o->nfacts + o->nparts + slow_answer(&o->x), n = 0;
	struct rs_span *s = b->span;
	struct rs_event *ev;
	struct rs_attr *attrs;

	if (t->events == RS_EVENTS_OFF)
		return;
	s->dropped_events = o->dropped_facts;
	if (!max)
		return;
	if (t->events == RS_EVENTS_ATTRIBUTES) {
		summarise(o, b);
		return;
	}
	ev = rs_arena_alloc(b->arena, max * sizeof(*ev));
	attrs = rs_arena_alloc(b->arena, max * EVENT_ATTRS * sizeof(*attrs));
	if (!ev || !attrs) {
		s->dropped_events += max;
		return;
	}
	for (uint32_t i = 0; i < o->nfacts; i++) {
		const struct kind *k = kind_of(&o->facts[i]);
		struct rs_attr *own = attrs + (size_t)EVENT_ATTRS * n;

		if (!k)
			continue;
		ev[n++] =
			(struct rs_event){ .time_ns = o->facts[i].ts_ns + (uint64_t)t->wall_offset,
					   .name = k->name,
					   .attrs = { .a = own,
						      .n = attrs_of(k, &o->facts[i], own) } };
	}
	for (uint32_t i = 0; i < o->nparts; i++) {
		struct rs_attr *own = attrs + (size_t)EVENT_ATTRS * n;
		const struct rs_open_part *p = &o->parts[i];

		own[0] = (struct rs_attr){ rs_key(RS_K_NETWORK_IO_DIRECTION),
					   direction(p->dir == RS_DIR_IN) };
		own[1] = (struct rs_attr){ rs_key(RS_K_RINGSPAN_SIZE), number(p->size) };
		ev[n++] = (struct rs_event){ .time_ns = p->ts_ns + (uint64_t)t->wall_offset,
					     .name = rpc_message,
					     .attrs = { .a = own, .n = 2 } };
	}
	if (slow_answer(&o->x))
		ev[n++] =
			(struct rs_event){ .time_ns = o->x.resp_start_ns + (uint64_t)t->wall_offset,
					   .name = first_byte };
	s->events = ev;
	s->nevents = n;
}
