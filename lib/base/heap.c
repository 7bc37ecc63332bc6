/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>
#include "base/heap.h"

/* Two trees become one; neither has siblings. */
static struct mrf_heap_node *join_trees(struct mrf_heap_node *a, struct mrf_heap_node *b)
{
	struct mrf_heap_node *top = b->key < a->key ? b : a, *below = top == a ? b : a;

	below->next = top->child;
	below->prev = top;
	if (top->child)
		top->child->prev = below;
	top->child = below;
	return top;
}

/* Takes the first tree out of a list of siblings. */
static struct mrf_heap_node *take_first(struct mrf_heap_node **list)
{
	struct mrf_heap_node *node = *list;

	*list = node->next;
	node->next = node->prev = NULL;
	return node;
}

/*
 * Siblings become one tree: in pairs from the front, and the pairs from the back, which is what
 * keeps trees flat. NULL: there are none.
 */
static struct mrf_heap_node *join_all(struct mrf_heap_node *list)
{
	struct mrf_heap_node *pairs = NULL, *all = NULL;

	while (list) {
		struct mrf_heap_node *node = take_first(&list);

		if (list)
			node = join_trees(node, take_first(&list));
		node->next = pairs;
		pairs = node;
	}
	while (pairs) {
		struct mrf_heap_node *node = take_first(&pairs);

		all = all ? join_trees(all, node) : node;
	}
	return all;
}

static void join_root(struct mrf_heap *heap, struct mrf_heap_node *tree)
{
	if (tree)
		heap->least = heap->least ? join_trees(heap->least, tree) : tree;
}

void mrf_heap_insert(struct mrf_heap *heap, struct mrf_heap_node *node)
{
	node->child = node->next = node->prev = NULL;
	node->in = true;
	join_root(heap, node);
}

/* node has a parent or a sibling before it. */
static void cut_out(struct mrf_heap_node *node)
{
	if (node->prev->child == node)
		node->prev->child = node->next;
	else
		node->prev->next = node->next;
	if (node->next)
		node->next->prev = node->prev;
}

void mrf_heap_remove(struct mrf_heap *heap, struct mrf_heap_node *node)
{
	if (!node->in)
		return;
	node->in = false;
	if (heap->least == node)
		heap->least = NULL;
	else
		cut_out(node);
	join_root(heap, join_all(node->child));
}
