// SPDX-License-Identifier: Apache-2.0
#include "resend.h"

#include "base/hash.h"
#include "proto/http.h"

static uint64_t url_key(struct str host, struct str target)
{
	return rs_hash_str(rs_hash_str(1, host), target) | 1;
}

/* The request that o is asked for, if that is certain. */
static struct rs_open *asker(const struct rs_open *o)
{
	return o->unsure ? NULL : o->parent;
}

/* Where failed attempts are kept that o may repeat. */
static struct rs_attempt *kept(struct rs_trace *t, struct rs_open *o)
{
	struct rs_thread *th;

	if (asker(o))
		return &asker(o)->attempt;
	th = rs_thread_find(&t->threads, o->x.tgid, rs_thread_id(o->x.tid, o->x.task));
	return th ? &th->failed : NULL;
}

/* What o asks for. */
static uint64_t url(const struct rs_open *o)
{
	return url_key(rs_x_req(&o->x, RS_F_HTTP_HOST), rs_x_req(&o->x, RS_F_HTTP_TARGET));
}

/* The same, asked for in the same way. */
static uint64_t attempt_key(const struct rs_open *o)
{
	return rs_hash_str(url(o), rs_x_req(&o->x, RS_F_HTTP_METHOD)) | 1;
}

void rs_resend_begin(struct rs_trace *t, struct rs_open *o)
{
	struct rs_attempt *before = kept(t, o);
	bool retry, redirect;

	if (!before || !before->key || (!asker(o) && o->x.start_ns - before->end_ns > RS_RESEND_NS))
		return;
	retry = !before->location && before->key == attempt_key(o);
	redirect = before->location && before->location == url(o);
	if (!retry && !redirect)
		return;
	o->resend = o->attempt.count = before->count + 1;
	rs_trace_link(o, retry ? RS_LINK_RETRY : RS_LINK_REDIRECT, before->trace_id,
		      before->span_id, false);
	before->key = before->location = 0;
}

/* Of a Location: the URL it names, when it is absolute or a whole path. host: of the request. */
static uint64_t location_key(struct str location, struct str host)
{
	size_t at;

	location = str_at(location, 0, str_find(location, '#'));
	for (at = 0; at + 3 <= location.len && memcmp(location.ptr + at, "://", 3) != 0; at++) {
	}
	if (str_starts(location, STR("/")) && !str_starts(location, STR("//")))
		return url_key(host, location);
	if (at + 3 > location.len)
		return 0;
	location = str_from(location, at + 3);
	at = str_find(location, '/');
	return url_key(str_at(location, 0, at),
		       at < location.len ? str_from(location, at) : STR("/"));
}

static unsigned status_code(struct str s)
{
	uint64_t v = 0;

	return str_u64(s, &v) ? (unsigned)v : 0;
}

void rs_resend_response(struct rs_open *o, const struct rs_msg *m)
{
	switch (status_code(rs_msg_field(m, RS_F_HTTP_STATUS))) {
	case 301:
	case 302:
	case 303:
	case 307:
	case 308:
		o->attempt.location = location_key(rs_msg_field(m, RS_F_LOCATION),
						   rs_x_req(&o->x, RS_F_HTTP_HOST));
	}
}

static bool failed(const struct rs_open *o)
{
	unsigned status = status_code(rs_x_resp(&o->x, RS_F_HTTP_STATUS));

	if (!o->x.has_response)
		return o->x.end == RS_XEND_CLOSED || o->x.end == RS_XEND_RESET ||
		       (o->x.end == RS_XEND_ABORTED &&
			str_eq(rs_x_resp(&o->x, RS_F_HTTP_RESET), STR("REFUSED_STREAM")));
	return o->attempt.location || status >= 500 || status == 401 || status == 407 ||
	       status == 408 || status == 425 || status == 429;
}

void rs_resend_end(struct rs_trace *t, struct rs_open *o)
{
	struct rs_attempt *to;

	if (o->x.role != RS_ROLE_CLIENT || !o->root || !failed(o))
		return;
	to = rs_x_req(&o->x, RS_F_HTTP_METHOD).len ? kept(t, o) : NULL;
	if (!to)
		return;
	*to = o->attempt;
	to->key = attempt_key(o);
	memcpy(to->trace_id, rs_root_of(o->root)->trace_id, sizeof(to->trace_id));
	memcpy(to->span_id, o->span_id, sizeof(to->span_id));
	to->end_ns = o->x.end_ns;
}
