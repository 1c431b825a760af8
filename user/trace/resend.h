/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resend — is a request the same one again? After a failed answer (none, 401, 407, 408, 425, 429, 5xx) the same
 * method and URL, asked for the same request (or, without one, by the same thread, within RS_RESEND_NS),
 * is a retry; after a redirect, the URL that it named. Such a span carries http.request.resend_count and
 * a link to the attempt before.
 */
#ifndef RS_TRACE_RESEND_H
#define RS_TRACE_RESEND_H

#include "trace/trace.h"

#define RS_RESEND_NS 10000000000ull

/* A client's request is sent; its ids are set. */
void rs_resend_begin(struct rs_trace *t, struct rs_open *o);
/* Its answer's head. */
void rs_resend_response(struct rs_open *o, const struct rs_msg *m);
/* It ends; o->parent is still set. */
void rs_resend_end(struct rs_trace *t, struct rs_open *o);

#endif
