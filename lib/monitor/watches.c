/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watches are in an interval tree, which hooks look at without a lock.
 *
 * Why no change is missed: a hook announces its range and then looks into the tree, and a
 * watch is put into the tree before announcements are looked for; all of these accesses
 * are sequentially consistent (change.h; the counter of the tree). If the hook does not
 * find the watch, the counter had not moved when it looked last, so its announcement is
 * older than the end of the insertion, and the thread that watches sees it and refuses to
 * watch. If the hook meets the tree in the middle of a change, or finds an overlap, it
 * takes the lock and looks again.
 */
#include <stdatomic.h>
#include "monitor/ground.h"
#include "monitor/monitor_state.h"
#include "monitor/watches.h"

/* Guarded by the lock; hooks read the tree without it. */
static struct mrf_itree watches; /* each node's value: its struct mrf_watch */
/* struct mrf_watch.of_peers, of clients that are not local */
static struct mrf_list of_peers = { &of_peers, &of_peers };
static unsigned long alone; /* watches that are registered for themselves */
/*
 * Watches that may not lie in ground. While there are none, a hook that meets no ground meets
 * no watch. Raised before a watch is added and before ground that a watch may need goes.
 */
static atomic_uint loose;

/*
 * The range may become ground, or cease to be, before or behind the look for ground: so loose is
 * looked at on both sides of it.
 */
bool mrf_watches_touch(uintptr_t start, uintptr_t end)
{
	bool tree = atomic_load(&loose);
	struct mrf_itree_hit hit;

	if (mrf_ground_touches(start, end))
		return true;
	return (tree || atomic_load(&loose)) &&
	       mrf_itree_try_first(&watches, start, end, &hit) != MRF_ITREE_NONE;
}

struct mrf_watch *mrf_watches_first_locked(uintptr_t start, uintptr_t end)
{
	struct mrf_itree_node *node = mrf_itree_first(&watches, start, end);

	mrf_monitor_held();
	return node ? mrf_itree_value(node) : NULL;
}

struct mrf_watch *mrf_watches_next_locked(const struct mrf_watch *watch, uintptr_t start,
					  uintptr_t end)
{
	struct mrf_itree_node *node = mrf_itree_next(&watches, watch->node, start, end);

	mrf_monitor_held();
	return node ? mrf_itree_value(node) : NULL;
}

void mrf_watches_add_locked(struct mrf_watch *watch)
{
	mrf_monitor_held();
	atomic_fetch_add(&loose, 1);
	watch->loose = true;
	mrf_itree_insert(&watches, watch->node, watch->start, mrf_watch_end(watch), watch);
	watch->alone = false;
	if (mrf_monitor_parts.uffd && !watch->client->local)
		mrf_list_add_tail(&watch->of_peers, &of_peers);
}

void mrf_watches_in_ground_locked(struct mrf_watch *watch)
{
	mrf_monitor_held();
	if (watch->loose)
		atomic_fetch_sub(&loose, 1);
	watch->loose = false;
}

void mrf_watches_remove_locked(struct mrf_watch *watch)
{
	mrf_monitor_held();
	mrf_itree_remove(&watches, watch->node);
	mrf_list_del(&watch->of_peers);
	mrf_watches_in_ground_locked(watch);
	if (watch->alone)
		alone--;
}

void mrf_watches_alone_locked(struct mrf_watch *watch)
{
	mrf_monitor_held();
	if (!watch->alone)
		alone++;
	watch->alone = true;
	if (!watch->loose)
		atomic_fetch_add(&loose, 1);
	watch->loose = true;
}

unsigned long mrf_watches_pieces_locked(void)
{
	mrf_monitor_held();
	return alone;
}

void mrf_watches_lose_ground_locked(void)
{
	mrf_monitor_held();
	atomic_fetch_add(&loose, 1);
}

void mrf_watches_lost_ground_locked(void)
{
	mrf_monitor_held();
	atomic_fetch_sub(&loose, 1);
}

void mrf_watches_each_of_peers_locked(void (*drop)(struct mrf_watch *watch))
{
	struct mrf_list *node;

	mrf_monitor_held();
	while ((node = mrf_list_first(&of_peers)))
		drop(mrf_list_entry(node, struct mrf_watch, of_peers));
}

void mrf_watches_clear(void)
{
	mrf_list_init(&of_peers);
	alone = 0;
	atomic_store(&loose, 0);
}

void mrf_watches_forget(void)
{
	mrf_itree_forget(&watches);
	mrf_watches_clear();
}
