// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Iterators: run when user space reads them, not by events. */
#include "lib/maps.bpf.h"

/* Names every connection that has socket storage: eight bytes each, the cookie. */
SEC("iter/bpf_sk_storage_map")
int rs_iter_conns(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct rs_conn *c = ctx->value;

	if (c && ctx->sk)
		bpf_seq_write(ctx->meta->seq, &c->id, sizeof(c->id));
	return 0;
}
