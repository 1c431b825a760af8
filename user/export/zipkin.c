// SPDX-License-Identifier: Apache-2.0
/* Zipkin v2 over HTTP (zipkin-api zipkin2-api.yaml): an array of spans, 202 without a body. */
#include <stdio.h>

#include "export/exporter.h"
#include "export/jsoncut.h"

static int open_zipkin(struct rs_exporter *e, char *err, size_t size)
{
	snprintf(e->protocol, sizeof(e->protocol), "Zipkin v2 JSON");
	if (!e->asked && !e->cfg->endpoint && e->cfg->zipkin_endpoint)
		return rs_exporter_endpoint(e, e->cfg->zipkin_endpoint, RS_PATH_AUTO, "http", err,
					    size);
	return rs_exporter_default_endpoint(e, err, size);
}

static void request(struct rs_send *s)
{
	rs_http_header(&s->req, "Content-Type: application/json");
}

/* "[" elements from..to "]" in one buffer. */
static bool make_half(struct rs_exporter *e, const char *from, size_t n, struct rs_payload *ret)
{
	struct rs_buf *b;

	if (rs_bufpool_get(&e->pool, n + 2, &b))
		return false;
	b->data[0] = '[';
	memcpy(b->data + 1, from, n);
	b->data[1 + n] = ']';
	*ret = (struct rs_payload){ .pool = &e->pool, .niov = 1, .len = n + 2 };
	ret->buf[0] = b;
	ret->iov[0] = (struct iovec){ b->data, n + 2 };
	return true;
}

static bool split(struct rs_exporter *e, const struct rs_item *it, struct rs_payload half[2],
		  uint32_t spans[2])
{
	struct str s = str_of(it->data.iov[0].iov_base, it->data.iov[0].iov_len);
	size_t i = 1;

	if (it->data.niov != 1 || s.len < 2 || s.ptr[0] != '[' || s.ptr[s.len - 1] != ']')
		return false;
	spans[0] = it->spans / 2;
	spans[1] = it->spans - spans[0];
	for (uint32_t n = 0; n < spans[0] && i < s.len; n++)
		i = rs_jsoncut_value(s, i) + 1; /* and the comma */
	if (i >= s.len - 1 || !make_half(e, s.ptr + 1, i - 2, &half[0]))
		return false;
	if (make_half(e, s.ptr + i, s.len - 1 - i, &half[1]))
		return true;
	rs_payload_release(&half[0]);
	return false;
}

const struct rs_exporter_ops rs_exporter_zipkin = {
	.name = "zipkin",
	.encoder = { "zipkin" },
	.endpoint = "http://localhost:9411",
	.path = "/api/v2/spans",
	.gzip = true,
	.open = open_zipkin,
	.request = request,
	.verdict = rs_verdict_http,
	.split = split,
};
