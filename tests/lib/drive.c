// SPDX-License-Identifier: Apache-2.0
#include "drive.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/http.h"

static void __attribute__((format(printf, 2, 3))) say(struct drive *d, const char *fmt, ...)
{
	va_list ap;
	int n;

	for (;;) {
		va_start(ap, fmt);
		n = vsnprintf(d->text + d->len, d->cap - d->len, fmt, ap);
		va_end(ap);
		if ((size_t)n < d->cap - d->len)
			break;
		d->cap *= 2;
		d->text = realloc(d->text, d->cap);
		if (!d->text)
			abort();
	}
	d->len += (size_t)n;
}

static const char *field_name(uint16_t id)
{
	switch (id) {
	case RS_F_TRACEPARENT:
		return "tp=";
	case RS_F_TRACESTATE:
		return "ts=";
	case RS_F_B3:
		return "b3=";
	case RS_F_BAGGAGE:
		return "baggage=";
	case RS_F_UBER_TRACE_ID:
		return "uber=";
	case RS_F_SENTRY_TRACE:
		return "sentry=";
	case RS_F_DATADOG_TRACE_ID:
		return "dd=";
	case RS_F_HTTP_HOST:
		return "host=";
	case RS_F_HTTP_USER_AGENT:
		return "ua=";
	case RS_F_HTTP_FORWARDED:
		return "fwd=";
	case RS_F_HTTP_X_FORWARDED_FOR:
		return "xff=";
	case RS_F_HTTP_X_FORWARDED_HOST:
		return "xfh=";
	case RS_F_HTTP_X_FORWARDED_PROTO:
		return "xfp=";
	case RS_F_HTTP_SCHEME:
		return "scheme=";
	case RS_F_HTTP_PROTOCOL:
		return "protocol=";
	case RS_F_HTTP_CONTENT_TYPE:
		return "type=";
	case RS_F_HTTP_RESET:
		return "reset=";
	case RS_F_HTTP_RESET_BY:
		return "by=";
	case RS_F_GRPC_STATUS:
		return "grpc=";
	case RS_F_GRPC_TIMEOUT:
		return "timeout=";
	default:
		return "";
	}
}

static void on_policy(void *arg, uint64_t conn, const struct rs_bpf_policy *policy)
{
	struct drive *d = arg;

	(void)conn;
	d->policy = *policy;
	d->policies++;
}

static void on_msg(void *arg, const struct rs_msg *m)
{
	struct drive *d = arg;
	bool end = m->type == RS_MSG_REQUEST_END || m->type == RS_MSG_RESPONSE_END;

	d->messages++;
	if (m->type == RS_MSG_PART) {
		d->parts++;
		return;
	}
	say(d, "%c", m->type == RS_MSG_REQUEST || m->type == RS_MSG_REQUEST_END ? '>' : '<');
	if (m->flags & (RS_MSGF_RESET | RS_MSGF_PUSHED))
		d->pushed = m->flags & RS_MSGF_PUSHED ? m->id : d->pushed;
	else if ((m->type == RS_MSG_REQUEST || m->type == RS_MSG_REQUEST_END) !=
			 ((m->dir == RS_DIR_OUT) == d->client) &&
		 !(m->id && m->id == d->pushed))
		say(d, " WRONG-DIR");
	if (m->id)
		say(d, " #%u", m->id);
	if (m->type == RS_MSG_INTERIM)
		say(d, " interim");
	if (end && m->body_size == RS_BODY_UNKNOWN)
		say(d, " end ?");
	else if (end)
		say(d, " end %llu", (unsigned long long)m->body_size);
	for (int i = 0; end && i < 2; i++) {
		if (m->parts[i] == RS_PARTS_UNKNOWN)
			say(d, i ? " received ?" : " sent ?");
		else if (m->parts[i])
			say(d, i ? " received %u" : " sent %u", m->parts[i]);
	}
	for (unsigned i = 0; i < m->nfields; i++) {
		struct str v = m->fields[i].value;

		say(d, " %s", field_name(m->fields[i].id));
		for (size_t k = 0; k < v.len; k++)
			say(d, v.ptr[k] >= ' ' && v.ptr[k] < 127 ? "%c" : "\\x%02x",
			    (unsigned char)v.ptr[k]);
	}
	if (m->flags & RS_MSGF_CUT)
		say(d, " cut");
	if (m->flags & RS_MSGF_ABORTED)
		say(d, " aborted");
	if (m->flags & RS_MSGF_TUNNEL)
		say(d, " tunnel");
	if (m->flags & RS_MSGF_RESYNC)
		say(d, " resync");
	if (m->flags & RS_MSGF_SWITCH)
		say(d, " switch");
	if (m->flags & RS_MSGF_RESET)
		say(d, " reset");
	if (m->flags & RS_MSGF_PUSHED)
		say(d, " pushed");
	if (d->times)
		say(d, " %llu-%llu %u %u", (unsigned long long)m->start_ns,
		    (unsigned long long)m->end_ns, m->seq, m->tid);
	say(d, "\n");
}

static void restart(struct drive *d)
{
	rs_l7_init(&d->l7);
	d->now = 1;
	d->off[0] = d->off[1] = 0;
	d->policies = 0;
	d->messages = 0;
	d->len = 0;
	d->text[0] = 0;
}

void drive_init(struct drive *d)
{
	*d = (struct drive){ .cap = 4096 };
	d->text = malloc(d->cap);
	if (!d->text)
		abort();
	d->env.counters = &d->counters;
	d->env.policy = on_policy;
	d->env.policy_arg = d;
	if (rs_l7_env_init(&d->env))
		abort();
	restart(d);
}

void drive_release(struct drive *d)
{
	rs_l7_release(&d->l7, &d->env);
	rs_l7_env_release(&d->env);
	free(d->text);
}

void drive_again(struct drive *d)
{
	rs_l7_release(&d->l7, &d->env);
	restart(d);
}

static enum rs_ev_dir dir_of(const struct drive *d, enum drive_side side)
{
	return (side == TO_SERVER) == d->client ? RS_DIR_OUT : RS_DIR_IN;
}

void drive_record(struct drive *d, const struct rs_ev_data *ev)
{
	rs_l7_data(&d->l7, &d->env, ev, on_msg, d);
}

void drive_cut(struct drive *d, enum drive_side side, struct str bytes, uint32_t len,
	       struct str tail)
{
	enum rs_ev_dir dir = dir_of(d, side);
	/* Exactly as large as the record: a read behind it is found. */
	struct rs_ev_data *ev = malloc(sizeof(*ev) + bytes.len);

	if (!ev)
		abort();
	*ev = (struct rs_ev_data){
		.h = { .type = RS_EV_DATA,
		       .len = (uint32_t)(sizeof(*ev) + bytes.len),
		       .ts_ns = d->now },
		.conn = 7,
		.off = d->off[dir],
		.len = len,
		.cap = (uint32_t)bytes.len,
		.tgid = 10,
		.tid = (uint32_t)(100 + d->now),
		.seq = d->seq[dir],
		.dir = (uint8_t)dir,
		.tail_len = (uint8_t)(tail.len < RS_TAIL_LEN ? tail.len : RS_TAIL_LEN),
	};
	if (bytes.len)
		memcpy(ev->data, bytes.ptr, bytes.len);
	if (ev->tail_len)
		memcpy(ev->tail, tail.ptr + tail.len - ev->tail_len, ev->tail_len);
	drive_record(d, ev);
	free(ev);
	d->now++;
	d->off[dir] += len;
	if (d->seq[dir])
		d->seq[dir] += len;
}

void drive_send(struct drive *d, enum drive_side side, struct str bytes)
{
	while (bytes.len > RS_CAP_MAX) {
		drive_cut(d, side, str_at(bytes, 0, RS_CAP_MAX), RS_CAP_MAX, STR_NONE);
		bytes = str_from(bytes, RS_CAP_MAX);
	}
	drive_cut(d, side, bytes, (uint32_t)bytes.len, STR_NONE);
}

void drive_send_pieces(struct drive *d, enum drive_side side, struct str bytes,
		       struct drive_pieces *p)
{
	while (bytes.len) {
		size_t n = bytes.len;

		if (p->max) {
			p->seed = p->seed * 1664525u + 1013904223u;
			n = 1 + (p->seed >> 16) % p->max;
		}
		drive_send(d, side, str_at(bytes, 0, n));
		bytes = str_from(bytes, n);
	}
}

void drive_lose(struct drive *d, enum drive_side side, uint64_t len)
{
	d->off[dir_of(d, side)] += len;
	if (d->seq[dir_of(d, side)])
		d->seq[dir_of(d, side)] += (uint32_t)len;
}

void drive_close(struct drive *d, enum rs_ev_how how)
{
	rs_l7_close(&d->l7, &d->env, how, d->now++, on_msg, d);
}

bool drive_conserved(const struct drive *d)
{
	uint64_t in[2] = { 0 }, out[2] = { 0 };

	for (unsigned i = 0; i < RS_C_COUNT; i++) {
		const struct rs_counter_info *info = &rs_counter_info[i];
		int stage = strcmp(info->stage, "stream") == 0	? 0
			    : strcmp(info->stage, "proto") == 0 ? 1
								: -1;

		if (stage < 0 || info->kind == RS_CK_INFO)
			continue;
		(info->kind == RS_CK_IN ? in : out)[stage] += d->counters.v[i];
	}
	return in[0] == out[0] && in[1] == out[1];
}

bool drive_left_nothing(struct drive *d)
{
	bool nothing;

	rs_l7_release(&d->l7, &d->env);
	nothing = drive_conserved(d) && d->counters.v[RS_C_STREAM_HELD] == 0;
	for (int i = 0; i < RS_WINDOW_CLASSES; i++)
		nothing &= d->env.windows.pool[i].in_use == 0;
	for (int i = 0; i < RS_PROTO_COUNT; i++) {
		nothing &= d->env.state[i].in_use == 0;
		for (int k = 0; k < RS_PROTO_POOLS; k++)
			nothing &= d->env.pool[i][k].in_use == 0;
	}
	return nothing;
}
