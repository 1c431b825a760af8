// SPDX-License-Identifier: Apache-2.0
#include "intake.h"

#include "base/clock.h"
#include "export/spool.h"

#define COMPACT_MAX (30u << 10) /* bytes of a message that is copied to a small buffer */

static bool make_room(struct rs_exporter *e)
{
	struct rs_item *it = rs_queue_oldest(&e->q);

	/* The rest of a line that is half written stays. */
	if (it && it->at)
		it = it->link.next == &e->q.waiting
			     ? NULL
			     : rs_list_entry(it->link.next, struct rs_item, link);
	if (!it)
		return false;
	rs_exporter_drop(e, it, RS_LOSS_QUEUE_FULL);
	return true;
}

/* On disk first: then it survives whatever comes. Memory is spared when there is too little of it. */
static void to_spool(struct rs_exporter *e, struct rs_item *it)
{
	int rc;

	if (!e->spool)
		return;
	rc = rs_spool_add(e->spool, it->form, it->spans, &it->data, &it->spool_id);
	if (rc)
		rs_exporter_error(e, "spool: %s", strerror(-rc));
	else if (rs_queue_over(&e->q))
		rs_queue_unload(&e->q, it);
}

/* Encoders write into large buffers; a message that is small waits in a small one. */
static void compact(struct rs_exporter *e, struct rs_payload *pl)
{
	struct rs_payload small = { .pool = &e->pool, .niov = 1, .len = pl->len };
	size_t at = 0;

	if (pl->len > COMPACT_MAX || rs_bufpool_get(&e->pool, pl->len, &small.buf[0]))
		return;
	for (int i = 0; i < pl->niov; i++) {
		memcpy(small.buf[0]->data + at, pl->iov[i].iov_base, pl->iov[i].iov_len);
		at += pl->iov[i].iov_len;
	}
	small.iov[0] = (struct iovec){ small.buf[0]->data, at };
	rs_payload_release(pl);
	*pl = small;
}

static void enqueue(struct rs_exporter *e, struct rs_payload *pl, uint32_t spans,
		    struct str container)
{
	struct rs_item *it;

	compact(e, pl);
	it = rs_queue_push(&e->q, pl, spans, e->form, rs_clock_mono());
	if (!it) {
		e->lost[RS_LOSS_NO_MEMORY] += spans;
		rs_payload_release(pl);
		return;
	}
	if (container.len && container.len < sizeof(it->container)) {
		memcpy(it->container, container.ptr, container.len);
		it->container[container.len] = 0;
	}
	to_spool(e, it);
	while (rs_queue_over(&e->q) && rs_queue_oldest(&e->q) != it && make_room(e))
		;
	/* All else is in flight, and this is too much. */
	if (rs_queue_over(&e->q) && e->q.nwaiting == 1 && e->q.nflying)
		make_room(e);
}

static void encode(struct rs_exporter *e, const struct rs_batch *b, struct str container)
{
	struct rs_encode run = { .batch = b };
	uint32_t before = 0, skipped = 0;
	int rc;

	while (!run.done) {
		rc = rs_encode(e->enc[e->form], &run);
		if (!rc && run.out.niov) {
			enqueue(e, &run.out, run.spans - before, container);
			before = run.spans;
		} else if (!rc && run.done) {
			break;
		} else if (!make_room(e)) {
			break;
		}
	}
	for (int i = 0; i < RS_SKIP_COUNT; i++)
		skipped += run.skipped[i];
	e->lost[RS_LOSS_ENCODE] += skipped;
	e->lost[RS_LOSS_NO_MEMORY] += b->nspans - before - skipped;
}

static struct str container_of(const struct rs_resource_spans *rs)
{
	const struct rs_attrs *as = &rs->resource.attrs;

	for (uint32_t i = 0; i < as->n; i++) {
		if (as->a[i].key == rs_key(RS_K_CONTAINER_ID) && as->a[i].val.type == RS_VAL_STR)
			return str_of(as->a[i].val.str, as->a[i].val.len);
	}
	return STR_NONE;
}

static uint32_t spans_of(const struct rs_resource_spans *rs)
{
	uint32_t n = 0;

	for (const struct rs_scope_spans *ss = rs->first; ss; ss = ss->next)
		n += ss->nspans;
	return n;
}

/* Each container's resources as a batch of their own: the same spans, under copies of the resources' heads. So
 * many resources are looked at together; a container with more gets more messages. */
#define TOGETHER 64

static const struct rs_resource_spans *encode_some(struct rs_exporter *e, const struct rs_batch *b,
						   const struct rs_resource_spans *from)
{
	struct rs_resource_spans copy[TOGETHER];
	struct str container[TOGETHER];
	int n = 0;

	for (; from && n < TOGETHER; from = from->next) {
		container[n] = container_of(from);
		copy[n++] = *from;
	}
	for (int i = 0; i < n; i++) {
		struct rs_batch some = { .serial = b->serial };
		struct str id = container[i];

		if (!copy[i].first)
			continue; /* it was another one's */
		for (int k = i; k < n; k++) {
			struct rs_resource_spans *rs = &copy[k];

			if (!rs->first || !str_eq(container[k], id))
				continue;
			rs->next = NULL;
			*(some.last ? &some.last->next : &some.first) = rs;
			some.last = rs;
			some.nspans += spans_of(rs);
		}
		encode(e, &some, id);
		for (struct rs_resource_spans *rs = some.first; rs; rs = rs->next)
			rs->first = NULL;
	}
	return from;
}

void rs_intake(struct rs_exporter *e, const struct rs_batch *b)
{
	const struct rs_resource_spans *rs = b->first;

	if (!e->ops->by_container)
		encode(e, b, STR_NONE);
	while (e->ops->by_container && rs)
		rs = encode_some(e, b, rs);
}
