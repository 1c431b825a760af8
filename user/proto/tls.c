// SPDX-License-Identifier: Apache-2.0
#include "tls.h"

#include "trace/build.h"

/* Record types, handshake types, extensions (RFC 8446, 5.1, 4, 4.2) */
enum {
	REC_CCS = 20,
	REC_ALERT = 21,
	REC_HANDSHAKE = 22,
	REC_DATA = 23,
	CLIENT_HELLO = 1,
	SERVER_HELLO = 2,
	EXT_SERVER_NAME = 0,
	EXT_ALPN = 16,
	EXT_PRE_SHARED_KEY = 41,
	EXT_SUPPORTED_VERSIONS = 43,
};

#define RECORD_MAX (16384 + 2048) /* RFC 5246, 6.2.3 */

/* RFC 8446, 4.1.3: a ServerHello with this random asks for another ClientHello. */
static const uint8_t retry[32] = { 0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
				   0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
				   0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c };

bool rs_tls_begins(struct str b, bool middle)
{
	const uint8_t *p = (const uint8_t *)b.ptr;

	if (b.len < 5 || p[1] != 3 || p[2] > 4 || (p[3] << 8 | p[4]) > RECORD_MAX)
		return false;
	if (middle)
		return p[0] >= REC_CCS && p[0] <= REC_DATA;
	/* A hello, in the first record. */
	return p[0] == REC_HANDSHAKE && (b.len < 6 || p[5] == CLIENT_HELLO || p[5] == SERVER_HELLO);
}

/* -- a hello's fields: a cursor that stays in step with what is there -- */

struct in {
	const uint8_t *p;
	size_t left;
	bool bad; /* there was less than was asked for */
};

static uint32_t number(struct in *i, unsigned bytes)
{
	uint32_t v = 0;

	if (i->bad || i->left < bytes) {
		i->bad = true;
		return 0;
	}
	for (unsigned k = 0; k < bytes; k++)
		v = v << 8 | i->p[k];
	i->p += bytes;
	i->left -= bytes;
	return v;
}

static struct in take(struct in *i, size_t n)
{
	struct in part = { i->p, n, false };

	if (i->bad || i->left < n) {
		i->bad = true;
		return (struct in){ .bad = true };
	}
	i->p += n;
	i->left -= n;
	return part;
}

/* A vector with its length before it. */
static struct in vector(struct in *i, unsigned bytes)
{
	return take(i, number(i, bytes));
}

/* A name as DNS has it: anything else is not kept. */
static bool is_name(const struct in *n)
{
	for (size_t i = 0; i < n->left; i++) {
		uint8_t c = n->p[i];

		if (!((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && !(c >= '0' && c <= '9') &&
		    c != '.' && c != '-' && c != '_')
			return false;
	}
	return n->left != 0;
}

static void server_name(struct rs_tls_facts *f, struct in ext)
{
	struct in list = vector(&ext, 2);

	while (list.left && !list.bad) {
		uint32_t type = number(&list, 1);
		struct in name = vector(&list, 2);

		if (type || name.bad || name.left > RS_TLS_NAME_MAX || !is_name(&name))
			continue;
		memcpy(f->server_name, name.p, name.left);
		f->server_name[name.left] = 0;
		return;
	}
}

/* One name alone is what will be agreed on, if anything. */
static void alpn(struct rs_tls_facts *f, struct in ext, bool server)
{
	struct in list = vector(&ext, 2);
	unsigned n = 0;

	while (list.left && !list.bad) {
		struct in name = vector(&list, 1);

		if (name.bad)
			return;
		f->offers_h2 |= !server && name.left == 2 && memcmp(name.p, "h2", 2) == 0;
		n++;
		if (name.left && name.left <= RS_TLS_ALPN_MAX && server) {
			bool text = true;

			for (size_t i = 0; i < name.left; i++)
				text &= name.p[i] > ' ' && name.p[i] < 0x7f;
			if (!text)
				return;
			memcpy(f->alpn, name.p, name.left);
			f->alpn[name.left] = 0;
		}
	}
}

static void client_hello(struct rs_tls_handshake *h, struct rs_tls_facts *f, struct in i)
{
	struct in id, exts;

	number(&i, 2);
	take(&i, 32);
	id = vector(&i, 1);
	if (!id.bad && id.left <= sizeof(h->session)) {
		h->nsession = (uint8_t)id.left;
		memcpy(h->session, id.p, id.left);
	}
	vector(&i, 2); /* cipher suites */
	vector(&i, 1); /* compression */
	exts = vector(&i, 2);
	while (exts.left && !exts.bad) {
		uint32_t type = number(&exts, 2);
		struct in ext = vector(&exts, 2);

		if (ext.bad)
			return;
		if (type == EXT_SERVER_NAME)
			server_name(f, ext);
		else if (type == EXT_ALPN)
			alpn(f, ext, false);
	}
}

/* False: it only asks the client to say hello again. */
static bool server_hello(const struct rs_tls_handshake *h, struct rs_tls_facts *f, struct in i)
{
	uint32_t version = number(&i, 2), cipher;
	struct in random = take(&i, 32), id = vector(&i, 1), exts;
	bool psk = false;

	cipher = number(&i, 2);
	number(&i, 1);
	if (i.bad || random.bad)
		return true;
	if (memcmp(random.p, retry, sizeof(retry)) == 0)
		return false;
	exts = i.left ? vector(&i, 2) : i;
	while (exts.left && !exts.bad) {
		uint32_t type = number(&exts, 2);
		struct in ext = vector(&exts, 2);

		if (ext.bad)
			break;
		if (type == EXT_SUPPORTED_VERSIONS && ext.left == 2)
			version = number(&ext, 2);
		else if (type == EXT_PRE_SHARED_KEY)
			psk = true;
		else if (type == EXT_ALPN)
			alpn(f, ext, true);
	}
	f->version = (uint16_t)version;
	f->cipher = (uint16_t)cipher;
	/* To 1.2 a server that takes up a session, by id or ticket, sends the client's id back (RFC 5077, 3.4). */
	f->resumed = version >= 0x0304 ? psk
				       : id.left && id.left == h->nsession &&
						 memcmp(id.p, h->session, id.left) == 0;
	f->hello = true;
	return true;
}

/* -- records -- */

/* Bytes of a hello of which `have` are in buf, as far as they say: its header's four, then all of it. */
static size_t hello_size(const uint8_t *buf, size_t have)
{
	if (have < 4)
		return 4;
	return 4 + (size_t)((uint32_t)buf[1] << 16 | (uint32_t)buf[2] << 8 | buf[3]);
}

/* n more bytes of a handshake record. */
static void hello_bytes(struct rs_tls_handshake *h, struct rs_tls_facts *f, enum rs_ev_dir dir,
			const uint8_t *p, size_t n)
{
	struct rs_tls_stream *s = &h->s[dir];
	uint8_t *buf;
	size_t max, need;

	while (n && !s->parsed && !s->ciphers) {
		size_t part;

		if (!h->client_known && !s->have) {
			h->client = (uint8_t)(p[0] == SERVER_HELLO ? !dir : dir);
			h->client_known = true;
		}
		buf = dir == h->client ? h->client_hello : h->server_hello;
		max = dir == h->client ? RS_TLS_CLIENT_HELLO : RS_TLS_SERVER_HELLO;
		need = hello_size(buf, s->have);
		if (need > max)
			need = max;
		part = need - s->have < n ? need - s->have : n;
		memcpy(buf + s->have, p, part);
		s->have += (uint32_t)part;
		p += part;
		n -= part;
		if (s->have < hello_size(buf, s->have) && s->have < max)
			continue;
		s->parsed = true;
		if (dir == h->client && buf[0] == CLIENT_HELLO) {
			client_hello(h, f, (struct in){ buf + 4, s->have - 4, false });
		} else if (dir != h->client && buf[0] == SERVER_HELLO &&
			   !server_hello(h, f, (struct in){ buf + 4, s->have - 4, false })) {
			/* Asked to try again: both hellos come once more. */
			s->parsed = h->s[!dir].parsed = false;
			s->have = h->s[!dir].have = 0;
		}
	}
}

/* A record has ended, or (application data) begun. */
static void progress(struct rs_tls_handshake *h, struct rs_tls_facts *f, enum rs_ev_dir dir,
		     uint64_t ts_ns)
{
	struct rs_tls_stream *s = &h->s[dir], *other = &h->s[!dir];

	if (f->done_ns || !f->hello)
		return;
	if (f->version >= 0x0304) {
		/* What the client encrypts first is its Finished. */
		if (s->type == REC_DATA && h->client_known && dir == h->client)
			f->done_ns = ts_ns;
		return;
	}
	if (s->type == REC_CCS)
		s->ciphers = true;
	else if (s->ciphers && (s->type == REC_HANDSHAKE || s->type == REC_DATA))
		s->finished = true;
	if (s->finished && other->finished)
		f->done_ns = ts_ns;
}

static bool new_record(struct rs_tls_stream *s)
{
	s->type = s->head[0];
	s->left = (uint32_t)s->head[3] << 8 | s->head[4];
	s->nhead = 0;
	return s->type >= REC_CCS && s->type <= REC_DATA && s->head[1] == 3 && s->head[2] <= 4 &&
	       s->left <= RECORD_MAX;
}

enum rs_tls_progress rs_tls_feed(struct rs_tls_handshake *h, struct rs_tls_facts *f,
				 enum rs_ev_dir dir, uint64_t off, struct str data, uint64_t len,
				 uint64_t ts_ns)
{
	struct rs_tls_stream *s = &h->s[dir];
	const uint8_t *p = (const uint8_t *)data.ptr;
	size_t n = data.len;

	if (s->blind)
		return RS_TLS_MORE;
	if (off != s->next) /* a record of ours was lost; or it is seen twice */
		return RS_TLS_LOST;
	s->next = off + len;
	len -= n;
	while (n) {
		size_t part;

		if (f->done_ns)
			return RS_TLS_DONE;

		if (!s->left) {
			s->head[s->nhead++] = *p++;
			n--;
			if (s->nhead < sizeof(s->head))
				continue;
			if (!new_record(s))
				return RS_TLS_LOST;
			if (s->type == REC_DATA || !s->left)
				progress(h, f, dir, ts_ns);
			continue;
		}
		part = n < s->left ? n : s->left;
		if (s->type == REC_HANDSHAKE)
			hello_bytes(h, f, dir, p, part);
		p += part;
		n -= part;
		s->left -= (uint32_t)part;
		if (!s->left && s->type != REC_DATA)
			progress(h, f, dir, ts_ns);
	}
	if (f->done_ns)
		return RS_TLS_DONE;
	/* What was not copied: of this record, else this direction is not followed any further. */
	if (len > s->left || (len && s->nhead)) {
		if (!s->parsed)
			return RS_TLS_LOST;
		s->blind = true;
		return RS_TLS_MORE;
	}
	s->left -= (uint32_t)len;
	if (len && !s->left && s->type != REC_DATA)
		progress(h, f, dir, ts_ns);
	return f->done_ns ? RS_TLS_DONE : RS_TLS_MORE;
}

/* -- names -- */

struct str rs_tls_version_name(uint16_t version)
{
	switch (version) {
	case 0x0301:
		return STR("1.0");
	case 0x0302:
		return STR("1.1");
	case 0x0303:
		return STR("1.2");
	case 0x0304:
		return STR("1.3");
	}
	return STR_NONE;
}

struct str rs_tls_cipher_name(uint16_t cipher)
{
	switch (cipher) {
#define RS_TLS_CIPHER(number_, name)                                                               \
	case number_:                                                                              \
		return STR(name);
#include "tls_ciphers.def"
#undef RS_TLS_CIPHER
	}
	return STR_NONE;
}

void rs_tls_describe(const struct rs_tls_facts *f, struct rs_build *b)
{
	struct str version = rs_tls_version_name(f->version),
		   cipher = rs_tls_cipher_name(f->cipher);

	if (f->server_name[0])
		rs_build_str(b, RS_K_TLS_CLIENT_SERVER_NAME, str_c(f->server_name));
	if (!f->hello)
		return;
	rs_build_lit(b, RS_K_TLS_PROTOCOL_NAME,
		     f->version > 0x0300 ? RS_SPAN_STR("tls") : RS_SPAN_STR("ssl"));
	if (version.len)
		rs_build_str(b, RS_K_TLS_PROTOCOL_VERSION, version);
	if (cipher.len)
		rs_build_str(b, RS_K_TLS_CIPHER, cipher);
	rs_build_bool(b, RS_K_TLS_RESUMED, f->resumed);
	if (f->alpn[0])
		rs_build_str(b, RS_K_TLS_NEXT_PROTOCOL, str_c(f->alpn));
}
