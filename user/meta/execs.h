/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execs — what /proc said of the last programs when they were executed: a process that is gone before its
 * first bytes are looked at can be asked no more. A ring: the oldest goes.
 */
#ifndef RS_META_EXECS_H
#define RS_META_EXECS_H

#include <stdbool.h>
#include <stdint.h>

#define RS_EXECS     128
#define RS_EXEC_TEXT 512

struct rs_exec {
	uint32_t tgid;
	uint32_t uid;		   /* effective; RS_FACTS_NO_UID: not known */
	uint64_t start_ns;	   /* of the process, CLOCK_BOOTTIME */
	char exe[RS_EXEC_TEXT];	   /* "": not known */
	char cgroup[RS_EXEC_TEXT]; /* as rs_facts_cgroup; "": not known */
};

struct rs_execs {
	struct rs_exec *ring; /* NULL: nothing is noted */
	uint32_t next;
};

/* Without memory nothing is noted. */
void rs_execs_init(struct rs_execs *x);
void rs_execs_release(struct rs_execs *x);
/* A program was executed just now. uid, cgroup: does anybody ask for them? */
void rs_execs_note(struct rs_execs *x, uint32_t tgid, uint64_t start_ns, bool uid, bool cgroup);
/* The newest of this process (start_ns 0: any of this number), or NULL. Valid until the next note. */
const struct rs_exec *rs_execs_find(const struct rs_execs *x, uint32_t tgid, uint64_t start_ns);

#endif
