// SPDX-License-Identifier: Apache-2.0
/* OTLP over HTTP (opentelemetry.io/docs/specs/otlp, "OTLP/HTTP"): exporters otlp-http and otlp-http-json. */
#include <stdio.h>

#include "export/otlp.h"

static int open_http(struct rs_exporter *e, char *err, size_t size)
{
	snprintf(e->protocol, sizeof(e->protocol), "OTLP %s",
		 strcmp(e->ops->encoder[0], "otlp-json") ? "protobuf" : "JSON");
	return rs_otlp_open(e, "http", err, size);
}

static void request(struct rs_send *s)
{
	rs_http_header(&s->req, "Content-Type: %s", s->e->enc[0]->ops->content_type);
	rs_otlp_headers(s, false);
}

/* 200 with some spans refused: those are never sent again. A message without any is a warning. */
static void partial(struct rs_send *s, struct rs_verdict *v, bool json)
{
	const struct rs_http_req *r = &s->req;
	struct str body = str_of(r->body, r->body_len), message;
	struct rs_arena a;

	rs_arena_init(&a, 4096, 1u << 20);
	if ((json ? rs_otlp_partial_json(body, &a, &v->rejected, &message)
		  : rs_otlp_partial_pb(body, &v->rejected, &message)) &&
	    (v->rejected || message.len))
		snprintf(v->why, sizeof(v->why), "%llu spans rejected: %.*s",
			 (unsigned long long)v->rejected,
			 (int)(message.len < 200 ? message.len : 200),
			 message.ptr ? message.ptr : "");
	rs_arena_release(&a);
}

/* The text of a failure is a google.rpc.Status. */
static void status_message(struct rs_send *s, struct rs_verdict *v)
{
	const struct rs_http_req *r = &s->req;
	struct str message;
	uint64_t delay;

	if (rs_otlp_status_pb(str_of(r->body, r->body_len), &message, &delay) && message.len)
		snprintf(v->why, sizeof(v->why), "HTTP %ld: %.*s", r->status,
			 (int)(message.len < 200 ? message.len : 200), message.ptr);
}

static void verdict_pb(struct rs_send *s, struct rs_verdict *v)
{
	rs_verdict_http(s, v);
	if (v->kind == RS_V_DONE)
		partial(s, v, false);
	else if (s->req.rc == CURLE_OK && s->req.body_len)
		status_message(s, v);
}

static void verdict_json(struct rs_send *s, struct rs_verdict *v)
{
	rs_verdict_http(s, v);
	if (v->kind == RS_V_DONE)
		partial(s, v, true);
}

const struct rs_exporter_ops rs_exporter_otlp_http = {
	.name = "otlp-http",
	.encoder = { "otlp-proto" },
	.endpoint = "http://localhost:4318",
	.path = "/v1/traces",
	.gzip = true,
	.zstd = true,
	.open = open_http,
	.request = request,
	.verdict = verdict_pb,
	.split = rs_otlp_split_pb,
};

const struct rs_exporter_ops rs_exporter_otlp_http_json = {
	.name = "otlp-http-json",
	.encoder = { "otlp-json" },
	.endpoint = "http://localhost:4318",
	.path = "/v1/traces",
	.gzip = true,
	.zstd = true,
	.open = open_http,
	.request = request,
	.verdict = verdict_json,
	.split = rs_otlp_split_json,
};
