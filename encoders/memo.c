// SPDX-License-Identifier: Apache-2.0
#include "memo.h"

#include <errno.h>
#include <stdlib.h>

int rs_memo_init(struct rs_memo *m)
{
	m->bytes = malloc(RS_MEMO_BYTES + RS_ARENA_PAD);
	return m->bytes ? 0 : -ENOMEM;
}

void rs_memo_release(struct rs_memo *m)
{
	free(m->bytes);
	m->bytes = NULL;
}

void rs_memo_keep(struct rs_memo *m, const struct rs_sink *s, size_t from, const char *p,
		  const struct rs_resource *r)
{
	struct rs_memo_slot *at = rs_memo_slot(m, r);
	size_t len, left = RS_MEMO_BYTES - m->next % RS_MEMO_BYTES;

	if (!r->id || s->err)
		return;
	len = rs_sink_pos(s, p) - from;
	if (len > RS_MEMO_MAX)
		return;
	if (len > left)
		m->next += left;
	*at = (struct rs_memo_slot){ .id = r->id, .at = m->next, .len = (uint32_t)len };
	memcpy(m->bytes + m->next % RS_MEMO_BYTES, s->base + from, len);
	m->next += len;
}
