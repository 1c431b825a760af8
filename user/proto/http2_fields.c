// SPDX-License-Identifier: Apache-2.0
#include "http2_fields.h"

#include "grpc.h"
#include "http.h"
#include "trace_headers.h"

/* The value, where it stays until the message has been dealt with. False: there is no room. */
static bool keep(struct rs_h2_head *h, const struct rs_hpack_field *f, struct str *ret)
{
	*ret = f->value;
	if (!f->fleeting)
		return true;
	if ((size_t)(h->mem.end - h->mem.pos) < f->value.len) {
		h->m->flags |= RS_MSGF_CUT;
		return false;
	}
	if (f->value.len)
		memcpy(h->mem.pos, f->value.ptr, f->value.len);
	ret->ptr = h->mem.pos;
	h->mem.pos += f->value.len;
	return true;
}

/* Names without a place in the static table. */
static uint16_t other_name(struct str name, bool request)
{
	if (!request)
		return str_eq(name, STR("grpc-status")) ? RS_F_GRPC_STATUS : 0;
	switch (name.len) {
	case 9:
		if (str_eq(name, STR(":protocol")))
			return RS_F_HTTP_PROTOCOL;
		if (str_eq(name, STR("forwarded")))
			return RS_F_HTTP_FORWARDED;
		break;
	case 12:
		if (str_eq(name, STR("grpc-timeout")))
			return RS_F_GRPC_TIMEOUT;
		break;
	case 15:
		if (str_eq(name, STR("x-forwarded-for")))
			return RS_F_HTTP_X_FORWARDED_FOR;
		break;
	case 16:
		if (str_eq(name, STR("x-forwarded-host")))
			return RS_F_HTTP_X_FORWARDED_HOST;
		break;
	case 17:
		if (str_eq(name, STR("x-forwarded-proto")))
			return RS_F_HTTP_X_FORWARDED_PROTO;
		break;
	default:
		break;
	}
	return (uint16_t)rs_trace_header(name);
}

/* What a field is to us, or 0. Sets what the head's framing needs to know. RFC 7541 appendix A. */
static uint16_t field_id(struct rs_h2_head *h, const struct rs_hpack_field *f)
{
	switch (f->index) {
	case 1: /* :authority */
		h->authority = true;
		h->asks |= h->request;
		return h->request ? RS_F_HTTP_HOST : 0;
	case 2: /* :method */
		h->asks |= h->request;
		h->connect = str_eq(f->value, STR("CONNECT"));
		return h->request ? RS_F_HTTP_METHOD : 0;
	case 4: /* :path */
		h->asks |= h->request;
		return h->request ? RS_F_HTTP_TARGET : 0;
	case 6: /* :scheme */
		h->asks |= h->request;
		return h->request ? RS_F_HTTP_SCHEME : 0;
	case 8: /* :status */
		return h->request ? 0 : RS_F_HTTP_STATUS;
	case 31: /* content-type */
		if (rs_grpc_content(f->value))
			h->grpc = true;
		else if (h->request || !rs_http_event_stream(f->value))
			return 0;
		return RS_F_HTTP_CONTENT_TYPE;
	case 38: /* host */
		return h->request && !h->authority ? RS_F_HTTP_HOST : 0;
	case 46: /* location */
		return h->request ? 0 : RS_F_LOCATION;
	case 58: /* user-agent */
		return h->request ? RS_F_HTTP_USER_AGENT : 0;
	case 0:
		return other_name(f->name, h->request);
	default:
		return 0;
	}
}

/* What the user asks for. A secret goes no further than here. */
static bool wanted(struct rs_h2_head *h, const struct rs_hpack_field *f)
{
	struct str v;

	for (uint32_t i = 0; i < h->want->n; i++) {
		const struct rs_redact_header *w = &h->want->v[i];

		if (w->dropped || !str_eq(w->name, f->name))
			continue;
		if (w->secret)
			v = STR("REDACTED");
		else if (!keep(h, f, &v))
			return false;
		rs_msg_add(h->m, (uint16_t)(RS_F_HTTP_HEADER + i), v);
		return true;
	}
	return false;
}

bool rs_h2_take_field(void *arg, const struct rs_hpack_field *f)
{
	struct rs_h2_head *h = arg;
	bool kept = false;
	uint16_t id;
	struct str v;

	if (!f->name.ptr || !f->value.ptr) {
		h->m->flags |= RS_MSGF_CUT; /* it was said before we listened */
		return false;
	}
	id = field_id(h, f);
	if (id && keep(h, f, &v)) {
		rs_msg_add(h->m, id, v);
		if (id == RS_F_HTTP_STATUS)
			h->status = v;
		kept = true;
	}
	if (h->want)
		kept |= wanted(h, f);
	return kept;
}
