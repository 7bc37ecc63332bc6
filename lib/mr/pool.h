/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pool of a space's regions, and the descriptors that lead to them. Inline, because
 * every registration goes through all of it, and its calls would cost more than its work.
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
 * The words that are read without a lock. Release: who sees the new word also sees that
 * the region had gone dead before. Acquire: keeps the second look at the state behind
 * the copy.
 */
#define MRF_MR_PUT(word, value) __atomic_store_n(&(word), value, __ATOMIC_RELEASE)
#define MRF_MR_GET(word) __atomic_load_n(&(word), __ATOMIC_ACQUIRE)

/* Chunks never move and live as long as the pool. Guarded by space->lock. */
struct mrf_mr_pool {
	/* First, where it is found with an instruction less. */
	_Atomic(struct mrf_mr *) chunk[MRF_MR_CHUNKS];
	uint32_t tag;  /* never 0: tells pools, and descriptors from pointers */
	uint32_t used; /* regions ever handed out */
	struct mrf_mr *spare;
};

struct mrf_mr_pool *mrf_mr_pool_new(void); /* NULL: no memory */
void mrf_mr_pool_free(struct mrf_mr_pool *pool);
/* A region that was never used. NULL: no memory. The caller holds space->lock. */
struct mrf_mr *mrf_mr_pool_extend(struct mrf_mr_pool *pool);

static inline struct mrf_mr *mrf_desc_chunk(const struct mrf_mr_pool *pool, uint32_t index)
{
	return atomic_load_explicit(&pool->chunk[index / MRF_MR_CHUNK], memory_order_acquire);
}

/* A region that is not live. NULL: no memory. The caller holds space->lock. */
static inline struct mrf_mr *mrf_mr_pool_get(struct mrf_mr_pool *pool)
{
	struct mrf_mr *mr = pool->spare;

	if (mrf_unlikely(!mr))
		return mrf_mr_pool_extend(pool);
	pool->spare = mr->next;
	return mr;
}

/* Gives back one that did not become live. The caller holds space->lock. */
static inline void mrf_mr_pool_unget(struct mrf_mr_pool *pool, struct mrf_mr *mr)
{
	mr->next = pool->spare;
	pool->spare = mr;
}

/* Gives back one that was live. The caller holds space->lock. */
static inline void mrf_mr_pool_put(struct mrf_mr_pool *pool, struct mrf_mr *mr)
{
	uint64_t live = atomic_load_explicit(&mr->live, memory_order_relaxed);

	/* Retired: another use would make a descriptor that was valid before. */
	if (mrf_likely(live >> MRF_DESC_TAG_SHIFT == pool->tag))
		mrf_mr_pool_unget(pool, mr);
}

/* Writes what mrf_desc_get reads; segs NULL: seg is all. The region is not live. */
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

/* Only the first segment's keys, which are those of the kernel region it has got. */
static inline void mrf_mr_set_keys(struct mrf_mr *mr, const struct mrf_mr_seg *seg)
{
	MRF_MR_PUT(mr->seg.rkey, seg->rkey);
	MRF_MR_PUT(mr->seg.lkey, seg->lkey);
}

/*
 * What live is in a region that is not: the next descriptor, with each bit of the index turned
 * over, so that whoever comes with that very word is led elsewhere.
 */
static inline uint64_t mrf_mr_dead_word(const struct mrf_mr_pool *pool, uint32_t gen,
					uint32_t index)
{
	return (uint64_t)pool->tag << MRF_DESC_TAG_SHIFT |
	       (uint64_t)gen << MRF_DESC_GEN_SHIFT | (index ^ MRF_DESC_INDEX_MASK);
}

static inline bool mrf_mr_is_live(const struct mrf_mr *mr)
{
	uint64_t live = atomic_load_explicit(&mr->live, memory_order_relaxed);

	return (live & MRF_DESC_INDEX_MASK) == mr->index;
}

/* Makes fid.mem_desc, which mrf_desc_get knows until mrf_mr_set_dead. Not live before. */
static inline void mrf_mr_set_live(struct mrf_mr *mr)
{
	uint64_t desc = atomic_load_explicit(&mr->live, memory_order_relaxed) ^
			MRF_DESC_INDEX_MASK;

	atomic_store_explicit(&mr->live, desc, memory_order_release);
	mr->fid.mem_desc = (void *)(uintptr_t)desc;
}

/* Harmless when it is dead. The key is shown no more, either. */
static inline void mrf_mr_set_dead(struct mrf_mr *mr)
{
	uint64_t live = atomic_load_explicit(&mr->live, memory_order_relaxed);

	/* Not live in the next generation; behind the last one the tag is another. */
	if (mrf_mr_is_live(mr))
		atomic_store_explicit(&mr->live,
				      (live ^ MRF_DESC_INDEX_MASK) +
					      (1ull << MRF_DESC_GEN_SHIFT),
				      memory_order_release);
	mr->fid.mem_desc = NULL;
	mr->fid.key = FI_KEY_NOTAVAIL;
}

#endif
