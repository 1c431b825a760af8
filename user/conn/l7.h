/* SPDX-License-Identifier: Apache-2.0 */
/*
 * l7 — one connection's bytes turned into messages: both directions' streams, detection of the
 * protocol, its parser, gaps and resynchronisation.
 *
 * Records come in ring order; a record whose offset lies beyond what is expected is a gap, one
 * before it is late and ignored (counted). Bytes are parsed in the record itself when nothing is
 * held; only an unfinished head is copied, into a window from the pools in rs_l7_env, at most
 * RS_HEAD_MAX bytes. Not thread-safe; allocates only from the env's pools.
 */
#ifndef RS_CONN_L7_H
#define RS_CONN_L7_H

#include "proto/proto.h"
#include "l7_types.h"

/* Called for every message, in order. msg and its slices are valid during the call. */
typedef void (*rs_msg_fn)(void *arg, const struct rs_msg *msg);

int rs_l7_env_init(struct rs_l7_env *env);
void rs_l7_env_release(struct rs_l7_env *env);

void rs_l7_init(struct rs_l7 *l7);
/* Gives windows and state back to the pools. */
void rs_l7_release(struct rs_l7 *l7, struct rs_l7_env *env);

/* ev has been checked: cap <= len and ev->h.len covers data[cap]. */
void rs_l7_data(struct rs_l7 *l7, struct rs_l7_env *env, const struct rs_ev_data *ev, rs_msg_fn fn,
		void *arg);

/* Nothing of this connection is wanted. */
void rs_l7_ignore(struct rs_l7 *l7, struct rs_l7_env *env, uint64_t conn);

/* A direction, or both, have ended: unfinished messages end (ABORTED unless close-delimited). */
void rs_l7_close(struct rs_l7 *l7, struct rs_l7_env *env, enum rs_ev_how how, uint64_t ts_ns,
		 rs_msg_fn fn, void *arg);

#endif
