/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "base/compiler.h"
#include "base/maps.h"
#include "mr/face.h"
#include "mr/demand/pin.h"
#include "mr/demand/backs.h"

/* --- all of a space --------------------------------------------------------------- */

/*
 * The memory behind a pin is about to change, or has. Called with the monitor's lock held,
 * by or for the thread that changes it: so no memory is given back. One that is being
 * made is found not to be watched any more when it is done.
 */
static void drop(struct mrf_watch *watch)
{
	struct mrf_pin *pin = mrf_container_of(watch, struct mrf_pin, watch);

	if (!mrf_list_empty(&pin->all))
		mrf_pin_drop(pin);
}

static void dropped(void *arg)
{
	struct mrf_mr_space *space = ((struct mrf_mr_backs *)arg)->space;

	if (space->dropped)
		space->dropped(space->dropped_arg);
}

struct mrf_mr_backs *mrf_mr_backs_new(struct mrf_mr_space *space)
{
	struct mrf_mr_backs *backs = calloc(1, sizeof(*backs));

	if (!backs)
		return NULL;
	backs->space = space;
	backs->client.drop = drop;
	backs->client.dropped = dropped;
	backs->client.arg = backs;
	mrf_list_init(&backs->pins);
	mrf_list_init(&backs->dead);
	mrf_maps_keep();
	mrf_room_enter(backs);
	return backs;
}

void mrf_mr_backs_free(struct mrf_mr_backs *backs)
{
	if (!backs)
		return;
	mrf_room_leave(backs);
	mrf_maps_let_go();
	if (atomic_load(&backs->monitored))
		mrf_monitor_remove(&backs->client);
	mrf_pins_reap(backs);
	free(backs);
}

bool mrf_mr_backs_monitored(struct mrf_mr_backs *backs)
{
	if (mrf_unlikely(
		    !atomic_load_explicit(&backs->monitored, memory_order_relaxed)) &&
	    !atomic_exchange(&backs->monitored, true))
		mrf_monitor_add(&backs->client);
	return mrf_monitor_usable();
}

/* --- one -------------------------------------------------------------------------- */

static int by_addr(const void *a, const void *b)
{
	const struct mrf_extent *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Segments may overlap, and all of one address is one byte to peers. */
static unsigned merge(struct mrf_extent *extent, unsigned count)
{
	unsigned i, n = 0;

	qsort(extent, count, sizeof(*extent), by_addr);
	for (i = 1; i < count; i++) {
		struct mrf_extent *last = &extent[n];

		if (extent[i].addr - last->addr <= last->len)
			last->len = mrf_max(last->len,
					    extent[i].addr - last->addr + extent[i].len);
		else
			extent[++n] = extent[i];
	}
	return n + 1;
}

static unsigned make_extents(struct mrf_mr_back *back, const struct mrf_mr_seg *segs,
			     unsigned nseg)
{
	bool virt = back->space->mode & FI_MR_VIRT_ADDR;
	uint64_t pos = 0;
	unsigned i;

	for (i = 0; i < nseg; i++) {
		back->own[i] = (struct mrf_extent){ .pos = virt ? segs[i].addr : pos,
						       .addr = segs[i].addr,
						       .len = segs[i].len };
		pos += segs[i].len;
	}
	return virt ? merge(back->own, nseg) : nseg;
}

static struct mrf_mr_back *back_new(struct mrf_mr_space *space, unsigned rights,
				    unsigned extents)
{
	struct mrf_mr_back *back = calloc(1, sizeof(*back) + extents * sizeof(back->own[0]));

	if (!back)
		return NULL;
	atomic_init(&back->refs, 1);
	back->space = space;
	back->rights = rights;
	back->notify = space->mode & FI_MR_MMU_NOTIFY;
	mrf_list_init(&back->making);
	mrf_list_init(&back->pins);
	mrf_list_init(&back->leased);
	return back;
}

struct mrf_mr_back *mrf_mr_back_new(struct mrf_mr_space *space, unsigned rights,
				    const struct mrf_mr_seg *segs, unsigned nseg)
{
	struct mrf_mr_back *back = back_new(space, rights, nseg);

	if (!back)
		return NULL;
	back->master = back;
	back->extent = back->own;
	back->nextent = make_extents(back, segs, nseg);
	return back;
}

struct mrf_mr_back *mrf_mr_back_face(struct mrf_mr_back *master,
				     struct mrf_mr_class *class, unsigned rights)
{
	struct mrf_mr_back *back = back_new(master->space, rights, 0);

	if (!back)
		return NULL;
	mrf_mr_back_get(master);
	back->master = master;
	back->extent = master->extent;
	back->nextent = master->nextent;
	mrf_lock_take(&back->space->lock);
	mrf_mr_class_get(class);
	mrf_lock_release(&back->space->lock);
	back->class = class;
	return back;
}

void mrf_mr_back_get(struct mrf_mr_back *back)
{
	atomic_fetch_add_explicit(&back->refs, 1, memory_order_relaxed);
}

void mrf_mr_back_put(struct mrf_mr_back *back)
{
	if (atomic_fetch_sub_explicit(&back->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (back->master != back)
		mrf_mr_back_put(back->master);
	mrf_mr_class_put(back->class);
	free(back->refreshed.span);
	free(back);
}

int mrf_mr_back_close(struct mrf_mr_back *back)
{
	struct mrf_mr_backs *backs = back->space->backs;
	struct mrf_list list;
	int ret, more;

	mrf_list_init(&list);
	mrf_monitor_lock();
	back->closed = true;
	back->clock++;
	mrf_pins_spoil(back, NULL);
	mrf_pins_take(back, NULL, &list);
	mrf_monitor_unlock();
	ret = mrf_pins_end(backs, &list);
	more = mrf_pins_end_leased(back, NULL, UINT64_MAX);
	if (mrf_likely(!ret && !more))
		return mrf_pins_reap(backs);
	return ret ? ret : more;
}
