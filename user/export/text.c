// SPDX-License-Identifier: Apache-2.0
#include "text.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/human.h"
#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/term.h"
#include "base/utf8.h"

#define OUT_SIZE  (64 * 1024)
#define MAX_LEVEL 12 /* deeper spans are not indented further */

#define IN_ARROW   "\xe2\x86\x90" /* ← */
#define OUT_ARROW  "\xe2\x86\x92" /* → */
#define BRANCH	   "\xe2\x94\x94" /* └ */
#define TIMES	   "\xc3\x97"	  /* × */
#define DASH	   "\xe2\x80\x94" /* — */
#define BLOCK	   "\xe2\x96\x88" /* █ */
#define HALF_BLOCK "\xe2\x96\x8c" /* ▌ */

/* What is remembered of a span. */
struct held {
	struct rs_list in_trace; /* in the order they came */
	struct held *child, *last_child, *next, *parent;
	uint8_t id[8], parent_id[8];
	uint8_t kind;
	bool error, printed;
	uint16_t code; /* HTTP status, 0: none */
	bool ok;       /* gRPC's status is OK */
	uint64_t start_ns, end_ns;
	char service[48];
	char request[512];
	char peer[72];
	char note[256];
};

struct trace {
	struct rs_list lru; /* oldest first */
	struct rs_list spans;
	uint8_t id[16];
	uint64_t since_ns; /* CLOCK_MONOTONIC, first span came */
	uint64_t start_ns; /* earliest start */
	uint32_t n;
	bool ready; /* its root is there */
};

/* Widths of the columns; 0: the column is left out (peer, bar) or has no limit (request, peer). */
struct columns {
	int service, request, peer, bar;
};

struct rs_text {
	struct rs_text_opts o;
	struct rs_style st;
	struct columns col;
	struct rs_map traces; /* part of the trace id -> struct trace */
	struct rs_list lru;
	struct rs_pool trace_pool, held_pool;
	struct held *sorted[RS_TEXT_TRACE]; /* scratch: a trace by start time */
	struct held *by_id[RS_TEXT_TRACE];
	struct trace *ready[RS_TEXT_SPANS]; /* scratch: traces to print, by start time */
	time_t second;			    /* of clock[] */
	char clock[16];
	int err;
	size_t len;
	char out[OUT_SIZE];
};

/* -- output -- */

static void drain(struct rs_text *t)
{
	size_t at = 0;

	while (at < t->len && !t->err) {
		ssize_t n = write(t->o.fd, t->out + at, t->len - at);

		if (n >= 0) {
			at += (size_t)n;
		} else if (errno == EAGAIN) {
			/* Somebody made the terminal non-blocking. */
			struct pollfd p = { .fd = t->o.fd, .events = POLLOUT };

			poll(&p, 1, -1);
		} else if (errno != EINTR) {
			t->err = -errno;
		}
	}
	t->len = 0;
}

static void put(struct rs_text *t, const char *s, size_t n)
{
	if (n > OUT_SIZE - t->len)
		drain(t);
	memcpy(t->out + t->len, s, n);
	t->len += n;
}

static void puts_(struct rs_text *t, const char *s)
{
	put(t, s, strlen(s));
}

static void pad(struct rs_text *t, int n)
{
	static const char blank[] =
		"                                                                ";

	for (; n > 0; n -= (int)sizeof(blank) - 1)
		put(t, blank, n < (int)sizeof(blank) - 1 ? (size_t)n : sizeof(blank) - 1);
}

/* s in `cols` columns, cut or padded; 0: as it is. */
static void cell(struct rs_text *t, const char *s, int cols)
{
	char buf[1024];
	size_t n = rs_utf8_clean(buf, sizeof(buf), str_c(s), cols);

	put(t, buf, n);
	if (cols)
		pad(t, cols - rs_utf8_width(str_of(buf, n)));
}

/* -- a span in a few words -- */

static const struct rs_val *find(const struct rs_attrs *as, enum rs_known_key k)
{
	for (uint32_t i = 0; i < as->n; i++) {
		if (as->a[i].key->id == (uint32_t)k)
			return &as->a[i].val;
	}
	return NULL;
}

static struct str find_str(const struct rs_attrs *as, enum rs_known_key k)
{
	const struct rs_val *v = find(as, k);

	return v && v->type == RS_VAL_STR ? str_of(v->str, v->len) : STR_NONE;
}

static int64_t find_int(const struct rs_attrs *as, enum rs_known_key k)
{
	const struct rs_val *v = find(as, k);

	return v && v->type == RS_VAL_INT ? v->i : 0;
}

/* Appends safe text while there is room. */
static void add(char *buf, size_t size, struct str s)
{
	size_t at = strlen(buf);

	if (at + 1 < size)
		rs_utf8_clean(buf + at, size - at, s, 0);
}

static void addf(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void addf(char *buf, size_t size, const char *fmt, ...)
{
	size_t at = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + at, size - at, fmt, ap);
	va_end(ap);
}

static void describe_request(struct held *h, const struct rs_span *s)
{
	struct str method = find_str(&s->attrs, RS_K_HTTP_REQUEST_METHOD_ORIGINAL);
	struct str path = find_str(&s->attrs, RS_K_URL_PATH),
		   query = find_str(&s->attrs, RS_K_URL_QUERY);
	struct str full = find_str(&s->attrs, RS_K_URL_FULL);
	size_t at;

	if (!method.len)
		method = find_str(&s->attrs, RS_K_HTTP_REQUEST_METHOD);
	if (!method.len || (!path.len && !full.len)) {
		add(h->request, sizeof(h->request), s->name);
		return;
	}
	add(h->request, sizeof(h->request), method);
	add(h->request, sizeof(h->request), STR(" "));
	if (!path.len) {
		/* The peer has its own column: what follows the authority says more. */
		for (at = 0; at + 3 <= full.len && memcmp(full.ptr + at, "://", 3); at++)
			;
		path = at + 3 <= full.len ? str_from(full, at + 3) : full;
		path = str_find(path, '/') < path.len ? str_from(path, str_find(path, '/'))
						      : STR("/");
	}
	add(h->request, sizeof(h->request), path);
	if (query.len) {
		add(h->request, sizeof(h->request), STR("?"));
		add(h->request, sizeof(h->request), query);
	}
}

static void describe_peer(struct held *h, const struct rs_span *s)
{
	bool server = s->kind == RS_KIND_SERVER || s->kind == RS_KIND_CONSUMER;
	struct str address = server ? STR_NONE : find_str(&s->attrs, RS_K_SERVER_ADDRESS);
	int64_t port = server ? 0 : find_int(&s->attrs, RS_K_SERVER_PORT);

	if (!address.len) {
		address = find_str(&s->attrs, RS_K_NETWORK_PEER_ADDRESS);
		port = find_int(&s->attrs, RS_K_NETWORK_PEER_PORT);
	}
	if (!address.len) {
		address = find_str(&s->attrs, RS_K_CLIENT_ADDRESS);
		port = find_int(&s->attrs, RS_K_CLIENT_PORT);
	}
	if (str_find(address, ':') < address.len) {
		add(h->peer, sizeof(h->peer), STR("["));
		add(h->peer, sizeof(h->peer), address);
		add(h->peer, sizeof(h->peer), STR("]"));
	} else {
		add(h->peer, sizeof(h->peer), address);
	}
	if (address.len && port > 0)
		addf(h->peer, sizeof(h->peer), ":%u", (unsigned)port & 0xffff);
}

static void note_item(struct held *h, struct str s)
{
	if (*h->note)
		add(h->note, sizeof(h->note), STR(", "));
	add(h->note, sizeof(h->note), s);
}

static void note_event(struct held *h, const struct rs_event *e)
{
	note_item(h, e->name);
	for (uint32_t i = 0; i < e->attrs.n; i++) {
		const struct rs_attr *a = &e->attrs.a[i];

		if (a->key->id == RS_K_RINGSPAN_COUNT && a->val.type == RS_VAL_INT) {
			if (a->val.i > 1)
				addf(h->note, sizeof(h->note), " " TIMES "%lld",
				     (long long)a->val.i);
			continue;
		}
		if (a->key->id == RS_K_PROCESS_EXIT_CODE)
			add(h->note, sizeof(h->note), STR(" code"));
		if (a->key->id == RS_K_RINGSPAN_SIGNAL)
			add(h->note, sizeof(h->note), STR(" signal"));
		if (a->key->id == RS_K_RINGSPAN_DURATION_US && a->val.type == RS_VAL_INT) {
			char took[RS_HUMAN];

			addf(h->note, sizeof(h->note), " %s",
			     rs_human_duration(took, (uint64_t)a->val.i * 1000));
		} else if (a->val.type == RS_VAL_INT) {
			addf(h->note, sizeof(h->note), " %lld", (long long)a->val.i);
		} else if (a->val.type == RS_VAL_STR) {
			add(h->note, sizeof(h->note), STR(" "));
			add(h->note, sizeof(h->note), str_of(a->val.str, a->val.len));
		}
	}
}

#define SLOW_CONNECT_US 10000

/* Events of every new connection or longer request are no news under a line. */
static bool routine(const struct rs_event *e)
{
	if (str_eq(e->name, STR("response.first_byte")))
		return true;
	if (!str_eq(e->name, STR("tcp.connect")))
		return false;
	for (uint32_t i = 0; i < e->attrs.n; i++) {
		const struct rs_attr *a = &e->attrs.a[i];

		if (a->key->id == RS_K_RINGSPAN_DURATION_US && a->val.type == RS_VAL_INT)
			return a->val.i < SLOW_CONNECT_US;
	}
	return true;
}

static void describe_note(struct held *h, const struct rs_span *s)
{
	struct str type = find_str(&s->attrs, RS_K_ERROR_TYPE);
	struct str rpc = find_str(&s->attrs, RS_K_RPC_STATUS_CODE);
	const struct rs_val *cut = find(&s->attrs, RS_K_RINGSPAN_INCOMPLETE);
	uint64_t number;

	/* A status code as error.type stands in its own column. */
	if (type.len && !(h->code && str_u64(type, &number)))
		note_item(h, type);
	else if (rpc.len && !h->ok)
		note_item(h, rpc); /* an answer that is no fault of the server's */
	if (s->status_msg.len && !str_eq(s->status_msg, type))
		note_item(h, s->status_msg);
	for (uint32_t i = 0; i < s->nevents; i++) {
		if (!routine(&s->events[i]))
			note_event(h, &s->events[i]);
	}
	if (cut && cut->type == RS_VAL_BOOL && cut->b)
		note_item(h, STR("incomplete: not all of it was seen"));
}

static void describe(struct held *h, const struct rs_span *s, const struct rs_resource *r)
{
	struct str service = find_str(&r->attrs, RS_K_SERVICE_NAME);
	int64_t code = find_int(&s->attrs, RS_K_HTTP_RESPONSE_STATUS_CODE);

	h->child = h->last_child = h->next = h->parent = NULL;
	h->printed = false;
	memcpy(h->id, s->span_id, sizeof(h->id));
	memcpy(h->parent_id, s->parent_id, sizeof(h->parent_id));
	h->kind = s->kind;
	h->start_ns = s->start_ns;
	h->end_ns = s->end_ns > s->start_ns ? s->end_ns : s->start_ns;
	h->code = code > 0 && code < 1000 ? (uint16_t)code : 0;
	h->ok = str_eq(find_str(&s->attrs, RS_K_RPC_STATUS_CODE), STR("OK"));
	h->error = s->status == RS_STATUS_ERROR;
	h->service[0] = h->request[0] = h->peer[0] = h->note[0] = 0;
	if (!service.len)
		service = find_str(&r->attrs, RS_K_PROCESS_EXECUTABLE_NAME);
	add(h->service, sizeof(h->service), service.len ? service : STR("?"));
	describe_request(h, s);
	describe_peer(h, s);
	describe_note(h, s);
}

/* -- a span as a line -- */

static void choose_columns(struct columns *c, int width)
{
	/* Time, duration, status and the gaps between take 27 columns. */
	if (!width)
		*c = (struct columns){ .service = 22, .request = 44, .peer = 0 };
	else if (width < 100)
		*c = (struct columns){ .service = 18, .peer = -1 };
	else if (width < 140)
		*c = (struct columns){ .service = 20, .peer = 21 };
	else
		*c = (struct columns){ .service = 24, .peer = 22, .bar = 20 };
	if (!width)
		return;
	c->request = width - 27 - c->service - (c->peer > 0 ? c->peer + 2 : 0) -
		     (c->bar ? c->bar + 2 : 0);
	if (c->request < 12)
		c->request = 12;
}

static void put_clock(struct rs_text *t, uint64_t ns)
{
	time_t second = (time_t)(ns / 1000000000);
	char ms[8];
	struct tm tm;

	if (second != t->second || !t->clock[0]) {
		if (!localtime_r(&second, &tm))
			memset(&tm, 0, sizeof(tm));
		snprintf(t->clock, sizeof(t->clock), "%02u:%02u:%02u", (unsigned)tm.tm_hour % 24u,
			 (unsigned)tm.tm_min % 60u, (unsigned)tm.tm_sec % 61u);
		t->second = second;
	}
	snprintf(ms, sizeof(ms), ".%03u", (unsigned)(ns / 1000000 % 1000));
	puts_(t, t->st.dim);
	puts_(t, t->clock);
	puts_(t, ms);
	puts_(t, t->st.reset);
}

static const char *arrow(const struct held *h)
{
	switch (h->kind) {
	case RS_KIND_SERVER:
	case RS_KIND_CONSUMER:
		return IN_ARROW;
	case RS_KIND_CLIENT:
	case RS_KIND_PRODUCER:
		return OUT_ARROW;
	default:
		return "-";
	}
}

/* Two columns for each level, the last one a branch. Returns the columns. */
static int put_indent(struct rs_text *t, int level, bool branch)
{
	int cols = 2 * (level < MAX_LEVEL ? level : MAX_LEVEL);

	if (cols > t->col.service - 8)
		cols = (t->col.service - 8) & ~1;
	if (!cols)
		return 0;
	pad(t, cols - 2);
	puts_(t, t->st.dim);
	puts_(t, branch ? BRANCH " " : "  ");
	puts_(t, t->st.reset);
	return cols;
}

static void put_service(struct rs_text *t, const struct held *h, int level)
{
	int used = put_indent(t, level, true);
	bool in = h->kind == RS_KIND_SERVER || h->kind == RS_KIND_CONSUMER;

	puts_(t, in ? t->st.green : t->st.blue);
	puts_(t, arrow(h));
	puts_(t, " ");
	cell(t, h->service, t->col.service - used - 2);
	puts_(t, t->st.reset);
}

static void put_status(struct rs_text *t, const struct held *h)
{
	char code[8] = "ERR";

	if (h->code)
		snprintf(code, sizeof(code), "%3u", h->code);
	if (!h->code && !h->error) {
		puts_(t, t->st.dim);
		puts_(t, h->ok ? " OK" : "  " DASH);
		puts_(t, t->st.reset);
		return;
	}
	puts_(t, h->error || h->code >= 500 ? t->st.red : h->code >= 400 ? t->st.yellow : "");
	puts_(t, code);
	puts_(t, t->st.reset);
}

/* When in the trace the span was, as a bar. */
static void put_bar(struct rs_text *t, const struct held *h, uint64_t from, uint64_t to)
{
	double scale = to > from ? (double)t->col.bar / (double)(to - from) : 0;
	int start = (int)((double)(h->start_ns - from) * scale);
	int end = (int)((double)(h->end_ns - from) * scale + 0.5);

	if (start >= t->col.bar)
		start = t->col.bar - 1;
	puts_(t, h->error ? t->st.red : t->st.cyan);
	pad(t, start);
	if (end <= start)
		puts_(t, HALF_BLOCK);
	for (int i = start; i < end; i++)
		puts_(t, BLOCK);
	puts_(t, t->st.reset);
}

static void put_line(struct rs_text *t, const struct held *h, int level, uint64_t from, uint64_t to,
		     bool alone)
{
	char duration[RS_HUMAN];
	bool bar = t->col.bar && !alone;

	put_clock(t, h->start_ns);
	rs_human_duration(duration, h->end_ns - h->start_ns);
	pad(t, 8 - rs_utf8_width(str_c(duration)));
	puts_(t, duration);
	puts_(t, "  ");
	put_service(t, h, level);
	puts_(t, " ");
	cell(t, h->request,
	     t->o.width || rs_utf8_width(str_c(h->request)) < t->col.request ? t->col.request : 0);
	puts_(t, " ");
	put_status(t, h);
	if (t->col.peer >= 0 && (*h->peer || bar)) {
		puts_(t, "  ");
		puts_(t, t->st.dim);
		cell(t, h->peer, bar || t->o.width ? t->col.peer : 0);
		puts_(t, t->st.reset);
	}
	if (bar) {
		puts_(t, "  ");
		put_bar(t, h, from, to);
	}
	/* No blanks at a line's end. */
	while (t->len && t->out[t->len - 1] == ' ')
		t->len--;
	puts_(t, "\n");
	if (!*h->note)
		return;
	pad(t, 22);
	put_indent(t, level, false);
	puts_(t, h->error ? t->st.red : t->st.yellow);
	puts_(t, "! ");
	puts_(t, h->note);
	puts_(t, t->st.reset);
	puts_(t, "\n");
}

static void put_header(struct rs_text *t)
{
	puts_(t, t->st.bold);
	cell(t, "TIME", 12);
	puts_(t, "    TOOK  ");
	cell(t, "SERVICE", t->col.service);
	puts_(t, " ");
	cell(t, "REQUEST", t->col.request);
	puts_(t, " ");
	puts_(t, t->col.peer >= 0 ? "     PEER" : "");
	puts_(t, t->st.reset);
	puts_(t, "\n");
}

/* -- traces -- */

static int by_start(const void *a, const void *b)
{
	const struct held *x = *(struct held *const *)a, *y = *(struct held *const *)b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	/* What began together: the longer one is the outer one. */
	return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

static int by_id(const void *a, const void *b)
{
	return memcmp((*(struct held *const *)a)->id, (*(struct held *const *)b)->id, 8);
}

static struct held *find_parent(struct rs_text *t, const struct held *h, uint32_t n)
{
	uint32_t lo = 0, hi = n;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		int c = memcmp(t->by_id[mid]->id, h->parent_id, 8);

		if (c == 0)
			return t->by_id[mid] == h ? NULL : t->by_id[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* A span and all below it, parents first. What was printed is unlinked, so that a ring of parents ends. */
static void put_tree(struct rs_text *t, struct held *root, uint64_t from, uint64_t to, bool alone)
{
	struct held *h = root;
	int level = 0;

	while (h) {
		struct held *child = h->child;

		put_line(t, h, level, from, to, alone);
		h->child = NULL;
		h->printed = true;
		if (child) {
			h = child;
			level++;
			continue;
		}
		while (h != root && !h->next) {
			h = h->parent;
			level--;
		}
		h = h == root ? NULL : h->next;
	}
}

static void give_back(struct rs_text *t, struct trace *tr)
{
	struct rs_list *pos, *tmp;
	uint64_t key;

	rs_list_for_each_safe (pos, tmp, &tr->spans) {
		rs_list_del(pos);
		rs_pool_put(&t->held_pool, rs_list_entry(pos, struct held, in_trace));
	}
	memcpy(&key, tr->id, sizeof(key));
	rs_map_del(&t->traces, key);
	rs_list_del(&tr->lru);
	rs_pool_put(&t->trace_pool, tr);
}

static void put_trace(struct rs_text *t, struct trace *tr)
{
	uint64_t from = UINT64_MAX, to = 0;
	struct rs_list *pos;
	uint32_t n = 0;

	rs_list_for_each (pos, &tr->spans) {
		struct held *h = rs_list_entry(pos, struct held, in_trace);

		from = h->start_ns < from ? h->start_ns : from;
		to = h->end_ns > to ? h->end_ns : to;
		t->sorted[n] = t->by_id[n] = h;
		n++;
	}
	qsort(t->sorted, n, sizeof(t->sorted[0]), by_start);
	qsort(t->by_id, n, sizeof(t->by_id[0]), by_id);
	for (uint32_t i = 0; i < n; i++) {
		struct held *h = t->sorted[i], *p = find_parent(t, h, n);

		h->parent = p;
		if (!p)
			continue;
		if (p->last_child)
			p->last_child->next = h;
		else
			p->child = h;
		p->last_child = h;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!t->sorted[i]->parent)
			put_tree(t, t->sorted[i], from, to, n == 1);
	}
	/* Spans that are each other's parents have no root; traffic can be made so. */
	for (uint32_t i = 0; i < n; i++) {
		if (!t->sorted[i]->printed) {
			t->sorted[i]->child = NULL;
			put_tree(t, t->sorted[i], from, to, false);
		}
	}
	give_back(t, tr);
}

static struct trace *oldest(struct rs_text *t)
{
	return rs_list_empty(&t->lru) ? NULL : rs_list_entry(t->lru.next, struct trace, lru);
}

static struct trace *get_trace(struct rs_text *t, const uint8_t id[16], uint64_t now_ns)
{
	struct trace *tr;
	uint64_t key;

	memcpy(&key, id, sizeof(key));
	tr = rs_map_get(&t->traces, key);
	/* Half of an id is the key; another trace with the same half has to go first. */
	if (tr && (memcmp(tr->id, id, sizeof(tr->id)) || tr->n == RS_TEXT_TRACE)) {
		put_trace(t, tr);
		tr = NULL;
	}
	if (tr)
		return tr;
	tr = rs_pool_get(&t->trace_pool);
	if (!tr)
		return NULL;
	memcpy(tr->id, id, sizeof(tr->id));
	tr->since_ns = now_ns;
	tr->start_ns = UINT64_MAX;
	tr->n = 0;
	tr->ready = false;
	rs_list_init(&tr->spans);
	if (rs_map_put(&t->traces, key, tr)) {
		rs_pool_put(&t->trace_pool, tr);
		return NULL;
	}
	rs_list_add_tail(&t->lru, &tr->lru);
	return tr;
}

static bool is_root(const struct rs_span *s)
{
	static const uint8_t zero[8];

	return !memcmp(s->parent_id, zero, sizeof(zero));
}

static void take(struct rs_text *t, const struct rs_span *s, const struct rs_resource *r,
		 uint64_t now_ns)
{
	struct held *h;
	struct trace *tr;

	if (t->held_pool.in_use == RS_TEXT_SPANS && oldest(t))
		put_trace(t, oldest(t));
	tr = get_trace(t, s->trace_id, now_ns);
	h = tr ? rs_pool_get(&t->held_pool) : NULL;
	if (!h) {
		t->err = t->err ? t->err : -ENOMEM;
		return;
	}
	describe(h, s, r);
	rs_list_add_tail(&tr->spans, &h->in_trace);
	tr->n++;
	tr->ready |= is_root(s);
	if (s->start_ns < tr->start_ns)
		tr->start_ns = s->start_ns;
}

static int by_trace_start(const void *a, const void *b)
{
	const struct trace *x = *(struct trace *const *)a, *y = *(struct trace *const *)b;

	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Prints traces that are complete, or came before `before_ns`, in the order in which they began. */
static int put_ready(struct rs_text *t, uint64_t before_ns)
{
	int width = t->o.width ? rs_term_width(t->o.fd) : 0;
	struct rs_list *pos;
	size_t n = 0;

	/* Terminals change their size. */
	if (width && width != t->o.width) {
		t->o.width = width;
		choose_columns(&t->col, width);
	}
	rs_list_for_each (pos, &t->lru) {
		struct trace *tr = rs_list_entry(pos, struct trace, lru);

		if (tr->ready || tr->since_ns < before_ns)
			t->ready[n++] = tr;
	}
	qsort(t->ready, n, sizeof(t->ready[0]), by_trace_start);
	for (size_t i = 0; i < n; i++)
		put_trace(t, t->ready[i]);
	drain(t);
	return t->err;
}

struct rs_text *rs_text_new(const struct rs_text_opts *opts)
{
	struct rs_text *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->o = *opts;
	rs_style_init(&t->st, opts->color);
	choose_columns(&t->col, opts->width);
	rs_map_init(&t->traces, 2 * RS_TEXT_SPANS);
	rs_list_init(&t->lru);
	rs_pool_init(&t->trace_pool, sizeof(struct trace), RS_TEXT_SPANS);
	rs_pool_init(&t->held_pool, sizeof(struct held), RS_TEXT_SPANS);
	if (opts->header)
		put_header(t);
	return t;
}

void rs_text_free(struct rs_text *t)
{
	if (!t)
		return;
	rs_map_release(&t->traces);
	rs_pool_release(&t->trace_pool);
	rs_pool_release(&t->held_pool);
	free(t);
}

int rs_text_batch(struct rs_text *t, const struct rs_batch *b, uint64_t now_ns)
{
	for (const struct rs_resource_spans *rs = b->first; rs; rs = rs->next) {
		for (const struct rs_scope_spans *ss = rs->first; ss; ss = ss->next) {
			for (const struct rs_span *s = ss->first; s; s = s->next)
				take(t, s, &rs->resource, now_ns);
		}
	}
	/* A batch is ordered by process: only now is every span of a trace there. */
	return put_ready(t, 0);
}

int rs_text_tick(struct rs_text *t, uint64_t now_ns)
{
	return put_ready(t, now_ns > RS_TEXT_HOLD_NS ? now_ns - RS_TEXT_HOLD_NS : 0);
}

int rs_text_flush(struct rs_text *t)
{
	return put_ready(t, UINT64_MAX);
}
