// SPDX-License-Identifier: Apache-2.0
#include "http2.h"

#include "grpc.h"
#include "hpack.h"
#include "http2_fields.h"
#include "http2_frame.h"
#include "http2_guess.h"
#include "trace/redact.h"

static const struct str preface = { "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24 };

enum side {
	ASKING, /* the order is that of rs_msg.parts */
	ANSWERING,
};

struct stream {
	struct stream *next; /* of its bucket */
	uint32_t id;
	struct {
		uint64_t body;	  /* bytes of content so far */
		uint32_t parts;	  /* gRPC: messages so far */
		uint32_t left;	  /* gRPC: bytes of the current message to come */
		uint32_t prefix;  /* gRPC: bytes of the next message's length so far, as a number */
		uint8_t nprefix;  /* gRPC: bytes of the next message's prefix seen */
		bool seen : 1;	  /* its head (ANSWERING: the final one) */
		bool done : 1;	  /* its end */
		bool unsized : 1; /* some content went by unseen */
	} s[2];			  /* by enum side */
	bool grpc : 1;
	bool connect : 1;
};

/* Where one direction is. Frames are taken whole, but for what `left` is of. */
struct dir {
	struct rs_hpack table;
	uint32_t left;	  /* content of a frame to come that is not padding */
	uint32_t pad;	  /* and padding behind it */
	uint32_t of;	  /* stream that `left` is of; 0: of no interest */
	uint32_t scan;	  /* bytes of an unfinished header block whose frames have been looked at */
	uint32_t end_id;  /* stream whose end is to be told of; 0: none */
	uint8_t end_side; /* enum side */
	uint32_t goaway;  /* streams above it end, if `refused` */
	bool begun : 1;	  /* a frame was seen */
	bool in_block : 1; /* CONTINUATION frames follow of a block that is not read */
	bool refused : 1;
	bool gap_done : 1; /* what is missing has been accounted for: it was inside of one frame */
	bool gap_lost : 1; /* likewise: it was not */
	bool bad : 1;	   /* INVALID was said: the next byte is the middle of something */
};

/*
 * Streams of one connection that are followed: 1,024. Numbers go up by two, so they are spread evenly, and in a bucket that
 * is full the oldest gives way: one that a loss has left open, or one of a peer that opens more than anybody allows.
 */
#define BUCKETS 32
#define BUCKET	32
#define REFUSED                                                                                    \
	(8 * BUCKETS *                                                                             \
	 BUCKET) /* numbers below the newest that a GOAWAY is applied to, when some gave way */

struct http2 {
	struct dir d[2]; /* by enum rs_ev_dir */
	const struct rs_proto_env *env;
	uint32_t last_id; /* highest number of a request seen */
	bool whole;	  /* every request since the first was seen */
	bool crowded;	  /* some stream gave way, or had no room */
	struct stream *bucket[BUCKETS];
};

enum pool {
	POOL_STREAM,
	POOL_SMALL,
	POOL_LARGE,
};

static enum side side_of(enum rs_ev_dir dir, enum rs_ev_role role)
{
	return (dir == RS_DIR_OUT) == (role == RS_ROLE_CLIENT) ? ASKING : ANSWERING;
}

static struct stream *find_stream(const struct http2 *h, uint32_t id)
{
	struct stream *s = h->bucket[id / 2 % BUCKETS];

	while (s && s->id != id)
		s = s->next;
	return s;
}

static void put_stream(struct http2 *h, struct stream *s)
{
	struct stream **at = &h->bucket[s->id / 2 % BUCKETS];

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	rs_pool_put(&h->env->pool[POOL_STREAM], s);
}

/* NULL: there is no memory. That, or that an older one gave way, is noted in m. */
static struct stream *get_stream(struct http2 *h, uint32_t id, struct rs_msg *m)
{
	struct stream **bucket = &h->bucket[id / 2 % BUCKETS], *s, *last = NULL;
	unsigned n = 0;

	for (s = *bucket; s && s->id != id; s = s->next, n++)
		last = s;
	if (s)
		return s;
	if (n >= BUCKET) {
		put_stream(h, last);
		h->crowded = true;
		m->flags |= RS_MSGF_CROWDED;
	}
	s = rs_pool_get(&h->env->pool[POOL_STREAM]);
	if (!s) {
		h->crowded = true;
		m->flags |= RS_MSGF_CROWDED;
		return NULL;
	}
	*s = (struct stream){ .next = *bucket, .id = id };
	*bucket = s;
	return s;
}

/* Bytes of this direction were missed: what they said of streams and headers is not known. */
static void lose(struct http2 *h, struct dir *d, enum side side)
{
	rs_hpack_lose(&d->table);
	for (unsigned i = 0; i < BUCKETS; i++) {
		for (struct stream *s = h->bucket[i]; s; s = s->next)
			s->s[side].unsized = true;
	}
	if (side == ASKING)
		h->whole = false;
	d->left = d->pad = d->of = d->scan = d->end_id = 0;
	d->in_block = d->refused = d->gap_done = d->gap_lost = false;
}

static enum rs_parse invalid(struct dir *d)
{
	d->bad = true;
	return RS_PARSE_INVALID;
}

/* A message of the stream has ended. */
static void end_msg(struct http2 *h, enum side side, uint32_t id, struct rs_msg *m)
{
	struct stream *s = find_stream(h, id);

	m->type = side == ASKING ? RS_MSG_REQUEST_END : RS_MSG_RESPONSE_END;
	m->body_size = RS_BODY_UNKNOWN;
	if (!s)
		return;
	s->s[side].done = true;
	if (!s->s[side].unsized)
		m->body_size = s->s[side].body;
	for (int i = 0; s->grpc && i < 2; i++)
		m->parts[i] = s->s[i].unsized ? RS_PARTS_UNKNOWN : s->s[i].parts;
	/* An answer may be seen before its request: another thread of the client was faster. */
	if (s->s[ANSWERING].done && (s->s[ASKING].seen || !h->whole || id <= h->last_id))
		put_stream(h, s);
}

static void end_later(struct dir *d, enum side side, uint32_t id)
{
	d->end_id = id;
	d->end_side = (uint8_t)side;
}

static enum rs_parse end_now(struct http2 *h, struct dir *d, struct rs_msg *m)
{
	uint32_t id = d->end_id;

	d->end_id = 0;
	rs_msg_begin(m, RS_MSG_REQUEST_END, id);
	end_msg(h, (enum side)d->end_side, id, m);
	return RS_PARSE_OK;
}

/* RFC 9113 7 */
static struct str error_name(uint32_t code)
{
	static const struct str names[] = {
		{ "NO_ERROR", 8 },
		{ "PROTOCOL_ERROR", 14 },
		{ "INTERNAL_ERROR", 14 },
		{ "FLOW_CONTROL_ERROR", 18 },
		{ "SETTINGS_TIMEOUT", 16 },
		{ "STREAM_CLOSED", 13 },
		{ "FRAME_SIZE_ERROR", 16 },
		{ "REFUSED_STREAM", 14 },
		{ "CANCEL", 6 },
		{ "COMPRESSION_ERROR", 17 },
		{ "CONNECT_ERROR", 13 },
		{ "ENHANCE_YOUR_CALM", 17 },
		{ "INADEQUATE_SECURITY", 19 },
		{ "HTTP_1_1_REQUIRED", 17 },
	};

	return code < sizeof(names) / sizeof(names[0]) ? names[code] : STR("_OTHER");
}

/* The stream will not be answered, or no further. */
static void reset_msg(struct http2 *h, uint32_t id, enum rs_ev_dir dir, struct str why,
		      struct rs_msg *m)
{
	rs_msg_begin(m, RS_MSG_RESPONSE_END, id);
	end_msg(h, ANSWERING, id, m);
	m->flags = RS_MSGF_RESET | RS_MSGF_ABORTED;
	rs_msg_add(m, RS_F_HTTP_RESET, why);
	rs_msg_add(m, RS_F_HTTP_RESET_BY, dir == RS_DIR_OUT ? STR("sent") : STR("received"));
}

/*
 * One after the other, the streams that a GOAWAY says the server will not look at. When some gave way to others, these may be
 * open still: then all numbers, of the newest ones.
 */
static enum rs_parse refuse(struct http2 *h, struct dir *d, enum rs_ev_dir dir, struct rs_msg *m)
{
	if (h->crowded && h->last_id > REFUSED && d->goaway < h->last_id - REFUSED)
		d->goaway = h->last_id - REFUSED;
	while (h->crowded && d->goaway < h->last_id) {
		struct stream *s = find_stream(h, d->goaway = (d->goaway + 1) | 1);

		if (s && (!s->s[ASKING].seen || s->s[ANSWERING].done))
			continue;
		reset_msg(h, d->goaway, dir, error_name(7), m);
		return RS_PARSE_OK;
	}
	for (unsigned i = 0; i < BUCKETS; i++) {
		for (struct stream *s = h->bucket[i]; s; s = s->next) {
			if (s->id <= d->goaway || s->id % 2 == 0 || !s->s[ASKING].seen ||
			    s->s[ANSWERING].done)
				continue;
			reset_msg(h, s->id, dir, error_name(7), m);
			return RS_PARSE_OK;
		}
	}
	d->refused = false;
	return RS_PARSE_SKIP;
}

/* gRPC: counts the messages in content: a flag, a length of four bytes, and so many bytes. */
static size_t grpc_part(struct stream *s, enum side side, struct str in, uint32_t left)
{
	size_t n;

	if (s->s[side].left) {
		n = s->s[side].left < left ? s->s[side].left : left;
		s->s[side].left -= (uint32_t)n;
		return n;
	}
	for (n = 0; n < in.len && n < left && s->s[side].nprefix < 5; n++) {
		s->s[side].prefix = s->s[side].prefix << 8 | (uint8_t)in.ptr[n];
		s->s[side].nprefix++;
	}
	if (s->s[side].nprefix == 5) {
		s->s[side].left = s->s[side].prefix; /* the flag has been shifted out */
		s->s[side].nprefix = 0;
		s->s[side].parts++;
	}
	return n;
}

/* Inside a frame's content. */
static enum rs_parse content(struct http2 *h, struct dir *d, enum side side, struct str in,
			     size_t *ret_used, struct rs_msg *m)
{
	struct stream *s = d->of ? find_stream(h, d->of) : NULL;
	uint32_t parts = s ? s->s[side].parts : 0;
	size_t n = d->left;

	if (d->left && s && s->grpc && !s->s[side].unsized) {
		n = grpc_part(s, side, in, d->left);
		if (!n)
			return RS_PARSE_NEED_MORE;
	}
	d->left -= (uint32_t)n;
	if (!d->left) {
		n += d->pad;
		d->pad = 0;
	}
	*ret_used = n;
	if (!s || s->s[side].parts == parts || n > in.len)
		return RS_PARSE_SKIP;
	rs_msg_begin(m, RS_MSG_PART, d->of);
	m->body_size = s->s[side].left;
	return RS_PARSE_OK;
}

static enum rs_parse parse_data(struct http2 *h, struct dir *d, enum side side, struct str in,
				const struct rs_h2_frame *f, size_t *ret_used)
{
	struct stream *s = find_stream(h, f->id);
	uint32_t pad = 0;

	if (f->flags & RS_H2_FL_PADDED) {
		if (in.len <= RS_H2_FRAME_HEAD)
			return f->len ? RS_PARSE_NEED_MORE : invalid(d);
		pad = 1u + (uint8_t)in.ptr[RS_H2_FRAME_HEAD];
		if (pad > f->len)
			return invalid(d);
	}
	*ret_used = RS_H2_FRAME_HEAD + (pad ? 1 : 0);
	if (pad)
		pad--;
	d->left = f->len - pad - (f->flags & RS_H2_FL_PADDED ? 1 : 0);
	d->pad = pad;
	d->of = f->id;
	if (s)
		s->s[side].body += d->left;
	if (f->flags & RS_H2_FL_END_STREAM)
		end_later(d, side, f->id);
	/* Its content is no business of ours. */
	if (!s || !s->grpc || s->s[side].unsized) {
		*ret_used += d->left + d->pad;
		d->left = d->pad = 0;
	}
	return RS_PARSE_SKIP;
}

/* Where the block ends that begins with f. NEED_MORE: not in the input; its frames are good as far as seen. */
static enum rs_parse block_end(struct dir *d, struct str in, const struct rs_h2_frame *f,
			       size_t *ret_end)
{
	size_t at = d->scan ? d->scan : RS_H2_FRAME_HEAD + (size_t)f->len;
	bool last = !d->scan && f->flags & RS_H2_FL_END_HEADERS;

	while (!last) {
		struct rs_h2_frame c;

		if (at > RS_HEAD_MAX || in.len < at + RS_H2_FRAME_HEAD) {
			d->scan = (uint32_t)at;
			*ret_end = at;
			return RS_PARSE_NEED_MORE;
		}
		c = rs_h2_frame_at(str_from(in, at));
		if (c.type != RS_H2_CONTINUATION || c.id != f->id)
			return RS_PARSE_INVALID;
		at += RS_H2_FRAME_HEAD + c.len;
		last = c.flags & RS_H2_FL_END_HEADERS;
	}
	*ret_end = at;
	return in.len < at ? RS_PARSE_NEED_MORE : RS_PARSE_OK;
}

static const struct rs_redact_headers *wanted_of(const struct http2 *h, bool request)
{
	const struct rs_redact *r = h->env->redact;
	const struct rs_redact_headers *w;

	if (!r)
		return NULL;
	w = request ? &r->request : &r->response;
	return w->n ? w : NULL;
}

/* A block of the asking side, or a promise: a new request, or trailers. */
static bool request_head(struct http2 *h, enum side side, const struct rs_h2_head *head,
			 const struct rs_h2_block *b)
{
	struct stream *s;

	if (!head->asks || (side == ASKING && b->id <= h->last_id))
		return false;
	if (side == ASKING) {
		h->last_id = b->id;
	} else {
		/* RFC 9113 5.1.1: a client's number, or one in use, would take the answer of another request. */
		if (!b->id || b->id % 2 || find_stream(h, b->id))
			return false;
		head->m->flags |= RS_MSGF_PUSHED;
	}
	s = get_stream(h, b->id, head->m);
	if (!s)
		return true;
	s->s[ASKING].seen = true;
	s->grpc |= head->grpc;
	s->connect = head->connect;
	return true;
}

/* A block of the answering side. False: trailers. */
static bool response_head(struct http2 *h, const struct rs_h2_head *head,
			  const struct rs_h2_block *b)
{
	struct stream *s = find_stream(h, b->id);
	bool first = s && !s->s[ANSWERING].seen;

	/* Without a status because that was said before we listened: it is the head if there was none. */
	if (!head->status.len && !(first && head->m->flags & RS_MSGF_CUT))
		return false;
	if (head->status.len && head->status.ptr[0] == '1') {
		head->m->type = RS_MSG_INTERIM;
		return true;
	}
	/* Not known to have been asked: it may yet be, on a connection that is seen whole. */
	if (!s && h->whole && b->id > h->last_id)
		s = get_stream(h, b->id, head->m);
	if (s) {
		s->s[ANSWERING].seen = true;
		s->grpc |= head->grpc;
	}
	return true;
}

/* What the block means, whole or as far as it was captured. */
static enum rs_parse take_block(struct http2 *h, struct dir *d, enum side side, bool promise,
				struct rs_h2_block *b, struct rs_hpack_mem mem, bool whole,
				struct rs_msg *m)
{
	struct rs_h2_head head = { .m = m, .mem = mem, .request = side == ASKING || promise };
	struct stream *s;

	rs_msg_begin(m, head.request ? RS_MSG_REQUEST : RS_MSG_RESPONSE, b->id);
	head.want = wanted_of(h, head.request);
	rs_msg_add(m, RS_F_HTTP_VERSION, STR("2"));
	if (!rs_hpack_decode(&d->table, b->text, &head.mem, rs_h2_take_field, &head) || !whole) {
		rs_hpack_lose(&d->table);
		m->flags |= RS_MSGF_CUT;
	}
	if (head.request) {
		if (!request_head(h, side, &head, b))
			m->type = RS_MSG_REQUEST_END;
		else if (promise)
			b->end_stream = true;
	} else if (!response_head(h, &head, b)) {
		m->type = RS_MSG_RESPONSE_END;
	}
	if (m->type == RS_MSG_REQUEST_END || m->type == RS_MSG_RESPONSE_END) {
		/* Trailers; of the response's, what is wanted goes with its end. */
		if (!b->end_stream)
			return RS_PARSE_SKIP;
		m->flags &= RS_MSGF_CUT;
		m->nfields = m->type == RS_MSG_REQUEST_END ? 0 : (uint8_t)(m->nfields - 1);
		memmove(m->fields, m->fields + 1,
			m->nfields * sizeof(m->fields[0])); /* the version */
		end_msg(h, side, b->id, m);
		return RS_PARSE_OK;
	}
	s = find_stream(h, b->id);
	if (!head.request && m->type == RS_MSG_RESPONSE && s && s->connect && head.status.len &&
	    head.status.ptr[0] == '2')
		b->end_stream = true; /* what follows is another protocol's */
	if (b->end_stream && m->type != RS_MSG_INTERIM)
		end_later(d, head.request ? ASKING : ANSWERING, b->id);
	return RS_PARSE_OK;
}

static enum rs_parse parse_headers(struct http2 *h, struct dir *d, enum side side, struct str in,
				   const struct rs_h2_frame *f, size_t *ret_used, struct rs_msg *m)
{
	struct rs_hpack_mem mem = { h->env->scratch, h->env->scratch + RS_PROTO_SCRATCH };
	bool promise = f->type == RS_H2_PUSH_PROMISE;
	enum rs_parse r;
	struct rs_h2_block b;
	size_t end;
	bool whole;

	if (promise && side == ASKING)
		return invalid(d);
	r = block_end(d, in, f, &end);
	if (r == RS_PARSE_INVALID)
		return invalid(d);
	/* Longer than we read: what there is will have to do. */
	whole = end <= RS_HEAD_MAX;
	if (r == RS_PARSE_NEED_MORE && (whole || in.len < RS_HEAD_MAX))
		return RS_PARSE_NEED_MORE;
	d->scan = 0;
	if (!rs_h2_gather(whole ? str_at(in, 0, end) : in, f, &mem, &b))
		return invalid(d);
	d->left = b.rest;
	d->of = 0;
	d->in_block = b.more;
	*ret_used = b.used - b.rest;
	return take_block(h, d, side, promise, &b, mem, !b.rest && !b.more, m);
}

static enum rs_parse parse_reset(struct http2 *h, enum rs_ev_dir dir, struct str in,
				 const struct rs_h2_frame *f, size_t *ret_used, struct rs_msg *m)
{
	struct stream *s = find_stream(h, f->id);

	if (in.len < RS_H2_FRAME_HEAD + 4)
		return RS_PARSE_NEED_MORE;
	*ret_used = RS_H2_FRAME_HEAD + 4;
	/* One that gave way may be open still. */
	if (!s && (!h->crowded || f->id > h->last_id))
		return RS_PARSE_SKIP;
	if (s && (!s->s[ASKING].seen || s->s[ANSWERING].done)) {
		put_stream(h, s);
		return RS_PARSE_SKIP;
	}
	reset_msg(h, f->id, dir, error_name(rs_h2_u32(in.ptr + RS_H2_FRAME_HEAD)), m);
	return RS_PARSE_OK;
}

static enum rs_parse parse_goaway(struct dir *d, enum side side, struct str in,
				  const struct rs_h2_frame *f, size_t *ret_used)
{
	if (in.len < RS_H2_FRAME_HEAD + 8)
		return RS_PARSE_NEED_MORE;
	d->goaway = rs_h2_u32(in.ptr + RS_H2_FRAME_HEAD) & 0x7fffffff;
	d->refused = side == ANSWERING;
	*ret_used = RS_H2_FRAME_HEAD + f->len;
	return RS_PARSE_SKIP;
}

static enum rs_parse parse_frame(struct http2 *h, struct dir *d, enum rs_ev_dir dir, enum side side,
				 struct str in, size_t *ret_used, struct rs_msg *m)
{
	struct rs_h2_frame f = rs_h2_frame_at(in);

	if (!rs_h2_frame_ok(&f))
		return invalid(d);
	/* RFC 9113 3.4: with SETTINGS a server begins. */
	if (!d->begun && side == ANSWERING && f.type == RS_H2_SETTINGS && !(f.flags & RS_H2_FL_ACK))
		d->table.partial = false;
	d->begun = true;
	if (d->in_block != (f.type == RS_H2_CONTINUATION))
		return invalid(d);
	switch ((enum rs_h2_frame_type)f.type) {
	case RS_H2_DATA:
		return parse_data(h, d, side, in, &f, ret_used);
	case RS_H2_HEADERS:
	case RS_H2_PUSH_PROMISE:
		return parse_headers(h, d, side, in, &f, ret_used, m);
	case RS_H2_RST_STREAM:
		return parse_reset(h, dir, in, &f, ret_used, m);
	case RS_H2_GOAWAY:
		return parse_goaway(d, side, in, &f, ret_used);
	case RS_H2_CONTINUATION:
		d->in_block = !(f.flags & RS_H2_FL_END_HEADERS);
		break;
	case RS_H2_PRIORITY:
	case RS_H2_SETTINGS:
	case RS_H2_PING:
	case RS_H2_WINDOW_UPDATE:
	case RS_H2_COUNT:
		break;
	}
	*ret_used = RS_H2_FRAME_HEAD + (size_t)f.len;
	return RS_PARSE_SKIP;
}

/* The asking end's first bytes. */
static enum rs_parse parse_preface(struct http2 *h, struct dir *d, struct str in, size_t *ret_used)
{
	size_t n = in.len < preface.len ? in.len : preface.len;

	if (memcmp(in.ptr, preface.ptr, n) != 0)
		return invalid(d);
	if (n < preface.len)
		return RS_PARSE_NEED_MORE;
	*ret_used = preface.len;
	d->begun = true;
	d->table.partial = false;
	h->whole = true;
	return RS_PARSE_SKIP;
}

static enum rs_parse http2_parse(void *state, enum rs_ev_dir dir, enum rs_ev_role role,
				 struct str in, size_t *ret_used, struct rs_msg *m)
{
	struct http2 *h = state;
	struct dir *d = &h->d[dir];
	enum side side = side_of(dir, role);

	*ret_used = 0;
	if (d->left || d->pad)
		return content(h, d, side, in, ret_used, m);
	if (d->end_id)
		return end_now(h, d, m);
	if (d->refused)
		return refuse(h, d, dir, m);
	if (!d->begun && side == ASKING && in.len && in.ptr[0] == preface.ptr[0])
		return parse_preface(h, d, in, ret_used);
	if (in.len < RS_H2_FRAME_HEAD)
		return RS_PARSE_NEED_MORE;
	return parse_frame(h, d, dir, side, in, ret_used, m);
}

/* A header block of which no more will be seen, and so many bytes behind `in` are missing. */
static enum rs_parse cut_block(struct http2 *h, struct dir *d, enum side side, struct str in,
			       const struct rs_h2_frame *f, uint64_t missing, struct rs_msg *m)
{
	struct rs_hpack_mem mem = { h->env->scratch, h->env->scratch + RS_PROTO_SCRATCH };
	struct rs_h2_block b;

	d->scan = 0;
	d->gap_lost = true;
	if (!rs_h2_gather(in, f, &mem, &b))
		return RS_PARSE_SKIP;
	if (!b.broken && missing <= b.rest) {
		d->gap_lost = false;
		d->gap_done = true;
		d->left = b.rest - (uint32_t)missing;
		d->of = 0;
		d->in_block = b.more;
	}
	return take_block(h, d, side, f->type == RS_H2_PUSH_PROMISE, &b, mem, false, m);
}

/* So many bytes are missing, from within a frame's content on. */
static void cut_content(struct http2 *h, struct dir *d, enum side side, uint64_t missing)
{
	struct stream *s = d->of ? find_stream(h, d->of) : NULL;
	uint64_t left = d->left < missing ? d->left : missing;

	if (s)
		s->s[side].unsized = true;
	d->left -= (uint32_t)left;
	missing -= left;
	d->gap_lost = missing > d->pad;
	d->gap_done = !d->gap_lost;
	d->pad -= (uint32_t)(missing < d->pad ? missing : d->pad);
}

static enum rs_parse http2_gap(void *state, enum rs_ev_dir dir, enum rs_ev_role role, struct str in,
			       const struct rs_gap *gap, struct rs_msg *m)
{
	struct http2 *h = state;
	struct dir *d = &h->d[dir];
	enum side side = side_of(dir, role);
	struct rs_h2_frame f;

	if (gap->last)
		return RS_PARSE_SKIP; /* open streams end with their connection */
	if (d->gap_done || d->gap_lost) {
		/* told already */
	} else if (d->left || d->pad) {
		cut_content(h, d, side, in.len + gap->len);
	} else if (d->begun && in.len >= RS_H2_FRAME_HEAD) {
		f = rs_h2_frame_at(in);
		if ((f.type == RS_H2_HEADERS ||
		     (f.type == RS_H2_PUSH_PROMISE && side == ANSWERING)) &&
		    rs_h2_frame_ok(&f) && cut_block(h, d, side, in, &f, gap->len, m) == RS_PARSE_OK)
			return RS_PARSE_OK;
	}
	if (d->end_id && !d->left && !d->pad)
		return end_now(h, d, m);
	if (d->gap_done) {
		d->gap_done = false;
		return RS_PARSE_SKIP;
	}
	lose(h, d, side);
	return invalid(d);
}

static enum rs_match http2_probe(struct str in, enum rs_ev_dir dir, enum rs_ev_role *ret_role)
{
	size_t n = in.len < preface.len ? in.len : preface.len;
	bool asks = true;
	struct rs_h2_frame f;
	struct rs_h2_guess g;

	if (!in.len)
		return RS_MATCH_MORE;
	if (memcmp(in.ptr, preface.ptr, n) == 0) {
		if (n < preface.len)
			return RS_MATCH_MORE;
	} else {
		if (in.len < RS_H2_FRAME_HEAD)
			return in.ptr[0] == 0 ? RS_MATCH_MORE : RS_MATCH_NO;
		if (rs_h2_chain(in, &g) < 0)
			return RS_MATCH_NO;
		if (!g.asks && !g.answers) {
			/* Frames that belong to no stream stand before others. */
			rs_h2_frame_likely(in, &f);
			return f.id == 0 || (f.type != RS_H2_DATA &&
					     in.len <= RS_H2_FRAME_HEAD + f.len)
				       ? RS_MATCH_MORE
				       : RS_MATCH_NO;
		}
		asks = g.asks;
	}
	*ret_role = asks == (dir == RS_DIR_IN) ? RS_ROLE_SERVER : RS_ROLE_CLIENT;
	return RS_MATCH_YES;
}

/* May the frames at the front of `in` be this direction's? */
static bool resync_here(const struct http2 *h, enum side side, struct str in, bool front)
{
	struct rs_h2_guess g;
	struct rs_h2_frame f;
	int n;

	if (in.len < RS_H2_FRAME_HEAD || !rs_h2_frame_likely(in, &f) ||
	    f.type == RS_H2_CONTINUATION)
		return false;
	/* A stream is known, or it is a little newer than those. */
	if (f.id && h->last_id && f.id > h->last_id + 20000)
		return false;
	n = rs_h2_chain(in, &g);
	if (n < 0 || (side == ASKING ? g.answers : g.asks))
		return false;
	if (g.asks || g.answers)
		return true;
	/* Programs that read a frame's header by itself: all of a record, and of a stream that fits. */
	if (front && in.len == RS_H2_FRAME_HEAD && f.type == RS_H2_HEADERS && f.len)
		return side == ASKING ? f.id % 2 && f.id > h->last_id
				      : find_stream(h, f.id) != NULL;
	/* Records begin with a frame, mostly; inside of one, two must follow each other. */
	return n >= 2 ||
	       (front && (n == 1 || (f.type == RS_H2_DATA && f.id && f.id <= h->last_id)));
}

static size_t http2_resync(void *state, enum rs_ev_dir dir, enum rs_ev_role role, struct str in)
{
	struct http2 *h = state;
	struct dir *d = &h->d[dir];
	enum side side = side_of(dir, role);
	bool front = !d->bad;
	size_t at;

	lose(h, d, side);
	for (at = 0; at < in.len; at++) {
		if (resync_here(h, side, str_from(in, at), front && at == 0))
			break;
	}
	d->bad = false;
	d->begun = true;
	return at;
}

static void http2_start(void *state, const struct rs_proto_env *env)
{
	struct http2 *h = state;

	h->env = env;
	for (int i = 0; i < 2; i++)
		rs_hpack_init(&h->d[i].table, false, &env->pool[POOL_SMALL],
			      &env->pool[POOL_LARGE]);
}

static void http2_stop(void *state)
{
	struct http2 *h = state;

	for (int i = 0; i < 2; i++)
		rs_hpack_release(&h->d[i].table);
	for (unsigned i = 0; i < BUCKETS; i++) {
		while (h->bucket[i])
			put_stream(h, h->bucket[i]);
	}
}

/* RFC 7540 3.2: the request that asked for it is stream 1, and has ended. */
static void http2_switched(void *state, enum rs_ev_role role)
{
	struct http2 *h = state;
	struct rs_msg none = { 0 };
	struct stream *s = get_stream(h, 1, &none);

	(void)role;
	h->last_id = 1;
	h->whole = true;
	if (s)
		s->s[ASKING].seen = s->s[ASKING].done = true;
}

static void http2_describe(const struct rs_exchange *x, struct rs_build *b)
{
	if (rs_grpc_is(x))
		rs_grpc_describe(x, b);
	else
		rs_http_describe(x, b);
}

const struct rs_proto_ops rs_proto_http2 = {
	.name = "http2",
	.about = "HTTP/2 and gRPC: in clear text, and where TLS is read",
	.pairing = RS_PAIR_BY_ID,
	.state_size = sizeof(struct http2),
	.whole = true,
	.pool = {
		[POOL_STREAM] = { sizeof(struct stream), 65536 },
		[POOL_SMALL] = { RS_HPACK_BLOCK(RS_HPACK_SMALL), 16384 },
		[POOL_LARGE] = { RS_HPACK_BLOCK(RS_HPACK_LARGE), 128 },
	},
	.start = http2_start,
	.stop = http2_stop,
	.switched = http2_switched,
	.probe = http2_probe,
	.parse = http2_parse,
	.gap = http2_gap,
	.resync = http2_resync,
	.describe = http2_describe,
};
