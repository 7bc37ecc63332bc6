/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "mr/back.h"
#include "mr/mr_pool.h"

/* --- fi_mr_enable ----------------------------------------------------------------- */

static bool is_enabled(struct mrf_mr *mr)
{
	bool enabled;

	mrf_lock_take(&mr->space->lock);
	enabled = mr->enabled;
	mrf_lock_release(&mr->space->lock);
	return enabled;
}

/* The region is not live, so what its descriptor leads to may be written. */
static void show_pins(struct mrf_mr *mr, const struct mrf_mr_pins *pins)
{
	if (mr->nseg > 1)
		memcpy(mr->segs, pins->seg, pins->nseg * sizeof(pins->seg[0]));
	memcpy(mrf_mr_vmrs(mr), pins->vmr, pins->nseg * sizeof(pins->vmr[0]));
	mrf_mr_set(mr, mr->access, mr->nseg, pins->seg, mr->nseg > 1 ? mr->segs : NULL);
}

/* -FI_EALREADY: somebody else was faster. */
static int enable_locked(struct mrf_mr *mr, const struct mrf_mr_pins *pins)
{
	if (mr->enabled)
		return -FI_EALREADY;
	if (mr->space->mode & FI_MR_ENDPOINT && mrf_list_empty(&mr->bonds))
		return -FI_EINVAL;
	if (!mr->back)
		show_pins(mr, pins);
	mrf_mr_key_show(mr);
	mr->enabled = true;
	mrf_mr_set_live(mr->space->pool, mr);
	return 0;
}

int mrf_mr_enable(struct mrf_mr *mr)
{
	struct mrf_mr_space *space = mr->space;
	struct mrf_mr_pins pins = { .nseg = 0 };
	int ret;

	if (is_enabled(mr))
		return 0;
	if (!mr->back) {
		ret = mrf_mr_pin(space, mr->segs, mr->nseg, mr->access, &pins);
		if (ret)
			return ret;
	}
	mrf_lock_take(&space->lock);
	ret = enable_locked(mr, &pins);
	mrf_lock_release(&space->lock);
	if (ret)
		mrf_mr_unpin(&pins);
	if (ret == -FI_EINVAL)
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3057,
				  "fi_mr_enable(region %p): has to be bound to an "
				  "endpoint first, FI_MR_ENDPOINT is in force",
				  (void *)mr);
	return 0;
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

int mrf_mr_refresh(struct mrf_mr *mr, const struct fi_mr_modify *modify)
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
	if (!is_enabled(mr))
		return mrf_refuse(FI_EOPBADSTATE, FI_LOG_MR, 3062,
				  "fi_mr_refresh(region %p): has to be enabled first",
				  (void *)mr);
	return mrf_mr_back_refresh(mr->back, iov, count);
}
