/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto — the contract of an application protocol: pure functions from bytes to messages.
 *
 * A protocol is one file and one line in protocols.def. Its functions have no clock, no malloc, no
 * log, no global; they read nothing outside what they are given and keep what they need in their
 * per-connection state (ops->state_size bytes, zeroed when the connection starts to speak it).
 *
 * What a parser sees of a direction is a byte stream with gaps: bodies are not captured, and records
 * can be lost. It says how many bytes it used, and may say "skip n" for bytes that need not be seen.
 */
#ifndef RS_PROTO_PROTO_H
#define RS_PROTO_PROTO_H

#include "base/pool.h"
#include "base/str.h"
#include "shared/events.h"

#define RS_MSG_FIELDS 32

enum rs_match {
	RS_MATCH_NO,
	RS_MATCH_MORE, /* could be: too few bytes to say */
	RS_MATCH_YES,
};

enum rs_pairing {
	RS_PAIR_FIFO,  /* the n-th response answers the n-th request */
	RS_PAIR_BY_ID, /* msg.id names the request */
};

enum rs_msg_type {
	RS_MSG_REQUEST,	     /* a request's head */
	RS_MSG_REQUEST_END,  /* its last byte has gone through */
	RS_MSG_INTERIM,	     /* an interim response (HTTP 1xx): answers nothing */
	RS_MSG_RESPONSE,     /* a response's head */
	RS_MSG_RESPONSE_END, /* its last byte has gone through, or its stream has ended */
	RS_MSG_PART, /* within a body: a message of its own begins (gRPC); body_size: its bytes */
};

#define RS_BODY_UNKNOWN                                                                            \
	UINT64_MAX /* the message's end was seen, but not all that says how long it is */
#define RS_PARTS_UNKNOWN UINT32_MAX

/* rs_msg.flags */
#define RS_MSGF_CUT                                                                                \
	0x1 /* head: not all of it was captured; END: where it ends was inferred from a flip */
#define RS_MSGF_ABORTED 0x2 /* END: the stream ended before the message did */
#define RS_MSGF_TUNNEL                                                                             \
	0x4 /* response head: the connection now speaks something else (101, CONNECT) */
#define RS_MSGF_RESYNC                                                                             \
	0x8 /* head, set by the stream layer: bytes before it were lost, and perhaps whole messages */
#define RS_MSGF_SWITCH                                                                             \
	0x10 /* interim: the connection goes on in protocol `to`, which answers the request that asked for it */
#define RS_MSGF_RESET                                                                              \
	0x20 /* END: either end broke this one message off, the connection lives on (HTTP/2 RST_STREAM) */
#define RS_MSGF_CROWDED                                                                            \
	0x80 /* head: an older message gave way to it, or it has no room itself: how long that is, is not known */
#define RS_MSGF_PUSHED                                                                             \
	0x40 /* request: the answering end says it for the asking one (HTTP/2 PUSH_PROMISE) */

/* Fields every protocol may give; a protocol's own ids start at RS_F_PROTO. */
enum rs_field_id {
	RS_F_NONE,
	RS_F_TRACEPARENT, /* W3C; each occurrence is one field: two of them are an error of the sender */
	RS_F_TRACESTATE,       /* W3C; each occurrence is one field, in order */
	RS_F_DATADOG_TRACE_ID, /* the others are named in trace_headers.c */
	RS_F_DATADOG_PARENT_ID,
	RS_F_DATADOG_PRIORITY,
	RS_F_DATADOG_TAGS,
	RS_F_B3,
	RS_F_B3_TRACE_ID,
	RS_F_B3_SPAN_ID,
	RS_F_B3_SAMPLED,
	RS_F_B3_FLAGS,
	RS_F_UBER_TRACE_ID,
	RS_F_SENTRY_TRACE,
	RS_F_AMZN_TRACE_ID,
	RS_F_BAGGAGE,
	RS_F_LOCATION,	 /* a response's: where to ask instead */
	RS_F_PROTO = 32, /* fields below it carry context: read when the message passes, not kept */
};

struct rs_field {
	uint16_t id; /* enum rs_field_id, or the protocol's own */
	struct str
		value; /* borrowed from the parser's input or from rs_proto_env.scratch, or static text */
};

struct rs_msg {
	uint8_t type;  /* enum rs_msg_type */
	uint8_t dir;   /* enum rs_ev_dir it went */
	uint8_t flags; /* RS_MSGF_* */
	uint8_t nfields;
	uint8_t to;  /* SWITCH: enum rs_proto_id */
	uint32_t id; /* RS_PAIR_BY_ID: the request's number; never 0 */
	uint32_t parts
		[2]; /* END: messages within the request's body so far, and the response's (gRPC) */
	uint64_t body_size; /* END: bytes of content, transfer coding removed; or RS_BODY_UNKNOWN */
	struct rs_field fields[RS_MSG_FIELDS]; /* END: of trailers */

	/* Filled by the stream layer, not by the parser: */
	uint64_t
		start_ns; /* head: time of the record with the message's first byte; END: as end_ns */
	uint64_t
		end_ns; /* time of the record with the head's last byte; END: with the message's last byte;
			    * END that is ABORTED: when the stream ended */
	uint32_t tgid,
		tid;   /* thread that moved the head's last byte (END: the message's last byte) */
	uint64_t task; /* what it ran then (struct rs_ev_task); 0: the thread is all there is */
	uint32_t seq;  /* head: TCP sequence number of the message's first byte, or 0 */
	uint8_t slept; /* as in struct rs_ev_data, of that record */
};

/* For parsers: m is a new message. What the stream layer fills in is not touched. */
static inline void rs_msg_begin(struct rs_msg *m, enum rs_msg_type type, uint32_t id)
{
	m->type = (uint8_t)type;
	m->flags = 0;
	m->nfields = 0;
	m->id = id;
	m->parts[0] = m->parts[1] = 0;
	m->body_size = 0;
}

/* For parsers: one field more; without room the message is CUT. */
static inline void rs_msg_add(struct rs_msg *m, uint16_t id, struct str value)
{
	if (m->nfields == RS_MSG_FIELDS) {
		m->flags |= RS_MSGF_CUT;
		return;
	}
	m->fields[m->nfields++] = (struct rs_field){ id, value };
}

/* The first field with this id, or an empty str. */
static inline struct str rs_msg_field(const struct rs_msg *m, uint16_t id)
{
	for (unsigned i = 0; i < m->nfields; i++) {
		if (m->fields[i].id == id)
			return m->fields[i].value;
	}
	return STR_NONE;
}

enum rs_parse {
	RS_PARSE_OK, /* *ret_used bytes consumed (0 is possible: an END right after a head); *ret_msg filled */
	RS_PARSE_NEED_MORE, /* nothing consumed; call again with more bytes */
	RS_PARSE_SKIP, /* *ret_used bytes are of no interest; may be more than given: they need not be captured */
	RS_PARSE_INVALID, /* not this protocol, or out of step: the caller resynchronises */
};

/* What parsers are told when the stream cannot give them the next bytes. */
struct rs_gap {
	uint64_t len;	 /* bytes missing; more than tail.len */
	struct str tail; /* the last bytes of the missing part (rs_ev_data.tail), or empty */
	bool last; /* the stream has ended: no byte will follow (len 0). What a SKIP still waits for does
			  * not come: the stream layer takes it off the END's body_size and says ABORTED */
};

struct rs_exchange;
struct rs_build;
struct rs_redact; /* trace/redact.h */

#define RS_PROTO_POOLS	 3
#define RS_PROTO_SCRATCH (4 * RS_HEAD_MAX)

/* What the stream layer lends to a protocol. It outlives every connection. */
struct rs_proto_env {
	const struct rs_redact
		*redact;      /* header fields to give beside the protocol's own, or NULL */
	struct rs_pool *pool; /* of what ops->pool asks for */
	char *scratch; /* RS_PROTO_SCRATCH bytes: values of the message returned, until the next call */
};

struct rs_proto_ops {
	const char *name;  /* in config, status, metrics */
	const char *about; /* what of it is read: `ringspan check` */
	enum rs_pairing pairing;
	uint32_t state_size;
	bool whole; /* every byte may be framing: the kernel side is to copy segments whole */
	/* What connections need for as long as they do: shared by all, bounded; never a reason to fail. */
	struct {
		uint32_t size, max;
	} pool[RS_PROTO_POOLS];

	/* A connection starts to speak it. Optional; state is zeroed. */
	void (*start)(void *state, const struct rs_proto_env *env);

	/* The connection is gone: what came from env->pool goes back. Optional. */
	void (*stop)(void *state);

	/* After start(): RS_MSGF_SWITCH has led here. Optional. */
	void (*switched)(void *state, enum rs_ev_role role);

	/* Does this stream speak the protocol? Looks at the first bytes of one direction only. For YES,
	 * *ret_role says which end this is (from the direction in which a request goes), or UNKNOWN. */
	enum rs_match (*probe)(struct str head, enum rs_ev_dir dir, enum rs_ev_role *ret_role);

	/* One step from the front of `in`. Never reads outside it. OK and SKIP with *ret_used == 0 change
	 * the state, so that calling again makes progress. */
	enum rs_parse (*parse)(void *state, enum rs_ev_dir dir, enum rs_ev_role role, struct str in,
			       size_t *ret_used, struct rs_msg *ret_msg);

	/* The bytes after `in` are missing (or the stream has ended). May yield a message from what there
	 * is (RS_MSGF_CUT): OK, which uses up `in`; to be called again, with nothing in `in`, until it says
	 * SKIP (what is missing can be lived with) or INVALID (resynchronise after the gap). */
	enum rs_parse (*gap)(void *state, enum rs_ev_dir dir, enum rs_ev_role role, struct str in,
			     const struct rs_gap *gap, struct rs_msg *ret_msg);

	/* The other direction has started a new message: a FIFO protocol may conclude that what it could
	 * not see the end of has ended. OK with an END message, or SKIP. Optional. */
	enum rs_parse (*flip)(void *state, enum rs_ev_dir dir, enum rs_ev_role role,
			      struct rs_msg *ret_msg);

	/* After INVALID (then `in` starts one byte later) or a gap: offset in `in` at which a message may
	 * start, or in.len. Puts the direction's state back to the start of a message. */
	size_t (*resync)(void *state, enum rs_ev_dir dir, enum rs_ev_role role, struct str in);

	/* A finished exchange's name, kind, status and attributes. */
	void (*describe)(const struct rs_exchange *x, struct rs_build *b);
};

enum rs_proto_id {
#define RS_PROTO(name) RS_PROTO_##name,
#include "protocols.def"
#undef RS_PROTO
	RS_PROTO_COUNT,
};
/* In the order of protocols.def, which is the order of detection. */
extern const struct rs_proto_ops *const rs_protos[RS_PROTO_COUNT];

#endif
