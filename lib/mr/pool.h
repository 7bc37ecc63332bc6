/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pool of a space's regions, and the descriptors that lead to them. Inline, because
 * every registration goes through all of it, and function calls would cost more than the
 * work.
 */
#ifndef MRF_MR_POOL_H
#define MRF_MR_POOL_H

#include "base/compiler.h"
#include "mr/region.h"

/*
 * A descriptor: tag in bits 63..48, generation in 47..22, index of the region in 21..0.
 */
#define MRF_DESC_INDEX_BITS 22
#define MRF_DESC_GEN_BITS 26
#define MRF_DESC_INDEX_MASK ((1u << MRF_DESC_INDEX_BITS) - 1)
#define MRF_DESC_GEN_MAX ((1u << MRF_DESC_GEN_BITS) - 1)
#define MRF_DESC_GEN_SHIFT MRF_DESC_INDEX_BITS
#define MRF_DESC_TAG_SHIFT (MRF_DESC_INDEX_BITS + MRF_DESC_GEN_BITS)
#define MRF_MR_CHUNK 512 /* regions */
#define MRF_MR_CHUNKS ((1u << MRF_DESC_INDEX_BITS) / MRF_MR_CHUNK)

_Static_assert(sizeof(void *) == 8, "a descriptor needs a pointer of 64 bits");
_Static_assert(MRF_DESC_TAG_SHIFT == 48, "16 bits are left for the tag");

/*
 * For the words that are read without a lock. Release: a reader that sees the new word
 * also sees that the region was dead before. Acquire: keeps the second look at live
 * behind the copy.
 */
#define MRF_MR_PUT(word, value) __atomic_store_n(&(word), value, __ATOMIC_RELEASE)
#define MRF_MR_GET(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)

/* Chunks never move and live as long as the pool. Guarded by space->lock. */
struct mrf_mr_pool {
	/* First in the structure, which saves an instruction. */
	_Atomic(struct mrf_mr *) chunk[MRF_MR_CHUNKS];
	uint32_t tag;  /* never 0; differs between pools and from pointers */
	uint32_t used; /* regions ever handed out */
	struct mrf_mr *spare;
};

struct mrf_mr_pool *mrf_mr_pool_new(void); /* NULL: no memory */
void mrf_mr_pool_free(struct mrf_mr_pool *pool);
/* Makes a region that was never used. NULL: no memory. space->lock is held. */
struct mrf_mr *mrf_mr_pool_extend_locked(struct mrf_mr_space *space);

static inline struct mrf_mr *mrf_desc_chunk(const struct mrf_mr_pool *pool, uint32_t index)
{
	return atomic_load_explicit(&pool->chunk[index / MRF_MR_CHUNK], memory_order_acquire);
}

/* Takes a region, which is not live. NULL: no memory. space->lock is held. */
static inline struct mrf_mr *mrf_mr_pool_get_locked(struct mrf_mr_space *space)
{
	struct mrf_mr *mr = space->pool->spare;

	mrf_lock_held(&space->lock);
	if (mrf_unlikely(!mr))
		return mrf_mr_pool_extend_locked(space);
	space->pool->spare = mr->next;
	return mr;
}

/* Gives back a region that did not become live. space->lock is held. */
static inline void mrf_mr_pool_unget_locked(struct mrf_mr_space *space, struct mrf_mr *mr)
{
	mrf_lock_held(&space->lock);
	mr->next = space->pool->spare;
	space->pool->spare = mr;
}

/* Gives back a region that was live. space->lock is held. */
static inline void mrf_mr_pool_put_locked(struct mrf_mr_space *space, struct mrf_mr *mr)
{
	uint64_t live = atomic_load_explicit(&mr->live, memory_order_relaxed);

	mrf_lock_held(&space->lock);
	/*
	 * Otherwise the region is retired: it could only get a descriptor that was valid
	 * before.
	 */
	if (mrf_likely(live >> MRF_DESC_TAG_SHIFT == space->pool->tag))
		mrf_mr_pool_unget_locked(space, mr);
}

/*
 * Writes the fields that mrf_desc_get reads; segs NULL: seg is the only segment. The
 * region is not live.
 */
static inline void mrf_mr_set(struct mrf_mr *mr, uint64_t access, unsigned nseg,
			      const struct mrf_mr_seg *seg, struct mrf_mr_seg *segs)
{
	MRF_MR_PUT(mr->access, access);
	MRF_MR_PUT(mr->nseg, nseg);
	MRF_MR_PUT(mr->segs, segs ? segs : &mr->seg);
	MRF_MR_PUT(mr->seg.addr, seg->addr);
	MRF_MR_PUT(mr->seg.len, seg->len);
	MRF_MR_PUT(mr->seg.iova, seg->iova);
	MRF_MR_PUT(mr->seg.rkey, seg->rkey);
	MRF_MR_PUT(mr->seg.lkey, seg->lkey);
}

/*
 * Writes only the keys of the first segment, from the kernel region that it has got.
 * space->lock is held.
 */
static inline void mrf_mr_set_keys_locked(struct mrf_mr *mr, const struct mrf_mr_seg *seg)
{
	mrf_lock_held(&mr->space->lock);
	MRF_MR_PUT(mr->seg.rkey, seg->rkey);
	MRF_MR_PUT(mr->seg.lkey, seg->lkey);
}

/*
 * The value of live in a region that is not live: its next descriptor with each bit of
 * the index inverted, so that this word, used as a descriptor, leads to another region.
 */
static inline uint64_t mrf_mr_dead_word(const struct mrf_mr_pool *pool, uint32_t gen,
					uint32_t index)
{
	return (uint64_t)pool->tag << MRF_DESC_TAG_SHIFT | (uint64_t)gen << MRF_DESC_GEN_SHIFT |
	       (index ^ MRF_DESC_INDEX_MASK);
}

static inline bool mrf_mr_is_live(const struct mrf_mr *mr)
{
	uint64_t live = atomic_load_explicit(&mr->live, memory_order_relaxed);

	return (live & MRF_DESC_INDEX_MASK) == mr->index;
}

/*
 * Makes fid.mem_desc, which mrf_desc_get accepts until mrf_mr_set_dead_locked. The region
 * was not live. space->lock is held.
 */
static inline void mrf_mr_set_live_locked(struct mrf_mr *mr)
{
	uint64_t desc = atomic_load_explicit(&mr->live, memory_order_relaxed) ^ MRF_DESC_INDEX_MASK;

	mrf_lock_held(&mr->space->lock);
	atomic_store_explicit(&mr->live, desc, memory_order_release);
	mr->fid.mem_desc = (void *)(uintptr_t)desc;
}

/*
 * Invalidates the descriptor and hides the key. Harmless if the region is dead. space->lock
 * is held.
 */
static inline void mrf_mr_set_dead_locked(struct mrf_mr *mr)
{
	uint64_t live = atomic_load_explicit(&mr->live, memory_order_relaxed);

	mrf_lock_held(&mr->space->lock);
	/* Dead, in the next generation; after the last one this changes the tag. */
	if (mrf_mr_is_live(mr))
		atomic_store_explicit(&mr->live,
				      (live ^ MRF_DESC_INDEX_MASK) + (1ull << MRF_DESC_GEN_SHIFT),
				      memory_order_release);
	mr->fid.mem_desc = NULL;
	mr->fid.key = FI_KEY_NOTAVAIL;
}

#endif
