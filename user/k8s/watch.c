// SPDX-License-Identifier: Apache-2.0
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"

#define MS	    1000000ull
#define SEC	    1000000000ull
#define PAGE	    500		/* objects of a page, where the server does pages */
#define WATCH_S	    290		/* a watch's length; the server ends it */
#define WATCH_IDLE  (100 * SEC) /* bookmarks come about every minute */
#define LIST_IDLE   (15 * SEC)	/* a server that has stopped in the middle */
#define WAIT_FIRST  (50 * MS)
#define WAIT_MAX    (30 * SEC)
#define WAIT_RIGHTS (10 * SEC) /* 403: nothing is gained by asking often */
#define SHORT_LIFE  (1 * SEC) /* a watch that ends sooner than this with nothing in it has failed */
#define HURRY	    (1 * SEC)
#define TOKEN_MAX   (16 * 1024)
#define HEADER_ROOM 7900 /* bytes of a token that go into a header (http.c) */

void rs_watch_init(struct rs_watch *w, const struct rs_watch_opts *o)
{
	*w = (struct rs_watch){ .o = *o };
}

void rs_watch_release(struct rs_watch *w)
{
	rs_http_req_release(&w->req);
	rs_split_release(&w->split);
}

/* -- what comes -- */

static struct str text_of(struct rs_json *j)
{
	struct str s = STR_NONE;

	if (rs_json_peek(j) != RS_JSON_STRING || !rs_json_str(j, &s))
		rs_json_skip(j);
	return s;
}

static bool keep(char *to, size_t size, struct str s)
{
	if (s.len >= size)
		return false;
	memcpy(to, s.ptr ? s.ptr : "", s.len);
	to[s.len] = 0;
	return true;
}

/* ListMeta, or the ObjectMeta of a bookmark: the version, and the next page. */
static void take_metadata(struct rs_watch *w, struct rs_json *j)
{
	struct str key;

	if (rs_json_peek(j) != RS_JSON_OBJECT || !rs_json_object(j)) {
		rs_json_skip(j);
		return;
	}
	while (rs_json_key(j, &key)) {
		if (str_eq(key, STR("resourceVersion")))
			keep(w->version, sizeof(w->version), text_of(j));
		else if (str_eq(key, STR("continue")))
			keep(w->next, sizeof(w->next), text_of(j));
		else
			rs_json_skip(j);
	}
}

static void take_version(struct rs_watch *w, struct str object, struct rs_arena *mem)
{
	struct rs_json j;
	struct str key;

	rs_json_init(&j, object, mem);
	if (rs_json_peek(&j) != RS_JSON_OBJECT || !rs_json_object(&j))
		return;
	while (rs_json_key(&j, &key)) {
		if (!str_eq(key, STR("metadata"))) {
			rs_json_skip(&j);
			continue;
		}
		take_metadata(w, &j);
		return; /* the rest does not matter here */
	}
}

/* An ERROR of the watch: a Status object. */
static void take_error(struct rs_watch *w, struct str object, struct rs_arena *mem)
{
	struct str key, message = STR_NONE;
	struct rs_json j;
	uint64_t code = 0;

	rs_json_init(&j, object, mem);
	if (rs_json_peek(&j) == RS_JSON_OBJECT && rs_json_object(&j)) {
		while (rs_json_key(&j, &key)) {
			if (str_eq(key, STR("code")) && rs_json_peek(&j) == RS_JSON_NUMBER)
				rs_json_u64(&j, &code);
			else if (str_eq(key, STR("message")))
				message = text_of(&j);
			else
				rs_json_skip(&j);
		}
	}
	w->expired = code == 410;
	w->stopped = true;
	snprintf(w->last_error, sizeof(w->last_error), "watch ended by the server: %llu %.*s",
		 (unsigned long long)code, STR_ARG(str_at(message, 0, 160)));
}

/* {"type": "ADDED", "object": {…}} */
static bool take_change(struct rs_watch *w, struct str json)
{
	struct str key, type = STR_NONE, object = STR_NONE;
	struct rs_arena mem;
	struct rs_json j;

	rs_arena_init(&mem, 1024, 64 * 1024);
	rs_json_init(&j, json, &mem);
	if (rs_json_object(&j)) {
		while (rs_json_key(&j, &key)) {
			const char *from;

			if (str_eq(key, STR("type"))) {
				type = text_of(&j);
			} else if (str_eq(key, STR("object"))) {
				rs_json_peek(&j); /* to where it begins */
				from = j.pos;
				rs_json_skip(&j);
				object = str_of(from, (size_t)(j.pos - from));
			} else {
				rs_json_skip(&j);
			}
		}
	}
	if (str_eq(type, STR("ERROR"))) {
		take_error(w, object, &mem);
	} else if (!j.err && object.len) {
		take_version(w, object, &mem);
		w->seen++;
		w->events += !str_eq(type, STR("BOOKMARK"));
		w->failures = 0;
		if (str_eq(type, STR("DELETED")))
			w->o.on_event(w->o.arg, RS_WATCH_DELETED, object);
		else if (!str_eq(type, STR("BOOKMARK")))
			w->o.on_event(w->o.arg, RS_WATCH_OBJECT, object);
	}
	rs_arena_release(&mem);
	return !j.err && !w->stopped;
}

static bool on_object(void *arg, enum rs_split_kind kind, struct str json)
{
	struct rs_watch *w = arg;
	struct rs_arena mem;
	struct rs_json j;

	if (w->state == RS_WATCH_WATCHING)
		return take_change(w, json);
	if (kind == RS_SPLIT_ITEM) {
		w->seen++;
		w->o.on_event(w->o.arg, RS_WATCH_OBJECT, json);
		return true;
	}
	rs_arena_init(&mem, 4096, 64 * 1024);
	rs_json_init(&j, json, &mem);
	take_metadata(w, &j);
	rs_arena_release(&mem);
	return true;
}

static bool on_body(void *arg, struct str bytes)
{
	struct rs_watch *w = arg;

	w->last_ok_ns = rs_clock_mono();
	return rs_split_feed(&w->split, bytes, on_object, w);
}

/* -- what is asked -- */

void rs_watch_token(struct rs_http_req *r, const char *base, const char *file)
{
	char buf[TOKEN_MAX];
	ssize_t n;
	int fd;

	/* Without TLS the other end could be anybody, and everybody could read along. */
	if (!file || strncmp(base, "https://", 8) != 0)
		return;
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, buf, sizeof(buf));
	close(fd);
	while (n > 0 && (buf[n - 1] == '\n' || buf[n - 1] == '\r' || buf[n - 1] == ' '))
		n--;
	if (n > 0 && n < HEADER_ROOM)
		rs_http_header(r, "Authorization: Bearer %.*s", (int)n, buf);
	explicit_bzero(buf, sizeof(buf));
}

static void wait_for(struct rs_watch *w, uint64_t ns)
{
	w->state = RS_WATCH_WAITING;
	w->at_ns = rs_clock_mono() + ns;
}

/* In a row: 0.05 s, 0.1 s, … 30 s, and up to a quarter more: nodes should not come together. */
static void back_off(struct rs_watch *w, uint64_t at_least)
{
	uint32_t n = w->failures < 10 ? w->failures : 10;
	uint64_t ns = WAIT_FIRST << n;

	w->failures++;
	w->failed++;
	w->last_err_ns = rs_clock_mono();
	if (ns > WAIT_MAX)
		ns = WAIT_MAX;
	if (ns < at_least)
		ns = at_least;
	ns += rs_hash_mix(w->last_err_ns) % (ns / 4);
	wait_for(w, ns);
}

/* What broke a list off: it begins anew. */
static void forget_list(struct rs_watch *w)
{
	w->version[0] = w->next[0] = 0;
}

/* An error's body is a Status object: its message is for people. */
static void explain(const struct rs_http_req *r, char *buf, size_t size)
{
	struct str key, message = STR_NONE;
	struct rs_arena mem;
	struct rs_json j;

	rs_http_explain(r, buf, size);
	if (r->rc != CURLE_OK || !r->body_len)
		return;
	rs_arena_init(&mem, 1024, 64 * 1024);
	rs_json_init(&j, str_of(r->body, r->body_len), &mem);
	if (rs_json_peek(&j) == RS_JSON_OBJECT && rs_json_object(&j)) {
		while (!message.len && rs_json_key(&j, &key)) {
			if (str_eq(key, STR("message")))
				message = text_of(&j);
			else
				rs_json_skip(&j);
		}
	}
	if (message.len)
		snprintf(buf, size, "HTTP %ld: %.*s", r->status, STR_ARG(str_at(message, 0, size)));
	rs_arena_release(&mem);
}

static void fail(struct rs_watch *w)
{
	const struct rs_http_req *r = &w->req;
	uint64_t at_least = 0;
	char why[224];

	if (w->state == RS_WATCH_LISTING)
		forget_list(w);
	explain(r, why, sizeof(why));
	if (r->rc == CURLE_WRITE_ERROR)
		snprintf(why, sizeof(why), "what it answers is not such a list");
	if (r->rc == CURLE_OK && r->status == 410) {
		forget_list(w);
		w->fresh = true;
	}
	if (r->rc == CURLE_OK && r->status == 403)
		at_least = WAIT_RIGHTS;
	/* At most the hour: who says more is mistaken, or wants to be rid of us. */
	if (r->retry_after_ns != RS_HTTP_NO_WAIT && r->retry_after_ns < 3600 * SEC)
		at_least = r->retry_after_ns;
	snprintf(w->last_error, sizeof(w->last_error), "%s: %s",
		 w->state == RS_WATCH_LISTING ? "list" : "watch", why);
	back_off(w, at_least);
}

static void list_ended(struct rs_watch *w)
{
	if (!rs_split_whole(&w->split) || (!w->o.poll_ns && !*w->version)) {
		snprintf(w->last_error, sizeof(w->last_error), "list: it is none, or was cut off");
		forget_list(w);
		back_off(w, 0);
		return;
	}
	if (*w->next) {
		wait_for(w, 0);
		return;
	}
	w->o.on_event(w->o.arg, RS_WATCH_LIST_END, STR_NONE);
	w->lists++;
	w->failures = 0;
	w->synced = true;
	w->fresh = false;
	if (w->o.poll_ns)
		w->version[0] = 0;
	wait_for(w, w->o.poll_ns);
}

static void watch_ended(struct rs_watch *w)
{
	uint64_t now = rs_clock_mono();

	if (w->expired) {
		forget_list(w);
		w->fresh = true;
	}
	if (w->stopped && !w->expired) {
		back_off(w, 0);
	} else if (!w->seen && now - w->started_ns < SHORT_LIFE) {
		if (!w->expired)
			snprintf(w->last_error, sizeof(w->last_error), "watch: it ended at once");
		back_off(w, 0);
	} else {
		wait_for(w, 0);
	}
}

static void on_done(void *arg, struct rs_http_req *r)
{
	struct rs_watch *w = arg;

	/* Broken off by us because the server had said that it ends. */
	if (w->stopped || (r->rc == CURLE_OK && r->status == 200)) {
		if (w->state == RS_WATCH_LISTING)
			list_ended(w);
		else
			watch_ended(w);
	} else if (w->state == RS_WATCH_WATCHING && r->status == 200 && w->seen) {
		/* Cut off in the middle of its life: on from where it stood. */
		rs_http_explain(r, w->last_error, sizeof(w->last_error));
		w->failures = 0;
		back_off(w, 0);
	} else {
		fail(w);
	}
}

static void start(struct rs_watch *w)
{
	struct rs_http_conf conf = { .ca = w->o.ca,
				     .insecure = w->o.insecure,
				     .no_proxy = true,
				     .user_agent = "ringspan/" RS_VERSION };
	bool list = w->o.poll_ns || !*w->version || *w->next;
	char url[4096], *escaped;
	int n;

	w->seen = 0;
	w->expired = w->stopped = false;
	w->started_ns = rs_clock_mono();
	if (!list) {
		w->state = RS_WATCH_WATCHING;
		conf.idle_ns = WATCH_IDLE;
		n = snprintf(
			url, sizeof(url),
			"%s%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%s%s",
			w->o.base, w->o.path, WATCH_S, w->version, w->o.query);
	} else if (w->o.poll_ns) {
		w->state = RS_WATCH_LISTING;
		conf.idle_ns = LIST_IDLE;
		n = snprintf(url, sizeof(url), "%s%s", w->o.base, w->o.path);
	} else {
		w->state = RS_WATCH_LISTING;
		conf.idle_ns = LIST_IDLE;
		escaped = curl_easy_escape(NULL, w->next, 0);
		n = snprintf(url, sizeof(url), "%s%s?limit=%d%s%s%s%s", w->o.base, w->o.path, PAGE,
			     *w->next ? "&continue=" : "", *w->next && escaped ? escaped : "",
			     *w->next || w->fresh ? "" : "&resourceVersion=0", w->o.query);
		curl_free(escaped);
	}
	if (list && !*w->next)
		w->o.on_event(w->o.arg, RS_WATCH_LIST_BEGIN, STR_NONE);
	if (list)
		w->next[0] = w->version[0] = 0;
	rs_split_begin(&w->split, list ? RS_SPLIT_LIST : RS_SPLIT_WATCH);
	rs_watch_token(&w->req, w->o.base, w->o.token);
	rs_http_header(&w->req, "Accept: application/json");
	w->req.on_body = on_body;
	w->req.done = on_done;
	w->req.arg = w;
	if (n < 0 || (size_t)n >= sizeof(url) || rs_http_start(w->o.http, &w->req, &conf, url)) {
		snprintf(w->last_error, sizeof(w->last_error), "no memory for a request");
		back_off(w, 0);
	}
}

void rs_watch_tick(struct rs_watch *w, uint64_t now_ns)
{
	if (w->state == RS_WATCH_WAITING && now_ns >= w->at_ns)
		start(w);
}

void rs_watch_hurry(struct rs_watch *w, uint64_t now_ns)
{
	if (w->state == RS_WATCH_WAITING && w->o.poll_ns && !w->failures &&
	    now_ns - w->started_ns >= HURRY)
		w->at_ns = now_ns;
}
