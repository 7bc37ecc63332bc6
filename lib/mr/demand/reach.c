/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fills in what an answer says of bytes of a region that is pinned on demand, and pins those
 * that are missing.
 *
 * Pinned bytes are shown without further checks: as long as a pin is kept, its memory has not
 * changed. Private memory is pinned quickly (around.h), because the kernel checks it. A range
 * of other memory is leased if the kernel says that it may be pinned (base/plain.h). If neither
 * answers the question, the mappings are looked up (base/maps.h), which show the
 * bytes that cannot be pinned (each failed pin is a line in the kernel's log), and why. A queue
 * of an RDMA device, which a region of the whole address space covers, too, is never pinned:
 * the quick way takes private anonymous memory only, base/plain.h tells them from memory, and where
 * the mappings are read they are known by name.
 */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/known.h"
#include "base/log.h"
#include "base/maps.h"
#include "base/plain.h"
#include "contract/budget.h"
#include "mr/access.h"
#include "mr/demand/around.h"
#include "mr/demand/back.h"
#include "mr/demand/backs.h"
#include "mr/demand/pin.h"
#include "mr/demand/reach.h"
#include "mr/demand/spans.h"
#include "mr/demand/unpin.h"
#include "mr/seg.h"
#include "mr/serve.h"
#include "mr/pins.h"

/* A question that is being answered. */
struct question {
	struct mrf_mr_back *back;
	uint64_t pos;
	uint64_t len;
	const struct mrf_extent *first; /* the one that pos is in */
	struct mrf_mr_lease *lease;
	struct mrf_mr_view *view;
	struct mrf_maps maps;
	bool hurry;	/* do not try to keep pins, or keep pins as small as possible */
	bool lease_all; /* show no kept pins: they became void too soon for the peer */
};

/* --- bounds ----------------------------------------------------------------------- */

/* Is pos in the extent, or with len 0 at its end? */
static bool inside_extent(const struct mrf_extent *extent, uint64_t pos, uint64_t len)
{
	uint64_t offset = pos - extent->pos;

	return pos >= extent->pos && (len ? offset < extent->len : offset <= extent->len);
}

/*
 * To a peer, extents that follow each other in pos are one. False: the range passes the
 * end.
 */
static bool find_first(struct question *q)
{
	const struct mrf_extent *extent = q->back->extent;
	const struct mrf_extent *end = extent + q->back->nextent;
	uint64_t left;

	while (extent < end && !inside_extent(extent, q->pos, q->len))
		extent++;
	if (extent == end)
		return false;
	q->first = extent;
	left = q->len;
	for (; extent < end; extent++) {
		uint64_t start = extent == q->first ? q->pos : extent->pos;
		uint64_t room = extent->len - (start - extent->pos);

		if (left <= room)
			return true;
		left -= room;
		if (extent + 1 < end && extent[1].pos != extent->pos + extent->len)
			return false;
	}
	return false;
}

/* --- pieces ----------------------------------------------------------------------- */

/* Addresses [start, end) of a question, all in one extent. */
struct piece {
	const struct mrf_extent *extent;
	uint64_t start;
	uint64_t end;
};

/* The piece that begins at pos, which is in this extent or the next. */
static struct piece piece_at(const struct question *q, const struct mrf_extent *extent,
			     uint64_t pos)
{
	uint64_t offset, left = q->len - (pos - q->pos);
	struct piece piece;

	while (!inside_extent(extent, pos, 1))
		extent++;
	offset = pos - extent->pos;
	piece.extent = extent;
	piece.start = extent->addr + offset;
	piece.end = piece.start + mrf_min(left, extent->len - offset);
	return piece;
}

/* Is all of it mapped, according to the maps? */
static bool mapped(const struct question *q, const struct piece *piece)
{
	bool write = q->back->rights & MRF_RIGHTS_WRITE;
	uint64_t at = piece->start;

	while (at < piece->end) {
		const struct mrf_mapping *mapping = mrf_maps_at(&q->maps, at);

		if (!mapping || !mrf_maps_pinnable(mapping, write))
			return false;
		at = mapping->end;
	}
	return true;
}

static bool refreshed(const struct question *q, const struct piece *piece)
{
	bool all;

	if (!q->back->notify)
		return true;
	mrf_monitor_lock();
	all = mrf_spans_have(&q->back->master->refreshed, piece->start, piece->end);
	mrf_monitor_unlock();
	return all;
}

/*
 * Where there may be no memory, pinning is not tried: each failed pin is a line in the
 * kernel's log.
 */
static enum mrf_mr_status blind(int err)
{
	mrf_refuse(-err, FI_LOG_MR, 3066,
		   "a peer's access to memory that is pinned on demand is refused: the mappings of "
		   "this process cannot be read from /proc/self/maps (%s)",
		   strerror(-err));
	return MRF_MR_NO_ROOM;
}

static enum mrf_mr_status look_up_quest(struct question *q)
{
	enum mrf_mr_status worst = MRF_MR_OK;
	uint64_t low = UINT64_MAX, high = 0, at;
	struct piece piece;
	int ret;

	for (at = 0; at < q->len; at += piece.end - piece.start) {
		piece = piece_at(q, q->first, q->pos + at);
		if (!refreshed(q, &piece))
			return MRF_MR_NOT_REFRESHED;
		low = mrf_min(low, piece.start);
		high = mrf_max(high, piece.end);
	}
	ret = mrf_maps_look(&q->maps, low, high);
	if (ret)
		return blind(ret);
	for (at = 0; at < q->len; at += piece.end - piece.start) {
		piece = piece_at(q, q->first, q->pos + at);
		if (!mapped(q, &piece))
			worst = MRF_MR_NOT_MAPPED;
	}
	return worst;
}

/* --- pinning ---------------------------------------------------------------------- */

/*
 * Unpins everything else that this process keeps. False: there was nothing, or it does
 * not help.
 */
static bool make_pin_room(const struct question *q, const struct mrf_hole *hole, int err)
{
	/* The peer has as many leases as it may have. */
	if (err == -FI_ENOSPC && q->lease->npins == MRF_MR_LEASE_PINS)
		return false;
	if (!mrf_room_helps(err, hole->end - hole->start) || !mrf_room_make())
		return false;
	mrf_pins_reap(q->back->space->backs);
	return true;
}

/* The kernel has refused even the pages that are needed. */
static enum mrf_pinned pin_failed(struct question *q, const struct mrf_hole *hole, int err)
{
	if (err == -FI_EFAULT) {
		q->view->status = MRF_MR_NOT_MAPPED;
		return MRF_PIN_FAILED;
	}
	/*
	 * Part of the memory can be pinned. The peer accesses that part, and asks for the
	 * rest.
	 */
	if (q->view->nseg)
		return MRF_PIN_FAILED;
	if (make_pin_room(q, hole, err))
		return MRF_PIN_AGAIN;
	q->view->status = MRF_MR_NO_ROOM;
	mrf_mr_pin_why(q->back->space, (const void *)(uintptr_t)hole->start,
		       hole->end - hole->start, q->back->rights, err);
	return MRF_PIN_FAILED;
}

static enum mrf_pinned keep_hole(struct question *q, const struct mrf_hole *hole)
{
	enum mrf_pinned ret = MRF_PIN_UNWATCHED;
	int err;

	/* A small pin has fewer bytes that another thread may refresh meanwhile. */
	if (!q->hurry)
		ret = mrf_pin_around(q->back, hole, &err);
	if (ret != MRF_PIN_UNWATCHED && ret != MRF_PIN_FAILED)
		return ret;
	ret = mrf_pin_keep(q->back, hole, q->back->space->page_mask + 1, &err);
	return ret == MRF_PIN_FAILED ? pin_failed(q, hole, err) : ret;
}

static void show_pin(struct mrf_mr_view *view, const struct mrf_pin *pin)
{
	view->seg[view->nseg++] = (struct mrf_mr_seg){ .addr = pin->pos,
						       .len = pin->len,
						       .iova = pin->iova,
						       .rkey = pin->vmr.rkey,
						       .lkey = pin->vmr.lkey };
}

static enum mrf_pinned lease_hole(struct question *q, const struct mrf_hole *hole)
{
	struct mrf_pin *pin;
	enum mrf_pinned ret;
	int err;

	ret = mrf_pin_lease(q->back, hole, q->lease, &pin, &err);
	if (ret == MRF_PINNED)
		show_pin(q->view, pin);
	return ret == MRF_PIN_FAILED ? pin_failed(q, hole, err) : ret;
}

/* Where the next pin behind the piece's start begins, or its end. Lock not held. */
static uint64_t next_pin(const struct question *q, const struct piece *piece)
{
	uint64_t base = piece->extent->addr - piece->extent->pos;
	const struct mrf_pin *pin;
	uint64_t end;

	mrf_monitor_lock();
	pin = mrf_pin_first_locked(q->back, piece->start - base, piece->end - base);
	end = pin && pin->pos > piece->start - base ? pin->pos + base : piece->end;
	mrf_monitor_unlock();
	return end;
}

static struct mrf_hole hole_at(const struct question *q, const struct piece *piece, uint64_t low,
			       uint64_t high)
{
	const struct mrf_extent *extent = piece->extent;

	return (struct mrf_hole){
		.extent = extent,
		.start = piece->start,
		.end = mrf_min(next_pin(q, piece), high),
		.low = mrf_max(extent->addr, low),
		.high = mrf_min(extent->addr + extent->len, high),
		.last = UINT64_MAX,
	};
}

static bool can_be_watched(const struct question *q, const struct mrf_mapping *mapping)
{
	return mrf_maps_private(mapping) && mrf_mr_backs_monitored(q->back->space->backs) &&
	       mrf_monitor_has_room();
}

/*
 * Pins the bytes from pos on that are not pinned. An answer consists either of kept pins,
 * which the peer may go on using, or of leased ones: MRF_PIN_UNWATCHED ends it where that
 * changes.
 */
static enum mrf_pinned fill_piece(struct question *q, uint64_t pos)
{
	struct piece piece = piece_at(q, q->first, pos);
	const struct mrf_mapping *mapping = mrf_maps_at(&q->maps, piece.start);
	struct mrf_hole hole = hole_at(q, &piece, mapping->start, mapping->end);
	bool kept = q->back->notify || (!q->hurry && can_be_watched(q, mapping));
	enum mrf_pinned ret = MRF_PIN_UNWATCHED;

	if (kept && q->view->once)
		return ret;
	if (kept)
		ret = keep_hole(q, &hole);
	if (ret != MRF_PIN_UNWATCHED || (q->view->nseg && !q->view->once))
		return ret;
	ret = lease_hole(q, &hole);
	q->view->once = q->view->nseg > 0;
	return ret;
}

/* Shows the kept pin that has pos, and how far it goes. */
static bool show_kept(struct question *q, uint64_t *pos)
{
	const struct mrf_pin *pin;

	mrf_monitor_lock();
	pin = mrf_pin_find_locked(q->back, *pos);
	if (pin) {
		show_pin(q->view, pin);
		*pos = pin->pos + pin->len;
	}
	mrf_monitor_unlock();
	return pin;
}

/* Answers with as many bytes as it can; MRF_PIN_AGAIN: the memory changed. */
static enum mrf_pinned answer_question(struct question *q)
{
	struct mrf_mr_view *view = q->view;
	uint64_t pos = q->pos, last = q->pos + (q->len - 1);
	enum mrf_pinned ret = MRF_PINNED;
	unsigned had, steps = 0;

	while (ret == MRF_PINNED && pos <= last && view->nseg < MRF_MR_IOV_LIMIT) {
		if (!view->once && !q->lease_all && show_kept(q, &pos))
			continue;
		/* The pins were dropped before they were found, again and again. */
		if (++steps > 2 * MRF_MR_IOV_LIMIT)
			return MRF_PIN_AGAIN;
		had = view->nseg;
		ret = fill_piece(q, pos);
		if (ret == MRF_PINNED && view->nseg > had)
			pos = view->seg[had].addr + view->seg[had].len;
	}
	return ret;
}

static bool pin_quick(const struct question *q, uint64_t pos)
{
	struct piece piece = piece_at(q, q->first, pos);
	struct mrf_hole hole = hole_at(q, &piece, 0, UINT64_MAX);

	return mrf_pin_quick(q->back, &hole);
}

/*
 * Answers from kept pins alone, and pins of private memory that are missing: as long as a
 * pin is kept, its memory has not changed. False: that is not enough, and nothing is shown; *some:
 * of part of it there are kept pins.
 */
static bool answer_quick(struct question *q, bool *some)
{
	uint64_t pos = q->pos, last = q->pos + (q->len - 1);
	unsigned pinned = 0;

	*some = false;
	if (q->back->notify || q->lease_all)
		return false;
	while (pos <= last && q->view->nseg < MRF_MR_IOV_LIMIT) {
		if (show_kept(q, &pos))
			continue;
		if (pinned++ == 2 * MRF_MR_IOV_LIMIT || !pin_quick(q, pos)) {
			*some = q->view->nseg;
			q->view->nseg = 0;
			return false;
		}
	}
	return true;
}

/*
 * May the piece be leased without a look at the mappings? What could be watched was pinned before
 * (answer_quick), unless only the mappings prove what is private. Before Linux 6.11, a short piece
 * that is private in part is leased as a whole.
 */
static bool leased_anyway(const struct question *q, const struct piece *piece)
{
	if (q->back->notify || piece->end - piece->start < q->len ||
	    (mrf_mr_backs_monitored(q->back->space->backs) && !mrf_monitor_proves()))
		return false;
	return mrf_plain(piece->start, piece->end, q->back->rights & MRF_RIGHTS_WRITE);
}

/*
 * Memory that could not be watched is the same still as long as no mapping has changed. Not every
 * change is heard of, so every now and then it is tried again.
 */
#define LEASES_IN_A_ROW 16

static uint64_t first_page(const struct question *q)
{
	return q->pos & ~q->back->space->page_mask;
}

static bool likely_leased(const struct question *q)
{
	const struct mrf_mr_back *back = q->back;

	return !q->lease_all && back->leases % LEASES_IN_A_ROW &&
	       back->leased_at == first_page(q) &&
	       back->leased_when == atomic_load(&mrf_known_counter);
}

static void note_lease(const struct question *q, uint64_t when)
{
	struct mrf_mr_back *back = q->back;
	bool again = back->leased_at == first_page(q) && back->leased_when == when;

	back->leases = again ? back->leases + 1 : 1;
	back->leased_at = first_page(q);
	back->leased_when = when;
}

/* Answers with one lease. False: the mappings have to be looked up; nothing is shown. */
static bool answer_leased(struct question *q)
{
	struct piece piece = piece_at(q, q->first, q->pos);
	struct mrf_hole hole = hole_at(q, &piece, 0, UINT64_MAX);
	uint64_t now = atomic_load(&mrf_known_counter);
	enum mrf_pinned ret;

	if (hole.end < piece.end || !leased_anyway(q, &piece))
		return false;
	ret = lease_hole(q, &hole);
	q->view->once = ret == MRF_PINNED;
	if (q->view->once && !q->lease_all)
		note_lease(q, now);
	return ret == MRF_PINNED || ret == MRF_PIN_FAILED;
}

static enum mrf_mr_status why_never(const struct mrf_mr_back *back)
{
	bool closed;

	mrf_monitor_lock();
	closed = back->closed;
	mrf_monitor_unlock();
	return closed ? MRF_MR_CLOSED : MRF_MR_NO_ROOM;
}

void mrf_mr_back_reach(struct mrf_mr_back *back, const struct mrf_mr_query *query,
		       struct mrf_mr_lease *lease, struct mrf_mr_view *view)
{
	struct question q = { .back = back,
			      .pos = query->addr,
			      .len = query->len,
			      .lease = lease,
			      .lease_all = query->lease && !back->notify,
			      .view = view };
	enum mrf_pinned ret = MRF_PIN_AGAIN;
	unsigned tries = 0;
	bool some;

	view->status = find_first(&q) ? MRF_MR_OK : MRF_MR_OUTSIDE;
	if (view->status != MRF_MR_OK || !query->len)
		return;
	/* Only once: a thread that ends a pin may read it. */
	if (back->key != query->key)
		back->key = query->key;
	mrf_pins_reap(back->space->backs);
	if ((likely_leased(&q) && answer_leased(&q)) || answer_quick(&q, &some) ||
	    (!some && answer_leased(&q)))
		return;
	while (ret == MRF_PIN_AGAIN && tries++ < 2 * MRF_PIN_TRIES) {
		view->nseg = 0;
		view->once = false;
		q.hurry = q.lease_all || tries > MRF_PIN_TRIES;
		view->status = look_up_quest(&q);
		if (view->status != MRF_MR_OK)
			break;
		ret = answer_question(&q);
	}
	mrf_maps_fini(&q.maps);
	if (ret == MRF_PIN_AGAIN && view->status == MRF_MR_OK && !view->nseg)
		view->status = why_never(back);
	if (view->status != MRF_MR_OK) {
		view->nseg = 0;
		view->once = false;
	}
}
