/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_headers — the names of headers that carry trace context, for every protocol that has headers.
 */
#ifndef RS_PROTO_TRACE_HEADERS_H
#define RS_PROTO_TRACE_HEADERS_H

#include "proto.h"

/* Field id of a header's name (any case), or RS_F_NONE. One comparison for most names: by length. */
enum rs_field_id rs_trace_header(struct str name);

#endif
