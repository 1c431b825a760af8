// SPDX-License-Identifier: Apache-2.0
#include "execs.h"

#include <stdlib.h>
#include <string.h>

#include "facts.h"

void rs_execs_init(struct rs_execs *x)
{
	*x = (struct rs_execs){ .ring = calloc(RS_EXECS, sizeof(*x->ring)) };
}

void rs_execs_release(struct rs_execs *x)
{
	free(x->ring);
	*x = (struct rs_execs){ 0 };
}

void rs_execs_note(struct rs_execs *x, uint32_t tgid, uint64_t start_ns, bool uid, bool cgroup)
{
	struct rs_exec *e;

	if (!x->ring)
		return;
	e = &x->ring[x->next++ % RS_EXECS];
	e->tgid = tgid;
	e->start_ns = start_ns;
	e->uid = uid ? rs_facts_uid(tgid) : RS_FACTS_NO_UID;
	e->cgroup[0] = 0;
	rs_facts_exe(tgid, e->exe, sizeof(e->exe));
	if (cgroup)
		rs_facts_cgroup_text(tgid, e->cgroup, sizeof(e->cgroup));
}

const struct rs_exec *rs_execs_find(const struct rs_execs *x, uint32_t tgid, uint64_t start_ns)
{
	for (uint32_t i = 1; x->ring && i <= RS_EXECS; i++) {
		const struct rs_exec *e = &x->ring[(x->next - i) % RS_EXECS];

		if (e->tgid == tgid)
			return !start_ns || e->start_ns == start_ns ? e : NULL;
	}
	return NULL;
}
