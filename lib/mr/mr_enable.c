/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "mr/back.h"
#include "mr/mr_pool.h"

/* --- fi_mr_enable ----------------------------------------------------------------- */

/* The region is not live, so what its descriptor leads to may be written. */
static void show_pins(struct mrf_mr *mr, const struct mrf_mr_pins *pins)
{
	if (mr->nseg > 1)
		memcpy(mr->segs, pins->seg, pins->nseg * sizeof(pins->seg[0]));
	memcpy(mrf_mr_vmrs(mr), pins->vmr, pins->nseg * sizeof(pins->vmr[0]));
	mrf_mr_set(mr, mr->access, mr->nseg, pins->seg, mr->nseg > 1 ? mr->segs : NULL);
}

/* -FI_EALREADY: another thread was faster, with enabling or with closing it. */
static int enable_locked(struct mrf_mr *mr, const struct mrf_mr_pins *pins)
{
	if (mr->state != MRF_STATE_DISABLED)
		return -FI_EALREADY;
	if (mr->space->mode & FI_MR_ENDPOINT && mrf_list_empty(&mr->bonds))
		return -FI_EINVAL;
	if (!mr->back)
		show_pins(mr, pins);
	mrf_mr_key_show(mr);
	mrf_mr_move(mr, MRF_STATE_ENABLED);
	mrf_mr_set_live(mr->space->pool, mr);
	return 0;
}

static int refuse_unbound(const struct mrf_mr *mr)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3057,
			  "fi_mr_enable(region %p): has to be bound to an endpoint "
			  "first, FI_MR_ENDPOINT is in force",
			  (const void *)mr);
}

/* The region was entered, so that it stays while it is pinned without the lock. */
static int enable(struct mrf_mr *mr)
{
	struct mrf_mr_space *space = mr->space;
	struct mrf_mr_pins pins = { .nseg = 0 };
	enum mrf_mr_state state;
	int ret;

	if (!mr->back) {
		ret = mrf_mr_pin(space, mr->segs, mr->nseg, mr->access, &pins);
		if (ret)
			return ret;
	}
	mrf_lock_take(&space->lock);
	ret = enable_locked(mr, &pins);
	state = mr->state;
	mrf_lock_release(&space->lock);
	if (!ret)
		return 0;
	mrf_mr_unpin(&pins);
	if (ret == -FI_EINVAL)
		return refuse_unbound(mr);
	return mrf_mr_state_lets(state, MRF_CALL_ENABLE)
		       ? 0
		       : mrf_mr_state_refuse(mr, state, MRF_CALL_ENABLE);
}

int mrf_mr_enable(struct mrf_mr *mr)
{
	enum mrf_mr_state state;
	int ret;

	ret = mrf_mr_enter(mr, MRF_CALL_ENABLE, &state);
	if (ret)
		return ret;
	if (state == MRF_STATE_DISABLED)
		ret = enable(mr);
	mrf_mr_leave(mr);
	return ret;
}

/* --- fi_mr_refresh ---------------------------------------------------------------- */

static int refuse_list(const struct mrf_mr *mr, const struct iovec *iov, size_t count)
{
	return mrf_refuse(
		FI_EINVAL, FI_LOG_MR, 3059,
		"fi_mr_refresh(region %p): iov=%p, count=%zu: must be ranges, or "
		"NULL and 0 for the whole region",
		(const void *)mr, (const void *)iov, count);
}

static int refresh(struct mrf_mr *mr, const struct fi_mr_modify *modify)
{
	const struct iovec *iov = modify->attr.mr_iov;
	size_t count = modify->attr.iov_count;

	if (!mr->back)
		return mrf_refuse(
			FI_ENOSYS, FI_LOG_MR, 3045,
			"fi_mr_refresh(region %p): not offered, FI_MR_MMU_NOTIFY is "
			"not in force and the region is pinned for good",
			(void *)mr);
	if (modify->flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_MR, 3058,
				  "fi_mr_refresh(region %p): flags=%#llx: must be 0",
				  (void *)mr, (unsigned long long)modify->flags);
	if (!iov != !count)
		return refuse_list(mr, iov, count);
	return mrf_mr_back_refresh(mr->back, iov, count);
}

int mrf_mr_refresh(struct mrf_mr *mr, const struct fi_mr_modify *modify)
{
	int ret = mrf_mr_enter(mr, MRF_CALL_REFRESH, NULL);

	if (ret)
		return ret;
	ret = refresh(mr, modify);
	mrf_mr_leave(mr);
	return ret;
}
