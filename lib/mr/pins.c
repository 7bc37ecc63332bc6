/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include "mr/access.h"
#include "mr/pins.h"
#include "mr/seg.h"
#include "mr/space.h"

int mrf_mr_unpin_segs(const struct mrf_mr_seg *seg, struct mrf_vmr *vmr, unsigned nseg)
{
	int first = 0, ret;
	unsigned i;

	for (i = 0; i < nseg; i++) {
		ret = mrf_mr_unpin_one(&seg[i], &vmr[i]);
		first = first ? first : ret;
	}
	return first;
}

int mrf_mr_pin_segs(const struct mrf_mr_space *space, struct mrf_vpd *pd, unsigned rights,
		    struct mrf_mr_pins *pins)
{
	unsigned n;
	int ret;

	for (n = 0; n < pins->nseg; n++) {
		ret = mrf_mr_pin_one(space, pd, rights, &pins->seg[n], &pins->vmr[n]);
		if (mrf_unlikely(ret)) {
			mrf_mr_unpin_segs(pins->seg, pins->vmr, n);
			return ret;
		}
	}
	return 0;
}

int mrf_mr_pin(const struct mrf_mr_space *space, struct mrf_vpd *pd, const struct mrf_mr_seg *segs,
	       unsigned nseg, unsigned rights, struct mrf_mr_pins *pins)
{
	pins->nseg = nseg;
	memcpy(pins->seg, segs, nseg * sizeof(*segs));
	return mrf_mr_pin_segs(space, pd, rights, pins);
}

void mrf_mr_unpin(struct mrf_mr_pins *pins)
{
	mrf_mr_unpin_segs(pins->seg, pins->vmr, pins->nseg);
}

/* Piece by piece: a segment that is pinned on demand may be longer than the kernel takes. */
static int check_seg(const struct mrf_mr_space *space, const struct mrf_mr_seg *seg,
		     unsigned rights)
{
	struct iovec piece, rest = { (void *)(uintptr_t)seg->addr, seg->len };
	struct mrf_mr_pins pins = { .nseg = 1 };
	int ret = 0;

	while (!ret && mrf_vmr_piece(&rest, &piece)) {
		pins.seg[0].addr = pins.seg[0].iova = (uintptr_t)piece.iov_base;
		pins.seg[0].len = piece.iov_len;
		ret = mrf_mr_pin_segs(space, space->pd, rights, &pins);
		if (!ret)
			mrf_mr_unpin(&pins);
	}
	return ret;
}

int mrf_mr_check_memory(const struct mrf_mr_space *space, const struct mrf_mr_seg *segs,
			unsigned nseg, uint64_t access)
{
	unsigned rights, i;
	int ret = 0;

	if (!(space->mode & FI_MR_ALLOCATED))
		return 0;
	/* No peer can use these kernel regions, because they have no remote right. */
	rights = mrf_mr_access_kernel(space, access) & MRF_RIGHTS_WRITE ? MRF_RIGHT_LOCAL_WRITE : 0;
	for (i = 0; i < nseg && !ret; i++)
		ret = check_seg(space, &segs[i], rights);
	return ret;
}
