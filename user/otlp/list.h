/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list — elements whose number is not known until the last one: chained in the arena, then made an array.
 * One set of functions per element type T: struct T_list, T_list_add(), T_list_array().
 */
#ifndef RS_OTLP_LIST_H
#define RS_OTLP_LIST_H

#include "trace/span.h"

#define RS_READ_LIST(T)                                                                            \
	struct T##_node {                                                                          \
		struct T##_node *next;                                                             \
		struct rs_##T v;                                                                   \
	};                                                                                         \
	struct T##_list {                                                                          \
		struct T##_node *first, *last;                                                     \
		uint32_t n;                                                                        \
	};                                                                                         \
	/* A new zeroed element; NULL: the arena is full. */                                       \
	static inline struct rs_##T *T##_list_add(struct T##_list *l, struct rs_arena *a)          \
	{                                                                                          \
		struct T##_node *node = rs_arena_alloc(a, sizeof(*node));                          \
                                                                                                   \
		if (!node)                                                                         \
			return NULL;                                                               \
		memset(node, 0, sizeof(*node));                                                    \
		if (l->last)                                                                       \
			l->last->next = node;                                                      \
		else                                                                               \
			l->first = node;                                                           \
		l->last = node;                                                                    \
		l->n++;                                                                            \
		return &node->v;                                                                   \
	}                                                                                          \
	/* The elements as an array of l->n; NULL when there are none, or the arena is full. */    \
	static inline const struct rs_##T *T##_list_array(const struct T##_list *l,                \
							  struct rs_arena *a)                      \
	{                                                                                          \
		struct rs_##T *arr = l->n ? rs_arena_alloc(a, l->n * sizeof(*arr)) : NULL;         \
		uint32_t i = 0;                                                                    \
                                                                                                   \
		if (!arr)                                                                          \
			return NULL;                                                               \
		for (const struct T##_node *node = l->first; node; node = node->next)              \
			arr[i++] = node->v;                                                        \
		return arr;                                                                        \
	}

RS_READ_LIST(attr)
RS_READ_LIST(val)
RS_READ_LIST(event)
RS_READ_LIST(link)

#endif
