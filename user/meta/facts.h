/* SPDX-License-Identifier: Apache-2.0 */
/* facts — what /proc tells of a process that rules of discovery ask for. Nothing is kept. */
#ifndef RS_META_FACTS_H
#define RS_META_FACTS_H

#include "base/arena.h"
#include "discover/facts.h"

/* Its effective user; RS_FACTS_NO_UID when it is gone. */
uint32_t rs_facts_uid(uint32_t pid);
/* Its name, NUL-terminated; "" when it is gone. */
void rs_facts_comm(uint32_t pid, char ret[16]);
/* The file it executes, NUL-terminated; "" when it is gone. */
void rs_facts_exe(uint32_t pid, char *ret, size_t size);
/* Its cgroup's path: of version 2 if it is in one there, else of the first hierarchy. NULL: not known. */
const char *rs_facts_cgroup(uint32_t pid, struct rs_arena *a);
/* The same to ret, NUL-terminated; "" when it is not known or too long. */
void rs_facts_cgroup_text(uint32_t pid, char *ret, size_t size);
/* One more port, its own or (far) the other end's; false: nothing new, or there is no room. */
bool rs_facts_add_port(struct rs_facts *f, uint16_t port, bool far);
/* The text of /proc/PID/cgroup: as rs_facts_cgroup. */
struct str rs_facts_cgroup_of(struct str text);

#endif
