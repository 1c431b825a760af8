/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list — an intrusive doubly linked list. A node is a member of what it links; the list owns nothing.
 * A node that is in no list points to itself, so removing twice is harmless.
 */
#ifndef RS_BASE_LIST_H
#define RS_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct rs_list {
	struct rs_list *next, *prev;
};

#define rs_list_entry(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))
#define rs_list_for_each(pos, head)	  for (pos = (head)->next; pos != (head); pos = pos->next)
/* The current node may be removed in the body. */
#define rs_list_for_each_safe(pos, tmp, head)                                                      \
	for (pos = (head)->next, tmp = pos->next; pos != (head); pos = tmp, tmp = pos->next)

static inline void rs_list_init(struct rs_list *n)
{
	n->next = n->prev = n;
}

static inline bool rs_list_empty(const struct rs_list *head)
{
	return head->next == head;
}

/* Puts n before head: at the tail of the list. */
static inline void rs_list_add_tail(struct rs_list *head, struct rs_list *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

static inline void rs_list_add(struct rs_list *head, struct rs_list *n)
{
	rs_list_add_tail(head->next, n);
}

static inline void rs_list_del(struct rs_list *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	rs_list_init(n);
}

#endif
