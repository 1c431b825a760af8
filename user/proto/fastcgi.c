// SPDX-License-Identifier: Apache-2.0
/*
 * FastCGI 1.0, between a web server and PHP-FPM and the like: an HTTP request as CGI variables. Responses answer
 * in order: no web server in use multiplexes requests on a connection.
 */
#include "http.h"
#include "trace_headers.h"

/* FastCGI specification, section 8 */
enum record_type {
	BEGIN_REQUEST = 1,
	ABORT_REQUEST = 2,
	END_REQUEST = 3,
	PARAMS = 4,
	STDIN = 5,
	STDOUT = 6,
	STDERR = 7,
	TYPES_END = 12,
};

#define HEADER	     8
#define BEGIN_LEN    8	  /* content of BEGIN_REQUEST and END_REQUEST */
#define CGI_HEAD_MAX 8192 /* bytes of a response's head that are waited for */

struct side {
	uint64_t
		left; /* of the record at hand: content and padding still to come, of no interest */
	uint64_t body;
	bool unsized; /* some content went by unseen */
	bool head;    /* the message's head was seen */
};

struct fastcgi {
	struct side s[2]; /* asking, answering */
};

struct record {
	uint8_t type;
	uint32_t content, all; /* bytes of content; of the whole record */
};

static bool asking(enum rs_ev_dir dir, enum rs_ev_role role)
{
	return (dir == RS_DIR_IN) == (role == RS_ROLE_SERVER);
}

static uint8_t byte(struct str s, size_t i)
{
	return (uint8_t)s.ptr[i];
}

/* False: no record begins so. in has HEADER bytes. */
static bool record_header(struct str in, struct record *ret)
{
	ret->type = byte(in, 1);
	ret->content = (uint32_t)byte(in, 4) << 8 | byte(in, 5);
	ret->all = HEADER + ret->content + byte(in, 6);
	return byte(in, 0) == 1 && ret->type >= BEGIN_REQUEST && ret->type < TYPES_END;
}

static void add(struct rs_msg *m, uint16_t id, struct str value)
{
	if (value.len && m->nfields < RS_MSG_FIELDS)
		m->fields[m->nfields++] = (struct rs_field){ id, value };
}

/* HTTP_X_NAME is the header field x-name. */
static enum rs_field_id trace_header(struct str name)
{
	char text[32];

	name = str_from(name, 5);
	if (name.len > sizeof(text))
		return RS_F_NONE;
	for (size_t i = 0; i < name.len; i++)
		text[i] = name.ptr[i] == '_' ? '-' : str_lower_char(name.ptr[i]);
	return rs_trace_header(str_of(text, name.len));
}

/* SERVER_PROTOCOL: "HTTP/1.1", "HTTP/2.0" */
static struct str version(struct str protocol)
{
	struct str v = str_starts(protocol, STR("HTTP/")) ? str_from(protocol, 5) : STR_NONE;

	return v.len == 3 && v.ptr[0] >= '2' && v.ptr[2] == '0' ? str_at(v, 0, 1) : v;
}

static void param(struct rs_msg *m, struct str name, struct str value)
{
	static const struct {
		struct str name;
		uint16_t id;
	} known[] = {
		{ { "REQUEST_METHOD", 14 }, RS_F_HTTP_METHOD },
		{ { "REQUEST_URI", 11 }, RS_F_HTTP_TARGET },
		{ { "REQUEST_SCHEME", 14 }, RS_F_HTTP_SCHEME },
		{ { "HTTP_HOST", 9 }, RS_F_HTTP_HOST },
		{ { "HTTP_USER_AGENT", 15 }, RS_F_HTTP_USER_AGENT },
		{ { "HTTP_FORWARDED", 14 }, RS_F_HTTP_FORWARDED },
		{ { "HTTP_X_FORWARDED_FOR", 20 }, RS_F_HTTP_X_FORWARDED_FOR },
		{ { "HTTP_X_FORWARDED_HOST", 21 }, RS_F_HTTP_X_FORWARDED_HOST },
		{ { "HTTP_X_FORWARDED_PROTO", 22 }, RS_F_HTTP_X_FORWARDED_PROTO },
	};
	enum rs_field_id id;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (str_eq(known[i].name, name)) {
			add(m, known[i].id, value);
			return;
		}
	}
	if (str_eq(name, STR("SERVER_PROTOCOL"))) {
		add(m, RS_F_HTTP_VERSION, version(value));
	} else if (str_starts(name, STR("HTTP_"))) {
		id = trace_header(name);
		if (id != RS_F_NONE)
			add(m, (uint16_t)id, value);
	}
}

/* A length of one byte, or of four with the highest bit set. False: not all of it is here. */
static bool length(struct str *s, size_t *ret)
{
	size_t n = s->len && byte(*s, 0) & 0x80 ? 4 : 1;

	if (s->len < n)
		return false;
	*ret = byte(*s, 0) & 0x7f;
	for (size_t i = 1; i < n; i++)
		*ret = *ret << 8 | byte(*s, i);
	*s = str_from(*s, n);
	return true;
}

/* Pairs of name and value. False: the last one is not whole. */
static bool params(struct rs_msg *m, struct str s)
{
	while (s.len) {
		size_t name, value;

		if (!length(&s, &name) || !length(&s, &value) || name > s.len ||
		    value > s.len - name)
			return false;
		param(m, str_at(s, 0, name), str_at(s, name, value));
		s = str_from(s, name + value);
	}
	return true;
}

/* BEGIN_REQUEST and all of PARAMS. With `cut`, as far as it is here: *ret_left is then what its record lacks. */
static enum rs_parse request(struct side *s, struct str in, bool cut, size_t *ret_used,
			     struct rs_msg *m, uint64_t *ret_left)
{
	struct record r;
	size_t at;

	*m = (struct rs_msg){ .type = RS_MSG_REQUEST };
	record_header(in, &r);
	if (r.content != BEGIN_LEN)
		return RS_PARSE_INVALID;
	for (at = r.all; at + HEADER <= in.len; at += r.all) {
		struct str rest = str_from(in, at);

		if (!record_header(rest, &r) || r.type != PARAMS)
			return RS_PARSE_INVALID;
		if (rest.len < r.all) {
			params(m, str_at(rest, HEADER, r.content));
			*ret_left = r.all - rest.len;
			break;
		}
		if (!r.content) {
			*s = (struct side){ .head = true };
			*ret_used = at + r.all;
			return RS_PARSE_OK;
		}
		/* A pair that goes on in the next record, which no server makes, is left out. */
		if (!params(m, str_at(rest, HEADER, r.content)))
			m->flags |= RS_MSGF_CUT;
	}
	if (!cut || !m->nfields)
		return cut ? RS_PARSE_INVALID : RS_PARSE_NEED_MORE;
	m->flags |= RS_MSGF_CUT;
	*s = (struct side){ .head = true };
	return RS_PARSE_OK;
}

static enum rs_parse end(struct side *s, enum rs_msg_type type, uint8_t flags, struct rs_msg *m)
{
	*m = (struct rs_msg){ .type = (uint8_t)type,
			      .flags = flags,
			      .body_size = s->unsized ? RS_BODY_UNKNOWN : s->body };
	*s = (struct side){ .left = s->left };
	return RS_PARSE_OK;
}

static enum rs_parse parse_asking(struct side *s, struct str in, const struct record *r,
				  size_t *ret_used, struct rs_msg *m)
{
	uint64_t left;

	*ret_used = r->all;
	switch (r->type) {
	case BEGIN_REQUEST:
		return request(s, in, false, ret_used, m, &left);
	case STDIN:
		if (r->content || !s->head) {
			s->body += r->content;
			return RS_PARSE_SKIP;
		}
		*ret_used = HEADER;
		s->left = r->all - HEADER;
		return end(s, RS_MSG_REQUEST_END, 0, m);
	case STDOUT:
	case STDERR:
	case END_REQUEST:
		return RS_PARSE_INVALID;
	}
	return RS_PARSE_SKIP;
}

/* "Status: 404 Not Found", or 200 (RFC 3875 6.3.3). */
static void cgi_head(struct rs_msg *m, struct str head)
{
	struct str line, name, value;

	while (head.len) {
		head = str_cut(head, '\n', &line);
		value = str_trim(str_cut(line, ':', &name));
		if (str_ieq(name, STR("status")) && value.len >= 3) {
			add(m, RS_F_HTTP_STATUS, str_at(value, 0, 3));
			return;
		}
	}
	if (!(m->flags & RS_MSGF_CUT))
		add(m, RS_F_HTTP_STATUS, STR("200"));
}

/* Bytes of a CGI head, its blank line included; 0: it does not end here. */
static size_t head_end(struct str s)
{
	for (size_t i = 0; i + 1 < s.len; i++) {
		if (s.ptr[i] != '\n')
			continue;
		if (s.ptr[i + 1] == '\n')
			return i + 2;
		if (i + 2 < s.len && s.ptr[i + 1] == '\r' && s.ptr[i + 2] == '\n')
			return i + 3;
	}
	return 0;
}

/* The first STDOUT. `cut`: the record's rest is missing. */
static enum rs_parse response(struct side *s, struct str in, const struct record *r, bool cut,
			      size_t *ret_used, struct rs_msg *m)
{
	size_t look = r->content < CGI_HEAD_MAX ? r->content : CGI_HEAD_MAX;
	struct str content = str_at(in, HEADER, look);
	size_t n = head_end(content);

	if (!n && !cut && content.len < look)
		return RS_PARSE_NEED_MORE;
	*m = (struct rs_msg){ .type = RS_MSG_RESPONSE, .flags = n ? 0 : RS_MSGF_CUT };
	cgi_head(m, n ? str_at(content, 0, n) : content);
	if (!n)
		n = content.len;
	s->head = true;
	s->body = r->content - n;
	*ret_used = HEADER + n;
	s->left = r->all - *ret_used;
	return RS_PARSE_OK;
}

static enum rs_parse parse_answering(struct side *s, struct str in, const struct record *r,
				     size_t *ret_used, struct rs_msg *m)
{
	*ret_used = r->all;
	switch (r->type) {
	case STDOUT:
		if (r->content && !s->head)
			return response(s, in, r, false, ret_used, m);
		s->body += r->content;
		return RS_PARSE_SKIP;
	case END_REQUEST:
		*ret_used = HEADER;
		s->left = r->all - HEADER;
		return end(s, RS_MSG_RESPONSE_END, s->head ? 0 : RS_MSGF_ABORTED, m);
	case BEGIN_REQUEST:
	case PARAMS:
	case STDIN:
		return RS_PARSE_INVALID;
	}
	return RS_PARSE_SKIP;
}

static enum rs_parse fastcgi_parse(void *state, enum rs_ev_dir dir, enum rs_ev_role role,
				   struct str in, size_t *ret_used, struct rs_msg *m)
{
	bool ask = asking(dir, role);
	struct side *s = &((struct fastcgi *)state)->s[!ask];
	struct record r;

	if (s->left) {
		*ret_used = (size_t)s->left;
		s->left = 0;
		return RS_PARSE_SKIP;
	}
	if (in.len < HEADER)
		return RS_PARSE_NEED_MORE;
	if (!record_header(in, &r))
		return RS_PARSE_INVALID;
	return ask ? parse_asking(s, in, &r, ret_used, m) : parse_answering(s, in, &r, ret_used, m);
}

/* Of a message's head what is here is taken; then the gap is passed, if it ends inside the record at hand. */
static enum rs_parse fastcgi_gap(void *state, enum rs_ev_dir dir, enum rs_ev_role role,
				 struct str in, const struct rs_gap *gap, struct rs_msg *m)
{
	bool ask = asking(dir, role);
	struct side *s = &((struct fastcgi *)state)->s[!ask];
	struct record r;
	uint64_t left = 0;
	size_t used;

	if (gap->last)
		return RS_PARSE_SKIP;
	if (!in.len) {
		if (s->left < gap->len)
			return RS_PARSE_INVALID;
		s->left -= gap->len;
		return RS_PARSE_SKIP;
	}
	if (in.len < HEADER || !record_header(in, &r))
		return RS_PARSE_INVALID;
	if (ask && r.type == BEGIN_REQUEST) {
		if (request(s, in, true, &used, m, &left) != RS_PARSE_OK)
			return RS_PARSE_INVALID;
		s->left = left;
		return RS_PARSE_OK;
	}
	if (!ask && r.type == STDOUT && r.content && !s->head && in.len < r.all)
		return response(s, in, &r, true, &used, m);
	return RS_PARSE_INVALID;
}

static size_t fastcgi_resync(void *state, enum rs_ev_dir dir, enum rs_ev_role role, struct str in)
{
	bool ask = asking(dir, role);
	struct side *s = &((struct fastcgi *)state)->s[!ask];
	struct record r;
	size_t i;

	*s = (struct side){ .unsized = true, .head = s->head && !ask };
	for (i = 0; i < in.len; i++) {
		struct str at = str_from(in, i);

		if (byte(at, 0) != 1 || (at.len >= HEADER && !record_header(at, &r)))
			continue;
		if (at.len < HEADER)
			break;
		if (ask ? r.type == BEGIN_REQUEST && r.content == BEGIN_LEN
			: r.type == END_REQUEST && r.content == BEGIN_LEN)
			break;
	}
	return i;
}

static enum rs_match fastcgi_probe(struct str in, enum rs_ev_dir dir, enum rs_ev_role *ret_role)
{
	/* BEGIN_REQUEST of request 1 (others: any), 8 bytes: a role from 1 to 3, a flag, five zeros */
	static const uint8_t value[13] = { 1, 1, 0, 0, 0, BEGIN_LEN, 0, 0, 0, 0, 0, 0, 0 };
	static const uint8_t mask[13] = { 0xff, 0xff, 0,    0,	  0xff, 0xff, 0,
					  0,	0xff, 0xfc, 0xfe, 0xff, 0xff };

	for (size_t i = 0; i < in.len && i < sizeof(value); i++) {
		if ((byte(in, i) & mask[i]) != value[i])
			return RS_MATCH_NO;
	}
	*ret_role = dir == RS_DIR_IN ? RS_ROLE_SERVER : RS_ROLE_CLIENT;
	return in.len >= sizeof(value) ? RS_MATCH_YES : RS_MATCH_MORE;
}

static void fastcgi_describe(const struct rs_exchange *x, struct rs_build *b)
{
	rs_http_describe(x, b);
	rs_build_lit(b, RS_K_NETWORK_PROTOCOL_NAME, RS_SPAN_STR("fastcgi"));
}

const struct rs_proto_ops rs_proto_fastcgi = {
	.name = "fastcgi",
	.about = "FastCGI, as web servers speak it to PHP-FPM",
	.pairing = RS_PAIR_FIFO,
	.state_size = sizeof(struct fastcgi),
	.probe = fastcgi_probe,
	.parse = fastcgi_parse,
	.gap = fastcgi_gap,
	.resync = fastcgi_resync,
	.describe = fastcgi_describe,
};
