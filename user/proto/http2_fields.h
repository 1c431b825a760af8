/* SPDX-License-Identifier: Apache-2.0 */
/* http2_fields — what of a header block's fields a message keeps, and what its framing needs to know of them. */
#ifndef RS_PROTO_HTTP2_FIELDS_H
#define RS_PROTO_HTTP2_FIELDS_H

#include "hpack.h"
#include "proto.h"
#include "trace/redact.h"

/* A head while its fields are read. */
struct rs_h2_head {
	struct rs_msg *m;
	struct rs_hpack_mem mem;
	const struct rs_redact_headers *want; /* NULL: none */
	bool request;
	bool asks;	/* a request's pseudo-header field is there */
	bool authority; /* and this one */
	bool connect, grpc;
	struct str status;
};

/* One field of the block (rs_hpack_fn); arg: the head. */
bool rs_h2_take_field(void *arg, const struct rs_hpack_field *f);

#endif
