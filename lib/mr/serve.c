/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "contract/budget.h"
#include "mr/class.h"
#include "mr/demand/back.h"
#include "mr/demand/reach.h"
#include "mr/demand/unpin.h"
#include "mr/device.h"
#include "mr/event.h"
#include "mr/face.h"
#include "mr/filemem.h"
#include "mr/key.h"
#include "mr/region.h"
#include "mr/seg.h"
#include "mr/serve.h"
#include "mr/space.h"
#include "mr/region_state.h"

/* --- may this peer? --------------------------------------------------------------- */

static const struct mrf_mr_group *group_of(const struct mrf_mr_query *query)
{
	return query->port ? query->port->group : NULL;
}

/* len > 0 */
static bool inside_region_locked(const struct mrf_mr *mr, uint64_t addr, uint64_t len)
{
	bool virt = mr->space->mode & FI_MR_VIRT_ADDR;
	uint64_t offset, got = 1;
	unsigned seg;

	for (; len && got; addr += got, len -= got)
		got = mrf_mr_locate(mr->segs, mr->nseg, virt, addr, len, &seg, &offset);
	return got;
}

enum mrf_mr_status mrf_mr_may_locked(const struct mrf_mr *mr, const struct mrf_mr_query *query,
				     uint64_t right, const struct mrf_mr_face **face)
{
	*face = NULL;
	if (!mr)
		return MRF_MR_UNKNOWN;
	mrf_lock_held(&mr->space->lock);
	/*
	 * To a peer of another group the region must seem not to exist, whatever its
	 * state.
	 */
	if (mr->group != group_of(query))
		return MRF_MR_UNKNOWN;
	if (query->serial && query->serial != mr->serial)
		return MRF_MR_CLOSED;
	if (mr->state == MRF_STATE_CLOSED || mr->state == MRF_STATE_FAILED)
		return MRF_MR_CLOSED;
	if (!mrf_mr_state_serves(mr->state))
		return MRF_MR_DISABLED;
	if (mrf_mr_faced(mr) && query->port)
		*face = mrf_mr_face_of_locked(mr, query->port->class);
	if (mrf_mr_faced(mr) && !*face)
		return MRF_MR_NOT_BOUND;
	if (right & ~mr->access)
		return MRF_MR_NO_RIGHT;
	if (right && query->len && !inside_region_locked(mr, query->addr, query->len))
		return MRF_MR_OUTSIDE;
	return MRF_MR_OK;
}

/*
 * This also covers a region of another group than the peer's, which must look the same to
 * it.
 */
static enum mrf_mr_status absent_locked(const struct mrf_mr_space *space,
					const struct mrf_mr_query *query)
{
	uint64_t group = mrf_mr_group_id(group_of(query));
	unsigned i;

	for (i = 0; i < MRF_MR_CLOSED_KEYS; i++) {
		const struct mrf_mr_closed *closed = &space->closed[i];

		if (closed->seq && closed->key == query->key && closed->group == group)
			return MRF_MR_CLOSED;
	}
	return MRF_MR_UNKNOWN;
}

/* The peer is only told that there is no such key; the others are none of its business. */
static void tell_cut_locked(const struct mrf_mr_space *space, uint64_t key)
{
	uint64_t whole;

	if (key <= UINT32_MAX && mrf_mr_key_longer_locked(space, (uint32_t)key, &whole))
		mrf_misuse(
			FI_LOG_MR, 3084,
			"a peer asks for key 0x%lx, which no region has, but one has 0x%lx: the key was "
			"kept in 32 bits on its way: pass on all 64 bits of fi_mr_key",
			key, whole);
}

/* *mr: the region, unless the answer is that there is none. */
static enum mrf_mr_status look_up_locked(struct mrf_mr_space *space,
					 const struct mrf_mr_query *query, uint64_t right,
					 struct mrf_mr **mr, const struct mrf_mr_face **face)
{
	enum mrf_mr_status status;

	mrf_lock_held(&space->lock);
	*mr = mrf_idmap_find(&space->keys, query->key);
	status = mrf_mr_may_locked(*mr, query, right, face);
	if (status == MRF_MR_UNKNOWN && space->careful && !*mr)
		tell_cut_locked(space, query->key);
	return status == MRF_MR_UNKNOWN ? absent_locked(space, query) : status;
}

/* --- questions -------------------------------------------------------------------- */

/*
 * Shows all of a plain region, at the positions that peers use. face: NULL if it has
 * none.
 */
static void show_all_locked(const struct mrf_mr *mr, const struct mrf_mr_face *face,
			    struct mrf_mr_view *view)
{
	uint64_t pos = 0;
	unsigned i;

	view->complete = true;
	view->nseg = mr->nseg;
	memcpy(view->seg, mr->segs, mr->nseg * sizeof(view->seg[0]));
	for (i = 0; i < mr->nseg && !(mr->space->mode & FI_MR_VIRT_ADDR); i++) {
		view->seg[i].addr = pos;
		pos += view->seg[i].len;
	}
	for (i = 0; face && !mr->device && i < mr->nseg; i++) {
		view->seg[i].rkey = face->vmr[i].rkey;
		view->seg[i].lkey = face->vmr[i].lkey;
	}
}

/* The backing of a region that is pinned on demand, with a reference for the caller. */
static struct mrf_mr_back *show_region_locked(const struct mrf_mr *mr,
					      const struct mrf_mr_face *face,
					      struct mrf_mr_view *view)
{
	struct mrf_mr_back *back = face ? face->back : mr->back;

	mrf_lock_held(&mr->space->lock);
	view->serial = mr->serial;
	view->event = mr->event ? mr->event->number : 0;
	view->access = mr->access & MRF_MR_REMOTE;
	view->staged = mr->device;
	if (mr->space->atomics && (mr->access & FI_REMOTE_WRITE))
		view->access |= FI_ATOMIC;
	view->base = mr->seg.addr;
	view->len = mr->len;
	if (back)
		mrf_mr_back_get(back);
	else
		show_all_locked(mr, face, view);
	return back;
}

void mrf_mr_reach(struct mrf_mr_space *space, const struct mrf_mr_query *query,
		  struct mrf_mr_lease *lease, struct mrf_mr_view *view)
{
	const struct mrf_mr_face *face;
	struct mrf_mr_back *back = NULL;
	struct mrf_mr *mr;

	view->complete = view->once = view->staged = false;
	view->serial = view->access = view->base = view->len = 0;
	view->event = 0;
	view->nseg = 0;
	mrf_lock_take(&space->lock);
	view->status = look_up_locked(space, query, 0, &mr, &face);
	if (view->status == MRF_MR_OK)
		back = show_region_locked(mr, face, view);
	mrf_lock_release(&space->lock);
	if (!back)
		return;
	mrf_mr_back_reach(back, query, lease, view);
	mrf_mr_back_put(back);
}

/* --- committing ------------------------------------------------------------------- */

/* False: some bytes are outside. */
static bool find_ranges_locked(const struct mrf_mr *mr, uint64_t addr, uint64_t len,
			       struct mrf_mr_hold *hold)
{
	bool virt = mr->space->mode & FI_MR_VIRT_ADDR;
	uint64_t offset, got;
	unsigned seg;

	for (hold->n = 0; len && hold->n < MRF_MR_IOV_LIMIT; addr += got, len -= got) {
		got = mrf_mr_locate(mr->segs, mr->nseg, virt, addr, len, &seg, &offset);
		if (!got)
			return false;
		hold->range[hold->n].addr = mr->segs[seg].addr + offset;
		hold->range[hold->n++].len = got;
	}
	return !len;
}

static enum mrf_mr_status hold_locked(struct mrf_mr_space *space, const struct mrf_mr_query *query,
				      uint64_t right, struct mrf_mr_hold *hold)
{
	const struct mrf_mr_face *face;
	enum mrf_mr_status status;

	mrf_lock_held(&space->lock);
	hold->at = 0;
	hold->storing = false;
	status = look_up_locked(space, query, right, &hold->mr, &face);
	if (status == MRF_MR_OK && !find_ranges_locked(hold->mr, query->addr, query->len, hold))
		status = MRF_MR_OUTSIDE;
	if (status == MRF_MR_OK)
		mrf_mr_enter_locked(hold->mr);
	else
		hold->mr = NULL;
	return status;
}

enum mrf_mr_status mrf_mr_commit_begin(struct mrf_mr_space *space, const struct mrf_mr_query *query,
				       struct mrf_mr_hold *hold)
{
	enum mrf_mr_status status;

	mrf_lock_take(&space->lock);
	status = hold_locked(space, query, FI_REMOTE_WRITE, hold);
	mrf_lock_release(&space->lock);
	return status;
}

int mrf_mr_commit_check(const struct mrf_mr_hold *hold)
{
	unsigned i;
	int err;

	if (!(hold->mr->access & FI_RMA_PMEM))
		return FI_EOPNOTSUPP;
	for (i = 0; i < hold->n; i++) {
		if (mrf_pmem_why_not(hold->range[i].addr, hold->range[i].len, &err))
			return err ? err : FI_EFAULT;
	}
	return 0;
}

static bool is_closing(struct mrf_mr *mr)
{
	bool closing;

	mrf_lock_take(&mr->space->lock);
	closing = mr->state == MRF_STATE_CLOSED;
	mrf_lock_release(&mr->space->lock);
	return closing;
}

bool mrf_mr_commit_flush(struct mrf_mr_hold *hold, int *err)
{
	uint64_t *addr = &hold->range[hold->at].addr, *len = &hold->range[hold->at].len;
	uint64_t part = mrf_min(*len, MRF_FLUSH_PIECE);

	*err = hold->mr->access & FI_RMA_PMEM ? 0 : FI_EOPNOTSUPP;
	if (!*err && is_closing(hold->mr))
		*err = FI_ECANCELED;
	if (!*err)
		*err = mrf_pmem_flush(*addr, part);
	*addr += part;
	*len -= part;
	hold->at += !*len;
	return !*err && hold->at < hold->n;
}

void mrf_mr_hold_end(struct mrf_mr_hold *hold)
{
	if (hold->mr)
		mrf_mr_leave(hold->mr);
	hold->mr = NULL;
}

/* --- memory of devices ------------------------------------------------------------- */

enum mrf_mr_status mrf_mr_stage_begin(struct mrf_mr_space *space, const struct mrf_mr_query *query,
				      uint64_t right, struct mrf_mr_hold *hold, uint32_t *event)
{
	enum mrf_mr_status status;

	mrf_lock_take(&space->lock);
	status = hold_locked(space, query, right, hold);
	/* The one that was answered for is gone. */
	if (status == MRF_MR_OK && !hold->mr->device) {
		mrf_mr_leave_locked(hold->mr);
		hold->mr = NULL;
		status = MRF_MR_CLOSED;
	}
	*event = status == MRF_MR_OK && hold->mr->event ? hold->mr->event->number : 0;
	mrf_lock_release(&space->lock);
	return status;
}

bool mrf_mr_stage_copy(struct mrf_mr_hold *hold, bool in, uint8_t **host, int *err,
		       struct mrf_hmem_why *why)
{
	uint64_t *addr = &hold->range[hold->at].addr, *len = &hold->range[hold->at].len;
	uint64_t part = mrf_min(*len, MRF_STAGE_PART);

	*err = !hold->storing && is_closing(hold->mr) ? FI_ECANCELED : 0;
	if (!*err) {
		hold->storing = in;
		*err = -mrf_mr_device_copy(hold->mr, in, *addr, *host, part, why);
	}
	/* The runtime says that it was freed. */
	if (*err == FI_EINVAL)
		*err = FI_EFAULT;
	*host += part;
	*addr += part;
	*len -= part;
	hold->at += !*len;
	return !*err && hold->at < hold->n;
}
