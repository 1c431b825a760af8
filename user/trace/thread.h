/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread — what each thread is doing, as far as its messages tell: the request it is at.
 *
 * Where a runtime runs tasks of its own on its threads (goroutines) and the records name them, all that is
 * said here of a thread is meant of a task: who is meant has an id from rs_thread_id().
 *
 * A thread is at the request of which it last moved a message: its own message, or one of a call made for
 * it. That is what it is working for, for certain, unless some other request of the thread is *dark*: read
 * whole, not answered, with no call under way that would explain what it waits for. Such a request waits for
 * something unseen (a timer, a worker, a disk), and whatever the thread sends next may be for it. And where
 * requests are answered by other threads than read them, threads say nothing (rs_proc.wanders); a task whose
 * requests others answer says nothing itself (hands_off).
 *
 * A task that another one makes works for the request that its maker was at, if that was its only one: that
 * request is lent to it until it ends or the task has one of its own. Where a connection carries many requests at
 * a time, who reads them does not handle them: nothing is lent, but a task may be made for one of them (stream).
 *
 * A task that writes for others may be told beforehand for whom (rs_thread_ask).
 *
 * Every request is with one thread at most, in the order last heard of; all steps are O(1) whatever the
 * number of open requests and whatever the order in which they end.
 */
#ifndef RS_TRACE_THREAD_H
#define RS_TRACE_THREAD_H

#include "base/counters.h"
#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"
#include "pair/pair.h"

struct rs_thread {
	uint64_t id; /* rs_thread_id() */
	uint32_t tgid;
	uint32_t ndark;	      /* of open, how many are dark */
	struct rs_open *at;   /* or NULL */
	struct rs_list open;  /* rs_open.of_thread: requests it serves, last heard of last */
	struct rs_open *lent; /* its maker's request, or NULL */
	uint64_t maker;	      /* a task: who made it; 0: not known */
	bool hands_off;	      /* a task: another answered a request that it had read */
	bool used;	      /* since the table last looked for one to give up */
	struct rs_list lru;
	struct rs_list of_lent;	  /* in lent->borrowers */
	struct rs_list asks;	  /* struct rs_ask, oldest first */
	struct rs_attempt failed; /* the last call that failed, made for no known request */
	bool has_ended;
	uint8_t ended_trace[16], ended_span[8]; /* its last request, when that has ended */
	uint64_t ended_ns;
};

/* A request that a task is going to write for another one. */
struct rs_ask {
	struct rs_list list;
	uint64_t task; /* whose it is */
	uint32_t stream;
};

#define RS_THREAD_ASKS 4096 /* of all threads; those that find no room are not told */

struct rs_threads {
	struct rs_map by_id;
	struct rs_pool pool, asks;
	struct rs_list lru; /* nearly in the order of their last use */
	struct rs_counters *n;
};

void rs_threads_init(struct rs_threads *ts, uint32_t max, struct rs_counters *n);
void rs_threads_release(struct rs_threads *ts);

/* The task, or without one (0) the thread. */
#define RS_THREAD_TASK (1ull << 63)
static inline uint64_t rs_thread_id(uint32_t tid, uint64_t task)
{
	return task ? task | RS_THREAD_TASK : tid;
}

/* NULL when nothing is known of it, or when the id belonged to another process. tgid 0: any (of a thread). */
struct rs_thread *rs_thread_find(const struct rs_threads *ts, uint32_t tgid, uint64_t id);
/* Made when it is new; one unused for about the longest gives way (counted). NULL without memory. */
struct rs_thread *rs_thread_get(struct rs_threads *ts, uint32_t tgid, uint64_t id);

/* The thread now is at o, a server's open exchange, or at nothing known (NULL). */
void rs_thread_at(struct rs_thread *th, struct rs_open *o);
/* o's waits, request_done or has_response have changed. */
void rs_thread_update(struct rs_open *o);
/* o ends: no thread is at it any more. */
void rs_thread_leave(struct rs_open *o);

/* A task of tgid makes another, which works for what its maker is at; stream: for this request (rs_open.id) which
 * its maker, or whoever made that, has read; 0: it is not said. */
void rs_thread_spawn(struct rs_threads *ts, uint32_t tgid, uint64_t maker, uint64_t made,
		     uint32_t stream);
/* The task `writer` will write the request `stream` for another one. */
void rs_thread_ask(struct rs_threads *ts, uint32_t tgid, uint64_t writer, uint32_t stream,
		   uint64_t task);
/* Who asks for the request that `writer` has written; 0: not known. Earlier ones were not sent: forgotten. */
uint64_t rs_thread_asks(struct rs_threads *ts, uint32_t tgid, uint64_t writer, uint32_t stream);
/* The request ends: it is lent to nobody any more. Tasks that were made for it alone are forgotten. */
void rs_thread_reclaim(struct rs_threads *ts, struct rs_open *o);
/* th will not be heard of again: the task that served one request, which has ended. NULL is fine. */
void rs_thread_forget(struct rs_threads *ts, struct rs_thread *th);

/* The request the thread works for, if that is certain; else NULL. */
struct rs_open *rs_thread_certain(const struct rs_thread *th);
/* The open request of the thread that was last heard of, or NULL. O(1). */
struct rs_open *rs_thread_last(const struct rs_thread *th);

#endif
