/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fast forms of mrf_desc_get, inline: every access calls one of them, and a function call
 * would cost more than its work. All are lock-free. This is the only public header of
 * lib/mr that exposes the inside of a region; other layers use nothing of it but these
 * functions.
 */
#ifndef MRF_MR_DESC_H
#define MRF_MR_DESC_H

#include "base/iov.h"
#include "mr/pool.h"

/*
 * A descriptor is not a pointer but a slot number with a generation: a stale, foreign or
 * garbage descriptor is recognised without touching memory that may be gone. Slots are
 * copied without a lock (a sequence number guards them).
 */
struct mrf_desc {
	uint64_t access; /* FI_SEND | FI_RECV | FI_READ | FI_WRITE ... of the region */
	unsigned nseg;
	/* With nseg > 1 all segments, valid while the region is open; otherwise NULL. */
	const struct mrf_mr_seg *segs;
	/*
	 * The first segment. lkey 0: not pinned; rights and bounds are valid, and the
	 * caller registers what it needs.
	 */
	struct mrf_mr_seg seg;
};

/* False: not a live descriptor of this space. Lock-free; fast path. */
bool mrf_desc_get(const struct mrf_mr_space *space, const void *desc, struct mrf_desc *out);

/* The region of a descriptor that is live at this moment, or NULL. */
static inline const struct mrf_mr *mrf_desc_find(const struct mrf_mr_pool *pool, const void *desc)
{
	uint32_t index = (uintptr_t)desc & MRF_DESC_INDEX_MASK;
	const struct mrf_mr *mr = mrf_desc_chunk(pool, index);

	if (mrf_unlikely(!mr))
		return NULL;
	mr += index % MRF_MR_CHUNK;
	if (mrf_unlikely(atomic_load_explicit(&mr->live, memory_order_acquire) != (uintptr_t)desc))
		return NULL;
	return mr;
}

/* True: everything read of the region since mrf_desc_find belongs to this descriptor. */
static inline bool mrf_desc_still(const struct mrf_mr *mr, const void *desc)
{
	return atomic_load_explicit(&mr->live, memory_order_relaxed) == (uintptr_t)desc;
}

/* False: not a live descriptor of this space. */
static inline bool mrf_desc_live(const struct mrf_mr_space *space, const void *desc)
{
	return mrf_desc_find(space->pool, desc);
}

/*
 * For a region of one segment: true when desc is live, grants the right (FI_READ or
 * FI_WRITE) and contains all of [addr, addr + len). Always false for a region of several
 * segments.
 */
static inline bool mrf_desc_covers(const struct mrf_mr_space *space, const void *desc,
				   uint64_t right, uint64_t addr, uint64_t len)
{
	const struct mrf_mr *mr = mrf_desc_find(space->pool, desc);

	return mrf_likely(
		mr && MRF_MR_GET(mr->nseg) == 1 && (MRF_MR_GET(mr->access) & right) &&
		mrf_range_inside(addr, len, MRF_MR_GET(mr->seg.addr), MRF_MR_GET(mr->seg.len)) &&
		mrf_desc_still(mr, desc));
}

/*
 * As mrf_desc_covers, for a pinned region; sets the kernel's address and key of the
 * bytes.
 */
static inline bool mrf_desc_local(const struct mrf_mr_space *space, const void *desc,
				  uint64_t right, uint64_t addr, uint64_t len, uint64_t *iova,
				  uint32_t *lkey)
{
	const struct mrf_mr *mr = mrf_desc_find(space->pool, desc);
	uint64_t start;

	if (mrf_unlikely(!mr || MRF_MR_GET(mr->nseg) != 1 || !(MRF_MR_GET(mr->access) & right)))
		return false;
	start = MRF_MR_GET(mr->seg.addr);
	if (mrf_unlikely(!mrf_range_inside(addr, len, start, MRF_MR_GET(mr->seg.len))))
		return false;
	*iova = MRF_MR_GET(mr->seg.iova) + (addr - start);
	*lkey = MRF_MR_GET(mr->seg.lkey);
	return *lkey && mrf_desc_still(mr, desc);
}

#endif
