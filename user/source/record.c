// SPDX-License-Identifier: Apache-2.0
#include "record.h"

#include <stdint.h>

bool rs_record_valid(const struct rs_ev_hdr *ev, size_t avail)
{
	const struct rs_ev_data *d = (const void *)ev;

	if (avail < sizeof(*ev) || ev->len > avail)
		return false;
	switch ((enum rs_ev_type)ev->type) {
	case RS_EV_OPEN:
		return ev->len >= sizeof(struct rs_ev_open);
	case RS_EV_NAMES:
	case RS_EV_DATA:
		return ev->len >= sizeof(*d) && d->cap <= d->len &&
		       d->cap <= ev->len - sizeof(*d) && d->dir <= 1 &&
		       d->tail_len <= RS_TAIL_LEN && d->off <= UINT64_MAX - d->len;
	case RS_EV_CLOSE:
		return ev->len >= sizeof(struct rs_ev_close) &&
		       ((const struct rs_ev_close *)(const void *)ev)->how <= RS_CLOSE_OUT;
	case RS_EV_FACT:
		return ev->len >= sizeof(struct rs_ev_fact);
	case RS_EV_PROC:
		return ev->len >= sizeof(struct rs_ev_proc);
	case RS_EV_CGROUP:
		return ev->len >= sizeof(struct rs_ev_cgroup);
	case RS_EV_TASK:
		return ev->len >= sizeof(struct rs_ev_task);
	case RS_EV_CONTEXT:
		return ev->len >= sizeof(struct rs_ev_context) &&
		       ((const struct rs_ev_context *)(const void *)ev)->kind < RS_CONTEXT_KINDS;
	}
	return false;
}
