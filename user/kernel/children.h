/* SPDX-License-Identifier: Apache-2.0 */
/* children — processes that descend from others, as /proc tells now. */
#ifndef RS_KERNEL_CHILDREN_H
#define RS_KERNEL_CHILDREN_H

#include <stddef.h>
#include <stdint.h>

/* Calls fn for every process that descends from one of pids, those themselves excluded. Processes that
 * come and go meanwhile are the caller's business (the fork probe). 0 or -errno (/proc not readable). */
int rs_children(const uint32_t *pids, size_t npids, void (*fn)(void *arg, uint32_t pid), void *arg);

#endif
