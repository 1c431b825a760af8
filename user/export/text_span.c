// SPDX-License-Identifier: Apache-2.0
#include "text_span.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/human.h"
#include "base/utf8.h"

#define TIMES "\xc3\x97" /* × */

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

static void describe_request(struct rs_text_span *h, const struct rs_span *s)
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
		path = str_find(path, '/') < path.len	? str_from(path, str_find(path, '/'))
		       : str_eq(method, STR("OPTIONS")) ? STR("*") /* RFC 9112 3.2.4 */
							: STR("/");
	}
	add(h->request, sizeof(h->request), path);
	if (query.len) {
		add(h->request, sizeof(h->request), STR("?"));
		add(h->request, sizeof(h->request), query);
	}
}

static void describe_peer(struct rs_text_span *h, const struct rs_span *s)
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

static void note_item(struct rs_text_span *h, struct str s)
{
	if (*h->note)
		add(h->note, sizeof(h->note), STR(", "));
	add(h->note, sizeof(h->note), s);
}

static void note_event(struct rs_text_span *h, const struct rs_event *e)
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

static void describe_note(struct rs_text_span *h, const struct rs_span *s)
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

void rs_text_describe(struct rs_text_span *h, const struct rs_span *s, const struct rs_resource *r)
{
	struct str service = find_str(&r->attrs, RS_K_SERVICE_NAME);
	int64_t code = find_int(&s->attrs, RS_K_HTTP_RESPONSE_STATUS_CODE);

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
