// SPDX-License-Identifier: Apache-2.0
/*
 * Sentry: an envelope per trace, POST /api/PROJECT/envelope/ (develop.sentry.dev, "Envelopes", "Rate limiting",
 * "Client reports").
 *
 * Sentry's rules, not the general ones: an answer of any kind is final, but for no answer at all. Limits are
 * in headers of every answer; while one is on, spans are not sent and are counted. What was not delivered
 * is told to Sentry in a client report with the next envelope.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "export/exporter.h"

#define NS_PER_S	     1000000000ull
#define LIMIT_BARE_429	     (60 * NS_PER_S) /* 429 without any header */
#define CATEGORY_SPAN	     1u
#define CATEGORY_TRANSACTION 2u

enum {
	FORM_SPANS,
	FORM_TRANSACTIONS
};

/* What client reports call the ways of losing spans. */
static const struct {
	enum rs_loss loss;
	const char *reason;
} reasons[] = {
	{ RS_LOSS_QUEUE_FULL, "queue_overflow" }, { RS_LOSS_LIMITED, "ratelimit_backoff" },
	{ RS_LOSS_GAVE_UP, "network_error" },	  { RS_LOSS_REJECTED, "send_error" },
	{ RS_LOSS_TOO_BIG, "send_error" },	  { RS_LOSS_ENCODE, "internal_sdk_error" },
	{ RS_LOSS_NO_MEMORY, "buffer_overflow" },
};

#define NREASONS (sizeof(reasons) / sizeof(reasons[0]))

struct sentry {
	char auth[512];
	uint64_t limited_until_ns; /* of the category we send */
	bool limit_header;	   /* the answer being read had one */
	uint64_t reported[RS_LOSS_COUNT];
	struct rs_send *reporting;	 /* carries a report; NULL: none does */
	uint64_t pending[RS_LOSS_COUNT]; /* what it says */
	char report[1024];
};

/* -- DSN -- */

static bool all_digits(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
	}
	return n > 0;
}

/* Of o123.ingest.sentry.io: "123". */
static void set_org(struct rs_exporter *e, const char *host)
{
	size_t n = strcspn(host, ".");

	if (host[0] == 'o' && all_digits(host + 1, n - 1))
		e->enc_opts.sentry_org = rs_exporter_str(e, str_of(host + 1, n - 1));
}

struct dsn {
	char *scheme, *host, *port, *user, *password, *path;
};

static void free_dsn(struct dsn *d)
{
	curl_free(d->scheme);
	curl_free(d->host);
	curl_free(d->port);
	curl_free(d->user);
	curl_free(d->password);
	curl_free(d->path);
}

static bool read_dsn(const char *text, struct dsn *d)
{
	CURLU *u = curl_url();
	bool ok = u && curl_url_set(u, CURLUPART_URL, text, 0) == CURLUE_OK;

	if (ok) {
		curl_url_get(u, CURLUPART_SCHEME, &d->scheme, 0);
		curl_url_get(u, CURLUPART_HOST, &d->host, 0);
		curl_url_get(u, CURLUPART_PORT, &d->port, 0);
		curl_url_get(u, CURLUPART_USER, &d->user, 0);
		curl_url_get(u, CURLUPART_PASSWORD, &d->password, 0);
		curl_url_get(u, CURLUPART_PATH, &d->path, 0);
	}
	curl_url_cleanup(u);
	return ok && d->scheme && d->host && d->user && *d->user && d->path;
}

static int use_dsn(struct rs_exporter *e, const struct dsn *d)
{
	struct sentry *s = e->state;
	size_t n = strlen(d->path), at;
	char url[1024];

	while (n && d->path[n - 1] == '/')
		n--;
	at = n;
	while (at && d->path[at - 1] != '/')
		at--;
	if (at == n || (strcmp(d->scheme, "http") && strcmp(d->scheme, "https")))
		return -EINVAL;
	snprintf(url, sizeof(url), "%s://%s%s%s%.*s/api/%.*s/envelope/", d->scheme, d->host,
		 d->port ? ":" : "", d->port ? d->port : "", (int)(at - 1), d->path, (int)(n - at),
		 d->path + at);
	snprintf(s->auth, sizeof(s->auth),
		 "Sentry sentry_version=7, sentry_client=ringspan/%s, sentry_key=%s%s%s",
		 RS_VERSION, d->user, d->password ? ", sentry_secret=" : "",
		 d->password ? d->password : "");
	e->url = e->target = rs_exporter_str(e, str_c(url));
	e->enc_opts.sentry_key = rs_exporter_str(e, str_c(d->user));
	rs_exporter_secret(e, e->enc_opts.sentry_key);
	if (d->password)
		rs_exporter_secret(e, rs_exporter_str(e, str_c(d->password)));
	set_org(e, d->host);
	return e->url && e->enc_opts.sentry_key ? 0 : -ENOMEM;
}

static int open_sentry(struct rs_exporter *e, char *err, size_t size)
{
	const char *text = e->asked		? e->asked
			   : e->cfg->sentry_dsn ? e->cfg->sentry_dsn
						: e->cfg->endpoint;
	struct dsn d = { 0 };
	int rc = -EINVAL;

	if (!text) {
		snprintf(err, size, "exporter sentry: where to? give --sentry-dsn or SENTRY_DSN");
		return -EINVAL;
	}
	if (read_dsn(text, &d))
		rc = use_dsn(e, &d);
	free_dsn(&d);
	/* The text holds a key: it is not repeated. */
	if (rc)
		rs_config_wrong(
			e->cfg, e->asked ? e->cfg->exporter : text, err, size,
			"exporter sentry: the DSN is not of the form https://KEY@HOST/PROJECT");
	/* What another project's messages came to is not told to this one. */
	memcpy(((struct sentry *)e->state)->reported, e->lost, sizeof(e->lost));
	e->form = e->cfg->sentry_format ? FORM_TRANSACTIONS : FORM_SPANS;
	snprintf(e->protocol, sizeof(e->protocol), "envelopes of %s",
		 e->form ? "transactions" : "spans");
	return rc;
}

/* -- limits -- */

static unsigned own_category(const struct rs_exporter *e)
{
	return e->form == FORM_TRANSACTIONS ? CATEGORY_TRANSACTION : CATEGORY_SPAN;
}

static unsigned categories(struct str list)
{
	unsigned set = 0;
	struct str one;

	if (!list.len)
		return CATEGORY_SPAN | CATEGORY_TRANSACTION;
	while (list.len) {
		list = str_cut(list, ';', &one);
		one = str_trim(one);
		if (str_eq(one, STR("span")))
			set |= CATEGORY_SPAN;
		else if (str_eq(one, STR("transaction")))
			set |= CATEGORY_TRANSACTION;
	}
	return set;
}

static void limit(struct sentry *s, uint64_t ns)
{
	uint64_t until = rs_clock_mono() + ns;

	if (until > s->limited_until_ns)
		s->limited_until_ns = until;
}

/* "60:span;transaction:organization, 2700:error:key": seconds, categories, scope, reason. */
static void read_limits(const struct rs_exporter *e, struct sentry *s, struct str value)
{
	struct str one, seconds, list, rest;
	uint64_t ns;

	while (value.len) {
		value = str_cut(value, ',', &one);
		rest = str_cut(str_trim(one), ':', &seconds);
		str_cut(rest, ':', &list);
		ns = rs_http_retry_after(seconds, 0);
		if (ns != RS_HTTP_NO_WAIT && (categories(list) & own_category(e)))
			limit(s, ns);
	}
}

static void header(struct rs_send *snd, struct str name, struct str value)
{
	if (!str_ieq(name, STR("x-sentry-rate-limits")))
		return;
	((struct sentry *)snd->e->state)->limit_header = true;
	read_limits(snd->e, snd->e->state, value);
}

static bool refuse(struct rs_exporter *e, uint64_t now_ns)
{
	struct sentry *s = e->state;

	return now_ns < s->limited_until_ns;
}

/* What waits in the queue when a limit comes on is dropped too: Sentry does not want it later. */
static void tick(struct rs_exporter *e, uint64_t now_ns)
{
	struct rs_item *it;

	while (refuse(e, now_ns) && (it = rs_queue_oldest(&e->q)))
		rs_exporter_drop(e, it, RS_LOSS_LIMITED);
}

/* -- client reports -- */

static bool ends_in_newline(const struct rs_payload *pl)
{
	const struct iovec *v = &pl->iov[pl->niov - 1];

	return v->iov_len && ((const char *)v->iov_base)[v->iov_len - 1] == '\n';
}

static struct str tail(struct rs_send *snd)
{
	struct rs_exporter *e = snd->e;
	struct sentry *s = e->state;
	const char *category = e->form == FORM_TRANSACTIONS ? "transaction" : "span";
	char body[sizeof(s->report) - 64];
	bool any = false;
	size_t n, at;

	if (s->reporting)
		return STR_NONE;
	at = (size_t)snprintf(
		body, sizeof(body), "{\"timestamp\":%lld,\"discarded_events\":[",
		(long long)((rs_clock_mono() + (uint64_t)rs_clock_wall_offset()) / NS_PER_S));
	for (size_t i = 0; i < NREASONS; i++) {
		uint64_t lost = e->lost[reasons[i].loss];

		s->pending[reasons[i].loss] = lost;
		if (lost == s->reported[reasons[i].loss])
			continue;
		at += (size_t)snprintf(
			body + at, sizeof(body) - at,
			"%s{\"reason\":\"%s\",\"category\":\"%s\",\"quantity\":%llu}",
			any ? "," : "", reasons[i].reason, category,
			(unsigned long long)(lost - s->reported[reasons[i].loss]));
		any = true;
	}
	if (!any)
		return STR_NONE;
	at += (size_t)snprintf(body + at, sizeof(body) - at, "]}");
	n = (size_t)snprintf(s->report, sizeof(s->report),
			     "%s{\"type\":\"client_report\",\"length\":%zu}\n%s\n",
			     ends_in_newline(&snd->item->data) ? "" : "\n", at, body);
	s->reporting = snd;
	return str_of(s->report, n);
}

/* -- messages -- */

static void request(struct rs_send *snd)
{
	struct sentry *s = snd->e->state;

	s->limit_header = false;
	rs_http_header(&snd->req, "Content-Type: application/x-sentry-envelope");
	rs_http_header(&snd->req, "X-Sentry-Auth: %s", s->auth);
}

static void verdict(struct rs_send *snd, struct rs_verdict *v)
{
	struct sentry *s = snd->e->state;
	const struct rs_http_req *r = &snd->req;
	bool carried = s->reporting == snd;

	if (carried)
		s->reporting = NULL;
	rs_http_explain(r, v->why, sizeof(v->why));
	if (r->rc != CURLE_OK && !r->too_big) {
		v->kind = RS_V_RETRY;
		return;
	}
	if (r->status / 100 == 2) {
		if (carried)
			memcpy(s->reported, s->pending, sizeof(s->reported));
		v->kind = RS_V_DONE;
		v->why[0] = 0;
		return;
	}
	v->kind = RS_V_DROP;
	v->loss = r->status == 413   ? RS_LOSS_TOO_BIG
		  : r->status == 429 ? RS_LOSS_LIMITED
				     : RS_LOSS_REJECTED;
	if (r->status != 429)
		return;
	/* Sentry has counted these itself. */
	s->reported[RS_LOSS_LIMITED] += snd->item->spans;
	if (!s->limit_header)
		limit(s, r->retry_after_ns != RS_HTTP_NO_WAIT ? r->retry_after_ns : LIMIT_BARE_429);
}

const struct rs_exporter_ops rs_exporter_sentry = {
	.name = "sentry",
	.encoder = { "sentry", "sentry-transaction" },
	.max_payload = 10 << 20,
	.gzip = true,
	.zstd = true,
	.state_size = sizeof(struct sentry),
	.open = open_sentry,
	.tick = tick,
	.refuse = refuse,
	.tail = tail,
	.request = request,
	.header = header,
	.verdict = verdict,
};
