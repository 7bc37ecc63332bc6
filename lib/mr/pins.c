/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/page.h"
#include "mr/access.h"
#include "mr/demand/unpin.h"
#include "mr/filemem.h"
#include "mr/pins.h"
#include "mr/seg.h"
#include "mr/space.h"

static int why_fault(const void *addr, size_t len, unsigned rights, int err)
{
	bool write = rights & MRF_RIGHTS_WRITE;
	char text[MRF_PAGE_TEXT];
	int lookup;

	if (!addr)
		return mrf_refuse(-err, FI_LOG_MR, 3014,
				  "buf=NULL, len=%zu: memory must be there when it is "
				  "registered, because FI_MR_ALLOCATED is in force",
				  len);
	if (write && !mrf_pmem_why_not((uintptr_t)addr, len, &lookup))
		return mrf_refuse(-err, FI_LOG_MR, 3281,
				  "%p + %zu byte%s cannot be pinned for writing: it is a "
				  "shared mapping of a file, which newer kernels pin for "
				  "reading only (6.1 pins it, 6.12 does not)",
				  addr, len, MRF_S(len));
	mrf_page_explain(addr, len, write, text, sizeof(text));
	return mrf_refuse(-err, FI_LOG_MR, write ? 3015 : 3016,
			  "%p + %zu byte%s cannot be pinned for %s: %s", addr, len, MRF_S(len),
			  write ? "writing" : "reading", text);
}

static int why_memory(const struct mrf_mr_space *space, const void *addr, size_t len, int err)
{
	char limit[160] = "";
	char text[MRF_PAGE_TEXT];

	mrf_page_explain_memlock(len, text, sizeof(text));
	if (mrf_vmr_cut((uintptr_t)addr, len) < len)
		snprintf(limit, sizeof(limit),
			 "; newer kernels (6.12, not 6.1) take at most %d pages at a time, and a "
			 "region is of at most %d such pieces",
			 MRF_VMR_PAGES, MRF_MR_IOV_LIMIT);
	else if (space->max_mr)
		snprintf(limit, sizeof(limit), "; the device's limit is %zu region%s",
			 space->max_mr, MRF_S(space->max_mr));
	return mrf_refuse(-err, FI_LOG_MR, 3018, "%p + %zu byte%s cannot be pinned: %s%s", addr,
			  len, MRF_S(len), text, limit);
}

int mrf_mr_pin_why(const struct mrf_mr_space *space, const void *addr, size_t len, unsigned rights,
		   int err)
{
	switch (err) {
	case -FI_EFAULT:
		return why_fault(addr, len, rights, err);
	case -FI_ENOMEM:
	case -FI_EPERM:
		return why_memory(space, addr, len, err);
	case -FI_ENOSPC:
		return mrf_refuse(FI_ENOSPC, FI_LOG_MR, 3064,
				  "%p + %zu byte%s: the peer that wants this memory has had "
				  "%u pieces pinned for accesses that it has not ended",
				  addr, len, MRF_S(len), MRF_MR_LEASE_PINS);
	case -FI_EINVAL:
		return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3019,
				  "%p + %zu byte%s: the device refuses a region of this address "
				  "and length",
				  addr, len, MRF_S(len));
	default:
		return mrf_refuse(-err, FI_LOG_MR, 3020,
				  "%p + %zu byte%s: the device failed to register this memory",
				  addr, len, MRF_S(len));
	}
}

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
