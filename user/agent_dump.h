/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_dump — one process's messages as they pass, to a client of the control socket: what
 * `ringspan debug dump` shows. It ends by itself.
 *
 * A line of JSON each: time_unix_nano, type (open, data, close; request, request_end, interim, response,
 * response_end), conn, tid, dir, local, peer, and as far as they are known protocol, role, flags, bytes,
 * captured, body_size, name, attributes. Attributes are those of the span the message will be part of, with
 * the same redaction; bytes of the wire are never in it. The first line has
 * type "begin"; the last one has type "end", lines, left_out.
 *
 * One dump at a time. Bounded: RS_DUMP_LINES lines, RS_DUMP_SECONDS, and what the client may leave unread
 * (control.h); what does not fit is counted in left_out.
 */
#ifndef RS_AGENT_DUMP_H
#define RS_AGENT_DUMP_H

#include "pipeline.h"
#include "status/control.h"

#define RS_DUMP_LINES	100000
#define RS_DUMP_SECONDS 300

struct rs_dump {
	struct rs_control_client *client; /* NULL: there is none */
	struct rs_pipeline *pl;
	struct rs_arena arena; /* of one line */
	struct rs_loop *loop;
	struct rs_loop_timer end;
	uint64_t lines, left_out;
};

/* line: "dump PID SECONDS". 0, or -ENOENT: it is another request. */
int rs_dump_request(struct rs_dump *d, struct rs_pipeline *pl, struct rs_loop *loop,
		    struct rs_control_client *cl, struct str line);
/* cl has left. */
void rs_dump_gone(struct rs_dump *d, const struct rs_control_client *cl);
/* Harmless on a zeroed struct. */
void rs_dump_release(struct rs_dump *d);

#endif
