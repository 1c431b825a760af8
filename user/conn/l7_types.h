/* SPDX-License-Identifier: Apache-2.0 */
/* l7_types — what l7.h works on. Members of rs_l7 are l7.c's own; its users hold it by value. */
#ifndef RS_CONN_L7_TYPES_H
#define RS_CONN_L7_TYPES_H

#include "base/counters.h"
#include "proto/proto.h"
#include "shared/config.h"
#include "stream.h"

/* Shared by all connections of an agent. */
struct rs_l7_env {
	/* Set by the owner before rs_l7_env_init(): */
	struct rs_counters *counters; /* never NULL */
	/* What the kernel side need not send; NULL: nobody to tell. */
	void (*policy)(void *arg, uint64_t conn, const struct rs_bpf_policy *policy);
	void *policy_arg;
	const struct rs_redact *redact; /* for the protocols; NULL: the defaults */
	uint32_t max_conns;		/* connections with a known protocol at once; 0: 65536 */

	/* l7's: */
	struct rs_windows windows;
	struct rs_pool state[RS_PROTO_COUNT];
	struct rs_pool pool[RS_PROTO_COUNT][RS_PROTO_POOLS];
	struct rs_proto_env proto[RS_PROTO_COUNT];
	char *scratch;
};

enum rs_l7_phase {
	RS_L7_DETECT,  /* no protocol yet */
	RS_L7_ACTIVE,  /* speaks `proto` */
	RS_L7_IGNORED, /* nothing of it is of interest: no known protocol, or a tunnel */
};

#define RS_L7_OWN 128 /* bytes of a protocol's state that are kept here: HTTP/1's */

/* One connection, hottest first. Starts 24 bytes before a cache line: each stream is one, and `own` begins one. */
struct rs_l7 {
	void *state;	    /* of the protocol, `own` or from a pool; NULL unless ACTIVE */
	uint32_t protocols; /* bit per enum rs_proto_id: those looked for; 0: all */
	uint16_t probes;    /* records looked at in vain, for a protocol or for the next message */
	uint8_t phase;	    /* enum rs_l7_phase */
	uint8_t proto;	    /* enum rs_proto_id when ACTIVE */
	uint8_t role;	    /* enum rs_ev_role of this end, from the direction of requests */
	uint8_t last_dir;   /* DETECT: of the last record, plus one; 0: none */
	uint8_t misses;	    /* DETECT: turns of the conversation that no protocol knew */
	uint8_t inferred;   /* times a protocol was found */
	bool tunnel;	    /* the response being delivered ends the protocol */
	bool told;	    /* the kernel side has a policy for it */
	struct rs_stream s[2]; /* by enum rs_ev_dir */
	_Alignas(8) char own[RS_L7_OWN];
};

/* The protocol it speaks, or NULL. */
static inline const struct rs_proto_ops *rs_l7_proto(const struct rs_l7 *l7)
{
	return l7->phase == RS_L7_ACTIVE ? rs_protos[l7->proto] : NULL;
}

/* Do its messages name the request they belong to? */
static inline bool rs_l7_numbered(const struct rs_l7 *l7)
{
	return l7->phase == RS_L7_ACTIVE && rs_protos[l7->proto]->pairing == RS_PAIR_BY_ID;
}

#endif
