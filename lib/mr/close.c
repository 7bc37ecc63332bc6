/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include "base/compiler.h"
#include "base/log.h"
#include "mr/bind.h"
#include "mr/class.h"
#include "mr/mr_calls.h"
#include "mr/demand/back.h"
#include "mr/demand/unpin.h"
#include "mr/event.h"
#include "mr/face.h"
#include "mr/key.h"
#include "mr/pins.h"
#include "mr/pool.h"
#include "mr/region.h"
#include "mr/space.h"
#include "mr/region_state.h"
#include "mr/worker.h"

/*
 * Lets no peer find the region and no operation use its descriptor any more. Before the
 * kernel regions go: the kernel may hand out their numbers again at once. The domain is
 * held until nothing of the region is left.
 */
static void withdraw_locked(struct mrf_mr *mr)
{
	mrf_lock_held(&mr->space->lock);
	mrf_mr_key_release_locked(mr);
	mrf_mr_set_dead_locked(mr);
	mrf_mr_move_locked(mr, MRF_STATE_CLOSED);
}

/*
 * When it returns, no thread is inside the region any more. -FI_EBUSY (logged): an
 * endpoint is in the way, and nothing changed; or the region is closed already.
 */
static int withdraw_region(struct mrf_mr *mr)
{
	struct mrf_mr_space *space = mr->space;
	int ret;

	mrf_lock_take(&space->lock);
	if (mr->state == MRF_STATE_CLOSED)
		ret = mrf_mr_state_refuse(mr, MRF_STATE_CLOSED, MRF_CALL_CLOSE);
	else
		ret = mrf_mr_bound_locked(mr);
	if (!ret) {
		withdraw_locked(mr);
		mrf_mr_task_drop_locked(mr);
	}
	mrf_lock_release(&space->lock);
	if (!ret)
		mrf_mr_wait_left(mr);
	return ret;
}

/* Also frees what the region has allocated, except what its counters need. */
static int unpin_all(struct mrf_mr *mr)
{
	int ret = mrf_mr_faces_drop(&mr->faces);

	if (!ret && mr->back)
		ret = mrf_mr_back_close(mr->back);
	else if (!ret)
		ret = mrf_mr_unpin_segs(mr->segs, mrf_mr_vmrs(mr), mr->nseg);
	if (ret)
		return ret;
	if (mr->nseg > 1)
		free(mr->segs);
	if (mr->back) {
		mrf_mr_back_put(mr->back);
		mr->back = NULL;
	}
	if (mrf_unlikely(mr->device != NULL)) {
		free(mr->device);
		mr->device = NULL;
	}
	if (mr->job)
		mrf_mr_task_free(mr->space, mr->job);
	mr->job = NULL;
	return 0;
}

/*
 * If the kernel keeps it, the region stays as a failed one and may be closed again.
 * Otherwise this ends its hold on the domain, which another thread may be waiting to
 * close: the space must not be used after the lock is released.
 */
static int finish_close(struct mrf_mr *mr, int ret)
{
	struct mrf_mr_space *space = mr->space;

	mrf_debug(FI_LOG_MR, "region %p: closed (%d)", (void *)mr, ret);
	mrf_lock_take(&space->lock);
	if (mrf_likely(!ret)) {
		mr->fid.fid.fclass = FI_CLASS_UNSPEC;
		mrf_list_del(&mr->held);
		atomic_store_explicit(&mr->entry->serial, 0, memory_order_release);
		mrf_mr_pool_put_locked(space, mr);
	} else {
		mrf_mr_move_locked(mr, MRF_STATE_FAILED);
	}
	mrf_lock_release(&space->lock);
	return ret;
}

static int close_unusual(struct mrf_mr *mr)
{
	int ret = withdraw_region(mr);

	if (ret)
		return ret;
	ret = unpin_all(mr);
	if (ret)
		return finish_close(mr, ret);
	if (mr->event)
		mrf_mr_event_close(mr);
	/*
	 * This comes last: a late write counts only if it comes from a member of the
	 * group.
	 */
	mrf_mr_group_put(mr->group);
	mr->group = NULL;
	mrf_mr_unbind(mr);
	return finish_close(mr, 0);
}

/* Is the region enabled, with no thread inside, one pin and nothing else? */
static bool closes_usually_locked(const struct mrf_mr *mr)
{
	mrf_lock_held(&mr->space->lock);
	return mr->state == MRF_STATE_ENABLED && !mr->users && mr->nseg == 1 && !mr->back &&
	       !mr->job && !mr->event && !mr->group && !mr->faces && !mr->device &&
	       mrf_list_empty(&mr->bindings);
}

static __attribute__((noinline)) void tell_in_use(const struct mrf_mr *mr)
{
	unsigned uses = atomic_load(&mr->entry->uses);
	char name[128];

	mrf_mr_name(mr, name, sizeof(name));
	mrf_misuse(
		FI_LOG_MR, 3083,
		"fi_close(region %s): %u operation%s of this process still use%s its descriptor: wait "
		"for their completions first; here they may fail, elsewhere the device may still write "
		"to memory that has another use by then",
		name, uses, MRF_S(uses), uses == 1 ? "s" : "");
}

int mrf_mr_close(struct fid *fid)
{
	struct mrf_mr *mr = mrf_mr_from_fid(fid);
	struct mrf_mr_space *space = mr->space;

	if (mrf_unlikely(!mrf_fork_ours(space->owner)))
		return mrf_obj_foreign(fid, space->owner, "fi_close");
	if (mrf_unlikely(atomic_load_explicit(&mr->entry->uses, memory_order_relaxed)))
		tell_in_use(mr);
	mrf_lock_take(&space->lock);
	if (mrf_unlikely(!closes_usually_locked(mr))) {
		mrf_lock_release(&space->lock);
		return close_unusual(mr);
	}
	withdraw_locked(mr);
	mrf_lock_release(&space->lock);
	return finish_close(mr, mrf_mr_unpin_one(&mr->seg, &mr->vmr));
}
