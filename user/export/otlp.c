// SPDX-License-Identifier: Apache-2.0
#include "otlp.h"

#include "base/digits.h"
#include "base/json.h"
#include "export/jsoncut.h"

/* -- endpoint, headers -- */

int rs_otlp_open(struct rs_exporter *e, const char *scheme, char *err, size_t size)
{
	const struct rs_config *c = e->cfg;

	if (e->asked || c->endpoint)
		return rs_exporter_endpoint(e, e->asked ? e->asked : c->endpoint, RS_PATH_AUTO,
					    scheme, err, size);
	if (c->otlp_traces_endpoint)
		return rs_exporter_endpoint(e, c->otlp_traces_endpoint,
					    e->ops->grpc ? RS_PATH_AUTO : RS_PATH_EXACT, scheme,
					    err, size);
	if (c->otlp_endpoint)
		return rs_exporter_endpoint(e, c->otlp_endpoint, RS_PATH_APPEND, scheme, err, size);
	return rs_exporter_endpoint(e, e->ops->endpoint, RS_PATH_AUTO, scheme, err, size);
}

/* "Bearer KEY": the key alone may turn up. */
static void hide(struct rs_exporter *e, const char *value)
{
	const char *space = strchr(value, ' ');

	rs_exporter_secret(e, rs_exporter_str(e, str_c(value)));
	if (space)
		rs_exporter_secret(e, rs_exporter_str(e, str_c(space + 1)));
}

/* Can it be sent: a name without white space, no control characters in either? */
static bool header_ok(const char *key, const char *value)
{
	for (const char *p = key; *p; p++) {
		if ((unsigned char)*p <= ' ' || *p == ':' || *p == 0x7f)
			return false;
	}
	for (const char *p = value; *p; p++) {
		if (((unsigned char)*p < ' ' && *p != '\t') || *p == 0x7f)
			return false;
	}
	return *key;
}

void rs_otlp_headers(struct rs_send *s, bool lower)
{
	struct str rest = str_c(s->e->cfg->otlp_headers), one, name;
	bool first = !s->e->begun;

	for (int nth = 1; rest.len; nth++) {
		char key[256], value[4096];

		rest = str_cut(rest, ',', &one);
		one = str_cut(one, '=', &name);
		name = str_trim(name);
		if (!name.len)
			continue;
		key[rs_percent_decode(name, key, sizeof(key) - 1)] = 0;
		value[rs_percent_decode(str_trim(one), value, sizeof(value) - 1)] = 0;
		for (char *p = key; lower && *p; p++)
			*p = str_lower_char(*p);
		if (first)
			hide(s->e, value);
		if (!header_ok(key, value)) {
			/* Told once, and by number: what is no name may be a key. */
			if (first)
				rs_exporter_error(
					s->e,
					"OTLP header %d cannot be sent: its name has spaces, "
					"or it has control characters",
					nth);
			continue;
		}
		rs_http_header(&s->req, "%s: %s", key, value);
	}
}

/* -- protobuf, reading -- */

struct pb {
	const uint8_t *p, *end;
	bool bad;
};

struct pb_field {
	uint32_t no, wire;
	uint64_t varint;
	struct str bytes;	  /* wire type 2 */
	const uint8_t *from, *to; /* tag included */
};

static uint64_t pb_varint(struct pb *b)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64 && b->p < b->end; shift += 7) {
		uint8_t c = *b->p++;

		v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return v;
	}
	b->bad = true;
	return 0;
}

static bool pb_next(struct pb *b, struct pb_field *f)
{
	uint64_t tag, n;

	if (b->bad || b->p >= b->end)
		return false;
	f->from = b->p;
	tag = pb_varint(b);
	f->no = (uint32_t)(tag >> 3);
	f->wire = tag & 7;
	switch (f->wire) {
	case 0:
		f->varint = pb_varint(b);
		break;
	case 2:
		n = pb_varint(b);
		if (b->bad || n > (size_t)(b->end - b->p)) {
			b->bad = true;
			return false;
		}
		f->bytes = str_of((const char *)b->p, n);
		b->p += n;
		break;
	case 1:
	case 5:
		n = f->wire == 1 ? 8 : 4;
		if (n > (size_t)(b->end - b->p))
			b->bad = true;
		else
			b->p += n;
		break;
	default:
		b->bad = true;
	}
	f->to = b->p;
	return !b->bad;
}

static struct pb pb_of(struct str s)
{
	const uint8_t *p = (const uint8_t *)s.ptr;

	return (struct pb){ p, p + s.len, false };
}

bool rs_otlp_partial_pb(struct str body, uint64_t *ret_rejected, struct str *ret_message)
{
	struct pb b = pb_of(body);
	struct pb_field f;

	*ret_rejected = 0;
	*ret_message = STR_NONE;
	while (pb_next(&b, &f)) {
		struct pb in = pb_of(f.bytes);

		if (f.no != 1 || f.wire != 2)
			continue;
		while (pb_next(&in, &f)) {
			if (f.no == 1 && f.wire == 0 && f.varint <= INT64_MAX)
				*ret_rejected = f.varint;
			else if (f.no == 2 && f.wire == 2)
				*ret_message = f.bytes;
		}
		if (in.bad)
			return false;
	}
	return !b.bad;
}

static uint64_t duration_ns(struct str bytes)
{
	struct pb b = pb_of(bytes);
	struct pb_field f;
	uint64_t s = 0, ns = 0;

	while (pb_next(&b, &f)) {
		if (f.wire == 0 && f.no == 1)
			s = f.varint;
		else if (f.wire == 0 && f.no == 2)
			ns = f.varint;
	}
	/* Negative, or more than a year: no time to wait. */
	return s > 31536000 || ns >= 1000000000 ? RS_HTTP_NO_WAIT : s * 1000000000 + ns;
}

static uint64_t retry_info(struct str any)
{
	struct pb b = pb_of(any);
	struct str type = STR_NONE, value = STR_NONE;
	struct pb_field f;

	while (pb_next(&b, &f)) {
		if (f.wire == 2 && f.no == 1)
			type = f.bytes;
		else if (f.wire == 2 && f.no == 2)
			value = f.bytes;
	}
	if (!str_eq(type, STR("type.googleapis.com/google.rpc.RetryInfo")))
		return RS_HTTP_NO_WAIT;
	b = pb_of(value);
	while (pb_next(&b, &f)) {
		if (f.wire == 2 && f.no == 1)
			return duration_ns(f.bytes);
	}
	return 0; /* there, but without a time */
}

bool rs_otlp_status_pb(struct str body, struct str *ret_message, uint64_t *ret_delay_ns)
{
	struct pb b = pb_of(body);
	struct pb_field f;

	*ret_message = STR_NONE;
	*ret_delay_ns = RS_HTTP_NO_WAIT;
	while (pb_next(&b, &f)) {
		if (f.no == 2 && f.wire == 2)
			*ret_message = f.bytes;
		else if (f.no == 3 && f.wire == 2 && *ret_delay_ns == RS_HTTP_NO_WAIT)
			*ret_delay_ns = retry_info(f.bytes);
	}
	return !b.bad;
}

bool rs_otlp_partial_json(struct str body, struct rs_arena *a, uint64_t *ret_rejected,
			  struct str *ret_message)
{
	struct rs_json j;
	struct str key;

	*ret_rejected = 0;
	*ret_message = STR_NONE;
	if (!body.len)
		return true;
	rs_json_init(&j, body, a);
	rs_json_object(&j);
	while (rs_json_key(&j, &key)) {
		if (!str_eq(key, STR("partialSuccess")) || rs_json_peek(&j) != RS_JSON_OBJECT) {
			rs_json_skip(&j);
			continue;
		}
		rs_json_object(&j);
		while (rs_json_key(&j, &key)) {
			if (str_eq(key, STR("rejectedSpans")))
				rs_json_u64(&j, ret_rejected);
			else if (str_eq(key, STR("errorMessage")))
				rs_json_str(&j, ret_message);
			else
				rs_json_skip(&j);
		}
	}
	return !j.err;
}

/* -- splitting -- */

/* Which of a request's spans a part takes: [from, to). */
struct cut {
	uint32_t from, to, at;
	char *out; /* NULL: only measure */
	size_t len;
};

static void put(struct cut *c, const void *from, size_t n)
{
	if (c->out)
		memcpy(c->out + c->len, from, n);
	c->len += n;
}

static void put_varint(struct cut *c, uint64_t v)
{
	uint8_t b[10];
	size_t n = 0;

	do {
		b[n++] = (uint8_t)(v & 0x7f) | (v > 0x7f ? 0x80 : 0);
		v >>= 7;
	} while (v);
	put(c, b, n);
}

/* level 0: the request, 1: ResourceSpans, 2: ScopeSpans. The field that repeats downwards. */
static bool cut_pb(struct cut *c, struct str msg, int level)
{
	static const uint32_t down[] = { 1, 2, 2 };
	struct pb b = pb_of(msg);
	struct pb_field f;

	while (pb_next(&b, &f)) {
		bool inner = f.no == down[level] && f.wire == 2;
		struct cut in = *c;

		if (!inner) {
			put(c, f.from, (size_t)(f.to - f.from));
		} else if (level == 2) {
			if (c->at >= c->from && c->at < c->to)
				put(c, f.from, (size_t)(f.to - f.from));
			c->at++;
		} else {
			/* Its length stands before it: measure, then write. A part without spans is left out. */
			in.out = NULL;
			in.len = 0;
			if (!cut_pb(&in, f.bytes, level + 1))
				return false;
			if (in.at > c->from && c->at < c->to) {
				put_varint(c, (uint64_t)f.no << 3 | 2);
				put_varint(c, in.len);
				if (!cut_pb(c, f.bytes, level + 1))
					return false;
			} else {
				c->at = in.at;
			}
		}
	}
	return !b.bad;
}

/* The message in one piece. */
static struct str whole(const struct rs_item *it)
{
	return it->data.niov == 1 ? str_of(it->data.iov[0].iov_base, it->data.iov[0].iov_len)
				  : STR_NONE;
}

typedef bool (*cut_fn)(struct cut *c, struct str msg);

static bool cut_pb_all(struct cut *c, struct str msg)
{
	return cut_pb(c, msg, 0);
}

/* A part is shorter than the whole, but for lengths that need more bytes: never. */
static bool make_half(struct rs_exporter *e, struct str msg, cut_fn fn, uint32_t from, uint32_t to,
		      struct rs_payload *ret)
{
	struct cut c = { .from = from, .to = to };
	struct rs_buf *b;

	if (!fn(&c, msg) || rs_bufpool_get(&e->pool, c.len, &b))
		return false;
	c = (struct cut){ .from = from, .to = to, .out = b->data };
	fn(&c, msg);
	*ret = (struct rs_payload){ .pool = &e->pool, .niov = 1, .len = c.len };
	ret->buf[0] = b;
	ret->iov[0] = (struct iovec){ b->data, c.len };
	return true;
}

static bool split(struct rs_exporter *e, const struct rs_item *it, cut_fn fn,
		  struct rs_payload half[2], uint32_t spans[2])
{
	struct str msg = whole(it);

	spans[0] = it->spans / 2;
	spans[1] = it->spans - spans[0];
	if (!msg.len || !make_half(e, msg, fn, 0, spans[0], &half[0]))
		return false;
	if (make_half(e, msg, fn, spans[0], it->spans, &half[1]))
		return true;
	rs_payload_release(&half[0]);
	return false;
}

bool rs_otlp_split_pb(struct rs_exporter *e, const struct rs_item *it, struct rs_payload half[2],
		      uint32_t spans[2])
{
	return split(e, it, cut_pb_all, half, spans);
}

/* Copies all but the spans of the other part: the elements of arrays called "spans". */
static bool cut_json(struct cut *c, struct str s)
{
	const struct str key = STR("\"spans\":[");
	size_t i = 0, from = 0;

	while (i < s.len) {
		bool first = true;

		if (s.ptr[i] != '"') {
			i++;
			continue;
		}
		/* A key cannot be mistaken for a text: in one, quotes are escaped. */
		if (!str_starts(str_from(s, i), key)) {
			i = rs_jsoncut_string(s, i);
			continue;
		}
		i += key.len;
		put(c, s.ptr + from, i - from);
		while (i < s.len && s.ptr[i] != ']') {
			size_t end = rs_jsoncut_value(s, i);

			if (c->at >= c->from && c->at < c->to) {
				if (!first)
					put(c, ",", 1);
				put(c, s.ptr + i, end - i);
				first = false;
			}
			c->at++;
			i = end + (end < s.len && s.ptr[end] == ',');
		}
		from = i;
	}
	put(c, s.ptr + from, s.len - from);
	return c->at >= c->to;
}

bool rs_otlp_split_json(struct rs_exporter *e, const struct rs_item *it, struct rs_payload half[2],
			uint32_t spans[2])
{
	return split(e, it, cut_json, half, spans);
}
