/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pinning for good: one kernel region per segment, with exactly the region's rights. For
 * the fast paths of registering and closing, there are inline functions for one segment.
 */
#ifndef MRF_MR_PINS_H
#define MRF_MR_PINS_H

#include "base/compiler.h"
#include "base/log.h"
#include "mr/demand/backs.h"
#include "mr/region.h"

/* The kernel regions of a registration that is under way. */
struct mrf_mr_pins {
	unsigned nseg;
	struct mrf_mr_seg seg[MRF_MR_IOV_LIMIT];
	struct mrf_vmr vmr[MRF_MR_IOV_LIMIT];
};

/*
 * Makes one kernel region for each segment, with these enum mrf_right. Failures are
 * logged.
 */
int mrf_mr_pin(const struct mrf_mr_space *space, struct mrf_vpd *pd, const struct mrf_mr_seg *segs,
	       unsigned nseg, unsigned rights, struct mrf_mr_pins *pins);
void mrf_mr_unpin(struct mrf_mr_pins *pins);
/* As mrf_mr_pin, for the segments that are already in pins->seg. */
int mrf_mr_pin_segs(const struct mrf_mr_space *space, struct mrf_vpd *pd, unsigned rights,
		    struct mrf_mr_pins *pins);
/* Returns the first error (logged); kernel regions that are left may be tried again. */
int mrf_mr_unpin_segs(const struct mrf_mr_seg *seg, struct mrf_vmr *vmr, unsigned nseg);
/* Checks that the memory exists, if the mode requires it. Failures are logged. */
int mrf_mr_check_memory(const struct mrf_mr_space *space, const struct mrf_mr_seg *segs,
			unsigned nseg, uint64_t access);

/* Logs why pinning [addr, addr + len) failed with err (-FI_E*) and returns err. Slow. */
int mrf_mr_pin_why(const struct mrf_mr_space *space, const void *addr, size_t len, unsigned rights,
		   int err);

static inline int mrf_mr_pin_one(const struct mrf_mr_space *space, struct mrf_vpd *pd,
				 unsigned rights, struct mrf_mr_seg *seg, struct mrf_vmr *vmr)
{
	const void *addr = (const void *)(uintptr_t)seg->addr;
	int ret = 0;

	if (mrf_likely(seg->len)) {
		ret = mrf_room_reg(pd, addr, seg->len, seg->iova, rights, vmr);
		if (mrf_unlikely(ret))
			return mrf_mr_pin_why(space, addr, seg->len, rights, ret);
	} else {
		*vmr = (struct mrf_vmr){ 0 };
	}
	seg->rkey = vmr->rkey;
	seg->lkey = vmr->lkey;
	return 0;
}

static inline int mrf_mr_unpin_one(const struct mrf_mr_seg *seg, struct mrf_vmr *vmr)
{
	int ret = mrf_vmr_dereg(vmr);

	if (mrf_likely(!ret))
		return 0;
	return mrf_refuse(-ret, FI_LOG_MR, 3030, "%#lx + %lu byte%s: the kernel keeps the region",
			  seg->addr, seg->len, MRF_S(seg->len));
}

#endif
