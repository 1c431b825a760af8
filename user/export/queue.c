// SPDX-License-Identifier: Apache-2.0
#include "queue.h"

#include <string.h>

#define MAX_ITEMS 65536

void rs_queue_init(struct rs_queue *q, uint64_t max_spans, size_t max_bytes)
{
	*q = (struct rs_queue){ .max_spans = max_spans, .max_bytes = max_bytes };
	rs_list_init(&q->waiting);
	rs_list_init(&q->flying);
	rs_pool_init(&q->items, sizeof(struct rs_item), MAX_ITEMS);
}

static void release_list(struct rs_queue *q, struct rs_list *list)
{
	struct rs_list *pos, *tmp;

	rs_list_for_each_safe (pos, tmp, list)
		rs_queue_done(q, rs_list_entry(pos, struct rs_item, link));
}

void rs_queue_release(struct rs_queue *q)
{
	if (!q->waiting.next)
		return;
	release_list(q, &q->waiting);
	release_list(q, &q->flying);
	rs_pool_release(&q->items);
}

static size_t cost_of(const struct rs_payload *pl)
{
	size_t n = 0;

	for (int i = 0; i < pl->niov; i++)
		n += (size_t)1 << (RS_BUF_MIN_SHIFT + pl->buf[i]->cls);
	return n;
}

static struct rs_item *make(struct rs_queue *q, struct rs_payload *data, uint32_t spans,
			    uint8_t form, uint64_t now_ns)
{
	struct rs_item *it = rs_pool_get(&q->items);

	if (!it)
		return NULL;
	*it = (struct rs_item){ .data = *data, .spans = spans, .form = form, .queued_ns = now_ns };
	it->cost = cost_of(data);
	*data = (struct rs_payload){ 0 };
	q->spans += spans;
	q->bytes += it->cost;
	q->nwaiting++;
	return it;
}

struct rs_item *rs_queue_push(struct rs_queue *q, struct rs_payload *data, uint32_t spans,
			      uint8_t form, uint64_t now_ns)
{
	struct rs_item *it = make(q, data, spans, form, now_ns);

	if (it)
		rs_list_add_tail(&q->waiting, &it->link);
	return it;
}

struct rs_item *rs_queue_push_part(struct rs_queue *q, const struct rs_item *of,
				   struct rs_payload *data, uint32_t spans)
{
	struct rs_item *it = make(q, data, spans, of->form, of->queued_ns);

	if (!it)
		return NULL;
	memcpy(it->container, of->container, sizeof(it->container));
	rs_list_add(&q->waiting, &it->link);
	return it;
}

bool rs_queue_over(const struct rs_queue *q)
{
	return q->spans > q->max_spans || q->bytes > q->max_bytes;
}

struct rs_item *rs_queue_oldest(const struct rs_queue *q)
{
	return rs_list_empty(&q->waiting) ? NULL
					  : rs_list_entry(q->waiting.next, struct rs_item, link);
}

void rs_queue_take(struct rs_queue *q, struct rs_item *it)
{
	rs_list_del(&it->link);
	rs_list_add_tail(&q->flying, &it->link);
	it->in_flight = true;
	q->nwaiting--;
	q->nflying++;
}

void rs_queue_back(struct rs_queue *q, struct rs_item *it)
{
	rs_list_del(&it->link);
	rs_list_add(&q->waiting, &it->link);
	it->in_flight = false;
	q->nflying--;
	q->nwaiting++;
}

void rs_queue_done(struct rs_queue *q, struct rs_item *it)
{
	rs_list_del(&it->link);
	if (it->in_flight)
		q->nflying--;
	else
		q->nwaiting--;
	q->spans -= it->spans;
	q->bytes -= it->cost;
	rs_payload_release(&it->data);
	rs_pool_put(&q->items, it);
}

void rs_queue_unload(struct rs_queue *q, struct rs_item *it)
{
	q->bytes -= it->cost;
	it->cost = 0;
	rs_payload_release(&it->data);
}

void rs_queue_load(struct rs_queue *q, struct rs_item *it, struct rs_payload *data)
{
	it->data = *data;
	*data = (struct rs_payload){ 0 };
	it->cost = cost_of(&it->data);
	q->bytes += it->cost;
}
