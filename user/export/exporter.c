// SPDX-License-Identifier: Apache-2.0
#include "exporter.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "export/intake.h"
#include "export/spool.h"

#define MS	     1000000ull
#define BACKOFF_MIN  (250 * MS)
#define BACKOFF_MAX  (10000 * MS)
#define HURRY_MAX    (250 * MS)
#define POOL_RESERVE (48u << 20) /* what is encoded or compressed, beside the queue */
#define STATE_CHUNK  4096
#define TELL_NS	     (60000 * MS) /* the log tells of errors this often at most */

static const char *const loss_name[RS_LOSS_COUNT] = {
#define RS_LOSS(id, name) [RS_LOSS_##id] = name,
	RS_LOSSES
#undef RS_LOSS
};

const char *rs_loss_name(enum rs_loss l)
{
	return loss_name[l];
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

void rs_exporter_drop(struct rs_exporter *e, struct rs_item *it, enum rs_loss how)
{
	e->lost[how] += it->spans;
	finish_item(e, it);
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
		rs_exporter_drop(e, it, RS_LOSS_GAVE_UP);
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
		if (e->failures && e->told_ns > e->last_ok_ns)
			rs_info("exporter %s, %s: works again", e->ops->name, e->target);
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
			rs_exporter_drop(e, it, RS_LOSS_TOO_BIG);
		break;
	case RS_V_DROP:
		note_error(e, v->why);
		e->failures = 0;
		rs_exporter_drop(e, it, v->loss);
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
	if (rc) {
		end_send(s);
	} else {
		e->requests++;
		e->begun = true;
	}
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
		rs_exporter_drop(e, it, RS_LOSS_GAVE_UP);
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

void rs_exporter_batch(struct rs_exporter *e, const struct rs_batch *b)
{
	e->spans_in += b->nspans;
	if (e->ops->refuse && e->ops->refuse(e, rs_clock_mono())) {
		e->lost[RS_LOSS_LIMITED] += b->nspans;
		return;
	}
	rs_intake(e, b);
	kick(e);
}

void rs_exporter_tick(struct rs_exporter *e, uint64_t now_ns)
{
	if (e->ops->tick)
		e->ops->tick(e, now_ns);
	rs_bufpool_tick(&e->pool, now_ns);
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

/* All that comes of the configuration and may change: where to, and how. */
static int set_up(struct rs_exporter *e, const struct rs_config *cfg, char *err, size_t size)
{
	const struct rs_exporter_ops *ops = e->ops;
	int rc;

	rs_arena_init(&e->mem, STATE_CHUNK, 0);
	e->cfg = cfg;
	e->url = e->target = NULL;
	e->nsecrets = 0;
	e->protocol[0] = 0;
	e->begun = false;
	e->enc_opts = (struct rs_encoder_opts){ .max_payload = ops->max_payload };
	e->conf = (struct rs_http_conf){ .timeout_ns = cfg->export_timeout,
					 .ca = cfg->tls_ca,
					 .cert = cfg->tls_cert,
					 .key = cfg->tls_key,
					 .http2 = ops->grpc,
					 .user_agent = "ringspan/" RS_VERSION };
	e->compression = RS_COMPRESS_NONE;
	if (can_compress(ops, (enum rs_compression)cfg->compression))
		e->compression = (enum rs_compression)cfg->compression;
	if (ops->state_size) {
		e->state = rs_arena_alloc(&e->mem, ops->state_size);
		if (!e->state) {
			snprintf(err, size, "exporter %s: out of memory", ops->name);
			return -ENOMEM;
		}
		memset(e->state, 0, ops->state_size);
	}
	rc = ops->open ? ops->open(e, err, size) : rs_exporter_default_endpoint(e, err, size);
	return rc ? rc : open_encoders(e, err, size);
}

static void tear_down(struct rs_exporter *e)
{
	if (e->ops->close && (e->state || !e->ops->state_size))
		e->ops->close(e);
	e->state = NULL;
	for (int i = 0; i < RS_EXPORT_FORMS; i++) {
		rs_encoder_free(e->enc[i]);
		e->enc[i] = NULL;
	}
	rs_arena_release(&e->mem);
}

int rs_exporter_open(struct rs_exporter *e, const struct rs_exporter_ops *ops, const char *target,
		     const struct rs_config *cfg, struct rs_http *http, struct rs_loop *loop,
		     char *err, size_t size)
{
	int rc;

	*e = (struct rs_exporter){ .ops = ops, .http = http, .loop = loop, .asked = target };
	e->writable.fd = -1;
	rs_queue_init(&e->q, cfg->queue_spans, cfg->queue_bytes);
	if (getrandom(&e->rng, sizeof(e->rng), GRND_NONBLOCK) != (ssize_t)sizeof(e->rng) || !e->rng)
		e->rng = rs_clock_mono() | 1;
	for (int i = 0; i < RS_EXPORT_INFLIGHT; i++) {
		e->send[i].e = e;
		e->send[i].req.done = on_done;
		e->send[i].req.on_header = on_header;
		e->send[i].req.arg = &e->send[i];
	}
	if (rs_bufpool_init(&e->pool, cfg->queue_bytes + POOL_RESERVE)) {
		snprintf(err, size, "exporter %s: out of memory", ops->name);
		return -ENOMEM;
	}
	rc = set_up(e, cfg, err, size);
	if (!rc)
		rc = open_spool(e, err, size);
	if (!rc && ops->tick)
		ops->tick(e, rs_clock_mono());
	return rc;
}

int rs_exporter_check(const struct rs_exporter_ops *ops, struct str target,
		      const struct rs_config *cfg, char *err, size_t size)
{
	struct rs_exporter *e;
	char *to = NULL;
	int rc = -ENOMEM;

	if (ops->write)
		return 0;
	e = calloc(1, sizeof(*e));
	if (e && target.len)
		to = strndup(target.ptr, target.len);
	if (e && (to || !target.len) && !rs_bufpool_init(&e->pool, POOL_RESERVE)) {
		e->ops = ops;
		e->asked = to;
		rc = set_up(e, cfg, err, size);
		tear_down(e);
		rs_bufpool_release(&e->pool);
	} else {
		snprintf(err, size, "exporter %s: out of memory", ops->name);
	}
	free(to);
	free(e);
	return rc;
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

int rs_exporter_move(struct rs_exporter *e, const struct rs_config *cfg, char *err, size_t size)
{
	const struct rs_config *old = e->cfg;
	char ignored[256];
	int rc;

	if (e->ops->write)
		return 0;
	stop_sends(e);
	tear_down(e);
	rc = set_up(e, cfg, err, size);
	if (rc) {
		tear_down(e);
		/* It was right before. */
		if (set_up(e, old, ignored, sizeof(ignored)))
			rs_error("exporter %s: %s", e->ops->name, ignored);
		return rc;
	}
	e->failures = 0;
	e->hold_until_ns = 0;
	e->server_wait = false;
	if (e->ops->tick)
		e->ops->tick(e, rs_clock_mono());
	return 0;
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
	tear_down(e);
	rs_queue_release(&e->q);
	rs_spool_close(e->spool);
	if (e->pool.scratch)
		rs_bufpool_release(&e->pool);
	rs_zip_release(&e->zip);
}
