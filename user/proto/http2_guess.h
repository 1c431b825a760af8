/* SPDX-License-Identifier: Apache-2.0 */
/* http2_guess — is this HTTP/2, and where do frames begin, from the middle of a stream? Pure functions. */
#ifndef RS_PROTO_HTTP2_GUESS_H
#define RS_PROTO_HTTP2_GUESS_H

#include "http2_frame.h"

/* What a header block says of the direction it goes in. */
struct rs_h2_guess {
	unsigned fields;
	bool asks, answers, odd;
};

/* Do these bytes look like a frame's header to one who does not know where frames begin? in has RS_H2_FRAME_HEAD bytes. */
bool rs_h2_frame_likely(struct str in, struct rs_h2_frame *f);

/*
 * Frames from the front of `in` on, as one who does not know that they are. Returns how many whole ones there
 * are, or -1: no frames. *ret_g: what the first header block says that says anything.
 */
int rs_h2_chain(struct str in, struct rs_h2_guess *ret_g);

#endif
