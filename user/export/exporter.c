// SPDX-License-Identifier: Apache-2.0
#include "exporter.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "export/spool.h"

#define MS	     1000000ull
#define BACKOFF_MIN  (250 * MS)
#define BACKOFF_MAX  (10000 * MS)
#define HURRY_MAX    (250 * MS)
#define POOL_RESERVE (48u << 20) /* what is encoded or compressed, beside the queue */
#define STATE_CHUNK  4096
#define COMPACT_MAX  (30u << 10)  /* bytes of a message that is copied to a small buffer */
#define TELL_NS	     (60000 * MS) /* the log tells of errors this often at most */

static const struct {
	const char *name;
} loss_info[RS_LOSS_COUNT] = {
#define RS_LOSS(id, name) [RS_LOSS_##id] = { name },
	RS_LOSSES
#undef RS_LOSS
};

const char *rs_loss_name(enum rs_loss l)
{
	return loss_info[l].name;
}

#define RS_EXPORTER(symbol, name) extern const struct rs_exporter_ops rs_exporter_##symbol;
#include "exporters.def"
#undef RS_EXPORTER

static const struct rs_exporter_ops *const all[] = {
#define RS_EXPORTER(symbol, name) &rs_exporter_##symbol,
#include "exporters.def"
#undef RS_EXPORTER
	NULL,
};

const struct rs_exporter_ops *rs_exporter_ops_at(size_t i)
{
	return all[i];
}

const struct rs_exporter_ops *rs_exporter_find(struct str name)
{
	for (size_t i = 0; all[i]; i++) {
		if (str_eq(str_c(all[i]->name), name))
			return all[i];
	}
	return NULL;
}

const char *rs_exporter_str(struct rs_exporter *e, struct str s)
{
	char *p = rs_arena_alloc(&e->mem, s.len + 1);

	if (!p)
		return NULL;
	if (s.len)
		memcpy(p, s.ptr, s.len);
	p[s.len] = 0;
	return p;
}

/* -- words -- */

void rs_exporter_secret(struct rs_exporter *e, const char *text)
{
	if (text && strlen(text) >= 4 && e->nsecrets < RS_EXPORT_SECRETS)
		e->secret[e->nsecrets++] = text;
}

/* Backends like to repeat what was sent. */
static void hide_secrets(const struct rs_exporter *e, char *text)
{
	for (int i = 0; i < e->nsecrets; i++) {
		size_t n = strlen(e->secret[i]);
		char *p;

		while ((p = strstr(text, e->secret[i])))
			memset(p, '*', n);
	}
}

static void note_error(struct rs_exporter *e, const char *why)
{
	snprintf(e->last_error, sizeof(e->last_error), "%s", why);
	for (char *p = e->last_error; *p; p++) {
		if ((unsigned char)*p < ' ' || (unsigned char)*p >= 0x7f)
			*p = ' ';
	}
	hide_secrets(e, e->last_error);
	e->last_err_ns = rs_clock_mono();
	if (!e->told_ns || e->last_err_ns - e->told_ns >= TELL_NS) {
		rs_warn("exporter %s, %s: %s", e->ops->name, e->target, e->last_error);
		e->told_ns = e->last_err_ns;
	}
}

void rs_exporter_error(struct rs_exporter *e, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note_error(e, text);
}

/* -- waiting -- */

static uint64_t next_random(struct rs_exporter *e)
{
	e->rng ^= e->rng << 13;
	e->rng ^= e->rng >> 7;
	e->rng ^= e->rng << 17;
	return e->rng;
}

/* Doubling, and a fifth more or less: agents of many nodes must not come back all at once. */
static uint64_t backoff(struct rs_exporter *e)
{
	uint64_t ns = BACKOFF_MIN << (e->failures > 6 ? 6 : e->failures);

	if (ns > BACKOFF_MAX)
		ns = BACKOFF_MAX;
	if (e->draining && ns > HURRY_MAX)
		ns = HURRY_MAX;
	return ns * (800 + next_random(e) % 401) / 1000;
}

static void hold(struct rs_exporter *e, uint64_t wait_ns)
{
	uint64_t own = backoff(e);

	e->server_wait = wait_ns > own;
	e->hold_until_ns = rs_clock_mono() + (wait_ns > own ? wait_ns : own);
	e->failures++;
}

/* -- the end of a message -- */

static void finish_item(struct rs_exporter *e, struct rs_item *it)
{
	if (it->spool_id)
		rs_spool_ack(e->spool, it->spool_id);
	rs_queue_done(&e->q, it);
}

static void lose(struct rs_exporter *e, struct rs_item *it, enum rs_loss how)
{
	e->lost[how] += it->spans;
	finish_item(e, it);
}

void rs_exporter_drop(struct rs_exporter *e, struct rs_item *it, enum rs_loss how)
{
	lose(e, it, how);
}

static bool split(struct rs_exporter *e, struct rs_item *it)
{
	struct rs_payload half[2] = { 0 };
	uint32_t spans[2];

	if (it->spans < 2 || !e->ops->split || !e->ops->split(e, it, half, spans))
		return false;
	for (int i = 1; i >= 0; i--) {
		if (rs_queue_push_part(&e->q, it, &half[i], spans[i]))
			continue;
		e->lost[RS_LOSS_NO_MEMORY] += spans[i];
		rs_payload_release(&half[i]);
	}
	finish_item(e, it);
	return true;
}

static void again(struct rs_exporter *e, struct rs_item *it, const struct rs_verdict *v)
{
	note_error(e, v->why);
	hold(e, v->wait_ns);
	if (e->cfg->retry_for && rs_clock_mono() - it->queued_ns > e->cfg->retry_for) {
		lose(e, it, RS_LOSS_GAVE_UP);
		return;
	}
	e->retried += it->spans;
	it->tried = true;
	rs_queue_back(&e->q, it);
}

static void conclude(struct rs_exporter *e, struct rs_item *it, struct rs_verdict *v)
{
	switch (v->kind) {
	case RS_V_DONE:
		if (v->rejected > it->spans)
			v->rejected = it->spans;
		e->sent += it->spans - v->rejected;
		e->lost[RS_LOSS_REJECTED] += v->rejected;
		e->last_ok_ns = rs_clock_mono();
		if (*v->why)
			note_error(e, v->why);
		e->failures = 0;
		e->hold_until_ns = 0;
		finish_item(e, it);
		break;
	case RS_V_RETRY:
		again(e, it, v);
		break;
	case RS_V_SPLIT:
		note_error(e, v->why);
		e->failures = 0;
		if (!split(e, it))
			lose(e, it, RS_LOSS_TOO_BIG);
		break;
	case RS_V_DROP:
		note_error(e, v->why);
		e->failures = 0;
		lose(e, it, v->loss);
		break;
	case RS_V_LATER:
		rs_queue_back(&e->q, it);
		break;
	}
}

/* -- sending -- */

static void kick(struct rs_exporter *e);

static void end_send(struct rs_send *s)
{
	rs_payload_release(&s->zip);
	s->item = NULL;
}

static void on_done(void *arg, struct rs_http_req *r)
{
	struct rs_send *s = arg;
	struct rs_exporter *e = s->e;
	struct rs_item *it = s->item;
	struct rs_verdict v = { 0 };

	/* HTTP's word is its status: a body that was cut off behind it takes nothing back. gRPC's comes in
	 * the trailers. */
	if (!e->ops->grpc && r->rc != CURLE_OK && r->sent_all && r->status / 100 == 2)
		v.kind = RS_V_DONE;
	else
		e->ops->verdict(s, &v);
	if (r->rc != CURLE_OK && r->sent_all && v.kind == RS_V_RETRY)
		e->uncertain += it->spans;
	if (v.kind == RS_V_DONE)
		e->bytes_sent += r->len;
	end_send(s);
	conclude(e, it, &v);
	kick(e);
}

static void on_header(void *arg, struct str name, struct str value)
{
	struct rs_send *s = arg;

	if (s->e->ops->header)
		s->e->ops->header(s, name, value);
}

/* The body: as it is, compressed, or as a gRPC message of either. */
static int set_body(struct rs_send *s)
{
	struct rs_exporter *e = s->e;
	const struct rs_payload *pl = &s->item->data;
	struct iovec *iov = s->iov + e->ops->grpc; /* behind the message's head */
	struct str tail = e->ops->tail ? e->ops->tail(s) : STR_NONE;
	int n = pl->niov, rc;

	s->req.len = pl->len + tail.len;
	memcpy(iov, pl->iov, sizeof(iov[0]) * (size_t)n);
	if (tail.len)
		iov[n++] = (struct iovec){ (void *)tail.ptr, tail.len };
	if (e->compression != RS_COMPRESS_NONE) {
		rc = rs_compress(&e->zip, e->compression, &e->pool, iov, n, &s->zip);
		if (rc)
			return rc;
		s->req.len = s->zip.len;
		n = s->zip.niov;
		memcpy(iov, s->zip.iov, sizeof(iov[0]) * (size_t)n);
		if (!e->ops->grpc)
			rs_http_header(&s->req, "Content-Encoding: %s",
				       rs_compression_name(e->compression));
	}
	if (e->ops->grpc) {
		uint32_t len = (uint32_t)s->req.len;

		s->frame[0] = s->zip.niov > 0;
		for (int i = 0; i < 4; i++)
			s->frame[1 + i] = (char)(len >> (24 - 8 * i));
		s->iov[0] = (struct iovec){ s->frame, 5 };
		s->req.len += 5;
		n++;
	}
	s->req.iov = s->iov;
	s->req.niov = n;
	return 0;
}

static int start(struct rs_send *s, struct rs_item *it)
{
	struct rs_exporter *e = s->e;
	int rc = 0;

	s->item = it;
	s->url = e->url;
	s->grpc_status = -1;
	s->grpc_message[0] = 0;
	s->grpc_details_len = 0;
	rc = set_body(s);
	if (!rc) {
		if (e->ops->request)
			e->ops->request(s);
		rc = rs_http_start(e->http, &s->req, &e->conf, s->url);
	}
	if (rc)
		end_send(s);
	else
		e->requests++;
	return rc;
}

/* Bytes that are on disk only come back. false: they are lost, and counted. */
static bool load(struct rs_exporter *e, struct rs_item *it)
{
	struct rs_payload pl;
	int rc;

	if (it->data.niov)
		return true;
	rc = rs_spool_read(e->spool, it->spool_id, &e->pool, &pl);
	if (!rc) {
		rs_queue_load(&e->q, it, &pl);
		return true;
	}
	if (rc == -ENOBUFS || rc == -ENOMEM) {
		hold(e, 0);
	} else {
		rs_exporter_error(e, "spool: cannot read back: %s", strerror(-rc));
		lose(e, it, RS_LOSS_GAVE_UP);
	}
	return false;
}

static struct rs_send *free_send(struct rs_exporter *e)
{
	/* After a failure one message tries the way for all. */
	if (e->failures && e->q.nflying)
		return NULL;
	for (int i = 0; i < RS_EXPORT_INFLIGHT; i++) {
		if (!e->send[i].item)
			return &e->send[i];
	}
	return NULL;
}

static void kick_http(struct rs_exporter *e)
{
	struct rs_item *it;
	struct rs_send *s;

	while ((it = rs_queue_oldest(&e->q)) && (s = free_send(e))) {
		if (!load(e, it)) {
			if (e->hold_until_ns)
				return;
			continue;
		}
		rs_queue_take(&e->q, it);
		if (start(s, it) == 0)
			continue;
		rs_queue_back(&e->q, it);
		rs_exporter_error(e, "out of memory for a request");
		hold(e, 0);
		return;
	}
}

static void kick_write(struct rs_exporter *e)
{
	struct rs_item *it;

	while (!e->hold_until_ns && (it = rs_queue_oldest(&e->q))) {
		struct rs_verdict v = { 0 };

		if (!load(e, it))
			continue;
		e->ops->write(e, it, &v);
		if (v.kind == RS_V_LATER)
			return;
		if (v.kind == RS_V_DONE)
			e->bytes_sent += it->data.len;
		rs_queue_take(&e->q, it);
		conclude(e, it, &v);
	}
}

static void kick(struct rs_exporter *e)
{
	if (e->hold_until_ns) {
		if (rs_clock_mono() < e->hold_until_ns)
			return;
		e->hold_until_ns = 0;
	}
	if (e->ops->write)
		kick_write(e);
	else
		kick_http(e);
}

/* -- batches in -- */

static bool make_room(struct rs_exporter *e)
{
	struct rs_item *it = rs_queue_oldest(&e->q);

	/* The rest of a line that is half written stays. */
	if (it && it->at)
		it = it->link.next == &e->q.waiting
			     ? NULL
			     : rs_list_entry(it->link.next, struct rs_item, link);
	if (!it)
		return false;
	lose(e, it, RS_LOSS_QUEUE_FULL);
	return true;
}

/* On disk first: then it survives whatever comes. Memory is spared when there is too little of it. */
static void to_spool(struct rs_exporter *e, struct rs_item *it)
{
	int rc;

	if (!e->spool)
		return;
	rc = rs_spool_add(e->spool, it->form, it->spans, &it->data, &it->spool_id);
	if (rc)
		rs_exporter_error(e, "spool: %s", strerror(-rc));
	else if (rs_queue_over(&e->q))
		rs_queue_unload(&e->q, it);
}

/* Encoders write into large buffers; a message that is small waits in a small one. */
static void compact(struct rs_exporter *e, struct rs_payload *pl)
{
	struct rs_payload small = { .pool = &e->pool, .niov = 1, .len = pl->len };
	size_t at = 0;

	if (pl->len > COMPACT_MAX || rs_bufpool_get(&e->pool, pl->len, &small.buf[0]))
		return;
	for (int i = 0; i < pl->niov; i++) {
		memcpy(small.buf[0]->data + at, pl->iov[i].iov_base, pl->iov[i].iov_len);
		at += pl->iov[i].iov_len;
	}
	small.iov[0] = (struct iovec){ small.buf[0]->data, at };
	rs_payload_release(pl);
	*pl = small;
}

static void enqueue(struct rs_exporter *e, struct rs_payload *pl, uint32_t spans,
		    struct str container)
{
	struct rs_item *it;

	compact(e, pl);
	it = rs_queue_push(&e->q, pl, spans, e->form, rs_clock_mono());
	if (!it) {
		e->lost[RS_LOSS_NO_MEMORY] += spans;
		rs_payload_release(pl);
		return;
	}
	if (container.len && container.len < sizeof(it->container)) {
		memcpy(it->container, container.ptr, container.len);
		it->container[container.len] = 0;
	}
	to_spool(e, it);
	while (rs_queue_over(&e->q) && rs_queue_oldest(&e->q) != it && make_room(e))
		;
	/* All else is in flight, and this is too much. */
	if (rs_queue_over(&e->q) && e->q.nwaiting == 1 && e->q.nflying)
		make_room(e);
}

static void encode(struct rs_exporter *e, const struct rs_batch *b, struct str container)
{
	struct rs_encode run = { .batch = b };
	uint32_t before = 0, skipped = 0;
	int rc;

	while (!run.done) {
		rc = rs_encode(e->enc[e->form], &run);
		if (!rc && run.out.niov) {
			enqueue(e, &run.out, run.spans - before, container);
			before = run.spans;
		} else if (!rc && run.done) {
			break;
		} else if (!make_room(e)) {
			break;
		}
	}
	for (int i = 0; i < RS_SKIP_COUNT; i++)
		skipped += run.skipped[i];
	e->lost[RS_LOSS_ENCODE] += skipped;
	e->lost[RS_LOSS_NO_MEMORY] += b->nspans - before - skipped;
}

static struct str container_of(const struct rs_resource_spans *rs)
{
	const struct rs_attrs *as = &rs->resource.attrs;

	for (uint32_t i = 0; i < as->n; i++) {
		if (as->a[i].key == rs_key(RS_K_CONTAINER_ID) && as->a[i].val.type == RS_VAL_STR)
			return str_of(as->a[i].val.str, as->a[i].val.len);
	}
	return STR_NONE;
}

static uint32_t spans_of(const struct rs_resource_spans *rs)
{
	uint32_t n = 0;

	for (const struct rs_scope_spans *ss = rs->first; ss; ss = ss->next)
		n += ss->nspans;
	return n;
}

/* Each container's resources as a batch of their own: the same spans, under copies of the resources' heads. So
 * many resources are looked at together; a container with more gets more messages. */
#define TOGETHER 64

static const struct rs_resource_spans *encode_some(struct rs_exporter *e, const struct rs_batch *b,
						   const struct rs_resource_spans *from)
{
	struct rs_resource_spans copy[TOGETHER];
	struct str container[TOGETHER];
	int n = 0;

	for (; from && n < TOGETHER; from = from->next) {
		container[n] = container_of(from);
		copy[n++] = *from;
	}
	for (int i = 0; i < n; i++) {
		struct rs_batch some = { .serial = b->serial };
		struct str id = container[i];

		if (!copy[i].first)
			continue; /* it was another one's */
		for (int k = i; k < n; k++) {
			struct rs_resource_spans *rs = &copy[k];

			if (!rs->first || !str_eq(container[k], id))
				continue;
			rs->next = NULL;
			*(some.last ? &some.last->next : &some.first) = rs;
			some.last = rs;
			some.nspans += spans_of(rs);
		}
		encode(e, &some, id);
		for (struct rs_resource_spans *rs = some.first; rs; rs = rs->next)
			rs->first = NULL;
	}
	return from;
}

void rs_exporter_batch(struct rs_exporter *e, const struct rs_batch *b)
{
	const struct rs_resource_spans *rs = b->first;

	e->spans_in += b->nspans;
	if (e->ops->refuse && e->ops->refuse(e, rs_clock_mono())) {
		e->lost[RS_LOSS_LIMITED] += b->nspans;
		return;
	}
	if (!e->ops->by_container)
		encode(e, b, STR_NONE);
	while (e->ops->by_container && rs)
		rs = encode_some(e, b, rs);
	kick(e);
}

void rs_exporter_tick(struct rs_exporter *e, uint64_t now_ns)
{
	if (e->ops->tick)
		e->ops->tick(e, now_ns);
	kick(e);
}

void rs_exporter_hurry(struct rs_exporter *e)
{
	e->draining = true;
	if (e->hold_until_ns && !e->server_wait)
		e->hold_until_ns = 0;
	kick(e);
}

uint64_t rs_exporter_held(const struct rs_exporter *e)
{
	return e->q.spans;
}

void rs_verdict_http(struct rs_send *s, struct rs_verdict *v)
{
	const struct rs_http_req *r = &s->req;

	rs_http_explain(r, v->why, sizeof(v->why));
	if (r->too_big) {
		v->kind = RS_V_DROP;
		v->loss = RS_LOSS_REJECTED;
		return;
	}
	if (r->rc != CURLE_OK) {
		v->kind = RS_V_RETRY;
		return;
	}
	switch (r->status) {
	case 200 ... 299:
		v->kind = RS_V_DONE;
		v->why[0] = 0;
		break;
	case 413:
		v->kind = RS_V_SPLIT;
		break;
	case 429:
	case 502:
	case 503:
	case 504:
		v->kind = RS_V_RETRY;
		v->wait_ns = r->retry_after_ns == RS_HTTP_NO_WAIT ? 0 : r->retry_after_ns;
		break;
	default:
		v->kind = RS_V_DROP;
		v->loss = RS_LOSS_REJECTED;
		break;
	}
}

/* -- endpoints -- */

static int bad_endpoint(struct rs_exporter *e, char *err, size_t size, const char *why)
{
	/* The text itself may hold a password. */
	snprintf(err, size, "exporter %s: the endpoint is no URL: %s", e->ops->name, why);
	return -EINVAL;
}

static const char *url_part(struct rs_exporter *e, CURLU *u, CURLUPart part, unsigned flags)
{
	const char *copy = NULL;
	char *text = NULL;

	if (curl_url_get(u, part, &text, flags) == CURLUE_OK)
		copy = rs_exporter_str(e, str_c(text));
	curl_free(text);
	return copy;
}

/* Takes user and password out of the URL: they would be shown with it. */
static int take_userinfo(struct rs_exporter *e, CURLU *u)
{
	const char *user = url_part(e, u, CURLUPART_USER, CURLU_URLDECODE);
	const char *password = url_part(e, u, CURLUPART_PASSWORD, CURLU_URLDECODE);
	char both[1024];

	if (!user && !password)
		return 0;
	snprintf(both, sizeof(both), "%s:%s", user ? user : "", password ? password : "");
	e->conf.userpwd = rs_exporter_str(e, str_c(both));
	rs_exporter_secret(e, password);
	curl_url_set(u, CURLUPART_USER, NULL, 0);
	curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
	return e->conf.userpwd ? 0 : -ENOMEM;
}

static int set_path(struct rs_exporter *e, CURLU *u, enum rs_endpoint_path how)
{
	const char *path = url_part(e, u, CURLUPART_PATH, 0), *own = e->ops->path;
	char joined[2048];
	size_t n = path ? strlen(path) : 0;

	if (!own || how == RS_PATH_EXACT || (how == RS_PATH_AUTO && n > 1))
		return 0;
	while (n && path[n - 1] == '/')
		n--;
	snprintf(joined, sizeof(joined), "%.*s%s", (int)n, path ? path : "", own);
	return curl_url_set(u, CURLUPART_PATH, joined, 0) == CURLUE_OK ? 0 : -EINVAL;
}

static int parse_url(struct rs_exporter *e, CURLU *u, const char *text, enum rs_endpoint_path how,
		     const char *scheme)
{
	const char *query;
	char full[2048];

	snprintf(full, sizeof(full), "%s%s%s", strstr(text, "://") ? "" : scheme,
		 strstr(text, "://") ? "" : "://", text);
	if (curl_url_set(u, CURLUPART_URL, full, 0) != CURLUE_OK || take_userinfo(e, u) ||
	    set_path(e, u, how))
		return -EINVAL;
	e->url = url_part(e, u, CURLUPART_URL, 0);
	query = url_part(e, u, CURLUPART_QUERY, 0);
	rs_exporter_secret(e, query);
	curl_url_set(u, CURLUPART_QUERY, NULL, 0);
	curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
	if (!e->target)
		e->target = url_part(e, u, CURLUPART_URL, 0);
	return e->url && e->target ? 0 : -ENOMEM;
}

int rs_exporter_endpoint(struct rs_exporter *e, const char *text, enum rs_endpoint_path path,
			 const char *scheme, char *err, size_t size)
{
	const char *unix_prefix = "unix://";
	CURLU *u;
	int rc;

	if (strncmp(text, unix_prefix, strlen(unix_prefix)) == 0) {
		e->conf.unix_path = text + strlen(unix_prefix);
		e->target = text;
		text = "http://localhost";
	}
	u = curl_url();
	rc = u ? parse_url(e, u, text, path, scheme) : -ENOMEM;
	curl_url_cleanup(u);
	if (rc)
		return bad_endpoint(e, err, size,
				    "it is written http://HOST:PORT, https://… or unix:///PATH");
	if (strncmp(e->url, "http://", 7) && strncmp(e->url, "https://", 8))
		return bad_endpoint(e, err, size, "only http, https and unix are known");
	return 0;
}

int rs_exporter_default_endpoint(struct rs_exporter *e, char *err, size_t size)
{
	const char *text = e->asked	      ? e->asked
			   : e->cfg->endpoint ? e->cfg->endpoint
					      : e->ops->endpoint;

	if (text)
		return rs_exporter_endpoint(e, text, RS_PATH_AUTO, "http", err, size);
	snprintf(err, size, "exporter %s: where to? give --endpoint", e->ops->name);
	return -EINVAL;
}

/* -- life -- */

static bool can_compress(const struct rs_exporter_ops *ops, enum rs_compression how)
{
	return how == RS_COMPRESS_GZIP ? ops->gzip : how == RS_COMPRESS_ZSTD ? ops->zstd : true;
}

static int open_encoders(struct rs_exporter *e, char *err, size_t size)
{
	for (int i = 0; i < RS_EXPORT_FORMS && e->ops->encoder[i]; i++) {
		int rc = rs_encoder_new(e->ops->encoder[i], &e->pool, &e->enc_opts, &e->enc[i]);

		if (rc) {
			snprintf(err, size, "exporter %s: format %s: %s", e->ops->name,
				 e->ops->encoder[i], strerror(-rc));
			return rc;
		}
	}
	return 0;
}

/* What an earlier run left on disk. */
static void on_spooled(void *arg, uint64_t id, uint8_t form, uint32_t spans)
{
	struct rs_exporter *e = arg;
	struct rs_payload none = { 0 };
	struct rs_item *it = rs_queue_push(&e->q, &none, spans, form, rs_clock_mono());

	e->spans_in += spans;
	if (it)
		it->spool_id = id;
	else
		e->lost[RS_LOSS_NO_MEMORY] += spans;
}

/* The spool was full and gave up its oldest segment. */
static void on_spool_dropped(void *arg, uint64_t id)
{
	struct rs_exporter *e = arg;
	struct rs_list *pos;

	rs_list_for_each (pos, &e->q.waiting) {
		struct rs_item *it = rs_list_entry(pos, struct rs_item, link);

		if (it->spool_id != id)
			continue;
		/* Its bytes are in memory still: nothing is lost yet. */
		if (it->data.niov) {
			it->spool_id = 0;
			return;
		}
		e->lost[RS_LOSS_QUEUE_FULL] += it->spans;
		rs_queue_done(&e->q, it);
		return;
	}
	rs_list_for_each (pos, &e->q.flying) {
		struct rs_item *it = rs_list_entry(pos, struct rs_item, link);

		if (it->spool_id == id)
			it->spool_id = 0;
	}
}

static int open_spool(struct rs_exporter *e, char *err, size_t size)
{
	const struct rs_spool_opts opts = {
		.dir = e->cfg->spool,
		.name = e->ops->name,
		.max_bytes = e->cfg->spool_bytes,
		.found = on_spooled,
		.dropped = on_spool_dropped,
		.arg = e,
	};

	if (!e->cfg->spool || e->ops->write)
		return 0;
	/* The spool has its own bound; in memory only bytes count. */
	e->q.max_spans = UINT64_MAX;
	return rs_spool_open(&opts, &e->spool, err, size);
}

int rs_exporter_open(struct rs_exporter *e, const struct rs_exporter_ops *ops, const char *target,
		     const struct rs_config *cfg, struct rs_http *http, struct rs_loop *loop,
		     char *err, size_t size)
{
	int rc;

	*e = (struct rs_exporter){
		.ops = ops, .cfg = cfg, .http = http, .loop = loop, .asked = target
	};
	e->writable.fd = -1;
	rs_arena_init(&e->mem, STATE_CHUNK, 0);
	rs_queue_init(&e->q, cfg->queue_spans, cfg->queue_bytes);
	if (getrandom(&e->rng, sizeof(e->rng), GRND_NONBLOCK) != (ssize_t)sizeof(e->rng) || !e->rng)
		e->rng = rs_clock_mono() | 1;
	for (int i = 0; i < RS_EXPORT_INFLIGHT; i++) {
		e->send[i].e = e;
		e->send[i].req.done = on_done;
		e->send[i].req.on_header = on_header;
		e->send[i].req.arg = &e->send[i];
	}
	e->conf = (struct rs_http_conf){ .timeout_ns = cfg->export_timeout,
					 .ca = cfg->tls_ca,
					 .cert = cfg->tls_cert,
					 .key = cfg->tls_key,
					 .http2 = ops->grpc,
					 .user_agent = "ringspan/" RS_VERSION };
	if (can_compress(ops, (enum rs_compression)cfg->compression))
		e->compression = (enum rs_compression)cfg->compression;
	if (ops->state_size) {
		e->state = rs_arena_alloc(&e->mem, ops->state_size);
		if (e->state)
			memset(e->state, 0, ops->state_size);
	}
	rc = rs_bufpool_init(&e->pool, cfg->queue_bytes + POOL_RESERVE);
	if (rc || (ops->state_size && !e->state)) {
		snprintf(err, size, "exporter %s: out of memory", ops->name);
		return -ENOMEM;
	}
	e->enc_opts.max_payload = ops->max_payload;
	rc = ops->open ? ops->open(e, err, size) : rs_exporter_default_endpoint(e, err, size);
	if (!rc)
		rc = open_encoders(e, err, size);
	return rc ? rc : open_spool(e, err, size);
}

static void stop_sends(struct rs_exporter *e)
{
	for (int i = 0; i < RS_EXPORT_INFLIGHT; i++) {
		struct rs_send *s = &e->send[i];

		if (!s->item)
			continue;
		if (s->req.sent_all)
			e->uncertain += s->item->spans;
		rs_http_cancel(&s->req);
		rs_queue_back(&e->q, s->item);
		end_send(s);
	}
}

void rs_exporter_end(struct rs_exporter *e)
{
	struct rs_list *pos, *tmp;

	stop_sends(e);
	rs_list_for_each_safe (pos, tmp, &e->q.waiting) {
		struct rs_item *it = rs_list_entry(pos, struct rs_item, link);

		if (it->spool_id)
			continue;
		e->lost[RS_LOSS_SHUTDOWN] += it->spans;
		rs_queue_done(&e->q, it);
	}
}

void rs_exporter_release(struct rs_exporter *e)
{
	if (!e->ops)
		return;
	stop_sends(e);
	for (int i = 0; i < RS_EXPORT_INFLIGHT; i++)
		rs_http_req_release(&e->send[i].req);
	if (e->ops->close)
		e->ops->close(e);
	rs_queue_release(&e->q);
	rs_spool_close(e->spool);
	for (int i = 0; i < RS_EXPORT_FORMS; i++)
		rs_encoder_free(e->enc[i]);
	if (e->pool.scratch)
		rs_bufpool_release(&e->pool);
	rs_zip_release(&e->zip);
	rs_arena_release(&e->mem);
}
