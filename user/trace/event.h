/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event — what the kernel saw while a request was open, on that request's span and on no other.
 *
 *   event                  attributes                              in summary (--events attributes)
 *   tcp.retransmit         ringspan.count                          ringspan.tcp.retransmits
 *   tcp.rto                ringspan.count                          ringspan.tcp.rtos
 *   tcp.reset              network.io.direction receive|transmit   ringspan.tcp.reset
 *   tcp.connect            ringspan.duration_us                    ringspan.tcp.connect_us
 *   thread.run_queue_wait  ringspan.duration_us, ringspan.count    ringspan.run_queue_wait_us
 *   process.signal         ringspan.signal                         ringspan.process.signal
 *   process.oom_kill       -                                       ringspan.process.oom_kill
 *   process.exit           process.exit.code, ringspan.signal      ringspan.process.exit
 *   rpc.message            network.io.direction, ringspan.size   -  (--rpc-messages; each is one)
 *   response.first_byte    -                                       ringspan.first_byte_us, from the span's start
 *
 * The same again is one event, at its first time, with a count. tcp.connect is on the first request of a
 * connection, at the time it was there. response.first_byte is told where the answer took
 * RS_FIRST_BYTE_NS or longer after it; else the span's end says it.
 */
#ifndef RS_TRACE_EVENT_H
#define RS_TRACE_EVENT_H

#include "trace/build.h"
#include "trace/trace.h"

#define RS_FIRST_BYTE_NS 1000000ull

/* Before the span's attributes are finished. Without memory they are counted as dropped. */
void rs_trace_events(const struct rs_trace *t, const struct rs_open *o, struct rs_build *b);

#endif
