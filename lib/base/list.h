/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive doubly linked list with a head. The list owns nothing; the owner of the
 * structure that embeds a node also decides which lock guards it. Nothing can fail.
 */
#ifndef MRF_BASE_LIST_H
#define MRF_BASE_LIST_H

#include <stdbool.h>
#include "base/compiler.h"

struct mrf_list {
	struct mrf_list *next;
	struct mrf_list *prev;
};

#define mrf_list_entry(node, type, member) mrf_container_of(node, type, member)

#define mrf_list_each(pos, head) \
	for (struct mrf_list *pos = (head)->next; pos != (head); pos = pos->next)

/* The body may unlink or free pos. */
#define mrf_list_each_safe(pos, head)                                                     \
	for (struct mrf_list *pos = (head)->next, *pos##_next = pos->next; pos != (head); \
	     pos = pos##_next, pos##_next = pos->next)

static inline void mrf_list_init(struct mrf_list *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool mrf_list_empty(const struct mrf_list *head)
{
	return head->next == head;
}

static inline void mrf_list_add_tail(struct mrf_list *node, struct mrf_list *head)
{
	node->next = head;
	node->prev = head->prev;
	head->prev->next = node;
	head->prev = node;
}

static inline void mrf_list_add_head(struct mrf_list *node, struct mrf_list *head)
{
	mrf_list_add_tail(node, head->next);
}

/* Leaves node pointing at itself, so that a second unlink is harmless. */
static inline void mrf_list_del(struct mrf_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	mrf_list_init(node);
}

/* First node, or NULL when the list is empty. */
static inline struct mrf_list *mrf_list_first(const struct mrf_list *head)
{
	return mrf_list_empty(head) ? NULL : head->next;
}

static inline struct mrf_list *mrf_list_pop(struct mrf_list *head)
{
	struct mrf_list *node = mrf_list_first(head);

	if (node)
		mrf_list_del(node);
	return node;
}

#endif
