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
 * something unseen (a timer, a worker, a disk), and whatever the thread sends next may be for it. One of which
 * the body is still coming, or the answer going, is *quiet*: slow clients make such, and most do nothing
 * meanwhile. It leaves a doubt once the thread has not been awake all the time since its last message
 * (rs_awake): what woke it was not that message; and when the request that it is at is being answered, too. After
 * a call in doubt the thread is only perhaps at that request (unsure), until it moves one of its messages again;
 * but the request is not dark for it: it may wait for that call.
 *
 * Work that no request's message led to (a timer that sends metrics) is known by the peers that a thread calls
 * while it is at no request, or in doubt time and again: its *own*. A call to such a peer is a request's only when
 * it follows directly on the request's message: RS_SURE_DIRECT.
 *
 * And where requests are answered by other threads than read them, threads say nothing (struct rs_crew); a task
 * whose requests others answer says nothing itself (hands_off).
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

/* The threads of a process, as far as something is known of them: do they answer what they read? */
struct rs_crew {
	uint32_t tgid, threads;
	uint16_t
		wanders; /* >0: not believed for so many answers: one came from another thread than had read */
};
#define RS_CREW_WANDERS 1000

#define RS_THREAD_OWN	    4	  /* peers; with more, any is taken for one */
#define RS_THREAD_OWN_CALLS 10000 /* they are forgotten after so many calls without one to them */
/* Threads sleep at times for other reasons (garbage collectors): not at one call in 25. */
#define RS_THREAD_STIR	    25
#define RS_THREAD_STIR_MAX  75

/* When a thread did something. ts_ns 0: not known. */
struct rs_moment {
	uint64_t ts_ns;
	uint8_t slept; /* rs_msg.slept */
};

#define RS_AWAKE_NS 500000

/*
 * Was it awake from the one to the other? On a machine with more to do than CPUs a thread need not sleep between
 * two of its timers; but these are some milliseconds apart.
 */
static inline bool rs_awake(struct rs_moment from, struct rs_moment to)
{
	return from.slept == to.slept && to.ts_ns - from.ts_ns < RS_AWAKE_NS;
}

struct rs_thread {
	uint64_t id; /* rs_thread_id() */
	uint32_t tgid;
	uint32_t ndark, nquiet; /* of open, how many are */
	struct rs_open *at;	/* or NULL */
	struct rs_list open;	/* rs_open.of_thread: requests it serves, last heard of last */
	struct rs_moment moved; /* the last message by which it came to `at` */
	bool unsure;		/* it is at `at` perhaps */
	bool hands_off;		/* a task: another answered a request that it had read */
	bool used;		/* since the table last looked for one to give up */
	uint8_t nown;
	uint16_t own_left; /* of RS_THREAD_OWN_CALLS */
	uint16_t stirs;	   /* calls in doubt, of late: rs_thread_own() */
	struct rs_crew *crew;
	struct rs_open *lent; /* its maker's request, or NULL */
	uint64_t maker;	      /* a task: who made it; 0: not known */
	uint32_t own
		[RS_THREAD_OWN]; /* peers that it calls without a request: hashes of their addresses */
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
	struct rs_map by_id, crew_by_tgid;
	struct rs_pool pool, asks, crews;
	struct rs_list lru; /* nearly in the order of their last use */
	struct rs_counters *n;
};

/* max: threads and tasks known at once. */
void rs_threads_init(struct rs_threads *ts, uint32_t max, struct rs_counters *n);
void rs_threads_release(struct rs_threads *ts);

/* The task, or without one (0) the thread. */
#define RS_THREAD_TASK (1ull << 63)
static inline uint64_t rs_thread_id(uint32_t tid, uint64_t task)
{
	return task ? task | RS_THREAD_TASK : tid;
}

/* It is heard of soon: its memory comes nearer, in two steps with time between them. */
void rs_threads_ahead(const struct rs_threads *ts, uint32_t tgid, uint64_t id);
void rs_threads_ahead_more(const struct rs_threads *ts, uint32_t tgid, uint64_t id);

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

/* How sure is it that what a thread sends is for the request it is at? */
enum rs_sure {
	RS_SURE_NOT,	/* others may have woken it, or the last call was in doubt */
	RS_SURE,	/* no other request can be meant */
	RS_SURE_DIRECT, /* it is the first that it does after that request's last message */
};

/* The request the thread works for now, or NULL when several can be meant. */
struct rs_open *rs_thread_works(const struct rs_thread *th, struct rs_moment now,
				enum rs_sure *ret_sure);

/* A request of the thread was answered, by itself or by another one of whatever process. */
void rs_thread_answered(struct rs_thread *th, bool itself);

/* The thread calls a peer (a hash of its address), and is at no request. */
void rs_thread_owns(struct rs_thread *th, uint32_t peer);
/* It calls, at a request: is the peer one of its own? doubt: no message is known that woke it for this. */
bool rs_thread_own(struct rs_thread *th, uint32_t peer, bool doubt);
/* The open request of the thread that was last heard of, or NULL. O(1). */
struct rs_open *rs_thread_last(const struct rs_thread *th);

#endif
