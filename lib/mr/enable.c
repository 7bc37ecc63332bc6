/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_mr_enable. Several threads may enable a region at once: each pins from a copy of its
 * segments, taken under space->lock, and the one that comes second lets go of what it
 * pinned.
 */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "mr/access.h"
#include "mr/mr_calls.h"
#include "mr/enable.h"
#include "mr/face.h"
#include "mr/pins.h"
#include "mr/pool.h"
#include "mr/region.h"
#include "mr/seg.h"
#include "mr/space.h"
#include "mr/region_state.h"

void mrf_mr_put_pins_locked(struct mrf_mr *mr, struct mrf_mr_pins *pins)
{
	unsigned i;

	mrf_lock_held(&mr->space->lock);
	/* Peers use the rkeys of its faces; its own would be of no use to them. */
	for (i = 0; i < pins->nseg && mrf_mr_faced(mr); i++)
		pins->seg[i].rkey = 0;
	if (mr->nseg > 1)
		memcpy(mr->segs, pins->seg, pins->nseg * sizeof(pins->seg[0]));
	memcpy(mrf_mr_vmrs(mr), pins->vmr, pins->nseg * sizeof(pins->vmr[0]));
	/*
	 * The other members stay as they are: threads that pin for the same region read
	 * them.
	 */
	mrf_mr_set_keys_locked(mr, &pins->seg[0]);
}

void mrf_mr_open_locked(struct mrf_mr *mr)
{
	mrf_lock_held(&mr->space->lock);
	mrf_mr_key_show_locked(mr);
	mrf_mr_move_locked(mr, MRF_STATE_ENABLED);
	mrf_mr_set_live_locked(mr);
}

/*
 * -FI_EALREADY: another thread has enabled or closed it first. -FI_EAGAIN: its endpoints
 * have changed.
 */
static int enable_locked(struct mrf_mr *mr, struct mrf_mr_pins *pins, struct mrf_mr_face **faces)
{
	mrf_lock_held(&mr->space->lock);
	if (mr->state != MRF_STATE_DISABLED)
		return -FI_EALREADY;
	if (!mrf_mr_faces_take_locked(mr, faces))
		return -FI_EAGAIN;
	if (!mr->back && !mr->device)
		mrf_mr_put_pins_locked(mr, pins);
	mrf_mr_open_locked(mr);
	return 0;
}

/* segs: a copy, because another thread may be the first to enable it. */
static int plan_faces(struct mrf_mr *mr, enum mrf_mr_state state, struct mrf_mr_seg *segs,
		      struct mrf_mr_face **faces)
{
	int ret = 0;

	mrf_lock_take(&mr->space->lock);
	memcpy(segs, mr->segs, mr->nseg * sizeof(*segs));
	if (mr->state == state)
		ret = mrf_mr_faces_plan_locked(mr, faces);
	mrf_lock_release(&mr->space->lock);
	if (ret == -FI_EINVAL)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3057,
				  "fi_mr_enable(region %p): the region has to be bound to an "
				  "endpoint first, because FI_MR_ENDPOINT is in force",
				  (void *)mr);
	if (ret)
		return mrf_refuse(-ret, FI_LOG_MR, 3022, "there is no memory for a region");
	return 0;
}

/* Makes the kernel regions in the process's own protection domain. */
static int pin_own(const struct mrf_mr *mr, const struct mrf_mr_seg *segs, struct mrf_mr_pins *pins)
{
	struct mrf_mr_space *space = mr->space;
	uint64_t access = mrf_mr_own_access(mr);
	unsigned i;

	if (mr->back || mr->device)
		return 0;
	if (access || !mrf_mr_faced(mr))
		return mrf_mr_pin(space, space->pd, segs, mr->nseg,
				  mrf_mr_access_kernel(mr->space, access), pins);
	pins->nseg = mr->nseg;
	memcpy(pins->seg, segs, mr->nseg * sizeof(*segs));
	for (i = 0; i < mr->nseg; i++)
		pins->vmr[i] = (struct mrf_vmr){ 0 };
	return 0;
}

int mrf_mr_make(struct mrf_mr *mr, enum mrf_mr_state state, struct mrf_mr_pins *pins,
		struct mrf_mr_face **faces)
{
	struct mrf_mr_seg segs[MRF_MR_IOV_LIMIT];
	int ret;

	pins->nseg = 0;
	ret = plan_faces(mr, state, segs, faces);
	if (!ret)
		ret = mrf_mr_faces_pin(mr, segs, *faces);
	return ret ? ret : pin_own(mr, segs, pins);
}

/* 0: the region could still be enabled. *state: its state afterwards. */
static int commit_enable(struct mrf_mr *mr, struct mrf_mr_pins *pins, struct mrf_mr_face **faces,
			 enum mrf_mr_state *state)
{
	int ret;

	mrf_lock_take(&mr->space->lock);
	ret = enable_locked(mr, pins, faces);
	*state = mr->state;
	mrf_lock_release(&mr->space->lock);
	if (ret)
		mrf_mr_unpin(pins);
	return ret;
}

/* *once_more: nothing failed, but its bindings have changed, and it needs other faces. */
static int try_to_enable(struct mrf_mr *mr, struct mrf_mr_face **faces, bool *once_more)
{
	enum mrf_mr_state state;
	struct mrf_mr_pins pins;
	int ret;

	*once_more = false;
	ret = mrf_mr_make(mr, MRF_STATE_DISABLED, &pins, faces);
	if (ret)
		return ret;
	ret = commit_enable(mr, &pins, faces, &state);
	*once_more = ret == -FI_EAGAIN;
	if (ret != -FI_EALREADY || mrf_mr_state_lets(state, MRF_CALL_ENABLE))
		return 0;
	return mrf_mr_state_refuse(mr, state, MRF_CALL_ENABLE);
}

/* The region was entered, so it stays while it is pinned without the lock. */
static int enable_region(struct mrf_mr *mr)
{
	struct mrf_mr_face *faces = NULL;
	bool once_more;
	int ret;

	do {
		ret = try_to_enable(mr, &faces, &once_more);
		mrf_mr_faces_undo(mr, &faces);
	} while (once_more);
	return ret;
}

int mrf_mr_enable(struct mrf_mr *mr)
{
	enum mrf_mr_state state;
	int ret = mrf_mr_enter(mr, MRF_CALL_ENABLE, &state);

	if (ret)
		return ret;
	if (state == MRF_STATE_DISABLED)
		ret = enable_region(mr);
	mrf_mr_leave(mr);
	return ret;
}
