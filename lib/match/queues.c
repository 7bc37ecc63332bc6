/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "match/queues.h"

/* The smallest array, and the largest one that an empty table keeps: 32 KiB. */
#define FIRST_ROOM 16
#define KEPT_ROOM 4096

struct mrf_queues_node mrf_queues_behind;

/* --- growing ------------------------------------------------------------------------ */

void mrf_queues_init(struct mrf_queues *queues, const struct mrf_queues_salt *salt,
		     uint64_t by_source, uint64_t by_tag, size_t offset)
{
	*queues = (struct mrf_queues){
		.slots = &queues->only,
		.count = 1,
		.room = 1,
		.salt = salt,
		.by_source = by_source,
		.by_tag = by_tag,
		.offset = offset,
	};
}

void mrf_queues_fini(struct mrf_queues *queues)
{
	if (queues->slots != &queues->only)
		free(queues->slots);
	mrf_queues_init(queues, queues->salt, queues->by_source, queues->by_tag, queues->offset);
}

static bool enlarge(struct mrf_queues *queues)
{
	bool first = queues->slots == &queues->only;
	size_t room = first ? FIRST_ROOM : queues->room * 2;
	struct mrf_queues_node **slots =
		realloc(first ? NULL : queues->slots, room * sizeof(*slots));

	if (!slots)
		return false;
	if (first)
		slots[0] = queues->only;
	queues->slots = slots;
	queues->room = room;
	return true;
}

/* Moves the queues that belong into the new slot. */
static void split(struct mrf_queues *queues, struct mrf_queues_node **from,
		  struct mrf_queues_node **to)
{
	while (*from) {
		struct mrf_queues_node *node = *from;
		const struct mrf_queues_item *item = mrf_queues_item(queues, node);

		if (mrf_queues_slot(queues, item->source, item->tag) != to) {
			from = &node->next;
			continue;
		}
		*from = node->next;
		node->next = *to;
		*to = node;
	}
}

static bool add_slot(struct mrf_queues *queues)
{
	size_t i = queues->count;

	if (i == queues->room && !enlarge(queues))
		return false;
	if (i > queues->mask)
		queues->mask = queues->mask * 2 + 1;
	queues->count++;
	queues->slots[i] = NULL;
	split(queues, &queues->slots[i & (queues->mask >> 1)], &queues->slots[i]);
	return true;
}

/* Two at a time: a table that could not grow for a while catches up. */
static __attribute__((noinline)) void grow_some(struct mrf_queues *queues)
{
	if (add_slot(queues) && queues->queues > queues->count)
		add_slot(queues);
}

/* --- items -------------------------------------------------------------------------- */

static uint64_t serial_of(const struct mrf_queues *queues, struct mrf_list *line)
{
	return mrf_queues_item(queues, mrf_list_entry(line, struct mrf_queues_node, line))->serial;
}

/* Items are nearly always younger than those that are there. */
static void add_behind(const struct mrf_queues *queues, struct mrf_queues_node *first,
		       struct mrf_queues_node *node, uint64_t serial)
{
	struct mrf_list *last = first->line.prev;

	while (mrf_unlikely(serial_of(queues, last) > serial))
		last = last->prev;
	mrf_list_add_head(&node->line, last);
	node->next = &mrf_queues_behind;
}

static void add_before(struct mrf_queues_node **at, struct mrf_queues_node *node)
{
	struct mrf_queues_node *first = *at;

	mrf_list_add_tail(&node->line, &first->line);
	node->next = first->next;
	first->next = &mrf_queues_behind;
	*at = node;
}

static void add_queue(struct mrf_queues *queues, struct mrf_queues_node **at,
		      struct mrf_queues_node *node)
{
	mrf_list_init(&node->line);
	node->next = NULL;
	*at = node;
	queues->queues++;
}

void mrf_queues_add(struct mrf_queues *queues, struct mrf_queues_item *item)
{
	struct mrf_queues_node *node = mrf_queues_node(queues, item);
	struct mrf_queues_node **at;

	if (mrf_unlikely(queues->queues > queues->count))
		grow_some(queues);
	at = mrf_queues_find(queues, item->source, item->tag);
	if (!*at)
		add_queue(queues, at, node);
	else if (mrf_unlikely(mrf_queues_item(queues, *at)->serial > item->serial))
		add_before(at, node);
	else
		add_behind(queues, *at, node, item->serial);
}

static void remove_queue(struct mrf_queues *queues, struct mrf_queues_node **at)
{
	*at = (*at)->next;
	queues->queues--;
	if (mrf_unlikely(!queues->queues && queues->room > KEPT_ROOM))
		mrf_queues_fini(queues);
}

/* The second of the queue becomes the first. */
void mrf_queues_remove_first(struct mrf_queues *queues, struct mrf_queues_node **at)
{
	struct mrf_queues_node *first = *at;
	struct mrf_queues_node *second =
		mrf_list_entry(first->line.next, struct mrf_queues_node, line);

	if (second == first) {
		remove_queue(queues, at);
		return;
	}
	second->next = first->next;
	*at = second;
	mrf_list_del(&first->line);
}

void mrf_queues_remove(struct mrf_queues *queues, struct mrf_queues_item *item)
{
	struct mrf_queues_node *node = mrf_queues_node(queues, item);

	if (node->next == &mrf_queues_behind)
		mrf_list_del(&node->line);
	else
		mrf_queues_remove_first(queues, mrf_queues_find(queues, item->source, item->tag));
}
