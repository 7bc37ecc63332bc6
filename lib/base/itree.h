/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intervals [start, end) of a 64-bit line, each with a value: a balanced tree (AVL) in
 * which each node knows the greatest end below it. Intervals may overlap and be equal.
 * Everything takes a number of steps logarithmic in the number of intervals.
 *
 * The caller serialises whatever writes, and everything named without "try". The functions
 * named "try" read without a lock, beside writers: a counter is odd while the tree is being
 * changed, and what was read counts only if the counter was even and has not moved. They
 * never wait: they give up, and the caller looks again with its lock. Therefore memory of
 * nodes never becomes anything else: it goes back to a pool, not to the allocator, and a
 * reader that strays into another tree finds nodes there, too.
 */
#ifndef MRF_BASE_ITREE_H
#define MRF_BASE_ITREE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All members are private, except that an owner may look at its own linked node. */
struct mrf_itree_node {
	_Alignas(64) atomic_uintptr_t start;
	atomic_uintptr_t end;
	atomic_uintptr_t max; /* the greatest end in this subtree */
	struct mrf_itree_node *_Atomic kid[2];
	void *_Atomic value;
	struct mrf_itree_node *next; /* in the pool */
	unsigned height;	     /* of this subtree; 0: in no tree */
};

/* All 0: empty. */
struct mrf_itree {
	atomic_ulong count; /* of the changes that began and of those that ended */
	struct mrf_itree_node *_Atomic root;
};

/*
 * A node for one interval, or NULL: no memory. Nobody holds the monitor's lock (rank
 * PIN). It is in no tree when it is given back.
 */
struct mrf_itree_node *mrf_itree_node_new(void);
void mrf_itree_node_free(struct mrf_itree_node *node);

/* --- serialised by the caller; nothing allocates, nothing fails ------------------------ */

/* start < end; the node is in no tree. */
void mrf_itree_insert(struct mrf_itree *tree, struct mrf_itree_node *node, uintptr_t start,
		      uintptr_t end, void *value);
/* Harmless for a node whose tree was forgotten. */
void mrf_itree_remove(struct mrf_itree *tree, struct mrf_itree_node *node);
/* Forgets all nodes without a look at them; only in a forked child. */
void mrf_itree_forget(struct mrf_itree *tree);

/*
 * The nodes that overlap [start, end), in order of their starts: the first one, and the
 * one behind a node that is in the tree. NULL: there is none.
 */
struct mrf_itree_node *mrf_itree_first(const struct mrf_itree *tree, uintptr_t start,
				       uintptr_t end);
struct mrf_itree_node *mrf_itree_next(const struct mrf_itree *tree,
				      const struct mrf_itree_node *node, uintptr_t start,
				      uintptr_t end);
/* The node with the greatest start that is not above addr, or NULL. */
struct mrf_itree_node *mrf_itree_below(const struct mrf_itree *tree, uintptr_t addr);

static inline bool mrf_itree_linked(const struct mrf_itree_node *node)
{
	return node->height;
}

static inline uintptr_t mrf_itree_start(const struct mrf_itree_node *node)
{
	return atomic_load_explicit(&node->start, memory_order_relaxed);
}

static inline uintptr_t mrf_itree_end(const struct mrf_itree_node *node)
{
	return atomic_load_explicit(&node->end, memory_order_relaxed);
}

static inline void *mrf_itree_value(const struct mrf_itree_node *node)
{
	return atomic_load_explicit(&node->value, memory_order_relaxed);
}

/* --- without a lock ------------------------------------------------------------------ */

/* What stood in the tree at one moment between the call and its return. */
struct mrf_itree_hit {
	uintptr_t start;
	uintptr_t end;
	void *value;
	unsigned long count; /* of the tree at that moment */
};

enum mrf_itree_look {
	MRF_ITREE_NONE, /* no such interval */
	MRF_ITREE_HIT,
	MRF_ITREE_BUSY /* the tree was changing: look again with the lock */
};

/* As mrf_itree_first and mrf_itree_below; *hit is written for MRF_ITREE_HIT only. */
enum mrf_itree_look mrf_itree_try_first(const struct mrf_itree *tree, uintptr_t start,
					uintptr_t end, struct mrf_itree_hit *hit);
enum mrf_itree_look mrf_itree_try_below(const struct mrf_itree *tree, uintptr_t addr,
					struct mrf_itree_hit *hit);

#endif
