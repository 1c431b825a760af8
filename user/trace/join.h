/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join — both ends of a connection see a request begin at the same TCP sequence number.
 *
 * The key of a request is a hash of that number and of what the request's head says. It holds no
 * addresses: those change on the way (NAT), the bytes and their numbers do not, unless a proxy ends the
 * connection. Two requests open at the same time are taken for one only when they say the same and their
 * connections stand at the same one of 2^32 numbers: 2^-32 per other open request of the same content.
 *
 * Streams in TLS (HTTP/2): the number at which the connection's answers begin, and the stream's.
 *
 * A Unix socket has no such number: the kernel names its other end, and the stream's offset stands for it.
 *
 * Of ids that two agents derive alone from the key, see rs_join_ids().
 */
#ifndef RS_TRACE_JOIN_H
#define RS_TRACE_JOIN_H

#include "base/map.h"
#include "pair/pair.h"

/* Of a request's head; 0: it can not be joined (no sequence number, or not all of it was captured). */
uint64_t rs_join_key(const struct rs_msg *m, const struct rs_conn *c);

/* The key as two agents use it that do not meet: with the number at which the other direction stands too. */
uint64_t rs_join_far_key(uint64_t key, const struct rs_msg *m, const struct rs_conn *c);

/* The ids that follow from a key: for a request without context, and for its client's span. Never zero. */
void rs_join_ids(uint64_t key, uint8_t ret_trace[16], uint8_t ret_span[8]);

/* Open requests that have not met their other end. */
struct rs_joins {
	struct rs_map by_key;
};

/* max: open requests that wait at once; a further one meets nobody. */
void rs_joins_init(struct rs_joins *j, uint32_t max);
void rs_joins_release(struct rs_joins *j);
/* o has a join_key. The other end if it is there (it is taken out); else o is put in, and NULL returned. */
struct rs_open *rs_join_meet(struct rs_joins *j, struct rs_open *o);
/* o ends without having met it. */
void rs_join_forget(struct rs_joins *j, struct rs_open *o);

#endif
