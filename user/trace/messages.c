// SPDX-License-Identifier: Apache-2.0
#include "messages.h"

uint32_t rs_messages_count(const struct rs_open *o)
{
	return o->nlinks + o->nmessages;
}

const struct rs_open_link *rs_messages_at(const struct rs_open *o, uint32_t i)
{
	const struct rs_messages *c = o->messages;

	if (i < o->nlinks)
		return &o->links[i];
	for (i -= o->nlinks; i >= RS_MESSAGE_CHUNK; i -= RS_MESSAGE_CHUNK)
		c = c->next;
	return &c->v[i];
}

void rs_trace_link_message(struct rs_trace *t, struct rs_open *o, const struct rs_wire_ctx *sender)
{
	struct rs_messages *c = o->last_messages;
	struct rs_open_link *l;

	if (rs_messages_count(o) >= t->limits.links) {
		o->dropped_links++;
		return;
	}
	if (!c || c->n == RS_MESSAGE_CHUNK) {
		c = rs_pool_get(&t->messages);
		if (!c) {
			o->dropped_links++;
			return;
		}
		c->next = NULL;
		c->n = 0;
		if (o->last_messages)
			o->last_messages->next = c;
		else
			o->messages = c;
		o->last_messages = c;
	}
	l = &c->v[c->n++];
	o->nmessages++;
	*l = (struct rs_open_link){ .type = RS_LINK_MESSAGE, .remote = true };
	memcpy(l->trace_id, sender->trace_id, sizeof(l->trace_id));
	memcpy(l->span_id, sender->span_id, sizeof(l->span_id));
}

void rs_messages_forget(struct rs_trace *t, struct rs_open *o)
{
	while (o->messages) {
		struct rs_messages *c = o->messages;

		o->messages = c->next;
		rs_pool_put(&t->messages, c);
	}
	o->last_messages = NULL;
	o->nmessages = 0;
}
