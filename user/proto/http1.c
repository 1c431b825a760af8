// SPDX-License-Identifier: Apache-2.0
#include "http1.h"
#include "http.h"
#include "trace/redact.h"
#include "trace_headers.h"

/* Where one direction is. */
enum phase {
	PH_HEAD,	/* at a start line, or inside a head */
	PH_LENGTH,	/* `left` bytes of content follow */
	PH_CHUNK,	/* at a chunk's size line */
	PH_CHUNK_CRLF,	/* at the line end behind a chunk's data */
	PH_TRAILER,	/* behind the last chunk */
	PH_CHUNK_LOST,	/* chunked, but where chunks begin is not known any more */
	PH_UNTIL_CLOSE, /* content until the stream ends */
	PH_UNKNOWN,	/* something follows; how much is not known */
	PH_END,		/* the message is complete, but nobody has been told */
};

struct dir {
	uint64_t left; /* PH_LENGTH: content to come; PH_CHUNK_LOST: the last eight bytes */
	uint64_t body; /* bytes of content so far */
	uint32_t scan; /* bytes of an unfinished head or line that have been looked at */
	uint8_t phase;
	bool empty : 1;	   /* PH_UNKNOWN: the message ends with its head, which is cut */
	bool unsized : 1;  /* chunks went by unseen: how much content there is is not known */
	bool line_ok : 1;  /* the unfinished head's start line is good */
	bool cut : 1;	   /* END will say CUT */
	bool aborted : 1;  /* END will say ABORTED */
	bool orphan : 1;   /* a response to a request not seen */
	bool gap_done : 1; /* what is missing has been accounted for */
	bool bad : 1;	   /* INVALID was said: the next byte is the middle of something */
};

/* What a response's framing needs to know of its request. */
enum kind {
	KIND_PLAIN,
	KIND_HEAD,
	KIND_CONNECT,
	KIND_UNKNOWN, /* not remembered */
};

/* Requests without a response, as runs of one kind: the depth of pipelining costs nothing. */
#define RUNS 16

struct run {
	uint16_t n;
	uint8_t kind;
	uint8_t pad_;
};

/* Without pipelining all that is used is in the first 64 bytes. */
struct http1 {
	struct dir d[2];		/* by enum rs_ev_dir */
	const struct rs_redact *redact; /* NULL: no header field is asked for */
	uint8_t first, nruns;
	uint8_t early; /* responses seen before their requests: another thread of a client was faster */
	bool in_step; /* every request since the first one was seen */
	struct run runs[RUNS];
};

#define LONG_LINE 8448 /* a target of 8 KB, and what stands around it */

/* Bytes of a method at most. The longest registered one has 17. */
#define METHOD_MAX 64

/* Table of RFC 9110 5.6.2 tchar. */
static const uint8_t tchar[256] = {
	['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1,	    ['&'] = 1,	       ['\''] = 1,
	['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,	    ['^'] = 1,	       ['_'] = 1,
	['`'] = 1, ['|'] = 1, ['~'] = 1, ['0' ... '9'] = 1, ['a' ... 'z'] = 1, ['A' ... 'Z'] = 1,
};

static bool is_request(enum rs_ev_dir dir, enum rs_ev_role role)
{
	return (dir == RS_DIR_OUT) == (role == RS_ROLE_CLIENT);
}

static void push_kind(struct http1 *h, enum kind kind)
{
	struct run *last = &h->runs[(h->first + h->nruns - 1u) % RUNS];

	if (h->nruns && last->kind == kind && last->n < UINT16_MAX) {
		last->n++;
		return;
	}
	if (h->nruns == RUNS) {
		/* Forget rather than mistake: what is answered from here on is said to be CUT. */
		last->kind = KIND_UNKNOWN;
		if (last->n < UINT16_MAX)
			last->n++;
		return;
	}
	h->runs[(h->first + h->nruns++) % RUNS] = (struct run){ .n = 1, .kind = (uint8_t)kind };
}

/* Of the oldest request without a response; *ret_orphan: there is none. */
static enum kind pop_kind(struct http1 *h, bool *ret_orphan)
{
	struct run *r = &h->runs[h->first];
	enum kind kind;

	*ret_orphan = !h->nruns;
	if (!h->nruns)
		return KIND_PLAIN;
	kind = (enum kind)r->kind;
	if (--r->n == 0) {
		h->nruns--;
		h->first = h->nruns ? (uint8_t)((h->first + 1u) % RUNS) : 0;
	}
	return kind;
}

/* Takes a request into account. The answer to it may have been seen already. */
static void note_request(struct http1 *h, enum kind kind, struct dir *answer)
{
	h->in_step = true;
	if (!h->early) {
		push_kind(h, kind);
		return;
	}
	h->early--;
	/* Now it is known not to be the answer to a HEAD: its body will come. */
	if (kind != KIND_HEAD)
		answer->orphan = false;
}

/* Responses have been lost. Without pipelining the next one answers the last request. */
static void keep_last_kind(struct http1 *h)
{
	if (!h->nruns)
		return;
	h->first = (uint8_t)((h->first + h->nruns - 1u) % RUNS);
	h->nruns = 1;
	h->runs[h->first].n = 1;
}

/* RFC 9112 3: method SP request-target SP HTTP-version. line: without its line end. */
static bool request_line(struct str line, struct rs_msg *m)
{
	size_t sp = 0;
	struct str target;

	while (sp < line.len && sp <= METHOD_MAX && tchar[(uint8_t)line.ptr[sp]])
		sp++;
	if (sp == 0 || sp > METHOD_MAX || line.len < sp + sizeof("  HTTP/1.1") ||
	    line.ptr[sp] != ' ')
		return false;
	if (memcmp(line.ptr + line.len - 9, " HTTP/1.", 8) != 0 ||
	    (uint8_t)(line.ptr[line.len - 1] - '0') > 9)
		return false;
	target = str_trim(str_at(line, sp + 1, line.len - 10 - sp));
	if (!target.len)
		return false;
	rs_msg_begin(m, RS_MSG_REQUEST, 0);
	rs_msg_add(m, RS_F_HTTP_METHOD, str_at(line, 0, sp));
	rs_msg_add(m, RS_F_HTTP_TARGET, target);
	rs_msg_add(m, RS_F_HTTP_VERSION, str_from(line, line.len - 3));
	return true;
}

static bool digit(char c)
{
	return (uint8_t)(c - '0') <= 9;
}

/* RFC 9112 4: HTTP-version SP status-code SP [reason-phrase]. */
static bool status_line(struct str line, struct rs_msg *m)
{
	const char *p = line.ptr;

	if (line.len < sizeof("HTTP/1.1 200") - 1 || memcmp(p, "HTTP/1.", 7) != 0 || !digit(p[7]) ||
	    p[8] != ' ' || p[9] < '1' || p[9] > '9' || !digit(p[10]) || !digit(p[11]) ||
	    (line.len > 12 && p[12] != ' '))
		return false;
	rs_msg_begin(m, RS_MSG_RESPONSE, 0);
	rs_msg_add(m, RS_F_HTTP_STATUS, str_at(line, 9, 3));
	rs_msg_add(m, RS_F_HTTP_VERSION, str_at(line, 5, 3));
	return true;
}

/* Can these bytes be the beginning of a start line? They hold no line end. */
static bool line_prefix(struct str in, bool request)
{
	static const char version[] = "HTTP/1.";
	size_t i = 0;

	if (!request)
		return memcmp(in.ptr, version, in.len < 7 ? in.len : 7) == 0;
	while (i < in.len && i <= METHOD_MAX && tchar[(uint8_t)in.ptr[i]])
		i++;
	return i > 0 && i <= METHOD_MAX && (i == in.len || in.ptr[i] == ' ');
}

/* What header fields say about a message's length. */
struct framing {
	uint64_t length;
	bool has_length, bad_length;
	bool coded, chunked; /* Transfer-Encoding is there; its last coding is chunked */
};

/* RFC 9110 8.6: a list of equal numbers is that number. */
static void content_length(struct framing *f, struct str value)
{
	do {
		struct str one;
		uint64_t n;

		value = str_cut(value, ',', &one);
		if (!str_u64(str_trim(one), &n) || n > INT64_MAX ||
		    (f->has_length && n != f->length))
			f->bad_length = true;
		else
			f->length = n;
		f->has_length = true;
	} while (value.len);
}

static void transfer_encoding(struct framing *f, struct str value)
{
	f->coded = true;
	while (value.len) {
		struct str one;

		value = str_cut(value, ',', &one);
		one = str_trim(one);
		if (one.len)
			f->chunked = str_ieq(one, STR("chunked"));
	}
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct str chomp(struct str line)
{
	while (line.len && is_blank(line.ptr[line.len - 1]))
		line.len--;
	return line;
}

/* Is the line's name `name` (lower case)? *ret_value: what stands behind the colon, trimmed. */
static bool header_is(struct str line, struct str name, struct str *ret_value)
{
	size_t i = name.len;

	/* A name goes on with what is mostly greater than its colon. */
	if (line.len <= i || line.ptr[i] > ':')
		return false;
	for (i = 0; i < name.len; i++) {
		if (str_lower_char(line.ptr[i]) != name.ptr[i])
			return false;
	}
	while (i < line.len && (line.ptr[i] == ' ' || line.ptr[i] == '\t'))
		i++;
	if (i == line.len || line.ptr[i] != ':')
		return false;
	i++;
	while (i < line.len && is_blank(line.ptr[i]))
		i++;
	*ret_value = chomp(str_from(line, i));
	return true;
}

/* A request's trace context, in whatever form. */
static void trace_header(struct str line, struct rs_msg *m)
{
	struct str name, value = str_cut(line, ':', &name);
	enum rs_field_id id;

	if (name.len == line.len)
		return;
	id = rs_trace_header(str_trim(name));
	value = chomp(value);
	while (value.len && is_blank(value.ptr[0]))
		value = str_from(value, 1);
	if (id)
		rs_msg_add(m, (uint16_t)id, value);
}

/* What is wanted of a request. Most lines are told apart by their first letter. */
static void request_header(struct str line, struct rs_msg *m)
{
	struct str v;

	switch (line.ptr[0] | 0x20) {
	case 'b':
	case 's':
	case 't':
		trace_header(line, m);
		break;
	case 'h':
		if (header_is(line, STR("host"), &v))
			rs_msg_add(m, RS_F_HTTP_HOST, v);
		break;
	case 'u':
		if (header_is(line, STR("user-agent"), &v))
			rs_msg_add(m, RS_F_HTTP_USER_AGENT, v);
		else if (header_is(line, STR("upgrade"), &v))
			m->id |= str_ieq(v, STR("h2c")); /* its stream, if the server goes over */
		else
			trace_header(line, m);
		break;
	case 'f':
		if (header_is(line, STR("forwarded"), &v))
			rs_msg_add(m, RS_F_HTTP_FORWARDED, v);
		break;
	case 'x':
		if (header_is(line, STR("x-forwarded-for"), &v))
			rs_msg_add(m, RS_F_HTTP_X_FORWARDED_FOR, v);
		else if (header_is(line, STR("x-forwarded-host"), &v))
			rs_msg_add(m, RS_F_HTTP_X_FORWARDED_HOST, v);
		else if (header_is(line, STR("x-forwarded-proto"), &v))
			rs_msg_add(m, RS_F_HTTP_X_FORWARDED_PROTO, v);
		else
			trace_header(line, m);
		break;
	default:
		break;
	}
}

/* What the user asks for. A secret goes no further than here. */
static void wanted_header(struct str line, struct rs_msg *m, const struct rs_redact_headers *want)
{
	struct str v;

	for (uint32_t i = 0; i < want->n; i++) {
		const struct rs_redact_header *w = &want->v[i];
		unsigned n = 0;

		if (w->dropped || !header_is(line, w->name, &v))
			continue;
		for (unsigned k = 0; k < m->nfields; k++)
			n += m->fields[k].id >= RS_F_HTTP_HEADER;
		if (n == RS_REDACT_HEADERS) {
			m->flags |= RS_MSGF_CUT;
			return;
		}
		rs_msg_add(m, (uint16_t)(RS_F_HTTP_HEADER + i), w->secret ? STR("REDACTED") : v);
	}
}

/* line: with its line end. */
static void header(struct str line, struct rs_msg *m, struct framing *f)
{
	char first = str_lower_char(line.ptr[0]);
	struct str v;

	if (first == 'c' && header_is(line, STR("content-length"), &v))
		content_length(f, v);
	else if (first == 't' && header_is(line, STR("transfer-encoding"), &v))
		transfer_encoding(f, v);
	else if (m->type == RS_MSG_REQUEST)
		request_header(line, m);
	else if (first == 'l' && header_is(line, STR("location"), &v))
		rs_msg_add(m, RS_F_LOCATION, v);
	else if (first == 'u' && header_is(line, STR("upgrade"), &v) &&
		 str_eq(rs_msg_field(m, RS_F_HTTP_STATUS), STR("101")))
		rs_msg_add(m, RS_F_HTTP_UPGRADE, v);
	else if (first == 'c' && header_is(line, STR("content-type"), &v) &&
		 rs_http_event_stream(v))
		rs_msg_add(m, RS_F_HTTP_CONTENT_TYPE, v);
}

/* From `from` on: end of the first empty line behind a line end, or 0. */
static size_t head_end(struct str in, size_t from)
{
	while (from < in.len) {
		size_t nl = from + str_find(str_from(in, from), '\n');

		if (nl + 1 < in.len && in.ptr[nl + 1] == '\n')
			return nl + 2;
		if (nl + 2 < in.len && in.ptr[nl + 1] == '\r' && in.ptr[nl + 2] == '\n')
			return nl + 3;
		from = nl + 1;
	}
	return 0;
}

static bool has_line(struct str in, size_t from)
{
	return str_find(str_from(in, from), '\n') + from < in.len;
}

/* The header fields the user asks for, or NULL. */
static const struct rs_redact_headers *wanted(const struct http1 *h, bool request)
{
	const struct rs_redact_headers *w;

	if (!h->redact)
		return NULL;
	w = request ? &h->redact->request : &h->redact->response;
	return w->n ? w : NULL;
}

/*
 * A head from the front of `in`. OK: all of it, *ret_used bytes. NEED_MORE: the complete lines have
 * been read, *m has fields if the start line is among them. INVALID: no start line.
 */
static enum rs_parse head(const struct http1 *h, struct str in, bool request, size_t *ret_used,
			  struct rs_msg *m, struct framing *f)
{
	size_t at = str_find(in, '\n');
	struct str line = chomp(str_at(in, 0, at));
	const struct rs_redact_headers *want = wanted(h, request);

	m->nfields = 0;
	if (at == in.len)
		return line_prefix(in, request) ? RS_PARSE_NEED_MORE : RS_PARSE_INVALID;
	if (!(request ? request_line(line, m) : status_line(line, m)))
		return RS_PARSE_INVALID;
	for (at++; at < in.len;) {
		size_t nl;

		if (in.ptr[at] == '\n') {
			*ret_used = at + 1;
			return RS_PARSE_OK;
		}
		if (in.ptr[at] == '\r' && at + 1 < in.len && in.ptr[at + 1] == '\n') {
			*ret_used = at + 2;
			return RS_PARSE_OK;
		}
		nl = at;
		do { /* RFC 9112 5.2: a line that starts with a blank continues the one before */
			nl += str_find(str_from(in, nl), '\n') + 1;
		} while (nl < in.len && (in.ptr[nl] == ' ' || in.ptr[nl] == '\t'));
		if (nl >= in.len)
			return RS_PARSE_NEED_MORE;
		line = str_at(in, at, nl - at);
		header(line, m, f);
		if (want)
			wanted_header(line, m, want);
		at = nl;
	}
	return RS_PARSE_NEED_MORE;
}

static enum kind request_kind(const struct rs_msg *m)
{
	struct str method = rs_msg_field(m, RS_F_HTTP_METHOD);

	if (str_eq(method, STR("HEAD")))
		return KIND_HEAD;
	return str_eq(method, STR("CONNECT")) ? KIND_CONNECT : KIND_PLAIN;
}

/* The direction is at the first byte of a new message, or about to be. */
static void fresh(struct dir *d)
{
	*d = (struct dir){ .phase = PH_HEAD };
}

/* RFC 9112 6.3, from item 4 on. The head is complete. */
static void request_framing(struct dir *d, const struct framing *f)
{
	if (f->coded) {
		/* Not chunked at last: the server answers 400 and closes. */
		d->phase = f->chunked ? PH_CHUNK : PH_UNKNOWN;
	} else if (f->bad_length) {
		d->phase = PH_UNKNOWN;
	} else {
		d->phase = f->length ? PH_LENGTH : PH_END;
		d->left = f->length;
	}
}

static void response_framing(struct dir *d, const struct framing *f)
{
	if (f->coded)
		d->phase = f->chunked ? PH_CHUNK : PH_UNTIL_CLOSE;
	else if (f->bad_length)
		d->phase = PH_UNKNOWN;
	else if (!f->has_length)
		d->phase = PH_UNTIL_CLOSE;
	else {
		d->phase = f->length ? PH_LENGTH : PH_END;
		d->left = f->length;
	}
}

/* Takes a head, whole or cut, into the state. */
static void begin_request(struct http1 *h, struct dir *d, struct rs_msg *m, const struct framing *f,
			  bool whole)
{
	enum kind kind = request_kind(m);

	fresh(d);
	note_request(h, kind, &h->d[d == &h->d[0]]);
	if (whole) {
		request_framing(d, f);
	} else {
		struct str method = rs_msg_field(m, RS_F_HTTP_METHOD);
		bool content = str_eq(method, STR("POST")) || str_eq(method, STR("PUT")) ||
			       str_eq(method, STR("PATCH"));

		d->phase = f->chunked ? PH_CHUNK_LOST : PH_UNKNOWN;
		d->unsized = f->chunked;
		d->empty = !f->coded && !f->has_length && !content;
	}
	d->cut = d->phase == PH_UNKNOWN || !whole;
	if (!whole)
		m->flags |= RS_MSGF_CUT;
}

static void begin_response(struct http1 *h, struct dir *d, struct rs_msg *m,
			   const struct framing *f, bool whole)
{
	struct str status = rs_msg_field(m, RS_F_HTTP_STATUS);
	bool orphan = false;
	enum kind kind;
	bool empty;

	fresh(d);
	/* RFC 7540 3.2: the answer comes in HTTP/2. */
	if (whole && str_eq(status, STR("101")) &&
	    str_ieq(rs_msg_field(m, RS_F_HTTP_UPGRADE), STR("h2c"))) {
		m->type = RS_MSG_INTERIM;
		m->flags |= RS_MSGF_SWITCH;
		m->to = RS_PROTO_http2;
		return;
	}
	if (status.ptr[0] == '1' && !str_eq(status, STR("101"))) {
		/* RFC 9110 15.2: no content, and the final response is still to come. */
		m->type = RS_MSG_INTERIM;
		if (!whole)
			m->flags |= RS_MSGF_CUT;
		return;
	}
	kind = pop_kind(h, &orphan);
	d->orphan = orphan;
	if (orphan && h->in_step && d == &h->d[RS_DIR_IN] && h->early < UINT8_MAX)
		h->early++;
	if (kind == KIND_UNKNOWN) {
		m->flags |= RS_MSGF_CUT;
		d->cut = true;
	}
	/* RFC 9112 6.3 items 1 and 2 */
	if (str_eq(status, STR("101")) || (kind == KIND_CONNECT && status.ptr[0] == '2')) {
		m->flags |= RS_MSGF_TUNNEL;
		d->phase = PH_END;
		if (!whole)
			m->flags |= RS_MSGF_CUT;
		return;
	}
	empty = kind == KIND_HEAD || str_eq(status, STR("204")) || str_eq(status, STR("304"));
	if (!whole) {
		m->flags |= RS_MSGF_CUT;
		d->phase = f->chunked && !empty ? PH_CHUNK_LOST : PH_UNKNOWN;
		d->unsized = f->chunked && !empty;
		d->empty = empty;
	} else if (empty) {
		d->phase = PH_END;
	} else {
		response_framing(d, f);
	}
	d->cut |= d->phase == PH_UNKNOWN || !whole;
}

static enum rs_parse end_msg(struct dir *d, bool request, struct rs_msg *m)
{
	rs_msg_begin(m, request ? RS_MSG_REQUEST_END : RS_MSG_RESPONSE_END, 0);
	m->body_size = d->unsized ? RS_BODY_UNKNOWN : d->body;
	if (d->cut)
		m->flags |= RS_MSGF_CUT;
	if (d->aborted)
		m->flags |= RS_MSGF_ABORTED;
	fresh(d);
	return RS_PARSE_OK;
}

static enum rs_parse invalid(struct dir *d)
{
	fresh(d);
	d->bad = true;
	return RS_PARSE_INVALID;
}

/*
 * A start line of which no more will be seen. Of a very long request's a method and much of the target will do; else what is
 * known is not what was asked for.
 */
static bool cut_line(struct str in, bool request, struct rs_msg *m)
{
	size_t sp;

	if (!request)
		return status_line(in, m);
	sp = str_find(in, ' ');
	if (in.len < LONG_LINE || sp + 1 >= in.len)
		return false;
	rs_msg_begin(m, RS_MSG_REQUEST, 0);
	rs_msg_add(m, RS_F_HTTP_METHOD, str_at(in, 0, sp));
	in = str_from(in, sp + 1);
	rs_msg_add(m, RS_F_HTTP_TARGET, chomp(str_at(in, 0, str_find(in, ' '))));
	return true;
}

static enum rs_parse parse_head(struct http1 *h, struct dir *d, bool request, struct str in,
				size_t *ret_used, struct rs_msg *m)
{
	struct framing f = { 0 };
	enum rs_parse r;
	size_t n = 0;

	/* RFC 9112 2.2: empty lines before a start line are nothing. */
	while (n < in.len && (in.ptr[n] == '\r' || in.ptr[n] == '\n'))
		n++;
	if (n) {
		*ret_used = n;
		return RS_PARSE_SKIP;
	}
	if (!in.len)
		return RS_PARSE_NEED_MORE;
	in = str_at(in, 0, RS_HEAD_MAX);
	if (d->line_ok && in.len < RS_HEAD_MAX) {
		/* Seen before and found unfinished: look at the new bytes only. */
		if (!head_end(in, d->scan > 2 ? d->scan - 2 : 0)) {
			d->scan = (uint32_t)in.len;
			return RS_PARSE_NEED_MORE;
		}
	} else if (d->scan && in.len < RS_HEAD_MAX && !has_line(in, d->scan)) {
		if (!line_prefix(in, request))
			return invalid(d);
		d->scan = (uint32_t)in.len;
		return RS_PARSE_NEED_MORE;
	}
	r = head(h, in, request, ret_used, m, &f);
	if (r == RS_PARSE_INVALID)
		return invalid(d);
	if (r == RS_PARSE_NEED_MORE) {
		if (in.len < RS_HEAD_MAX) {
			d->line_ok = m->nfields > 0;
			d->scan = (uint32_t)in.len;
			return RS_PARSE_NEED_MORE;
		}
		if (!m->nfields && !cut_line(in, request, m))
			return invalid(d);
		*ret_used = in.len;
	}
	if (request)
		begin_request(h, d, m, &f, r == RS_PARSE_OK);
	else
		begin_response(h, d, m, &f, r == RS_PARSE_OK);
	return RS_PARSE_OK;
}

/* RFC 9112 7.1: chunk-size [chunk-ext] CRLF, *ret_size bytes of data behind it. `in` is the line. */
static bool chunk_size(struct str in, uint64_t *ret_size)
{
	uint64_t size = 0;
	size_t i;

	for (i = 0; i < in.len; i++) {
		unsigned c = (uint8_t)in.ptr[i], v;

		if (c - '0' <= 9)
			v = c - '0';
		else if ((c | 0x20) - 'a' <= 5)
			v = (c | 0x20) - 'a' + 10;
		else
			break;
		if (size >> 56)
			return false;
		size = size << 4 | v;
	}
	if (i == 0 || (i < in.len && in.ptr[i] != ';' && !is_blank(in.ptr[i])))
		return false;
	*ret_size = size;
	return true;
}

/* Bytes of a chunk's size line, or of a trailer field, at most. */
#define CHUNK_LINE_MAX 4096
#define TRAILER_MAX    RS_HEAD_MAX

static enum rs_parse parse_chunk(struct dir *d, struct str in, size_t *ret_used)
{
	size_t at = 0, nl;
	uint64_t size;

	if (d->phase == PH_CHUNK_CRLF) {
		if (in.len && in.ptr[0] == '\n')
			at = 1;
		else if (in.len > 1 && in.ptr[0] == '\r' && in.ptr[1] == '\n')
			at = 2;
		else
			return in.len == 0 || (in.len == 1 && in.ptr[0] == '\r')
				       ? RS_PARSE_NEED_MORE
				       : invalid(d);
	}
	nl = d->scan > at ? d->scan : at;
	nl += str_find(str_from(in, nl), '\n');
	if (nl - at >= CHUNK_LINE_MAX)
		return invalid(d);
	if (nl == in.len) {
		/* A size starts with a digit: do not wait for the end of a line of something else. */
		if (in.len > at && !chunk_size(str_at(in, at, 1), &size))
			return invalid(d);
		d->scan = (uint32_t)in.len;
		return RS_PARSE_NEED_MORE;
	}
	d->scan = 0;
	if (!chunk_size(str_at(in, at, nl - at), &size))
		return invalid(d);
	*ret_used = nl + 1 + size;
	d->body += size;
	d->phase = size ? PH_CHUNK_CRLF : PH_TRAILER;
	return RS_PARSE_SKIP;
}

/* RFC 9112 7.1.2: fields of no interest, then an empty line. */
static enum rs_parse parse_trailer(struct dir *d, bool request, struct str in, size_t *ret_used,
				   struct rs_msg *m)
{
	size_t nl = d->scan + str_find(str_from(in, d->scan), '\n');

	if (nl >= TRAILER_MAX)
		return invalid(d);
	if (nl == in.len) {
		d->scan = (uint32_t)in.len;
		return RS_PARSE_NEED_MORE;
	}
	d->scan = 0;
	*ret_used = nl + 1;
	if (nl == 0 || (nl == 1 && in.ptr[0] == '\r'))
		return end_msg(d, request, m);
	return RS_PARSE_SKIP;
}

static bool ends_with(struct str s, struct str end)
{
	return s.len >= end.len && memcmp(s.ptr + s.len - end.len, end.ptr, end.len) == 0;
}

/*
 * PH_CHUNK_LOST: a last chunk is known by what stands around it; `left` holds the last bytes, however
 * they were cut. Alone in a write, nothing of what stood before it need be known.
 */
static bool last_chunk(struct dir *d, struct str bytes)
{
	if (bytes.len > 8)
		bytes = str_from(bytes, bytes.len - 8);
	for (size_t i = 0; i < bytes.len; i++)
		d->left = d->left << 8 | (uint8_t)bytes.ptr[i];
	return (d->left & 0xffffffffffffff) == 0x0d0a300d0a0d0a || d->left == 0x300d0a0d0a;
}

static enum rs_parse http1_parse(void *state, enum rs_ev_dir dir, enum rs_ev_role role,
				 struct str in, size_t *ret_used, struct rs_msg *m)
{
	struct http1 *h = state;
	struct dir *d = &h->d[dir];
	bool request = is_request(dir, role);

	*ret_used = 0;
	switch ((enum phase)d->phase) {
	case PH_HEAD:
		return parse_head(h, d, request, in, ret_used, m);
	case PH_LENGTH:
		d->phase = PH_END;
		d->body = d->left;
		*ret_used = d->left;
		return RS_PARSE_SKIP;
	case PH_CHUNK:
	case PH_CHUNK_CRLF:
		return parse_chunk(d, in, ret_used);
	case PH_TRAILER:
		return parse_trailer(d, request, in, ret_used, m);
	case PH_CHUNK_LOST:
		if (last_chunk(d, in)) {
			*ret_used = in.len;
			return end_msg(d, request, m);
		}
		break;
	case PH_UNTIL_CLOSE:
	case PH_UNKNOWN:
		break;
	case PH_END:
		return end_msg(d, request, m);
	}
	if (!in.len)
		return RS_PARSE_NEED_MORE;
	d->body += in.len;
	*ret_used = in.len;
	return RS_PARSE_SKIP;
}

/* A head of which no more will be seen; last: nor sent. OK: enough of it is known to speak of. */
static enum rs_parse cut_head(struct http1 *h, struct dir *d, bool request, struct str in,
			      bool last, struct rs_msg *m)
{
	struct framing f = { 0 };
	size_t used;

	if (head(h, str_at(in, 0, RS_HEAD_MAX), request, &used, m, &f) == RS_PARSE_INVALID)
		return invalid(d);
	if (!m->nfields && ((request && last) || !cut_line(in, request, m)))
		return invalid(d);
	if (request)
		begin_request(h, d, m, &f, false);
	else
		begin_response(h, d, m, &f, false);
	return RS_PARSE_OK;
}

static enum rs_parse http1_gap(void *state, enum rs_ev_dir dir, enum rs_ev_role role, struct str in,
			       const struct rs_gap *gap, struct rs_msg *m)
{
	struct http1 *h = state;
	struct dir *d = &h->d[dir];
	bool request = is_request(dir, role);
	bool ended = false;

	if (d->gap_done) {
		d->gap_done = false;
		return RS_PARSE_SKIP;
	}
	switch ((enum phase)d->phase) {
	case PH_HEAD:
		if (gap->last && !in.len)
			return RS_PARSE_SKIP;
		if (!in.len || cut_head(h, d, request, in, gap->last, m) != RS_PARSE_OK)
			return invalid(d);
		d->aborted = gap->last;
		return RS_PARSE_OK;
	case PH_LENGTH:
		/* parse() has not been asked since the head: as if it had been. */
		d->phase = PH_END;
		d->aborted = gap->last;
		d->body = 0;
		return end_msg(d, request, m);
	case PH_CHUNK:
	case PH_CHUNK_CRLF:
	case PH_TRAILER:
		ended = d->phase == PH_TRAILER && ends_with(gap->tail, STR("\r\n\r\n"));
		d->phase = PH_CHUNK_LOST;
		d->scan = 0;
		d->unsized = !gap->last;
		__attribute__((fallthrough));
	case PH_CHUNK_LOST:
		d->left = 0;
		ended |= last_chunk(d, gap->tail);
		d->aborted = gap->last;
		break;
	case PH_UNTIL_CLOSE:
		d->body += gap->len;
		break;
	case PH_UNKNOWN:
		/* Only what directly follows the cut head can be its end. */
		ended = d->empty && ends_with(gap->tail, STR("\r\n\r\n"));
		d->empty = false;
		break;
	case PH_END:
		ended = true;
		break;
	}
	if (!ended && !gap->last)
		return RS_PARSE_SKIP;
	end_msg(d, request, m);
	d->gap_done = !gap->last;
	return RS_PARSE_OK;
}

/* The other direction has begun a message: what has no end of its own ends here. */
static enum rs_parse http1_flip(void *state, enum rs_ev_dir dir, enum rs_ev_role role,
				struct rs_msg *m)
{
	struct http1 *h = state;
	struct dir *d = &h->d[dir];

	switch ((enum phase)d->phase) {
	case PH_HEAD:
		return RS_PARSE_SKIP;
	case PH_LENGTH:
	case PH_CHUNK:
	case PH_CHUNK_CRLF:
	case PH_TRAILER:
	case PH_END:
		/* The request of an orphan was not seen: it may have been a HEAD. */
		if (!d->orphan)
			return RS_PARSE_SKIP;
		break;
	case PH_CHUNK_LOST:
	case PH_UNTIL_CLOSE:
	case PH_UNKNOWN:
		break;
	}
	d->cut = true;
	return end_msg(d, is_request(dir, role), m);
}

/* Methods by which a request is recognised in the middle of a stream. */
static const struct str methods[] = {
	{ "GET ", 4 },	   { "POST ", 5 },  { "PUT ", 4 },   { "HEAD ", 5 },  { "DELETE ", 7 },
	{ "OPTIONS ", 8 }, { "PATCH ", 6 }, { "TRACE ", 6 }, { "QUERY ", 6 }, { "CONNECT ", 8 },
};

/* Does a known method, or the beginning of one, stand at the front? *ret_len: its length, blank included. */
static enum rs_match known_method(struct str in, size_t *ret_len)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		size_t n = methods[i].len < in.len ? methods[i].len : in.len;

		if (in.len && memcmp(in.ptr, methods[i].ptr, n) == 0) {
			*ret_len = methods[i].len;
			return n == methods[i].len ? RS_MATCH_YES : RS_MATCH_MORE;
		}
	}
	return RS_MATCH_NO;
}

static enum rs_match probe_status(struct str in)
{
	struct rs_msg m;

	if (in.len < sizeof("HTTP/1.1 200") - 1)
		return line_prefix(in, false) ? RS_MATCH_MORE : RS_MATCH_NO;
	return status_line(str_at(in, 0, 12), &m) ? RS_MATCH_YES : RS_MATCH_NO;
}

static enum rs_match probe_request(struct str in)
{
	size_t nl = str_find(str_at(in, 0, LONG_LINE), '\n'), n = 0;
	struct rs_msg m;

	if (nl < in.len && nl < LONG_LINE)
		return request_line(chomp(str_at(in, 0, nl)), &m) ? RS_MATCH_YES : RS_MATCH_NO;
	/* A known method and a path are enough: a long target need not have been captured whole. */
	if (known_method(in, &n) == RS_MATCH_YES && n < in.len &&
	    (in.ptr[n] == '/' || in.ptr[n] == 'h'))
		return RS_MATCH_YES;
	return nl < LONG_LINE && line_prefix(in, true) ? RS_MATCH_MORE : RS_MATCH_NO;
}

static enum rs_match http1_probe(struct str in, enum rs_ev_dir dir, enum rs_ev_role *ret_role)
{
	enum rs_match request, response;
	size_t n = 0;

	while (n < in.len && (in.ptr[n] == '\r' || in.ptr[n] == '\n'))
		n++;
	in = str_from(in, n);
	if (!in.len)
		return RS_MATCH_MORE;
	response = probe_status(in);
	if (response == RS_MATCH_YES) {
		*ret_role = dir == RS_DIR_IN ? RS_ROLE_CLIENT : RS_ROLE_SERVER;
		return RS_MATCH_YES;
	}
	request = probe_request(in);
	if (request == RS_MATCH_YES) {
		*ret_role = dir == RS_DIR_IN ? RS_ROLE_SERVER : RS_ROLE_CLIENT;
		return RS_MATCH_YES;
	}
	return request > response ? request : response;
}

static size_t find_response(struct str in)
{
	size_t at = 0;

	for (;;) {
		at += str_find(str_from(in, at), 'H');
		if (at == in.len || probe_status(str_from(in, at)) != RS_MATCH_NO)
			return at;
		at++;
	}
}

static size_t find_request(struct str in, bool front)
{
	if (front && in.len && probe_request(in) != RS_MATCH_NO)
		return 0;
	for (size_t at = 0; at < in.len; at++) {
		size_t n;

		/* Not in the middle of a word. */
		if (at && tchar[(uint8_t)in.ptr[at - 1]])
			continue;
		if (known_method(str_from(in, at), &n) == RS_MATCH_NO)
			continue;
		/* Bodies speak of methods too: a target follows, and the line is a request's. */
		if (at + n < in.len && in.ptr[at] != 'C' && in.ptr[at + n] != '/' &&
		    in.ptr[at + n] != 'h' && in.ptr[at + n] != '*')
			continue;
		if (probe_request(str_from(in, at)) != RS_MATCH_NO)
			return at;
	}
	return in.len;
}

static size_t http1_resync(void *state, enum rs_ev_dir dir, enum rs_ev_role role, struct str in)
{
	struct http1 *h = state;
	struct dir *d = &h->d[dir];
	bool front = !d->bad;

	fresh(d);
	h->in_step = false;
	h->early = 0;
	if (is_request(dir, role))
		return find_request(in, front);
	keep_last_kind(h);
	return find_response(in);
}

static void http1_start(void *state, const struct rs_proto_env *env)
{
	struct http1 *h = state;

	h->redact = env->redact;
}

const struct rs_proto_ops rs_proto_http1 = {
	.name = "http1",
	.about = "HTTP/1.0 and 1.1; to websockets and other upgrades: until they begin",
	.pairing = RS_PAIR_FIFO,
	.state_size = sizeof(struct http1),
	.start = http1_start,
	.probe = http1_probe,
	.parse = http1_parse,
	.gap = http1_gap,
	.flip = http1_flip,
	.resync = http1_resync,
	.describe = rs_http_describe,
};
