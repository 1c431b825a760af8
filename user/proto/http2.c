// SPDX-License-Identifier: Apache-2.0
#include "http2.h"

#include "grpc.h"
#include "hpack.h"
#include "trace/redact.h"
#include "trace_headers.h"

/* RFC 9113 6 */
enum frame_type {
	FT_DATA,
	FT_HEADERS,
	FT_PRIORITY,
	FT_RST_STREAM,
	FT_SETTINGS,
	FT_PUSH_PROMISE,
	FT_PING,
	FT_GOAWAY,
	FT_WINDOW_UPDATE,
	FT_CONTINUATION,
	FT_COUNT,
};

#define FL_END_STREAM  0x1
#define FL_ACK	       0x1
#define FL_END_HEADERS 0x4
#define FL_PADDED      0x8
#define FL_PRIORITY    0x20

#define HEADER	  9	/* bytes of a frame's header */
#define FRAME_MAX 16384 /* RFC 9113 6.5.2: a frame's content, unless its receiver allows more */

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

struct frame {
	uint32_t len, id;
	uint8_t type, flags;
};

static uint32_t be32(const char *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* in has HEADER bytes. */
static struct frame frame_at(struct str in)
{
	return (struct frame){
		.len = be32(in.ptr) >> 8,
		.type = (uint8_t)in.ptr[3],
		.flags = (uint8_t)in.ptr[4],
		.id = be32(in.ptr + 5) & 0x7fffffff,
	};
}

/* The rules on length and stream that a frame of a known type keeps to. */
static bool frame_ok(const struct frame *f)
{
	switch ((enum frame_type)f->type) {
	case FT_DATA:
	case FT_HEADERS:
	case FT_CONTINUATION:
		return f->id != 0;
	case FT_PRIORITY:
		return f->id && f->len == 5;
	case FT_RST_STREAM:
		return f->id && f->len == 4;
	case FT_SETTINGS:
		return !f->id && f->len % 6 == 0 && !(f->flags & FL_ACK && f->len);
	case FT_PUSH_PROMISE:
		return f->id && f->len >= 4;
	case FT_PING:
		return !f->id && f->len == 8;
	case FT_GOAWAY:
		return !f->id && f->len >= 8;
	case FT_WINDOW_UPDATE:
		return f->len == 4;
	case FT_COUNT:
		break;
	}
	return true; /* RFC 9113 5.5: unknown types are ignored */
}

/* Do these bytes look like a frame's header to one who does not know where frames begin? */
static bool frame_likely(struct str in, struct frame *f)
{
	static const uint8_t flags[FT_COUNT] = {
		[FT_DATA] = FL_END_STREAM | FL_PADDED,
		[FT_HEADERS] = FL_END_STREAM | FL_END_HEADERS | FL_PADDED | FL_PRIORITY,
		[FT_SETTINGS] = FL_ACK,
		[FT_PUSH_PROMISE] = FL_END_HEADERS | FL_PADDED,
		[FT_PING] = FL_ACK,
		[FT_CONTINUATION] = FL_END_HEADERS,
	};

	*f = frame_at(in);
	return f->type < FT_COUNT && f->len <= FRAME_MAX && !(f->flags & ~flags[f->type]) &&
	       !((uint8_t)in.ptr[5] & 0x80) && frame_ok(f);
}

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

static void start_msg(struct rs_msg *m, enum rs_msg_type type, uint32_t id)
{
	m->type = (uint8_t)type;
	m->flags = 0;
	m->nfields = 0;
	m->id = id;
	m->parts[0] = m->parts[1] = 0;
	m->body_size = 0;
}

static void add_field(struct rs_msg *m, uint16_t id, struct str value)
{
	if (m->nfields == RS_MSG_FIELDS) {
		m->flags |= RS_MSGF_CUT;
		return;
	}
	m->fields[m->nfields++] = (struct rs_field){ id, value };
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
	start_msg(m, RS_MSG_REQUEST_END, id);
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
	start_msg(m, RS_MSG_RESPONSE_END, id);
	end_msg(h, ANSWERING, id, m);
	m->flags = RS_MSGF_RESET | RS_MSGF_ABORTED;
	add_field(m, RS_F_HTTP_RESET, why);
	add_field(m, RS_F_HTTP_RESET_BY, dir == RS_DIR_OUT ? STR("sent") : STR("received"));
}

/* One after the other, the streams that a GOAWAY says the server will not look at. */
static enum rs_parse refuse(struct http2 *h, struct dir *d, enum rs_ev_dir dir, struct rs_msg *m)
{
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
	start_msg(m, RS_MSG_PART, d->of);
	m->body_size = s->s[side].left;
	return RS_PARSE_OK;
}

static enum rs_parse parse_data(struct http2 *h, struct dir *d, enum side side, struct str in,
				const struct frame *f, size_t *ret_used)
{
	struct stream *s = find_stream(h, f->id);
	uint32_t pad = 0;

	if (f->flags & FL_PADDED) {
		if (in.len <= HEADER)
			return f->len ? RS_PARSE_NEED_MORE : invalid(d);
		pad = 1u + (uint8_t)in.ptr[HEADER];
		if (pad > f->len)
			return invalid(d);
	}
	*ret_used = HEADER + (pad ? 1 : 0);
	if (pad)
		pad--;
	d->left = f->len - pad - (f->flags & FL_PADDED ? 1 : 0);
	d->pad = pad;
	d->of = f->id;
	if (s)
		s->s[side].body += d->left;
	if (f->flags & FL_END_STREAM)
		end_later(d, side, f->id);
	/* Its content is no business of ours. */
	if (!s || !s->grpc || s->s[side].unsized) {
		*ret_used += d->left + d->pad;
		d->left = d->pad = 0;
	}
	return RS_PARSE_SKIP;
}

/* A head while its fields are read. */
struct head {
	struct rs_msg *m;
	struct rs_hpack_mem mem;
	const struct rs_redact_headers *want; /* NULL: none */
	bool request;
	bool asks;	/* a request's pseudo-header field is there */
	bool authority; /* and this one */
	bool connect, grpc;
	struct str status;
};

/* The value, where it stays until the message has been dealt with. False: there is no room. */
static bool keep(struct head *h, const struct rs_hpack_field *f, struct str *ret)
{
	*ret = f->value;
	if (!f->fleeting)
		return true;
	if ((size_t)(h->mem.end - h->mem.pos) < f->value.len) {
		h->m->flags |= RS_MSGF_CUT;
		return false;
	}
	if (f->value.len)
		memcpy(h->mem.pos, f->value.ptr, f->value.len);
	ret->ptr = h->mem.pos;
	h->mem.pos += f->value.len;
	return true;
}

/* Names without a place in the static table. */
static uint16_t other_name(struct str name, bool request)
{
	if (!request)
		return str_eq(name, STR("grpc-status")) ? RS_F_GRPC_STATUS : 0;
	switch (name.len) {
	case 9:
		if (str_eq(name, STR(":protocol")))
			return RS_F_HTTP_PROTOCOL;
		if (str_eq(name, STR("forwarded")))
			return RS_F_HTTP_FORWARDED;
		break;
	case 12:
		if (str_eq(name, STR("grpc-timeout")))
			return RS_F_GRPC_TIMEOUT;
		break;
	case 15:
		if (str_eq(name, STR("x-forwarded-for")))
			return RS_F_HTTP_X_FORWARDED_FOR;
		break;
	case 16:
		if (str_eq(name, STR("x-forwarded-host")))
			return RS_F_HTTP_X_FORWARDED_HOST;
		break;
	case 17:
		if (str_eq(name, STR("x-forwarded-proto")))
			return RS_F_HTTP_X_FORWARDED_PROTO;
		break;
	default:
		break;
	}
	return (uint16_t)rs_trace_header(name);
}

/* What a field is to us, or 0. Sets what the head's framing needs to know. RFC 7541 appendix A. */
static uint16_t field_id(struct head *h, const struct rs_hpack_field *f)
{
	switch (f->index) {
	case 1: /* :authority */
		h->authority = true;
		h->asks |= h->request;
		return h->request ? RS_F_HTTP_HOST : 0;
	case 2: /* :method */
		h->asks |= h->request;
		h->connect = str_eq(f->value, STR("CONNECT"));
		return h->request ? RS_F_HTTP_METHOD : 0;
	case 4: /* :path */
		h->asks |= h->request;
		return h->request ? RS_F_HTTP_TARGET : 0;
	case 6: /* :scheme */
		h->asks |= h->request;
		return h->request ? RS_F_HTTP_SCHEME : 0;
	case 8: /* :status */
		return h->request ? 0 : RS_F_HTTP_STATUS;
	case 31: /* content-type */
		if (rs_grpc_content(f->value))
			h->grpc = true;
		else if (h->request || !rs_http_event_stream(f->value))
			return 0;
		return RS_F_HTTP_CONTENT_TYPE;
	case 38: /* host */
		return h->request && !h->authority ? RS_F_HTTP_HOST : 0;
	case 46: /* location */
		return h->request ? 0 : RS_F_LOCATION;
	case 58: /* user-agent */
		return h->request ? RS_F_HTTP_USER_AGENT : 0;
	case 0:
		return other_name(f->name, h->request);
	default:
		return 0;
	}
}

/* What the user asks for. A secret goes no further than here. */
static bool wanted(struct head *h, const struct rs_hpack_field *f)
{
	struct str v;

	for (uint32_t i = 0; i < h->want->n; i++) {
		const struct rs_redact_header *w = &h->want->v[i];

		if (w->dropped || !str_eq(w->name, f->name))
			continue;
		if (w->secret)
			v = STR("REDACTED");
		else if (!keep(h, f, &v))
			return false;
		add_field(h->m, (uint16_t)(RS_F_HTTP_HEADER + i), v);
		return true;
	}
	return false;
}

static bool on_field(void *arg, const struct rs_hpack_field *f)
{
	struct head *h = arg;
	bool kept = false;
	uint16_t id;
	struct str v;

	if (!f->name.ptr || !f->value.ptr) {
		h->m->flags |= RS_MSGF_CUT; /* it was said before we listened */
		return false;
	}
	id = field_id(h, f);
	if (id && keep(h, f, &v)) {
		add_field(h->m, id, v);
		if (id == RS_F_HTTP_STATUS)
			h->status = v;
		kept = true;
	}
	if (h->want)
		kept |= wanted(h, f);
	return kept;
}

/* A header block, in one frame or in several. */
struct block {
	struct str text;
	uint32_t id; /* of the stream that it opens or belongs to; PUSH_PROMISE: that it promises */
	size_t used; /* bytes of its frames */
	uint32_t rest; /* of these, bytes that are not in the input */
	bool more;     /* other frames follow */
	bool broken;   /* where they begin is not known */
	bool end_stream;
};

/* Where the block ends that begins with f. NEED_MORE: not in the input; its frames are good as far as seen. */
static enum rs_parse block_end(struct dir *d, struct str in, const struct frame *f, size_t *ret_end)
{
	size_t at = d->scan ? d->scan : HEADER + (size_t)f->len;
	bool last = !d->scan && f->flags & FL_END_HEADERS;

	while (!last) {
		struct frame c;

		if (at > RS_HEAD_MAX || in.len < at + HEADER) {
			d->scan = (uint32_t)at;
			*ret_end = at;
			return RS_PARSE_NEED_MORE;
		}
		c = frame_at(str_from(in, at));
		if (c.type != FT_CONTINUATION || c.id != f->id)
			return RS_PARSE_INVALID;
		at += HEADER + c.len;
		last = c.flags & FL_END_HEADERS;
	}
	*ret_end = at;
	return in.len < at ? RS_PARSE_NEED_MORE : RS_PARSE_OK;
}

/*
 * The block's text, as far as it is in the input; gathered in memory when it is in more than one frame.
 * False: it makes no sense.
 */
static bool gather(struct str in, const struct frame *f, struct rs_hpack_mem *mem, struct block *b)
{
	size_t end = HEADER + (size_t)f->len, from = HEADER, have, pad = 0;
	bool last = f->flags & FL_END_HEADERS;

	*b = (struct block){ .id = f->id };
	b->end_stream = f->type == FT_HEADERS && f->flags & FL_END_STREAM;
	if (f->flags & FL_PADDED && from < in.len)
		pad = (uint8_t)in.ptr[from++];
	if (f->type == FT_HEADERS && f->flags & FL_PRIORITY)
		from += 5;
	if (f->type == FT_PUSH_PROMISE) {
		if (from + 4 > in.len)
			return false;
		b->id = be32(in.ptr + from) & 0x7fffffff;
		from += 4;
	}
	if (from + pad > end)
		return false;
	have = end - pad < in.len ? end - pad : in.len;
	b->text = str_at(in, from, have > from ? have - from : 0);
	while (!last && end + HEADER <= in.len) {
		struct frame c = frame_at(str_from(in, end));
		struct str piece = str_at(in, end + HEADER, c.len);

		if (c.type != FT_CONTINUATION || c.id != f->id)
			return false;
		if (b->text.ptr != mem->pos && b->text.len)
			memcpy(mem->pos, b->text.ptr, b->text.len);
		b->text.ptr = mem->pos;
		if (piece.len)
			memcpy(mem->pos + b->text.len, piece.ptr, piece.len);
		b->text.len += piece.len;
		end += HEADER + c.len;
		last = c.flags & FL_END_HEADERS;
	}
	if (b->text.ptr == mem->pos)
		mem->pos += b->text.len;
	b->more = !last;
	b->used = end;
	b->rest = end > in.len ? (uint32_t)(end - in.len) : 0;
	b->broken = !last && end < in.len;
	return true;
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
static bool request_head(struct http2 *h, enum side side, const struct head *head,
			 const struct block *b)
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
static bool response_head(struct http2 *h, const struct head *head, const struct block *b)
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
				struct block *b, struct rs_hpack_mem mem, bool whole,
				struct rs_msg *m)
{
	struct head head = { .m = m, .mem = mem, .request = side == ASKING || promise };
	struct stream *s;

	start_msg(m, head.request ? RS_MSG_REQUEST : RS_MSG_RESPONSE, b->id);
	head.want = wanted_of(h, head.request);
	add_field(m, RS_F_HTTP_VERSION, STR("2"));
	if (!rs_hpack_decode(&d->table, b->text, &head.mem, on_field, &head) || !whole) {
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
				   const struct frame *f, size_t *ret_used, struct rs_msg *m)
{
	struct rs_hpack_mem mem = { h->env->scratch, h->env->scratch + RS_PROTO_SCRATCH };
	bool promise = f->type == FT_PUSH_PROMISE;
	enum rs_parse r;
	struct block b;
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
	if (!gather(whole ? str_at(in, 0, end) : in, f, &mem, &b))
		return invalid(d);
	d->left = b.rest;
	d->of = 0;
	d->in_block = b.more;
	*ret_used = b.used - b.rest;
	return take_block(h, d, side, promise, &b, mem, !b.rest && !b.more, m);
}

static enum rs_parse parse_reset(struct http2 *h, enum rs_ev_dir dir, struct str in,
				 const struct frame *f, size_t *ret_used, struct rs_msg *m)
{
	struct stream *s = find_stream(h, f->id);

	if (in.len < HEADER + 4)
		return RS_PARSE_NEED_MORE;
	*ret_used = HEADER + 4;
	/* One that gave way may be open still. */
	if (!s && (!h->crowded || f->id > h->last_id))
		return RS_PARSE_SKIP;
	if (s && (!s->s[ASKING].seen || s->s[ANSWERING].done)) {
		put_stream(h, s);
		return RS_PARSE_SKIP;
	}
	reset_msg(h, f->id, dir, error_name(be32(in.ptr + HEADER)), m);
	return RS_PARSE_OK;
}

static enum rs_parse parse_goaway(struct dir *d, enum side side, struct str in,
				  const struct frame *f, size_t *ret_used)
{
	if (in.len < HEADER + 8)
		return RS_PARSE_NEED_MORE;
	d->goaway = be32(in.ptr + HEADER) & 0x7fffffff;
	d->refused = side == ANSWERING;
	*ret_used = HEADER + f->len;
	return RS_PARSE_SKIP;
}

static enum rs_parse parse_frame(struct http2 *h, struct dir *d, enum rs_ev_dir dir, enum side side,
				 struct str in, size_t *ret_used, struct rs_msg *m)
{
	struct frame f = frame_at(in);

	if (!frame_ok(&f))
		return invalid(d);
	/* RFC 9113 3.4: with SETTINGS a server begins. */
	if (!d->begun && side == ANSWERING && f.type == FT_SETTINGS && !(f.flags & FL_ACK))
		d->table.partial = false;
	d->begun = true;
	if (d->in_block != (f.type == FT_CONTINUATION))
		return invalid(d);
	switch ((enum frame_type)f.type) {
	case FT_DATA:
		return parse_data(h, d, side, in, &f, ret_used);
	case FT_HEADERS:
	case FT_PUSH_PROMISE:
		return parse_headers(h, d, side, in, &f, ret_used, m);
	case FT_RST_STREAM:
		return parse_reset(h, dir, in, &f, ret_used, m);
	case FT_GOAWAY:
		return parse_goaway(d, side, in, &f, ret_used);
	case FT_CONTINUATION:
		d->in_block = !(f.flags & FL_END_HEADERS);
		break;
	case FT_PRIORITY:
	case FT_SETTINGS:
	case FT_PING:
	case FT_WINDOW_UPDATE:
	case FT_COUNT:
		break;
	}
	*ret_used = HEADER + (size_t)f.len;
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
	if (in.len < HEADER)
		return RS_PARSE_NEED_MORE;
	return parse_frame(h, d, dir, side, in, ret_used, m);
}

/* A header block of which no more will be seen, and so many bytes behind `in` are missing. */
static enum rs_parse cut_block(struct http2 *h, struct dir *d, enum side side, struct str in,
			       const struct frame *f, uint64_t missing, struct rs_msg *m)
{
	struct rs_hpack_mem mem = { h->env->scratch, h->env->scratch + RS_PROTO_SCRATCH };
	struct block b;

	d->scan = 0;
	d->gap_lost = true;
	if (!gather(in, f, &mem, &b))
		return RS_PARSE_SKIP;
	if (!b.broken && missing <= b.rest) {
		d->gap_lost = false;
		d->gap_done = true;
		d->left = b.rest - (uint32_t)missing;
		d->of = 0;
		d->in_block = b.more;
	}
	return take_block(h, d, side, f->type == FT_PUSH_PROMISE, &b, mem, false, m);
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
	struct frame f;

	if (gap->last)
		return RS_PARSE_SKIP; /* open streams end with their connection */
	if (d->gap_done || d->gap_lost) {
		/* told already */
	} else if (d->left || d->pad) {
		cut_content(h, d, side, in.len + gap->len);
	} else if (d->begun && in.len >= HEADER) {
		f = frame_at(in);
		if ((f.type == FT_HEADERS || (f.type == FT_PUSH_PROMISE && side == ANSWERING)) &&
		    frame_ok(&f) && cut_block(h, d, side, in, &f, gap->len, m) == RS_PARSE_OK)
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

/* What a header block says of the direction it goes in. */
struct guess {
	unsigned fields;
	bool asks, answers, odd;
};

static bool on_guess(void *arg, const struct rs_hpack_field *f)
{
	struct guess *g = arg;

	g->fields++;
	if (f->index == 2 || f->index == 4 || f->index == 6)
		g->asks = true;
	if (f->index == 8)
		g->answers = true;
	for (size_t i = 0; i < f->name.len; i++) {
		uint8_t c = (uint8_t)f->name.ptr[i];

		if (c <= ' ' || c >= 127 || (c >= 'A' && c <= 'Z'))
			g->odd = true;
	}
	return false;
}

/* f is a HEADERS frame at the front of `in`: is it one? *ret_g: what it says, as far as its first bytes do. */
static bool block_likely(struct str in, const struct frame *f, struct guess *ret_g)
{
	char scratch[4096]; /* Huffman code grows by less than two */
	struct rs_hpack_mem mem = { scratch, scratch + sizeof(scratch) };
	struct rs_hpack table;
	struct block b;
	bool whole;

	*ret_g = (struct guess){ 0 };
	in = str_at(in, 0, HEADER + (f->len < sizeof(scratch) / 2 ? f->len : sizeof(scratch) / 2));
	whole = in.len == HEADER + f->len && f->flags & FL_END_HEADERS;
	rs_hpack_init(&table, false, NULL, NULL);
	if (!gather(in, f, &mem, &b))
		return false;
	if (!rs_hpack_decode(&table, b.text, &mem, on_guess, ret_g) && whole)
		return false;
	/* Of a part, few fields prove nothing. */
	if (!whole && ret_g->fields < 3)
		ret_g->asks = ret_g->answers = false;
	return !ret_g->odd && !(ret_g->asks && ret_g->answers);
}

/*
 * Frames from the front of `in` on, as one who does not know that they are. Returns how many whole ones there
 * are, or -1: no frames. *ret_g: what the first header block says that says anything.
 */
static int chain(struct str in, struct guess *ret_g)
{
	int n = 0;

	*ret_g = (struct guess){ 0 };
	while (in.len >= HEADER && n < 8) {
		struct guess g = { 0 };
		struct frame f;

		if (!frame_likely(in, &f) || (f.type == FT_HEADERS && !block_likely(in, &f, &g)))
			return -1;
		if (!ret_g->asks && !ret_g->answers)
			*ret_g = g;
		if (in.len < HEADER + f.len)
			break;
		in = str_from(in, HEADER + f.len);
		n++;
	}
	return n;
}

static enum rs_match http2_probe(struct str in, enum rs_ev_dir dir, enum rs_ev_role *ret_role)
{
	size_t n = in.len < preface.len ? in.len : preface.len;
	bool asks = true;
	struct frame f;
	struct guess g;

	if (!in.len)
		return RS_MATCH_MORE;
	if (memcmp(in.ptr, preface.ptr, n) == 0) {
		if (n < preface.len)
			return RS_MATCH_MORE;
	} else {
		if (in.len < HEADER)
			return in.ptr[0] == 0 ? RS_MATCH_MORE : RS_MATCH_NO;
		if (chain(in, &g) < 0)
			return RS_MATCH_NO;
		if (!g.asks && !g.answers) {
			/* Frames that belong to no stream stand before others. */
			frame_likely(in, &f);
			return f.id == 0 || (f.type != FT_DATA && in.len <= HEADER + f.len)
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
	struct guess g;
	struct frame f;
	int n;

	if (in.len < HEADER || !frame_likely(in, &f) || f.type == FT_CONTINUATION)
		return false;
	/* A stream is known, or it is a little newer than those. */
	if (f.id && h->last_id && f.id > h->last_id + 20000)
		return false;
	n = chain(in, &g);
	if (n < 0 || (side == ASKING ? g.answers : g.asks))
		return false;
	if (g.asks || g.answers)
		return true;
	/* Programs that read a frame's header by itself: all of a record, and of a stream that fits. */
	if (front && in.len == HEADER && f.type == FT_HEADERS && f.len)
		return side == ASKING ? f.id % 2 && f.id > h->last_id
				      : find_stream(h, f.id) != NULL;
	/* Records begin with a frame, mostly; inside of one, two must follow each other. */
	return n >= 2 || (front && (n == 1 || (f.type == FT_DATA && f.id && f.id <= h->last_id)));
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
