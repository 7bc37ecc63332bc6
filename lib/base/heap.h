/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive pairing heap, which gives the node with the least key at once. Inserting takes
 * constant time, and removing a time that grows with the logarithm of the number of nodes on
 * average. The heap owns nothing; the owner of the structure that embeds a node also decides
 * which lock guards it. Nothing can fail, and a node that is all 0 is in no heap.
 */
#ifndef MRF_BASE_HEAP_H
#define MRF_BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct mrf_heap_node {
	struct mrf_heap_node *child; /* the first one */
	struct mrf_heap_node *next;  /* sibling */
	struct mrf_heap_node *prev;  /* sibling; of a first child: the parent */
	int64_t key; /* set before the node is inserted, not changed until it is removed */
	bool in;     /* a heap */
};

/* All 0: empty. */
struct mrf_heap {
	struct mrf_heap_node *least; /* NULL: empty */
};

/* node is in no heap. */
void mrf_heap_insert(struct mrf_heap *heap, struct mrf_heap_node *node);
/* Does nothing if node is in no heap. */
void mrf_heap_remove(struct mrf_heap *heap, struct mrf_heap_node *node);

#endif
