// SPDX-License-Identifier: Apache-2.0
#include "l7.h"

#include <errno.h>
#include <stdlib.h>

/* DETECT: bytes of a first message held before a protocol must have been found. */
#define DETECT_HOLD    8704
/* DETECT: turns of the conversation, and records, that no protocol knew before we give up. Turns stop
 * foreign protocols soon; records let a long download that was under way at our start go by. */
#define DETECT_TURNS   8
#define DETECT_RECORDS 256
/* ACTIVE: records searched in vain for the next message before the protocol is inferred again, and
 * how often that may happen. */
#define SEARCH_RECORDS 64
#define MAX_INFERRED   16
/* A body of which more is to come is worth a call to the kernel side. */
#define SKIP_WORTH     65536

#define DEFAULT_CONNS 65536

struct ctx {
	struct rs_l7 *l7;
	struct rs_l7_env *env;
	uint64_t conn; /* key of its policy: socket cookie, see RS_POLICY_PLAIN */
	rs_msg_fn fn;
	void *arg;
	uint64_t ts_ns; /* of the record being handled */
	uint32_t seq;	/* of the first new byte, or 0 */
};

int rs_l7_env_init(struct rs_l7_env *env)
{
	if (!env->counters)
		return -EINVAL;
	env->scratch = malloc(RS_PROTO_SCRATCH);
	if (!env->scratch)
		return -ENOMEM;
	rs_windows_init(&env->windows);
	for (unsigned i = 0; i < RS_PROTO_COUNT; i++) {
		const struct rs_proto_ops *ops = rs_protos[i];

		rs_pool_init(&env->state[i], ops->state_size,
			     env->max_conns ? env->max_conns : DEFAULT_CONNS);
		for (unsigned k = 0; k < RS_PROTO_POOLS; k++)
			rs_pool_init(&env->pool[i][k], ops->pool[k].size, ops->pool[k].max);
		env->proto[i] = (struct rs_proto_env){ env->redact, env->pool[i], env->scratch };
	}
	return 0;
}

void rs_l7_env_release(struct rs_l7_env *env)
{
	free(env->scratch);
	env->scratch = NULL;
	rs_windows_release(&env->windows);
	for (unsigned i = 0; i < RS_PROTO_COUNT; i++) {
		rs_pool_release(&env->state[i]);
		for (unsigned k = 0; k < RS_PROTO_POOLS; k++)
			rs_pool_release(&env->pool[i][k]);
	}
}

static void count(struct rs_l7_env *env, enum rs_counter id, uint64_t n)
{
	env->counters->v[id] += n;
}

void rs_l7_init(struct rs_l7 *l7)
{
	memset(l7, 0, offsetof(struct rs_l7, own));
}

/* Everything held in one direction goes uncounted by a parser. */
static void drop_held(struct rs_l7_env *env, struct rs_stream *s, enum rs_counter why)
{
	size_t n = rs_stream_held(s).len;

	rs_stream_drop(s, &env->windows, n);
	count(env, why, n);
	count(env, RS_C_STREAM_HELD, -(uint64_t)n);
}

static void put_state(struct rs_l7 *l7, struct rs_l7_env *env)
{
	if (!l7->state)
		return;
	if (rs_protos[l7->proto]->stop)
		rs_protos[l7->proto]->stop(l7->state);
	if (l7->state != l7->own)
		rs_pool_put(&env->state[l7->proto], l7->state);
	l7->state = NULL;
}

void rs_l7_release(struct rs_l7 *l7, struct rs_l7_env *env)
{
	for (int d = 0; d < 2; d++)
		drop_held(env, &l7->s[d], RS_C_STREAM_UNFINISHED);
	put_state(l7, env);
	l7->phase = RS_L7_IGNORED;
}

static void tell(struct ctx *c, const struct rs_bpf_policy *policy)
{
	if (!c->env->policy)
		return;
	c->l7->told = true;
	c->env->policy(c->env->policy_arg, c->conn, policy);
}

/* Nothing more of this connection is wanted. */
static void ignore(struct ctx *c)
{
	static const struct rs_bpf_policy stop = { .stop = 1 };

	for (int d = 0; d < 2; d++) {
		drop_held(c->env, &c->l7->s[d], RS_C_STREAM_UNKNOWN);
		c->l7->s[d].skip = 0;
	}
	put_state(c->l7, c->env);
	c->l7->phase = RS_L7_IGNORED;
	tell(c, &stop);
}

void rs_l7_ignore(struct rs_l7 *l7, struct rs_l7_env *env, uint64_t conn)
{
	struct ctx c = { .l7 = l7, .env = env, .conn = conn };

	ignore(&c);
}

/*
 * What to copy. A body that is long need not be, nor the other direction's; of a protocol whose framing
 * is everywhere all else must be.
 */
static void tell_policy(struct ctx *c)
{
	struct rs_bpf_policy p = { .whole = rs_protos[c->l7->proto]->whole };

	for (int d = 0; d < 2; d++) {
		const struct rs_stream *s = &c->l7->s[d];

		if (s->skip >= SKIP_WORTH)
			p.skip_until[d] = s->next + s->skip;
	}
	tell(c, &p);
}

static enum rs_ev_dir request_dir(const struct rs_l7 *l7)
{
	return l7->role == RS_ROLE_CLIENT ? RS_DIR_OUT : RS_DIR_IN;
}

static void deliver(struct ctx *c, enum rs_ev_dir dir, struct rs_msg *m);

/* The message ends before the body that its parser counts on: what did not come is none of it. */
static void take_off(struct rs_stream *s, struct rs_msg *end)
{
	if (end->body_size != RS_BODY_UNKNOWN)
		end->body_size -= s->skip < end->body_size ? s->skip : end->body_size;
	s->skip = 0;
}

/* What the other direction could not see the end of ends when this one starts a message. */
static void flip(struct ctx *c, enum rs_ev_dir dir)
{
	struct rs_l7 *l7 = c->l7;
	const struct rs_proto_ops *ops = rs_protos[l7->proto];
	struct rs_stream *s = &l7->s[dir];
	struct rs_msg m;

	while (ops->flip && ops->flip(l7->state, dir, l7->role, &m) == RS_PARSE_OK) {
		if (m.type == RS_MSG_REQUEST_END || m.type == RS_MSG_RESPONSE_END)
			take_off(s, &m);
		m.start_ns = m.end_ns = s->last_ns;
		m.seq = 0;
		deliver(c, dir, &m);
	}
}

/* Counts m and gives it on. The caller has set its times and seq. */
static void deliver(struct ctx *c, enum rs_ev_dir dir, struct rs_msg *m)
{
	struct rs_l7 *l7 = c->l7;
	struct rs_stream *s = &l7->s[dir];

	m->dir = (uint8_t)dir;
	m->tgid = s->last_tgid;
	m->tid = s->last_tid;
	m->task = s->last_task;
	m->slept = s->last_slept;
	switch ((enum rs_msg_type)m->type) {
	case RS_MSG_REQUEST:
	case RS_MSG_RESPONSE:
		flip(c, dir == RS_DIR_IN ? RS_DIR_OUT : RS_DIR_IN);
		l7->probes = 0;
		count(c->env,
		      m->type == RS_MSG_REQUEST ? RS_C_PROTO_REQUESTS : RS_C_PROTO_RESPONSES, 1);
		if (m->flags & RS_MSGF_TUNNEL) {
			l7->tunnel = true;
			count(c->env, RS_C_PROTO_TUNNEL, 1);
		}
		break;
	case RS_MSG_INTERIM:
		count(c->env, RS_C_PROTO_INTERIM, 1);
		break;
	case RS_MSG_REQUEST_END:
	case RS_MSG_RESPONSE_END:
	case RS_MSG_PART:
		goto out;
	}
	count(c->env, RS_C_PROTO_HEADS, 1);
	if (s->resynced) {
		s->resynced = false;
		m->flags |= RS_MSGF_RESYNC;
	}
out:
	if (m->flags & RS_MSGF_CUT)
		count(c->env, RS_C_PROTO_CUT, 1);
	if (m->flags & RS_MSGF_CROWDED)
		count(c->env, RS_C_PROTO_CROWDED, 1);
	if (m->flags & RS_MSGF_ABORTED)
		count(c->env, RS_C_PROTO_ABORTED, 1);
	c->fn(c->arg, m);
}

/* Has the message just delivered taken the connection to another protocol? */
static bool tunnelled(struct rs_l7 *l7, const struct rs_msg *m)
{
	return l7->tunnel && m->type == RS_MSG_RESPONSE_END;
}

/* Out of step for long: perhaps it is another protocol. */
static void reinfer(struct ctx *c)
{
	struct rs_l7 *l7 = c->l7;

	if (l7->inferred >= MAX_INFERRED) {
		count(c->env, RS_C_PROTO_GAVE_UP, 1);
		ignore(c);
		return;
	}
	for (int d = 0; d < 2; d++) {
		drop_held(c->env, &l7->s[d], RS_C_STREAM_OUT_OF_STEP);
		l7->s[d].skip = 0;
		l7->s[d].out_of_step = false;
		l7->s[d].resynced = true;
	}
	put_state(l7, c->env);
	l7->phase = RS_L7_DETECT;
	l7->misses = l7->last_dir = 0;
	l7->probes = 0;
	count(c->env, RS_C_PROTO_REINFERRED, 1);
}

/* From here on the connection speaks `proto`. False: there is no memory for its state. */
static bool speak(struct ctx *c, unsigned proto, enum rs_ev_role role)
{
	struct rs_l7 *l7 = c->l7;

	put_state(l7, c->env);
	l7->state = rs_protos[proto]->state_size <= sizeof(l7->own)
			    ? l7->own
			    : rs_pool_get(&c->env->state[proto]);
	if (!l7->state) {
		count(c->env, RS_C_PROTO_NO_STATE, 1);
		return false;
	}
	memset(l7->state, 0, rs_protos[proto]->state_size);
	if (rs_protos[proto]->start)
		rs_protos[proto]->start(l7->state, &c->env->proto[proto]);
	l7->proto = (uint8_t)proto;
	l7->role = (uint8_t)role;
	l7->phase = RS_L7_ACTIVE;
	l7->inferred++;
	if (rs_protos[proto]->whole)
		tell_policy(c);
	return true;
}

/* The message just delivered takes the connection to another protocol, which goes on with its request. */
static bool go_over(struct ctx *c, unsigned proto)
{
	struct rs_l7 *l7 = c->l7;

	if (proto >= RS_PROTO_COUNT || !speak(c, proto, (enum rs_ev_role)l7->role)) {
		l7->tunnel = true;
		return false;
	}
	if (rs_protos[proto]->switched)
		rs_protos[proto]->switched(l7->state, (enum rs_ev_role)l7->role);
	return true;
}

/* Bytes of one direction that are being parsed: those held, and a record's behind them. */
struct input {
	struct str all;
	size_t pos;	    /* of the first that is not parsed */
	size_t old;	    /* that came with earlier records */
	uint64_t first_ns;  /* when the first of all came */
	uint32_t first_seq; /* its sequence number; 0: not known */
};

static struct input input_of(struct ctx *c, struct rs_stream *s, struct str data)
{
	struct input in = { .all = data, .first_ns = s->last_ns, .first_seq = c->seq };
	struct str held = rs_stream_held(s);

	if (!held.len)
		return in;
	if (rs_stream_hold(s, &c->env->windows, data)) {
		drop_held(c->env, s, RS_C_STREAM_NO_WINDOW);
		s->out_of_step = true;
		return in;
	}
	count(c->env, RS_C_STREAM_HELD, data.len);
	in.old = held.len;
	in.first_ns = s->win->first_ns;
	in.first_seq = s->win->first_seq;
	in.all = rs_stream_held(s);
	return in;
}

/* What is not parsed waits for what follows it. */
static void hold_rest(struct ctx *c, struct rs_stream *s, const struct input *in)
{
	struct rs_l7_env *env = c->env;
	size_t rest = in->all.len - in->pos;

	if (s->win) {
		count(env, RS_C_STREAM_HELD, -(uint64_t)in->pos);
		rs_stream_drop(s, &env->windows, in->pos);
	} else if (rest) {
		if (rs_stream_hold(s, &env->windows, str_from(in->all, in->pos))) {
			count(env, RS_C_STREAM_NO_WINDOW, rest);
			s->out_of_step = true;
			return;
		}
		count(env, RS_C_STREAM_HELD, rest);
	}
	if (s->win) {
		s->win->first_seq = in->first_seq ? in->first_seq + (uint32_t)in->pos : 0;
		/* The rest begins in the newest record, unless nothing of the older ones was used. */
		s->win->first_ns = in->pos && in->pos >= in->old ? s->last_ns : in->first_ns;
	}
}

/* What is not parsed has no parser any more. */
static void leave_rest(struct ctx *c, struct rs_stream *s, const struct input *in)
{
	if (s->win) {
		count(c->env, RS_C_STREAM_HELD, -(uint64_t)in->pos);
		rs_stream_drop(s, &c->env->windows, in->pos);
	} else {
		count(c->env, RS_C_STREAM_UNKNOWN, in->all.len - in->pos);
	}
	if (c->l7->tunnel)
		ignore(c);
	else
		reinfer(c);
}

/* What becomes of the rest, after one step of the parser. */
enum rest {
	REST_PARSE,
	REST_HOLD,
	REST_LEAVE,
};

/* A message of `used` bytes. */
static enum rest take_message(struct ctx *c, enum rs_ev_dir dir, struct input *in, size_t used,
			      struct rs_msg *m)
{
	const struct rs_stream *s = &c->l7->s[dir];

	count(c->env, RS_C_STREAM_PARSED, used);
	m->start_ns = m->end_ns = s->last_ns;
	m->seq = 0;
	if (m->type != RS_MSG_REQUEST_END && m->type != RS_MSG_RESPONSE_END) {
		if (in->pos < in->old)
			m->start_ns = in->first_ns;
		if (in->first_seq)
			m->seq = in->first_seq + (uint32_t)in->pos;
	}
	in->pos += used;
	deliver(c, dir, m);
	if (tunnelled(c->l7, m) || (m->flags & RS_MSGF_SWITCH && !go_over(c, m->to)))
		return REST_LEAVE;
	return REST_PARSE;
}

/* The parser does not want the next n bytes. */
static enum rest skip(struct ctx *c, struct rs_stream *s, struct input *in, size_t n)
{
	size_t rest = in->all.len - in->pos;

	/* What is numbered needs no head to be in step again. */
	if (rs_protos[c->l7->proto]->pairing == RS_PAIR_BY_ID)
		s->resynced = false;
	if (n <= rest) {
		count(c->env, RS_C_STREAM_PARSED, n);
		in->pos += n;
		return REST_PARSE;
	}
	count(c->env, RS_C_STREAM_PARSED, rest);
	s->skip = n - rest;
	in->pos = in->all.len;
	if (s->skip >= SKIP_WORTH)
		tell_policy(c);
	return REST_HOLD;
}

static enum rest parse(struct ctx *c, enum rs_ev_dir dir, struct input *in)
{
	struct rs_l7 *l7 = c->l7;
	struct rs_stream *s = &l7->s[dir];
	const struct rs_proto_ops *ops = rs_protos[l7->proto];
	size_t used = 0;
	struct rs_msg m;

	if (s->out_of_step) {
		used = ops->resync(l7->state, dir, l7->role, str_from(in->all, in->pos));
		count(c->env, RS_C_STREAM_OUT_OF_STEP, used);
		in->pos += used;
		if (in->pos == in->all.len)
			return REST_HOLD;
		s->out_of_step = false;
		s->resynced = true;
	}
	switch (ops->parse(l7->state, dir, l7->role, str_from(in->all, in->pos), &used, &m)) {
	case RS_PARSE_OK:
		return take_message(c, dir, in, used, &m);
	case RS_PARSE_SKIP:
		return skip(c, s, in, used);
	case RS_PARSE_NEED_MORE:
		return REST_HOLD;
	case RS_PARSE_INVALID:
		break;
	}
	/* A byte is given up, so that looking on makes progress. */
	used = in->pos < in->all.len;
	count(c->env, RS_C_STREAM_OUT_OF_STEP, used);
	in->pos += used;
	s->out_of_step = true;
	if (!s->resynced) { /* else what resync() found was none: still looking */
		count(c->env, RS_C_PROTO_HEADS, 1);
		count(c->env, RS_C_PROTO_INVALID, 1);
	}
	return REST_PARSE;
}

/*
 * Parses what is held and `data`, which follows it. Ends when the parser needs more (the rest is
 * held), does not want more (s->skip), or the connection is no longer ACTIVE.
 */
static void run(struct ctx *c, enum rs_ev_dir dir, struct str data)
{
	struct rs_stream *s = &c->l7->s[dir];
	struct input in = input_of(c, s, data);
	enum rest rest;

	do {
		rest = parse(c, dir, &in);
	} while (rest == REST_PARSE);
	if (rest == REST_HOLD && (s->out_of_step || s->resynced) &&
	    ++c->l7->probes >= SEARCH_RECORDS)
		rest = REST_LEAVE;
	if (rest == REST_HOLD)
		hold_rest(c, s, &in);
	else
		leave_rest(c, s, &in);
}

/* No protocol yet: ask each. Records are probed from their first byte, where messages mostly start. */
static void detect(struct ctx *c, enum rs_ev_dir dir, struct str data)
{
	struct rs_l7 *l7 = c->l7;
	struct rs_stream *s = &l7->s[dir];
	enum rs_ev_dir other = dir == RS_DIR_IN ? RS_DIR_OUT : RS_DIR_IN;
	enum rs_match best = RS_MATCH_NO;
	enum rs_ev_role role = RS_ROLE_UNKNOWN;
	struct str in = data;
	unsigned i;

	if (!data.len)
		return;
	if (s->win) {
		if (rs_stream_hold(s, &c->env->windows, data)) {
			count(c->env, RS_C_STREAM_NO_WINDOW, data.len);
			drop_held(c->env, s, RS_C_STREAM_NO_WINDOW);
			return;
		}
		count(c->env, RS_C_STREAM_HELD, data.len);
		in = rs_stream_held(s);
	}
	for (i = 0; i < RS_PROTO_COUNT; i++) {
		enum rs_match match;

		if (l7->protocols && !(l7->protocols & 1u << i))
			continue;
		match = rs_protos[i]->probe(in, dir, &role);
		if (match > best)
			best = match;
		if (best == RS_MATCH_YES)
			break;
	}
	if (best == RS_MATCH_YES) {
		if (!speak(c, i, role)) {
			ignore(c);
			goto lost;
		}
		count(c->env, RS_C_PROTO_DETECTED, 1);
		if (s->win)
			data = STR_NONE; /* it is in the window */
		/* Requests first, whichever of the two was recognised. */
		if (dir != request_dir(l7) && l7->s[other].win)
			run(c, other, STR_NONE);
		if (l7->phase != RS_L7_ACTIVE)
			goto lost;
		run(c, dir, data);
		if (l7->phase == RS_L7_ACTIVE && l7->s[other].win)
			run(c, other, STR_NONE);
		return;
	}
	if (best == RS_MATCH_MORE && in.len <= DETECT_HOLD) {
		if (s->win)
			return;
		if (!rs_stream_hold(s, &c->env->windows, data)) {
			count(c->env, RS_C_STREAM_HELD, data.len);
			s->win->first_ns = s->last_ns;
			s->win->first_seq = c->seq;
			return;
		}
		count(c->env, RS_C_STREAM_NO_WINDOW, data.len);
		return;
	}
	if (l7->last_dir != dir + 1u)
		l7->misses++;
	l7->last_dir = (uint8_t)(dir + 1u);
	l7->probes++;
	if (s->win)
		drop_held(c->env, s, RS_C_STREAM_UNKNOWN);
	else
		count(c->env, RS_C_STREAM_UNKNOWN, data.len);
	if (l7->misses >= DETECT_TURNS || l7->probes >= DETECT_RECORDS) {
		count(c->env, RS_C_PROTO_UNKNOWN, 1);
		ignore(c);
	}
	return;
lost:
	if (!s->win)
		count(c->env, RS_C_STREAM_UNKNOWN, data.len);
}

/* Bytes that are wanted by nobody, from the front of n. */
static uint64_t take_skip(struct ctx *c, struct rs_stream *s, uint64_t n)
{
	uint64_t skip = s->skip < n ? s->skip : n;

	s->skip -= skip;
	s->next += skip;
	count(c->env, RS_C_STREAM_PARSED, skip);
	return skip;
}

static void bytes(struct ctx *c, enum rs_ev_dir dir, struct str data)
{
	struct rs_stream *s = &c->l7->s[dir];

	if (s->skip) {
		uint64_t n = take_skip(c, s, data.len);

		if (c->seq)
			c->seq += (uint32_t)n;
		data = str_from(data, (size_t)n);
		if (s->skip)
			return;
	}
	s->next += data.len;
	switch ((enum rs_l7_phase)c->l7->phase) {
	case RS_L7_DETECT:
		detect(c, dir, data);
		break;
	case RS_L7_ACTIVE:
		run(c, dir, data);
		break;
	case RS_L7_IGNORED:
		count(c->env, RS_C_STREAM_UNKNOWN, data.len);
		break;
	}
}

/* len bytes did not come; tail: the last of them; why: what they are counted as if they were needed. */
static void missing(struct ctx *c, enum rs_ev_dir dir, uint64_t len, struct str tail,
		    enum rs_counter why)
{
	struct rs_l7 *l7 = c->l7;
	struct rs_stream *s = &l7->s[dir];
	const struct rs_proto_ops *ops;
	struct rs_gap gap = { 0 };
	struct str in;

	if (s->skip) {
		len -= take_skip(c, s, len);
		if (!s->skip && l7->phase == RS_L7_ACTIVE)
			run(c, dir, STR_NONE);
		if (s->skip) {
			uint64_t more = take_skip(c, s, len);

			len -= more;
		}
		if (!len)
			return;
	}
	if (tail.len >= len) {
		/* Not missing after all: a last chunk, mostly. */
		c->seq = 0;
		bytes(c, dir, str_from(tail, tail.len - (size_t)len));
		return;
	}
	s->next += len;
	if (l7->phase == RS_L7_IGNORED) {
		count(c->env, RS_C_STREAM_UNKNOWN, len);
		return;
	}
	count(c->env, why, len);
	s->lost_ns = c->ts_ns;
	if (l7->phase == RS_L7_DETECT) {
		drop_held(c->env, s, RS_C_STREAM_UNKNOWN);
		return;
	}
	gap.len = len;
	gap.tail = tail;
	in = rs_stream_held(s);
	ops = rs_protos[l7->proto];
	while (!s->out_of_step) {
		struct rs_msg m;

		switch (ops->gap(l7->state, dir, l7->role, in, &gap, &m)) {
		case RS_PARSE_OK:
			m.start_ns = in.len ? s->win->first_ns : s->last_ns;
			m.seq = in.len ? s->win->first_seq : 0;
			m.end_ns = s->last_ns;
			if (in.len) {
				count(c->env, RS_C_STREAM_PARSED, in.len);
				count(c->env, RS_C_STREAM_HELD, -(uint64_t)in.len);
			}
			deliver(c, dir, &m);
			rs_stream_drop(s, &c->env->windows, in.len);
			in = STR_NONE;
			if (tunnelled(l7, &m)) {
				ignore(c);
				return;
			}
			continue;
		case RS_PARSE_SKIP:
			goto out;
		case RS_PARSE_NEED_MORE:
		case RS_PARSE_INVALID:
			s->out_of_step = true;
			break;
		}
	}
out:
	drop_held(c->env, s, RS_C_STREAM_OUT_OF_STEP);
}

void rs_l7_data(struct rs_l7 *l7, struct rs_l7_env *env, const struct rs_ev_data *ev, rs_msg_fn fn,
		void *arg)
{
	struct ctx c = { .l7 = l7,
			 .env = env,
			 .conn = ev->conn | (ev->source == RS_SRC_TLS ? RS_POLICY_PLAIN : 0),
			 .fn = fn,
			 .arg = arg };
	enum rs_ev_dir dir = ev->dir == RS_DIR_OUT ? RS_DIR_OUT : RS_DIR_IN;
	struct rs_stream *s = &l7->s[dir];
	struct str data = { (const char *)ev->data, ev->h.flags & RS_EVF_NODATA ? 0 : ev->cap };
	struct str tail = { (const char *)ev->tail,
			    ev->tail_len < RS_TAIL_LEN ? ev->tail_len : RS_TAIL_LEN };
	uint64_t off = ev->off, len = ev->len;

	count(env, RS_C_STREAM_BYTES, len);
	if (off < s->next) {
		uint64_t late = s->next - off < len ? s->next - off : len;

		count(env, RS_C_STREAM_LATE, late);
		len -= late;
		off += late;
		data = str_from(data, late < data.len ? (size_t)late : data.len);
	}
	if (!len)
		return;
	if (off > s->next) {
		uint64_t n = off - s->next;

		/* When they came nobody knows: what ends in them has the time of the last record seen. */
		count(env, RS_C_STREAM_BYTES, n);
		c.ts_ns = ev->h.ts_ns - 1; /* before this record */
		missing(&c, dir, n, STR_NONE, RS_C_STREAM_LOST);
	}
	c.ts_ns = ev->h.ts_ns;
	c.seq = ev->seq ? ev->seq + (uint32_t)(off - ev->off) : 0;
	s->last_ns = ev->h.ts_ns;
	s->last_tgid = ev->tgid;
	s->last_tid = ev->tid;
	s->last_task = ev->task;
	s->last_slept = ev->slept;
	len -= data.len;
	if (data.len)
		bytes(&c, dir, data);
	if (len)
		missing(&c, dir, len, tail, RS_C_STREAM_NOT_COPIED);
}

static void end(struct ctx *c, enum rs_ev_dir dir)
{
	struct rs_l7 *l7 = c->l7;
	struct rs_stream *s = &l7->s[dir];
	struct rs_gap gap = { .last = true };
	struct str in = rs_stream_held(s);
	struct rs_msg m;

	if (s->ended)
		return;
	s->ended = true;
	while (l7->phase == RS_L7_ACTIVE && !s->out_of_step &&
	       rs_protos[l7->proto]->gap(l7->state, dir, l7->role, in, &gap, &m) == RS_PARSE_OK) {
		if (s->skip) {
			/* The parser has counted a body whose rest does not come. */
			take_off(s, &m);
			m.flags |= RS_MSGF_ABORTED;
		}
		m.start_ns = in.len ? s->win->first_ns : s->last_ns;
		m.seq = in.len ? s->win->first_seq : 0;
		/* A message that was broken off lasted until then. */
		m.end_ns = m.flags & RS_MSGF_ABORTED ? c->ts_ns : s->last_ns;
		if (m.type == RS_MSG_REQUEST_END || m.type == RS_MSG_RESPONSE_END)
			m.start_ns = m.end_ns;
		if (in.len) {
			count(c->env, RS_C_STREAM_PARSED, in.len);
			count(c->env, RS_C_STREAM_HELD, -(uint64_t)in.len);
		}
		deliver(c, dir, &m);
		rs_stream_drop(s, &c->env->windows, in.len);
		in = STR_NONE;
	}
	s->skip = 0;
	drop_held(c->env, s, RS_C_STREAM_UNFINISHED);
}

void rs_l7_close(struct rs_l7 *l7, struct rs_l7_env *env, enum rs_ev_how how, uint64_t ts_ns,
		 rs_msg_fn fn, void *arg)
{
	struct ctx c = { .l7 = l7, .env = env, .fn = fn, .arg = arg, .ts_ns = ts_ns };
	enum rs_ev_dir req = request_dir(l7);

	if (how == RS_CLOSE_ALL || how == (req == RS_DIR_IN ? RS_CLOSE_IN : RS_CLOSE_OUT))
		end(&c, req);
	if (how == RS_CLOSE_ALL || how == (req == RS_DIR_IN ? RS_CLOSE_OUT : RS_CLOSE_IN))
		end(&c, req == RS_DIR_IN ? RS_DIR_OUT : RS_DIR_IN);
}
