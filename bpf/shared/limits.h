/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sizes both the kernel side and the user side must agree on. */
#ifndef RS_SHARED_LIMITS_H
#define RS_SHARED_LIMITS_H

#define RS_ABI		2     /* of struct layouts in events.h; raised on every change */
#define RS_COMM_LEN	16    /* kernel's TASK_COMM_LEN */
#define RS_UNIX_PATH	108   /* sizeof(sockaddr_un.sun_path) */
#define RS_CGROUP_PATH	512   /* bytes of a cgroup's path, and a NUL; a pod's in kind is 310 long */
#define RS_TAIL_LEN	8     /* bytes of a segment's end kept when its middle is not captured */
#define RS_CAP_MAX	4096  /* bytes of payload in one data record at most */
#define RS_HEAD_MAX	65536 /* bytes of one message's head that are captured at most */
#define RS_TLS_SLOTS	4     /* records of plain text under construction at once, per CPU */
#define RS_FILTER_PORTS 16    /* ports in one filter */
#define RS_FILTER_COMMS 8     /* command names in one filter */

#endif
