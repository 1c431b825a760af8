// SPDX-License-Identifier: Apache-2.0
/*
 * Recorded connections (event scripts) through l7 and through nghttp2's own sessions, a server's for what the client
 * sent and a client's for what the server did: http2_sessions FILE…. For every stream and what came on it both must
 * say the same: header fields, sizes of content, codes of resets. l7 reads each connection as it was recorded and
 * byte by byte.
 */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>

#include "conn/l7.h"
#include "proto/http.h"
#include "source/script.h"

#define CONNS	16
#define STREAMS 512 /* of a connection, by number / 2; those that are pushed behind the others */
#define TEXT	2048

/* What one reader says of a stream. */
struct said {
	char request[TEXT], response[TEXT];
	uint64_t body[2]; /* of requests, of responses */
	bool done[2], head[2];
	char reset[32];
};

struct conn {
	uint64_t id;
	struct rs_ev_data **ev; /* in the order of the recording */
	size_t n, cap;
	char *bytes[2]; /* to the server, from it */
	size_t len[2];
	bool client; /* recorded at the client's end */
};

static struct conn conns[CONNS];
static size_t nconns;

static struct said *at(struct said *all, uint32_t id)
{
	uint32_t i = id / 2 + (id % 2 ? 0 : STREAMS / 2);

	if (i >= STREAMS)
		abort();
	return &all[i];
}

static void add(char *text, const char *name, const void *value, size_t len)
{
	size_t n = strlen(text);

	snprintf(text + n, TEXT - n, "%s=%.*s\n", name, (int)len, (const char *)value);
}

/* -- l7 -- */

static const char *field_name(uint16_t id)
{
	switch (id) {
	case RS_F_HTTP_METHOD:
		return ":method";
	case RS_F_HTTP_TARGET:
		return ":path";
	case RS_F_HTTP_SCHEME:
		return ":scheme";
	case RS_F_HTTP_HOST:
		return ":authority";
	case RS_F_HTTP_STATUS:
		return ":status";
	case RS_F_HTTP_USER_AGENT:
		return "user-agent";
	case RS_F_GRPC_STATUS:
		return "grpc-status";
	case RS_F_GRPC_TIMEOUT:
		return "grpc-timeout";
	case RS_F_LOCATION:
		return "location";
	default:
		return NULL;
	}
}

static void on_msg(void *arg, const struct rs_msg *m)
{
	struct said *s = at(arg, m->id);
	bool request = m->type == RS_MSG_REQUEST || m->type == RS_MSG_REQUEST_END;

	if (m->type == RS_MSG_INTERIM)
		return;
	for (unsigned i = 0; i < m->nfields; i++) {
		struct str v = m->fields[i].value;
		const char *name = field_name(m->fields[i].id);

		if (name)
			add(request ? s->request : s->response, name, v.ptr, v.len);
		if (m->fields[i].id == RS_F_HTTP_RESET)
			snprintf(s->reset, sizeof(s->reset), "%.*s", STR_ARG(v));
	}
	if (m->flags & (RS_MSGF_CUT | RS_MSGF_RESYNC))
		add(s->response, "flags", "cut", 3);
	s->head[!request] = true;
	if ((m->type == RS_MSG_REQUEST_END || m->type == RS_MSG_RESPONSE_END) &&
	    !(m->flags & RS_MSGF_RESET)) {
		s->done[!request] = true;
		s->body[!request] = m->body_size;
	}
}

static void read_l7(const struct conn *c, struct said *all, bool pieces)
{
	struct rs_counters counters = { 0 };
	struct rs_l7_env env = { .counters = &counters };
	struct rs_l7 l7;

	if (rs_l7_env_init(&env))
		abort();
	rs_l7_init(&l7);
	for (size_t i = 0; i < c->n; i++) {
		for (uint32_t k = 0; pieces && k < c->ev[i]->len; k++) {
			struct {
				struct rs_ev_data ev;
				uint8_t byte[8];
			} one = { .ev = *c->ev[i] };

			one.ev.off += k;
			one.ev.len = one.ev.cap = 1;
			one.ev.h.len = sizeof(one.ev) + 1;
			memcpy((char *)&one + sizeof(one.ev), c->ev[i]->data + k, 1);
			rs_l7_data(&l7, &env, &one.ev, on_msg, all);
		}
		if (!pieces)
			rs_l7_data(&l7, &env, c->ev[i], on_msg, all);
	}
	rs_l7_release(&l7, &env);
	rs_l7_env_release(&env);
}

/* -- nghttp2 -- */

static bool wanted(const char *name, bool request)
{
	static const char *const asks[] = { ":method",	  ":path",	  ":scheme", ":authority",
					    "user-agent", "grpc-timeout", NULL },
				 *const answers[] = { ":status", "grpc-status", "location", NULL };

	for (const char *const *p = request ? asks : answers; *p; p++) {
		if (strcmp(*p, name) == 0)
			return true;
	}
	return false;
}

struct reader {
	struct said *all;
	bool server;
	bool interim; /* the head being read is an interim answer's */
};

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t nlen, const uint8_t *value, size_t vlen, uint8_t flags, void *arg)
{
	bool push = frame->hd.type == NGHTTP2_PUSH_PROMISE;
	struct reader *r = arg;
	bool request = r->server || push;
	struct said *s = at(r->all, (uint32_t)(push ? frame->push_promise.promised_stream_id
						    : frame->hd.stream_id));
	char *text = request ? s->request : s->response;

	(void)session;
	(void)nlen;
	(void)flags;
	/* Trailers of requests are not read. */
	if (!wanted((const char *)name, request) ||
	    (r->server && frame->headers.cat == NGHTTP2_HCAT_HEADERS))
		return 0;
	if (strcmp((const char *)name, ":status") == 0)
		r->interim = vlen && value[0] == '1';
	if (!r->interim)
		add(text, (const char *)name, value, vlen);
	s->head[!request] = true;
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t len, void *arg)
{
	struct reader *r = arg;

	(void)session;
	(void)flags;
	(void)data;
	at(r->all, (uint32_t)id)->body[!r->server] += len;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct reader *r = arg;

	(void)session;
	r->interim = false;
	if (frame->hd.type == NGHTTP2_PUSH_PROMISE)
		at(r->all, (uint32_t)frame->push_promise.promised_stream_id)->done[0] = true;
	if ((frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS) &&
	    frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		at(r->all, (uint32_t)frame->hd.stream_id)->done[!r->server] = true;
	if (frame->hd.type == NGHTTP2_RST_STREAM &&
	    !at(r->all, (uint32_t)frame->hd.stream_id)->done[1])
		snprintf(at(r->all, (uint32_t)frame->hd.stream_id)->reset,
			 sizeof(((struct said *)0)->reset), "%s",
			 nghttp2_http2_strerror(frame->rst_stream.error_code));
	return 0;
}

static void drain(nghttp2_session *s)
{
	const uint8_t *data;

	while (nghttp2_session_mem_send(s, &data) > 0) {
	}
}

static uint32_t be32(const char *p)
{
	const uint8_t *b = (const uint8_t *)p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/*
 * What the end that a session stands for has sent itself: its SETTINGS, and a client's requests, so that what the
 * other end sends belongs to something.
 */
static void send_own(nghttp2_session *s, const char *p, size_t len, bool client)
{
	static const nghttp2_nv nv = { (uint8_t *)"x", (uint8_t *)"y", 1, 1, 0 };
	uint32_t last = 0;

	if (client) {
		p += 24;
		len -= 24;
	}
	while (len >= 9) {
		size_t n = be32(p) >> 8;
		uint32_t id = be32(p + 5);

		if (9 + n > len)
			break;
		if (p[3] == 4 && !(p[4] & 1)) {
			nghttp2_settings_entry entry[16];
			size_t k = 0;

			for (size_t i = 0; i + 6 <= n && k < 16; i += 6)
				entry[k++] = (nghttp2_settings_entry){
					(int32_t)((uint8_t)p[9 + i] << 8 | (uint8_t)p[10 + i]),
					be32(p + 11 + i)
				};
			if (nghttp2_submit_settings(s, 0, entry, k))
				abort();
		}
		if (client && p[3] == 1 && id > last) {
			last = id;
			if (nghttp2_session_set_next_stream_id(s, (int32_t)id) ||
			    nghttp2_submit_request(s, NULL, &nv, 1, NULL, NULL) != (int32_t)id)
				abort();
		}
		p += 9 + n;
		len -= 9 + n;
	}
	drain(s);
}

static bool read_session(const struct conn *c, struct said *all, bool server)
{
	struct reader r = { .all = all, .server = server };
	nghttp2_session_callbacks *cb;
	const char *in = c->bytes[!server];
	size_t len = c->len[!server];
	nghttp2_option *o;
	nghttp2_session *s;
	bool ok = true;

	if (nghttp2_session_callbacks_new(&cb) || nghttp2_option_new(&o))
		abort();
	nghttp2_option_set_no_http_messaging(o, 1);
	nghttp2_option_set_peer_max_concurrent_streams(o, 10000);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
	if (server ? nghttp2_session_server_new2(&s, cb, &r, o)
		   : nghttp2_session_client_new2(&s, cb, &r, o))
		abort();
	send_own(s, c->bytes[server], c->len[server], !server);
	while (ok && len) {
		size_t n = len < 1000 ? len : 1000;
		ssize_t used = nghttp2_session_mem_recv(s, (const uint8_t *)in, n);

		ok = used == (ssize_t)n && nghttp2_session_want_read(s);
		in += n;
		len -= n;
		drain(s);
	}
	nghttp2_session_del(s);
	nghttp2_option_del(o);
	nghttp2_session_callbacks_del(cb);
	return ok || !len;
}

/* -- both -- */

static int on_record(void *arg, const struct rs_ev_hdr *h)
{
	const struct rs_ev_data *ev = (const void *)h;
	struct conn *c = conns;
	int side;

	(void)arg;
	if (h->type == RS_EV_OPEN) {
		if (nconns == CONNS)
			return -1;
		conns[nconns++] = (struct conn){ .id = ((const struct rs_ev_open *)h)->conn,
						 .client = ((const struct rs_ev_open *)h)->role ==
							   RS_ROLE_CLIENT };
		return 0;
	}
	if (h->type != RS_EV_DATA)
		return 0;
	while (c->id != ev->conn)
		c++;
	if (c->n == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 64;
		c->ev = realloc(c->ev, c->cap * sizeof(*c->ev));
	}
	side = (ev->dir == RS_DIR_OUT) == c->client ? 0 : 1;
	c->bytes[side] = realloc(c->bytes[side], c->len[side] + ev->cap + 1);
	c->ev[c->n] = malloc(h->len);
	if (!c->ev || !c->bytes[side] || !c->ev[c->n] || ev->cap != ev->len)
		abort();
	memcpy(c->ev[c->n++], ev, h->len);
	memcpy(c->bytes[side] + c->len[side], ev->data, ev->cap);
	c->len[side] += ev->cap;
	return 0;
}

static int differ(const struct said *a, const struct said *b, unsigned stream, const char *file)
{
	int wrong = 0;

	if (strcmp(a->request, b->request) != 0)
		wrong = printf("%s, stream %u: request\n%s--- nghttp2:\n%s", file, stream,
			       a->request, b->request);
	if (strcmp(a->response, b->response) != 0)
		wrong = printf("%s, stream %u: response\n%s--- nghttp2:\n%s", file, stream,
			       a->response, b->response);
	/* Each session sees one direction: not that the answer had ended when the client reset the stream. */
	if (strcmp(a->reset, b->reset) != 0 && !(a->done[1] && !a->reset[0]))
		wrong = printf("%s, stream %u: reset '%s', nghttp2 '%s'\n", file, stream, a->reset,
			       b->reset);
	for (int i = 0; i < 2; i++) {
		/* What comes behind the end of its answer is no business of a request. */
		if (i == 0 && a->done[1] && !a->done[0])
			continue;
		if (a->done[i] != b->done[i])
			wrong = printf("%s, stream %u: end of %d\n", file, stream, i);
		if (a->done[i] && a->body[i] != RS_BODY_UNKNOWN && a->body[i] != b->body[i])
			wrong = printf("%s, stream %u: %llu bytes, nghttp2 %llu\n", file, stream,
				       (unsigned long long)a->body[i],
				       (unsigned long long)b->body[i]);
	}
	return wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct said ours[STREAMS], pieces[STREAMS], theirs[STREAMS];
	unsigned streams = 0, failed = 0;

	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "r");
		char err[256];

		nconns = 0;
		if (!f || rs_script_read(f, on_record, NULL, err, sizeof(err))) {
			printf("%s: cannot be read\n", argv[i]);
			return 2;
		}
		fclose(f);
		for (struct conn *c = conns; c < conns + nconns; c++) {
			memset(ours, 0, sizeof(ours));
			memset(pieces, 0, sizeof(pieces));
			memset(theirs, 0, sizeof(theirs));
			read_l7(c, ours, false);
			read_l7(c, pieces, true);
			if (!read_session(c, theirs, true) || !read_session(c, theirs, false)) {
				printf("%s: nghttp2 does not take it\n", argv[i]);
				failed++;
			}
			for (unsigned k = 0; k < STREAMS; k++) {
				unsigned id = k < STREAMS / 2 ? 2 * k + 1 : 2 * (k - STREAMS / 2);

				streams += ours[k].head[0];
				failed += (unsigned)differ(&ours[k], &theirs[k], id, argv[i]);
				failed += (unsigned)differ(&pieces[k], &theirs[k], id, argv[i]);
			}
			for (size_t k = 0; k < c->n; k++)
				free(c->ev[k]);
			free(c->ev);
			free(c->bytes[0]);
			free(c->bytes[1]);
		}
	}
	printf("http2: %u streams of %d recordings\n%d passed, %u failed, 0 skipped\n", streams,
	       argc - 1, failed ? 0 : 1, failed);
	return failed != 0;
}
