/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside lib/match: queues in a hash table. Items with the same source and the same tag
 * are in one queue, in the order of their serial numbers; a table may ignore bits of the tag, or
 * the source, of all its items. Finding a queue and adding or removing an item take
 * constant time, however many items and queues there are.
 *
 * The table owns its array of slots and nothing else. The array grows by one slot at a
 * time, with the number of queues, so that no call takes long; without memory it stays as
 * it is, and the table becomes slower. So nothing can fail. The hash is salted, because
 * peers choose tags. The caller serialises all calls.
 */
#ifndef MRF_MATCH_QUEUES_H
#define MRF_MATCH_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/compiler.h"
#include "base/list.h"

/* What all orders know of an item. It does not change while the item is in a table. */
struct mrf_queues_item {
	uint64_t source;
	uint64_t tag;
	uint64_t serial; /* no two items in a table have the same */
};

/* Links an item into one table: a member of the structure that begins with the item. */
struct mrf_queues_node {
	struct mrf_list line; /* of its queue: a circle without a head */
	/*
	 * Of the first of a queue: that of the next queue in the slot. Else
	 * &mrf_queues_behind.
	 */
	struct mrf_queues_node *next;
};

extern struct mrf_queues_node mrf_queues_behind;

/* Random numbers; several tables may share them. */
struct mrf_queues_salt {
	uint64_t source;
	uint64_t tag;
	uint64_t factor;
};

struct mrf_queues {
	struct mrf_queues_node **slots; /* in each, the first of the first queue, or NULL */
	struct mrf_queues_node *only;	/* the array, until there is another */
	size_t count;			/* of the slots in use */
	size_t mask;			/* the least 2^n - 1 that is not below count - 1 */
	size_t room;			/* of the array */
	size_t queues;
	const struct mrf_queues_salt *salt;
	uint64_t by_source; /* UINT64_MAX: items differ by their sources; 0: they do not */
	uint64_t by_tag;    /* they differ by these bits of their tags */
	size_t offset;	    /* of the node from the beginning of the item */
};

/*
 * Empty; it does not move from now on. *salt is set and outlives it. offset: of this
 * table's nodes from the beginning of their items.
 */
void mrf_queues_init(struct mrf_queues *queues, const struct mrf_queues_salt *salt,
		     uint64_t by_source, uint64_t by_tag, size_t offset);
/* The table is empty, or will not be used again. */
void mrf_queues_fini(struct mrf_queues *queues);

/* --- finding ------------------------------------------------------------------------ */

static inline struct mrf_queues_item *mrf_queues_item(const struct mrf_queues *queues,
						      const struct mrf_queues_node *node)
{
	return (struct mrf_queues_item *)((char *)node - queues->offset);
}

static inline struct mrf_queues_node *mrf_queues_node(const struct mrf_queues *queues,
						      const struct mrf_queues_item *item)
{
	return (struct mrf_queues_node *)((char *)item + queues->offset);
}

/*
 * Source and tag are each mixed with a random number and multiplied; both halves of the
 * product count. Products of numbers in a row are in a row as well, so they are
 * multiplied once more, and the upper half of that counts. Who does not know the salt
 * finds no tags that meet.
 */
static inline uint64_t mrf_queues_hash(const struct mrf_queues *queues, uint64_t source,
				       uint64_t tag)
{
	const struct mrf_queues_salt *salt = queues->salt;
	unsigned __int128 product =
		(unsigned __int128)(salt->source ^ (source & queues->by_source)) *
		(salt->tag ^ (tag & queues->by_tag));

	return ((uint64_t)product ^ (uint64_t)(product >> 64)) * (salt->factor | 1) >> 32;
}

/* A slot that the table does not have yet will be split from one that it has. */
static inline struct mrf_queues_node **mrf_queues_slot(const struct mrf_queues *queues,
						       uint64_t source, uint64_t tag)
{
	size_t i;

	if (!queues->mask)
		return queues->slots;
	i = mrf_queues_hash(queues, source, tag) & queues->mask;
	return &queues->slots[i < queues->count ? i : i & (queues->mask >> 1)];
}

static inline bool mrf_queues_same(const struct mrf_queues *queues,
				   const struct mrf_queues_item *item, uint64_t source,
				   uint64_t tag)
{
	return !(((item->source ^ source) & queues->by_source) |
		 ((item->tag ^ tag) & queues->by_tag));
}

/*
 * Where the first of a queue hangs, until the table changes. NULL is there: no such
 * queue.
 */
static inline struct mrf_queues_node **mrf_queues_find(const struct mrf_queues *queues,
						       uint64_t source, uint64_t tag)
{
	struct mrf_queues_node **at = mrf_queues_slot(queues, source, tag);

	while (*at && !mrf_queues_same(queues, mrf_queues_item(queues, *at), source, tag))
		at = &(*at)->next;
	return at;
}

/* The first of a queue, the one with the least serial; NULL: there is no such queue. */
static inline struct mrf_queues_item *mrf_queues_first(const struct mrf_queues *queues,
						       uint64_t source, uint64_t tag)
{
	struct mrf_queues_node *first = *mrf_queues_find(queues, source, tag);

	return first ? mrf_queues_item(queues, first) : NULL;
}

/* The one behind it in its queue, or NULL. first is the first of the queue. */
static inline struct mrf_queues_item *mrf_queues_next(const struct mrf_queues *queues,
						      const struct mrf_queues_item *first,
						      const struct mrf_queues_item *item)
{
	struct mrf_list *next = mrf_queues_node(queues, item)->line.next;

	if (next == &mrf_queues_node(queues, first)->line)
		return NULL;
	return mrf_queues_item(queues, mrf_list_entry(next, struct mrf_queues_node, line));
}

/* --- changing ----------------------------------------------------------------------- */

/* The item is in no queue of this table. */
void mrf_queues_add(struct mrf_queues *queues, struct mrf_queues_item *item);
void mrf_queues_remove(struct mrf_queues *queues, struct mrf_queues_item *item);
/* The same for the first of a queue, which hangs there. */
void mrf_queues_remove_first(struct mrf_queues *queues, struct mrf_queues_node **at);

#endif
