// SPDX-License-Identifier: Apache-2.0
/* HTTP/2 through l7: every case whole, byte by byte and split at every point; then losses and other entries. */
#include <stdio.h>
#include <stdlib.h>

#include "alloc_count.h"
#include "drive.h"
#include "unit.h"

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* Bytes of one direction, in frames; a piece is sent when the other direction begins. */
struct wire {
	enum drive_side side;
	size_t len;
	char bytes[200000];
};

struct script {
	struct wire *w;
	unsigned n, max;
};

static struct wire *side(struct script *s, enum drive_side side)
{
	if (s->n && s->w[s->n - 1].side == side)
		return &s->w[s->n - 1];
	assert_true(s->n < s->max);
	s->w[s->n] = (struct wire){ .side = side };
	return &s->w[s->n++];
}

static void put(struct wire *w, struct str s)
{
	assert_true(w->len + s.len <= sizeof(w->bytes));
	if (s.len)
		memcpy(w->bytes + w->len, s.ptr, s.len);
	w->len += s.len;
}

static void frame(struct script *s, enum drive_side to, unsigned type, unsigned flags, uint32_t id,
		  struct str content)
{
	const char head[9] = { (char)(content.len >> 16),
			       (char)(content.len >> 8),
			       (char)content.len,
			       (char)type,
			       (char)flags,
			       (char)(id >> 24),
			       (char)(id >> 16),
			       (char)(id >> 8),
			       (char)id };
	struct wire *w = side(s, to);

	put(w, str_of(head, 9));
	put(w, content);
}

/* "name: value" lines as literals: without indexing, or (a '+' first) with. "#82" is a byte as it is. */
static struct str block(const char *lines, char *to)
{
	size_t n = 0;

	while (*lines) {
		size_t len = strcspn(lines, "\n");
		const char *colon = strstr(lines + (lines[0] == ':'), ": ");

		if (lines[0] == '#') {
			unsigned v;

			assert_int_equal(sscanf(lines + 1, "%2x", &v), 1);
			to[n++] = (char)v;
		} else {
			bool indexed = lines[0] == '+';
			const char *name = lines + indexed;
			size_t nlen, vlen;

			if (indexed)
				colon = strstr(name + 1, ": ");
			nlen = (size_t)(colon - name);
			vlen = len - nlen - 2 - indexed;
			assert_true(nlen < 127 && vlen < 127 + 128);
			to[n++] = indexed ? 0x40 : 0;
			to[n++] = (char)nlen;
			memcpy(to + n, name, nlen);
			n += nlen;
			if (vlen >= 127) {
				to[n++] = 127;
				to[n++] = (char)(vlen - 127);
			} else {
				to[n++] = (char)vlen;
			}
			memcpy(to + n, colon + 2, vlen);
			n += vlen;
		}
		lines += len;
		lines += *lines == '\n';
	}
	return str_of(to, n);
}

#define END_STREAM  1
#define END_HEADERS 4
#define PADDED	    8
#define PRIORITY    0x20

static void headers(struct script *s, enum drive_side to, unsigned flags, uint32_t id,
		    const char *lines)
{
	char to_[2048];

	frame(s, to, 1, flags | END_HEADERS, id, block(lines, to_));
}

static void data(struct script *s, enum drive_side to, unsigned flags, uint32_t id, size_t len)
{
	static char zeros[70000];

	frame(s, to, 0, flags, id, str_of(zeros, len));
}

static void hello(struct script *s)
{
	put(side(s, TO_SERVER), STR(PREFACE));
	frame(s, TO_SERVER, 4, 0, 0, STR("\0\3\0\0\0\144"));
	frame(s, TO_CLIENT, 4, 0, 0, STR_NONE);
	frame(s, TO_CLIENT, 4, 1, 0, STR_NONE);
	frame(s, TO_SERVER, 4, 1, 0, STR_NONE);
}

#define GET(path)    ":method: GET\n:scheme: http\n:path: " path "\n:authority: a\n"
#define SAW(n, path) "> #" #n " 2 GET scheme=http " path " host=a"
#define GRPC(path)                                                                                 \
	":method: POST\n:scheme: http\n:path: " path                                               \
	"\n:authority: a\ncontent-type: application/grpc\n"
#define SAW_GRPC(n, path) "> #" #n " 2 POST scheme=http " path " host=a type=application/grpc"

static void plain(struct script *s)
{
	hello(s);
	headers(s, TO_SERVER, END_STREAM, 1,
		GET("/x") "user-agent: u\ntraceparent: t\nx-other: y\n");
	headers(s, TO_CLIENT, 0, 1, ":status: 200\ncontent-length: 5\n");
	data(s, TO_CLIENT, END_STREAM, 1, 5);
}

static void streams(struct script *s)
{
	hello(s);
	headers(s, TO_SERVER, 0, 1, ":method: POST\n:scheme: http\n:path: /1\n:authority: a\n");
	headers(s, TO_SERVER, END_STREAM, 3, GET("/3"));
	data(s, TO_SERVER, 0, 1, 100);
	frame(s, TO_SERVER, 8, 0, 0, STR("\0\0\1\0"));
	headers(s, TO_CLIENT, END_STREAM, 3, ":status: 404\n");
	data(s, TO_SERVER, END_STREAM, 1, 50);
	headers(s, TO_CLIENT, 0, 1, ":status: 100\n");
	headers(s, TO_CLIENT, 0, 1, ":status: 200\n");
	data(s, TO_CLIENT, 0, 1, 20000);
	frame(s, TO_CLIENT, 6, 0, 0, STR("12345678"));
	data(s, TO_CLIENT, 0, 1, 0);
	headers(s, TO_CLIENT, END_STREAM, 1, "x-sum: 1\n");
}

static void indexed(struct script *s)
{
	hello(s);
	headers(s, TO_SERVER, END_STREAM, 1,
		"#82\n#86\n+:path: /p\n+:authority: a\n+user-agent: u\n");
	headers(s, TO_SERVER, END_STREAM, 3, "#82\n#86\n#c0\n#bf\n#be\n");
	headers(s, TO_CLIENT, END_STREAM, 1, "#88\n+x: y\n");
	headers(s, TO_CLIENT, END_STREAM, 3, "#8d\n#be\n");
}

/* Padding, priority, a block in several frames, one of them empty, a frame of an unknown type. */
static void shapes(struct script *s)
{
	char b[1024], padded[1200];
	struct str h;

	hello(s);
	h = block(GET("/pad"), b);
	padded[0] = 7;
	memcpy(padded + 1, "\0\0\0\0\20", 5);
	memcpy(padded + 6, h.ptr, h.len);
	memset(padded + 6 + h.len, 0, 7);
	frame(s, TO_SERVER, 1, END_STREAM | END_HEADERS | PADDED | PRIORITY, 1,
	      str_of(padded, 6 + h.len + 7));
	frame(s, TO_SERVER, 2, 0, 1, STR("\0\0\0\0\1"));
	frame(s, TO_SERVER, 0xf0, 0xff, 1, STR("anything"));
	h = block(GET("/in-pieces"), b);
	frame(s, TO_SERVER, 1, END_STREAM, 3, str_at(h, 0, 3));
	frame(s, TO_SERVER, 9, 0, 3, str_at(h, 3, 0));
	frame(s, TO_SERVER, 9, 0, 3, str_at(h, 3, 9));
	frame(s, TO_SERVER, 9, END_HEADERS, 3, str_from(h, 12));
	headers(s, TO_CLIENT, 0, 1, ":status: 200\n");
	memset(padded, 0, sizeof(padded));
	padded[0] = 10;
	frame(s, TO_CLIENT, 0, PADDED, 1, str_of(padded, 111));
	padded[0] = 0;
	frame(s, TO_CLIENT, 0, PADDED | END_STREAM, 1, str_of(padded, 1));
	headers(s, TO_CLIENT, END_STREAM, 3, ":status: 204\n");
}

static void resets(struct script *s)
{
	hello(s);
	headers(s, TO_SERVER, END_STREAM, 1, GET("/1"));
	headers(s, TO_SERVER, END_STREAM, 3, GET("/3"));
	headers(s, TO_SERVER, 0, 5, GET("/5"));
	headers(s, TO_SERVER, END_STREAM, 7, GET("/7"));
	headers(s, TO_CLIENT, 0, 1, ":status: 200\n");
	data(s, TO_CLIENT, 0, 1, 10);
	frame(s, TO_SERVER, 3, 0, 1, STR("\0\0\0\10"));
	frame(s, TO_CLIENT, 3, 0, 3, STR("\0\0\0\7"));
	headers(s, TO_CLIENT, END_STREAM, 5, ":status: 200\n");
	frame(s, TO_CLIENT, 3, 0, 5, STR("\0\0\0\0"));
	data(s, TO_CLIENT, 0, 1, 10); /* was on its way */
	frame(s, TO_CLIENT, 7, 0, 0, STR("\0\0\0\5\0\0\0\0bye"));
}

static void push(struct script *s)
{
	char b[512];
	struct str h;

	hello(s);
	headers(s, TO_SERVER, END_STREAM, 1, GET("/page"));
	memcpy(b, "\0\0\0\2", 4);
	h = block(GET("/style"), b + 4);
	frame(s, TO_CLIENT, 5, END_HEADERS, 1, str_of(b, 4 + h.len));
	headers(s, TO_CLIENT, END_STREAM, 1, ":status: 200\n");
	headers(s, TO_CLIENT, 0, 2, ":status: 200\n");
	data(s, TO_CLIENT, END_STREAM, 2, 9);
}

static void tunnels(struct script *s)
{
	hello(s);
	headers(s, TO_SERVER, 0, 1,
		":method: CONNECT\n:protocol: websocket\n:scheme: http\n:path: /chat\n:authority: a\n");
	headers(s, TO_SERVER, 0, 3, ":method: CONNECT\n:authority: db:5432\n");
	headers(s, TO_CLIENT, 0, 1, ":status: 200\n");
	headers(s, TO_CLIENT, 0, 3, ":status: 502\n");
	data(s, TO_SERVER, 0, 1, 10);
	data(s, TO_CLIENT, END_STREAM, 3, 3);
	data(s, TO_CLIENT, END_STREAM, 1, 10);
	headers(s, TO_SERVER, END_STREAM, 5, GET("/events"));
	headers(s, TO_CLIENT, 0, 5,
		":status: 200\ncontent-type: text/event-stream; charset=utf-8\n");
	data(s, TO_CLIENT, 0, 5, 30);
	data(s, TO_CLIENT, END_STREAM, 5, 30);
}

static void grpc(struct script *s)
{
	hello(s);
	headers(s, TO_SERVER, 0, 1, GRPC("/p.S/Unary") "grpc-timeout: 1S\nte: trailers\n");
	frame(s, TO_SERVER, 0, END_STREAM, 1, STR("\0\0\0\0\3abc"));
	headers(s, TO_CLIENT, 0, 1, ":status: 200\ncontent-type: application/grpc+proto\n");
	/* Messages over frames, frames over messages, an empty one. */
	frame(s, TO_CLIENT, 0, 0, 1, STR("\0\0\0\0\4abcd\0\0"));
	frame(s, TO_CLIENT, 0, 0, 1, STR("\0\0\0\1\0\0\1\4"));
	data(s, TO_CLIENT, 0, 1, 259);
	frame(s, TO_CLIENT, 0, 0, 1, STR("x"));
	headers(s, TO_CLIENT, END_STREAM, 1, "grpc-status: 0\ngrpc-message: fine\n");
	headers(s, TO_SERVER, END_STREAM, 3, GRPC("/p.S/Fails"));
	headers(s, TO_CLIENT, END_STREAM, 3,
		":status: 200\ncontent-type: application/grpc\ngrpc-status: 5\n");
}

struct h2_case {
	const char *name;
	void (*make)(struct script *s);
	const char *want;
};

static const struct h2_case cases[] = {
	{ "plain", plain, SAW(1, "/x") " ua=u tp=t\n> #1 end 0\n< #1 2 200\n< #1 end 5\n" },
	{ "streams", streams,
	  "> #1 2 POST scheme=http /1 host=a\n" SAW(
		  3, "/3") "\n> #3 end 0\n< #3 2 404\n< #3 end 0\n"
			   "> #1 end 150\n< #1 interim 2 100\n< #1 2 200\n< #1 end 20000\n" },
	{ "indexed", indexed,
	  SAW(1, "/p") " ua=u\n> #1 end 0\n" SAW(
		  3, "/p") " ua=u\n> #3 end 0\n"
			   "< #1 2 200\n< #1 end 0\n< #3 2 404\n< #3 end 0\n" },
	{ "shapes", shapes,
	  SAW(1, "/pad") "\n> #1 end 0\n" SAW(
		  3, "/in-pieces") "\n> #3 end 0\n"
				   "< #1 2 200\n< #1 end 100\n< #3 2 204\n< #3 end 0\n" },
	{ "resets", resets,
	  SAW(1, "/1") "\n> #1 end 0\n" SAW(3, "/3") "\n> #3 end 0\n" SAW(5, "/5") "\n" SAW(
		  7,
		  "/7") "\n> #7 end 0\n< #1 2 200\n"
			"< #1 end 10 reset=CANCEL by=received aborted reset\n"
			"< #3 end 0 reset=REFUSED_STREAM by=sent aborted reset\n< #5 2 200\n< #5 end 0\n"
			"< #7 end 0 reset=REFUSED_STREAM by=sent aborted reset\n" },
	{ "push", push,
	  SAW(1, "/page") "\n> #1 end 0\n" SAW(
		  2, "/style") " pushed\n> #2 end 0\n"
			       "< #1 2 200\n< #1 end 0\n< #2 2 200\n< #2 end 9\n" },
	{ "tunnels", tunnels,
	  "> #1 2 CONNECT protocol=websocket scheme=http /chat host=a\n> #3 2 CONNECT host=db:5432\n"
	  "< #1 2 200\n< #1 end 0\n< #3 2 502\n< #3 end 3\n< #1 end ?\n" SAW(
		  5, "/events") "\n> #5 end 0\n"
				"< #5 2 200 type=text/event-stream; charset=utf-8\n< #5 end 60\n" },
	{ "grpc", grpc,
	  SAW_GRPC(
		  1,
		  "/p.S/Unary") " timeout=1S\n> #1 end 8 sent 1\n"
				"< #1 2 200 type=application/grpc+proto\n< #1 end 279 sent 1 received 3 grpc=0\n" SAW_GRPC(
					3,
					"/p.S/Fails") "\n> #3 end 0\n"
						      "< #3 2 200 type=application/grpc grpc=5\n< #3 end 0\n" },
};

static void check(struct drive *d, const char *name, const char *how, const char *want)
{
	if (strcmp(d->text, want) != 0) {
		print_error("%s, %s:\n%s--- wanted:\n%s", name, how, d->text, want);
		fail();
	}
	rs_l7_release(&d->l7, &d->env);
	if (!drive_conserved(d)) {
		print_error("%s, %s: the counters do not add up\n", name, how);
		fail();
	}
	assert_int_equal(d->counters.v[RS_C_STREAM_HELD], 0);
	for (int i = 0; i < RS_PROTO_COUNT; i++) {
		for (int k = 0; k < RS_PROTO_POOLS; k++)
			assert_int_equal(d->env.pool[i][k].in_use, 0);
	}
	drive_again(d);
}

static struct script new_script(void)
{
	struct script s = { .max = 24 };

	s.w = calloc(s.max, sizeof(*s.w));
	assert_non_null(s.w);
	return s;
}

static void test_cases(void **state)
{
	struct drive d;

	(void)state;
	drive_init(&d);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct h2_case *c = &cases[i];
		struct script s = new_script();
		char how[64];

		c->make(&s);
		for (unsigned k = 0; k < s.n; k++)
			drive_send(&d, s.w[k].side, str_of(s.w[k].bytes, s.w[k].len));
		check(&d, c->name, "whole", c->want);
		for (size_t step = 1; step <= 64; step += step < 12 ? 1 : 13) {
			for (unsigned k = 0; k < s.n; k++) {
				struct str in = str_of(s.w[k].bytes, s.w[k].len);

				for (; in.len; in = str_from(in, step))
					drive_send(&d, s.w[k].side, str_at(in, 0, step));
			}
			snprintf(how, sizeof(how), "in steps of %zu", step);
			check(&d, c->name, how, c->want);
		}
		for (unsigned cut = 0; cut < s.n; cut++) {
			for (size_t at = 1; at < s.w[cut].len; at += at < 700 ? 1 : 997) {
				for (unsigned k = 0; k < s.n; k++) {
					struct str in = str_of(s.w[k].bytes, s.w[k].len);

					if (k == cut)
						drive_send(&d, s.w[k].side, str_at(in, 0, at));
					drive_send(&d, s.w[k].side,
						   k == cut ? str_from(in, at) : in);
				}
				snprintf(how, sizeof(how), "piece %u split at %zu", cut, at);
				check(&d, c->name, how, c->want);
			}
		}
		free(s.w);
	}
	drive_release(&d);
}

/* From the client's side, too. */
static void test_client(void **state)
{
	struct script s = new_script();
	struct drive d;

	(void)state;
	drive_init(&d);
	d.client = true;
	plain(&s);
	for (unsigned k = 0; k < s.n; k++)
		drive_send(&d, s.w[k].side, str_of(s.w[k].bytes, s.w[k].len));
	check(&d, "plain", "client", cases[0].want);
	free(s.w);
	drive_release(&d);
}

static void send(struct drive *d, struct script *s)
{
	for (unsigned k = 0; k < s->n; k++)
		drive_send(d, s->w[k].side, str_of(s->w[k].bytes, s->w[k].len));
	s->n = 0;
}

/* Attached in the middle: what was indexed before is left out and said to be, until literals come. */
static void test_middle(void **state)
{
	struct script s = new_script();
	struct drive d;

	(void)state;
	drive_init(&d);
	data(&s, TO_CLIENT, 0, 7, 100); /* of a stream that nobody knows */
	headers(&s, TO_SERVER, END_STREAM, 9, "#82\n#86\n#c0\n#bf\n");
	headers(&s, TO_CLIENT, 0, 9, "#88\n#be\n");
	data(&s, TO_CLIENT, END_STREAM, 9, 5);
	headers(&s, TO_SERVER, END_STREAM, 11, "#83\n#86\n+:path: /new\n#be\n#c0\n");
	headers(&s, TO_CLIENT, END_STREAM, 11, "#8d\n+x: y\n#be\n");
	headers(&s, TO_SERVER, END_STREAM, 13, "#82\n#86\n#be\n+:authority: a\n");
	headers(&s, TO_CLIENT, END_STREAM, 13, "#88\n#be\n");
	headers(&s, TO_SERVER, END_STREAM, 15, "#82\n#86\n#bf\n#be\n");
	send(&d, &s);
	check(&d, "middle", "whole",
	      "> #9 2 GET scheme=http cut\n> #9 end 0\n< #9 2 200 cut\n< #9 end 5\n"
	      "> #11 2 POST scheme=http /new /new cut\n> #11 end 0\n< #11 2 404\n< #11 end 0\n"
	      "> #13 2 GET scheme=http /new host=a\n> #13 end 0\n< #13 2 200\n< #13 end 0\n"
	      "> #15 2 GET scheme=http /new host=a\n> #15 end 0\n");
	/* With its first header block a response's. */
	headers(&s, TO_CLIENT, 0, 9, "#88\n#be\n");
	data(&s, TO_CLIENT, END_STREAM, 9, 5);
	headers(&s, TO_SERVER, END_STREAM, 11, "#82\n#86\n+:path: /new\n");
	send(&d, &s);
	check(&d, "middle", "answer first",
	      "< #9 2 200 cut\n< #9 end ?\n> #11 2 GET scheme=http /new\n> #11 end 0\n");
	/* With frames that say nothing; the client's preface stands behind the server's SETTINGS. */
	frame(&s, TO_CLIENT, 4, 0, 0, STR_NONE);
	plain(&s);
	send(&d, &s);
	check(&d, "middle", "settings first", cases[0].want);
	free(s.w);
	drive_release(&d);
}

/* Bytes are lost: the next frames are found, the rest of the streams goes on, no header is wrong. */
static void test_losses(void **state)
{
	struct script s = new_script();
	struct drive d;

	(void)state;
	drive_init(&d);
	hello(&s);
	headers(&s, TO_SERVER, END_STREAM, 1, "#82\n#86\n+:path: /one\n+:authority: a\n");
	headers(&s, TO_SERVER, END_STREAM, 3, "#82\n#86\n#bf\n#be\n");
	send(&d, &s);
	drive_lose(&d, TO_SERVER, 1000);
	headers(&s, TO_SERVER, END_STREAM, 9, "#82\n#86\n#bf\n#be\n");
	headers(&s, TO_CLIENT, END_STREAM, 3, ":status: 200\n");
	headers(&s, TO_CLIENT, END_STREAM, 1, ":status: 200\n");
	headers(&s, TO_SERVER, END_STREAM, 11, "#82\n#86\n+:path: /two\n#be\n");
	send(&d, &s);
	check(&d, "loss", "of requests",
	      SAW(1, "/one") "\n> #1 end 0\n" SAW(
		      3,
		      "/one") "\n> #3 end 0\n"
			      "> #9 2 GET scheme=http cut resync\n> #9 end 0\n< #3 2 200\n< #3 end 0\n< #1 2 200\n< #1 end 0\n"
			      "> #11 2 GET scheme=http /two /two\n> #11 end 0\n");

	/* In the middle of a header block: what there is of it is a request. */
	hello(&s);
	send(&d, &s);
	headers(&s, TO_SERVER, END_STREAM, 1,
		"#82\n#86\n+:path: /cut\n+:authority: a\n+user-agent: it is long\n+x: y\n");
	drive_cut(&d, TO_SERVER, str_of(s.w[0].bytes, 9 + 20), (uint32_t)s.w[0].len, STR("x: y"));
	s.n = 0;
	headers(&s, TO_SERVER, END_STREAM, 3, "#82\n#86\n#be\n");
	headers(&s, TO_CLIENT, END_STREAM, 1, "#88\n");
	send(&d, &s);
	check(&d, "loss", "in a head",
	      "> #1 2 GET scheme=http /cut cut\n> #1 end 0\n> #3 2 GET scheme=http cut\n> #3 end 0\n"
	      "< #1 2 200\n< #1 end 0\n");

	/* In content: nothing is missing, but for a count. */
	hello(&s);
	headers(&s, TO_SERVER, 0, 1, GET("/1"));
	headers(&s, TO_SERVER, 0, 3, GRPC("/p.S/M"));
	send(&d, &s);
	data(&s, TO_SERVER, END_STREAM, 1, 5000);
	drive_cut(&d, TO_SERVER, str_of(s.w[0].bytes, 500), (uint32_t)s.w[0].len, STR_NONE);
	s.n = 0;
	data(&s, TO_SERVER, END_STREAM, 3, 5000);
	drive_cut(&d, TO_SERVER, str_of(s.w[0].bytes, 500), (uint32_t)s.w[0].len, STR_NONE);
	s.n = 0;
	headers(&s, TO_SERVER, END_STREAM, 5, GET("/5"));
	send(&d, &s);
	check(&d, "loss", "in content",
	      SAW(1, "/1") "\n" SAW_GRPC(3, "/p.S/M") "\n> #1 end 5000\n> #3 end ? sent ?\n" SAW(
		      5, "/5") "\n> #5 end 0\n");

	/* And not to be found for a while. */
	hello(&s);
	send(&d, &s);
	drive_lose(&d, TO_SERVER, 10);
	for (int i = 0; i < 3; i++)
		drive_send(&d, TO_SERVER, STR("\0\0\0 no frame \0\0\1\0 at all \1\2\3\4\5\6"));
	headers(&s, TO_SERVER, END_STREAM, 5, GET("/5"));
	headers(&s, TO_SERVER, END_STREAM, 7, GET("/7"));
	put(side(&s, TO_SERVER), STR("half"));
	drive_send(&d, TO_SERVER, str_from(str_of(s.w[0].bytes, s.w[0].len), 20));
	check(&d, "loss", "long", SAW(7, "/7") " resync\n> #7 end 0\n");
	free(s.w);
	drive_release(&d);
}

/* A block of 64 KB in CONTINUATION frames is read; a longer one is cut, and its stream goes on. */
static void test_long_blocks(void **state)
{
	static char lines[90000];
	struct script s = new_script();
	struct str h;
	struct drive d;

	(void)state;
	drive_init(&d);
	for (int over = 0; over < 2; over++) {
		size_t n = block(GET("/long"), lines).len, at = 16384;

		while (n < (over ? 80000u : 64900u) - 130) { /* name and value of 64 and 64 */
			lines[n++] = 0;
			lines[n++] = 64;
			memset(lines + n, 'n', 64);
			n += 64;
			lines[n++] = 63;
			memset(lines + n, 'v', 63);
			n += 63;
		}
		h = str_of(lines, n);
		hello(&s);
		frame(&s, TO_SERVER, 1, END_STREAM, 1, str_at(h, 0, at));
		for (; at < n; at += 16384)
			frame(&s, TO_SERVER, 9, at + 16384 >= n ? END_HEADERS : 0, 1,
			      str_at(h, at, 16384));
		headers(&s, TO_SERVER, END_STREAM, 3, GET("/3"));
		send(&d, &s);
		check(&d, "long block", over ? "too long" : "",
		      over ? SAW(1, "/long") " cut\n> #1 end 0\n" SAW(3, "/3") "\n> #3 end 0\n"
			   : SAW(1, "/long") "\n> #1 end 0\n" SAW(3, "/3") "\n> #3 end 0\n");
	}
	free(s.w);
	drive_release(&d);
}

/* RFC 7540 3.2: from HTTP/1 on, the answer to the request that asked for it is stream 1's. */
static void test_upgrade(void **state)
{
	struct script s = new_script();
	struct drive d;

	(void)state;
	drive_init(&d);
	for (int split = 0; split < 2; split++) {
		drive_send(
			&d, TO_SERVER,
			STR("GET /up HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
			    "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"));
		put(side(&s, TO_CLIENT),
		    STR("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
			"Upgrade: h2c\r\n\r\n"));
		frame(&s, TO_CLIENT, 4, 0, 0, STR_NONE);
		headers(&s, TO_CLIENT, 0, 1, ":status: 200\n");
		data(&s, TO_CLIENT, END_STREAM, 1, 7);
		put(side(&s, TO_SERVER), STR(PREFACE));
		frame(&s, TO_SERVER, 4, 0, 0, STR_NONE);
		headers(&s, TO_SERVER, END_STREAM, 3, GET("/3"));
		headers(&s, TO_CLIENT, END_STREAM, 3, ":status: 200\n");
		if (split) {
			for (unsigned k = 0; k < s.n; k++) {
				for (size_t i = 0; i < s.w[k].len; i++)
					drive_send(&d, s.w[k].side, str_of(s.w[k].bytes + i, 1));
			}
			s.n = 0;
		} else {
			send(&d, &s);
		}
		check(&d, "upgrade", split ? "byte by byte" : "whole",
		      "> #1 GET /up 1.1 host=a\n> end 0\n< interim 101 1.1 h2c switch\n"
		      "< #1 2 200\n< #1 end 7\n" SAW(
			      3, "/3") "\n> #3 end 0\n< #3 2 200\n< #3 end 0\n");
	}
	free(s.w);
	drive_release(&d);
}

/* The kernel side is told to copy all of it. */
static void test_policy(void **state)
{
	struct script s = new_script();
	struct drive d;

	(void)state;
	drive_init(&d);
	plain(&s);
	send(&d, &s);
	assert_int_equal(d.policies, 1);
	assert_int_equal(d.policy.whole, 1);
	check(&d, "policy", "", cases[0].want);
	free(s.w);
	drive_release(&d);
}

/* Nothing is allocated once the pools are warm, and a connection at rest is small. */
static void test_memory(void **state)
{
	struct script s = new_script();
	struct rs_ev_data *ev = malloc(sizeof(*ev) + RS_CAP_MAX);
	uint64_t before = 0;
	struct drive d;

	(void)state;
	assert_non_null(ev);
	assert_true(rs_protos[RS_PROTO_http2]->state_size <= 640);
	drive_init(&d);
	indexed(&s);
	for (int i = 0; i < 100; i++) {
		if (i == 10)
			before = alloc_count();
		d.len = 0;
		for (unsigned k = 0; k < s.n; k++) {
			enum rs_ev_dir dir = s.w[k].side == TO_SERVER ? RS_DIR_IN : RS_DIR_OUT;
			uint32_t half = (uint32_t)s.w[k].len / 2;

			for (int part = 0; part < 2; part++) {
				uint32_t n = part ? (uint32_t)s.w[k].len - half : half;

				*ev = (struct rs_ev_data){ .h = { RS_EV_DATA, 0,
								  (uint32_t)sizeof(*ev) + n, 1 },
							   .off = d.off[dir],
							   .len = n,
							   .cap = n,
							   .dir = (uint8_t)dir };
				memcpy(ev->data, s.w[k].bytes + (part ? half : 0), n);
				drive_record(&d, ev);
				d.off[dir] += n;
			}
		}
		drive_close(&d, RS_CLOSE_ALL);
		drive_again(&d);
	}
	assert_int_equal(alloc_count(), before);
	assert_int_equal(d.counters.v[RS_C_PROTO_RESPONSES], 200);
	free(ev);
	free(s.w);
	drive_release(&d);
}

/* A peer that opens ever more streams loses its own oldest, and nobody else's. */
static void test_crowd(void **state)
{
	const unsigned limit = 1024, more = 100;
	struct script s = new_script();
	struct rs_pool *streams;
	struct drive d;

	(void)state;
	drive_init(&d);
	streams = &d.env.pool[RS_PROTO_http2][0];
	hello(&s);
	for (unsigned i = 0; i < limit + more; i++)
		headers(&s, TO_SERVER, 0, 2 * i + 1, GET("/x"));
	send(&d, &s);
	assert_int_equal(streams->in_use, limit);
	assert_int_equal(d.counters.v[RS_C_PROTO_REQUESTS], limit + more);
	assert_int_equal(d.counters.v[RS_C_PROTO_CROWDED], more);
	/* The newest is known, the oldest gave way: how long it was is not known, its answer is all the same. */
	d.len = 0;
	data(&s, TO_SERVER, END_STREAM, 2 * (limit + more) - 1, 7);
	data(&s, TO_SERVER, END_STREAM, 1, 7);
	headers(&s, TO_CLIENT, END_STREAM, 2 * (limit + more) - 1, ":status: 200\n");
	headers(&s, TO_CLIENT, END_STREAM, 1, ":status: 204\n");
	/* So is that it was broken off; of one that was never there it is not. */
	frame(&s, TO_SERVER, 3, 0, 3, STR("\0\0\0\10"));
	frame(&s, TO_SERVER, 3, 0, 99999, STR("\0\0\0\10"));
	send(&d, &s);
	check(&d, "crowd", "whole",
	      "> #2247 end 7\n> #1 end ?\n< #2247 2 200\n< #2247 end 0\n< #1 2 204\n< #1 end ?\n"
	      "< #3 end ? reset=CANCEL by=received aborted reset\n");
	free(s.w);
	drive_release(&d);
}

/* What a GOAWAY leaves out has ended, also what gave way to others; what it takes in has not. */
static void test_crowd_refused(void **state)
{
	const unsigned limit = 1024, more = 100, taken = 10;
	struct script s = new_script();
	unsigned refused = 0;
	struct drive d;

	(void)state;
	drive_init(&d);
	hello(&s);
	for (unsigned i = 0; i < limit + more; i++)
		headers(&s, TO_SERVER, 0, 2 * i + 1, GET("/x"));
	send(&d, &s);
	d.len = 0;
	frame(&s, TO_CLIENT, 7, 0, 0, STR("\0\0\0\23\0\0\0\0"));
	send(&d, &s);
	for (const char *at = d.text; (at = strstr(at, "reset=REFUSED_STREAM")); at++)
		refused++;
	assert_int_equal(refused, limit + more - taken);
	assert_null(strstr(d.text, "#19 "));
	assert_has(d.text, "#21 ");
	assert_has(d.text, "#2247 ");
	free(s.w);
	drive_release(&d);
}

/* What is no HTTP/2, though it begins with zeros as frames do. */
static void test_others(void **state)
{
	static const struct str others[] = {
		{ "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20 },
		{ "\0\0\0\x1a\0\x12\0\3\0\0\0\1\0\7client1\0\0\0\0\0\0\0", 28 },
		{ "\0\0\x10\1\5\0\0\0\1 not a header block", 29 },
		{ "\x16\3\1\2\0\1\0\1\xfc\3\3", 11 },
	};
	struct drive d;

	(void)state;
	drive_init(&d);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		for (int k = 0; k < 20; k++)
			drive_send(&d, k % 2 ? TO_CLIENT : TO_SERVER, others[i]);
		assert_int_equal(d.counters.v[RS_C_PROTO_DETECTED], 0);
		check(&d, "others", "", "");
	}
	drive_release(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),	      cmocka_unit_test(test_client),
		cmocka_unit_test(test_middle),	      cmocka_unit_test(test_losses),
		cmocka_unit_test(test_long_blocks),   cmocka_unit_test(test_upgrade),
		cmocka_unit_test(test_policy),	      cmocka_unit_test(test_others),
		cmocka_unit_test(test_memory),	      cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_crowd_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
