// SPDX-License-Identifier: Apache-2.0
/*
 * Datadog agent, trace intake v0.4, v0.5 and v1.0 (Datadog's pkg/trace/api).
 *
 * Which version: GET /info says what the agent has. Until it has answered v0.4 is spoken, which all agents
 * know; v1.0 and v0.5 are tried with an empty message before spans are trusted to them. It is asked again
 * every minute, and when the agent says that it has changed.
 *
 * A message holds spans of one container, and says which in its headers: the agent gives the whole message that
 * container's tags. (Of messages that say nothing it asks the socket who sent them, and that would be us.)
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "export/exporter.h"
#include "export/msgpack.h"

#define ASK_AGAIN_NS 60000000000ull
#define ASK_RETRY_NS 2000000000ull
#define INFO_ARENA   (1u << 20)

enum form {
	V04_JSON,   /* links and events as JSON in meta: all agents */
	V04_NATIVE, /* /info: span_events */
	V05,
	V1,
};

static const char *const form_path[] = { "/v0.4/traces", "/v0.4/traces", "/v0.5/traces",
					 "/v1.0/traces" };
static const char *const form_name[] = { "v0.4", "v0.4 native events", "v0.5", "v1.0" };

enum phase {
	PHASE_IDLE,
	PHASE_INFO,  /* GET /info is running */
	PHASE_PROBE, /* an empty message is on its way */
};

struct datadog {
	struct rs_http_req ask;
	struct iovec probe;
	enum phase phase;
	enum form wanted;  /* what is being tried */
	enum form checked; /* what a try has confirmed */
	enum form plain;   /* the kind of v0.4 that the agent knows */
	bool splits; /* it has refused a message for its size: only what can be split is sent */
	uint64_t ask_at_ns;
	const char *url[4]; /* by form */
	const char *info_url;
	char agent_state[80], rates_version[80];
};

static void use(struct rs_exporter *e, enum form f)
{
	e->form = (uint8_t)f;
	snprintf(e->protocol, sizeof(e->protocol), "%s", form_name[f]);
}

/* -- which version -- */

static void ask_done(struct rs_exporter *e, uint64_t again_in_ns)
{
	struct datadog *d = e->state;

	d->phase = PHASE_IDLE;
	d->ask_at_ns = rs_clock_mono() + again_in_ns;
}

static void add_headers(struct rs_http_req *r, uint32_t chunks)
{
	rs_http_header(r, "Content-Type: application/msgpack");
	rs_http_header(r, "X-Datadog-Trace-Count: %u", chunks);
	rs_http_header(r, "Datadog-Meta-Lang: c");
	rs_http_header(r, "Datadog-Meta-Lang-Version: %ld", (long)__STDC_VERSION__);
	rs_http_header(r, "Datadog-Meta-Tracer-Version: %s", RS_VERSION);
	rs_http_header(r, "Datadog-Send-Real-Http-Status: true");
}

static void probe(struct rs_exporter *e)
{
	static const char empty_v05[] = "\x92\x90\x90", empty_v1[] = "\x81\x0b\x90";
	struct datadog *d = e->state;

	d->phase = PHASE_PROBE;
	d->probe = (struct iovec){ (void *)(d->wanted == V05 ? empty_v05 : empty_v1), 3 };
	d->ask.iov = &d->probe;
	d->ask.niov = 1;
	d->ask.len = 3;
	add_headers(&d->ask, 0);
	if (rs_http_start(e->http, &d->ask, &e->conf, d->url[d->wanted]))
		ask_done(e, ASK_RETRY_NS);
}

/* What the agent has. false: that was no answer of an agent's. */
static bool read_info(struct str body, bool *ret_v1, bool *ret_v05, bool *ret_events)
{
	struct rs_arena a;
	struct rs_json j;
	struct str key, one;
	bool ok;

	rs_arena_init(&a, 16 * 1024, INFO_ARENA);
	rs_json_init(&j, body, &a);
	rs_json_object(&j);
	while (rs_json_key(&j, &key)) {
		if (str_eq(key, STR("span_events")) && rs_json_peek(&j) == RS_JSON_BOOL) {
			rs_json_bool(&j, ret_events);
		} else if (str_eq(key, STR("endpoints")) && rs_json_peek(&j) == RS_JSON_ARRAY) {
			rs_json_array(&j);
			while (rs_json_elem(&j) && rs_json_str(&j, &one)) {
				*ret_v1 |= str_eq(one, STR("/v1.0/traces"));
				*ret_v05 |= str_eq(one, STR("/v0.5/traces"));
			}
		} else {
			rs_json_skip(&j);
		}
	}
	ok = !j.err;
	rs_arena_release(&a);
	return ok;
}

static void on_info(struct rs_exporter *e, const struct rs_http_req *r)
{
	enum {
		AUTO,
		WANT_04,
		WANT_05,
		WANT_1
	};
	struct datadog *d = e->state;
	bool v1 = false, v05 = false, events = false;

	/* 404: an agent older than /info (7.28). */
	if (r->rc != CURLE_OK || (r->status != 200 && r->status != 404)) {
		ask_done(e, ASK_RETRY_NS);
		return;
	}
	if (r->status == 200 && !read_info(str_of(r->body, r->body_len), &v1, &v05, &events))
		rs_exporter_error(e, "/info is no JSON");
	d->plain = events ? V04_NATIVE : V04_JSON;
	d->wanted = d->plain;
	if (v1 && !d->splits && (e->cfg->dd_protocol == AUTO || e->cfg->dd_protocol == WANT_1))
		d->wanted = V1;
	else if (e->cfg->dd_protocol == WANT_05 && (v05 || r->status == 404))
		d->wanted = V05;
	if (d->wanted == d->plain || d->wanted == d->checked) {
		use(e, d->wanted);
		ask_done(e, ASK_AGAIN_NS);
		return;
	}
	use(e, d->plain);
	probe(e);
}

static void on_probe(struct rs_exporter *e, const struct rs_http_req *r)
{
	struct datadog *d = e->state;

	if (r->rc == CURLE_OK && r->status / 100 == 2) {
		d->checked = d->wanted;
		use(e, d->wanted);
	} else if (r->rc == CURLE_OK) {
		rs_exporter_error(e, "%s is announced and answers HTTP %ld: staying with %s",
				  form_name[d->wanted], r->status, e->protocol);
	}
	ask_done(e, r->rc == CURLE_OK ? ASK_AGAIN_NS : ASK_RETRY_NS);
}

static void on_answer(void *arg, struct rs_http_req *r)
{
	struct rs_exporter *e = arg;
	struct datadog *d = e->state;

	if (d->phase == PHASE_INFO)
		on_info(e, r);
	else
		on_probe(e, r);
}

static void tick(struct rs_exporter *e, uint64_t now_ns)
{
	struct datadog *d = e->state;

	if (d->phase != PHASE_IDLE || now_ns < d->ask_at_ns)
		return;
	d->phase = PHASE_INFO;
	d->ask.niov = 0;
	if (rs_http_start(e->http, &d->ask, &e->conf, d->info_url))
		ask_done(e, ASK_RETRY_NS);
}

/* -- life -- */

static const char *join(struct rs_exporter *e, const char *path)
{
	char text[2048];
	size_t n = strlen(e->url);

	while (n && e->url[n - 1] == '/')
		n--;
	snprintf(text, sizeof(text), "%.*s%s", (int)n, e->url, path);
	return rs_exporter_str(e, str_c(text));
}

/* The socket that agents open by default is taken when nothing else is named, as tracers do. */
static const char *default_url(struct rs_exporter *e, char *buf, size_t size)
{
	const struct rs_config *c = e->cfg;

	if (e->asked || c->endpoint || c->dd_url)
		return e->asked ? e->asked : c->endpoint ? c->endpoint : c->dd_url;
	snprintf(buf, size, "http://%s:%llu", c->dd_host ? c->dd_host : "localhost",
		 (unsigned long long)c->dd_port);
	return buf;
}

static int open_datadog(struct rs_exporter *e, char *err, size_t size)
{
	struct datadog *d = e->state;
	char text[512];
	int rc = rs_exporter_endpoint(e, default_url(e, text, sizeof(text)), RS_PATH_EXACT, "http",
				      err, size);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(form_path) / sizeof(form_path[0]); i++)
		d->url[i] = join(e, form_path[i]);
	d->info_url = join(e, "/info");
	if (!d->info_url)
		return -ENOMEM;
	d->ask.done = on_answer;
	d->ask.arg = e;
	use(e, V04_JSON);
	return 0;
}

static void close_datadog(struct rs_exporter *e)
{
	struct datadog *d = e->state;

	rs_http_req_release(&d->ask);
}

/* -- messages -- */

static struct rs_walk walk(const struct rs_item *it)
{
	return (struct rs_walk){ .iov = it->data.iov, .niov = it->data.niov };
}

/* Moves to the array of chunks. */
static bool find_chunks(struct rs_walk *m, uint8_t form)
{
	uint32_t n, key;

	if (form == V05)
		return rs_walk_array_head(m, &n) && n == 2 && rs_walk_skip(m);
	if (form != V1)
		return true;
	if (!rs_walk_map_head(m, &n))
		return false;
	while (n-- && rs_walk_small(m, &key)) {
		if (key == 11)
			return true;
		rs_walk_skip(m);
	}
	return false;
}

static void request(struct rs_send *s)
{
	struct rs_exporter *e = s->e;
	struct datadog *d = e->state;
	struct rs_walk m = walk(s->item);
	uint32_t chunks = 0;

	s->url = d->url[s->item->form];
	if (!find_chunks(&m, s->item->form) || !rs_walk_array_head(&m, &chunks))
		chunks = 0; /* our own encoders' messages can be walked */
	add_headers(&s->req, chunks);
	if (*s->item->container) {
		rs_http_header(&s->req, "Datadog-Container-ID: %s", s->item->container);
		rs_http_header(&s->req, "Datadog-Entity-ID: ci-%s", s->item->container);
	}
	if (*d->rates_version)
		rs_http_header(&s->req, "Datadog-Rates-Payload-Version: %s", d->rates_version);
}

static void header(struct rs_send *s, struct str name, struct str value)
{
	struct datadog *d = s->e->state;

	if (str_ieq(name, STR("datadog-rates-payload-version")) &&
	    value.len < sizeof(d->rates_version)) {
		snprintf(d->rates_version, sizeof(d->rates_version), "%.*s", STR_ARG(value));
	} else if (str_ieq(name, STR("datadog-agent-state")) &&
		   value.len < sizeof(d->agent_state) && !str_eq(str_c(d->agent_state), value)) {
		if (*d->agent_state)
			d->ask_at_ns = 0;
		snprintf(d->agent_state, sizeof(d->agent_state), "%.*s", STR_ARG(value));
	}
}

/* "service:web,env:prod" */
static void one_rate(struct rs_exporter *e, struct str key, double rate)
{
	struct str service, env = STR_NONE;
	const char *at;

	if (!str_starts(key, STR("service:")) || !(rate >= 0 && rate <= 1))
		return;
	key = str_from(key, strlen("service:"));
	at = memmem(key.ptr, key.len, ",env:", 5);
	service = key;
	if (at) {
		service.len = (size_t)(at - key.ptr);
		env = str_from(key, service.len + 5);
	}
	e->on_rate(e->rate_arg, service, env, rate);
}

static void read_rates(struct rs_exporter *e, struct str body)
{
	struct rs_arena a;
	struct rs_json j;
	struct str key;
	double rate;

	if (!e->on_rate || !body.len || body.ptr[0] != '{')
		return;
	rs_arena_init(&a, 16 * 1024, INFO_ARENA);
	rs_json_init(&j, body, &a);
	rs_json_object(&j);
	while (rs_json_key(&j, &key)) {
		if (!str_eq(key, STR("rate_by_service")) || rs_json_peek(&j) != RS_JSON_OBJECT) {
			rs_json_skip(&j);
			continue;
		}
		rs_json_object(&j);
		while (rs_json_key(&j, &key)) {
			if (rs_json_peek(&j) != RS_JSON_NUMBER)
				rs_json_skip(&j);
			else if (rs_json_double(&j, &rate))
				one_rate(e, key, rate);
		}
	}
	rs_arena_release(&a);
}

static void verdict(struct rs_send *s, struct rs_verdict *v)
{
	struct rs_exporter *e = s->e;
	struct datadog *d = e->state;
	const struct rs_http_req *r = &s->req;

	rs_verdict_http(s, v);
	if (v->kind == RS_V_DONE) {
		read_rates(e, str_of(r->body, r->body_len));
	} else if (r->rc == CURLE_OK && (r->status == 408 || r->status >= 500)) {
		v->kind = RS_V_RETRY;
	} else if (r->rc == CURLE_OK && r->status == 404 && s->item->form >= V05) {
		/* The agent has changed: what is left in this form is lost, what follows is not. */
		d->checked = V04_JSON;
		d->ask_at_ns = 0;
		use(e, V04_JSON);
	}
}

/* Whole chunks to either side; a message of one chunk stays whole. */
struct halves {
	size_t head, cut, end; /* offsets: first chunk, first of the second half, behind the last */
	uint32_t chunks[2], spans[2];
};

static bool find_halves(struct rs_walk *m, uint8_t form, uint32_t spans, struct halves *h)
{
	uint32_t n, k, seen = 0;
	struct rs_walk inner;

	*h = (struct halves){ 0 };
	if (form == V1 || !find_chunks(m, form) || !rs_walk_array_head(m, &n) || n < 2)
		return false;
	h->head = m->at;
	for (uint32_t i = 0; i < n; i++) {
		inner = *m;
		if (!rs_walk_array_head(&inner, &k))
			return false;
		if (!h->cut && i && (seen + k > spans / 2 || i == n - 1)) {
			h->cut = m->at;
			h->chunks[0] = i;
			h->spans[0] = seen;
		}
		seen += k;
		if (!rs_walk_skip(m))
			return false;
	}
	h->end = m->at;
	h->chunks[1] = n - h->chunks[0];
	h->spans[1] = seen - h->spans[0];
	return seen == spans;
}

static bool make_half(struct rs_exporter *e, const struct rs_walk *m, size_t prefix, size_t from,
		      size_t to, uint32_t chunks, struct rs_payload *ret)
{
	size_t n = prefix + 5 + (to - from);
	struct rs_buf *b;
	char *p;

	if (rs_bufpool_get(&e->pool, n, &b))
		return false;
	rs_walk_copy(m, 0, prefix, b->data);
	p = b->data + prefix;
	*p++ = (char)0xdd;
	for (int i = 24; i >= 0; i -= 8)
		*p++ = (char)(chunks >> i);
	rs_walk_copy(m, from, to, p);
	*ret = (struct rs_payload){ .pool = &e->pool, .niov = 1, .len = n };
	ret->buf[0] = b;
	ret->iov[0] = (struct iovec){ b->data, n };
	return true;
}

static bool split(struct rs_exporter *e, const struct rs_item *it, struct rs_payload half[2],
		  uint32_t spans[2])
{
	struct rs_walk m = walk(it), start = m;
	struct halves h;
	size_t prefix;

	/* In v1.0 texts are numbered as they come, so its second half needs the first one. */
	if (it->form == V1) {
		((struct datadog *)e->state)->splits = true;
		use(e, ((struct datadog *)e->state)->plain);
	}
	if (!find_halves(&m, it->form, it->spans, &h) || !find_chunks(&start, it->form))
		return false;
	prefix = start.at; /* v0.5's dictionary goes with both */
	if (!make_half(e, &m, prefix, h.head, h.cut, h.chunks[0], &half[0]))
		return false;
	if (!make_half(e, &m, prefix, h.cut, h.end, h.chunks[1], &half[1])) {
		rs_payload_release(&half[0]);
		return false;
	}
	memcpy(spans, h.spans, sizeof(h.spans));
	return true;
}

const struct rs_exporter_ops rs_exporter_datadog = {
	.name = "datadog",
	.encoder = { "datadog-v0.4-json", "datadog-v0.4", "datadog-v0.5", "datadog-v1" },
	.max_payload = 5 << 20,
	.by_container = true,
	.state_size = sizeof(struct datadog),
	.open = open_datadog,
	.close = close_datadog,
	.tick = tick,
	.request = request,
	.header = header,
	.verdict = verdict,
	.split = split,
};
