/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys as peers see them, which initiators need, too, and the key space. */
#ifndef MRF_MR_KEY_H
#define MRF_MR_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fi_domain.h>

struct mrf_mr;

/*
 * A provider key of a region with one segment carries what a peer needs, so that no
 * question is asked:
 *   FI_MR_VIRT_ADDR:  the plain rkey (< 2^32), usable by any verbs program
 *   0-based:          01 in bits 63..62, in-page offset in bits 47..32, rkey
 * Any other provider key has 10 in bits 63..62 and is resolved by asking: that of several
 * segments, and every one where rkeys come and go (memory not pinned for good, regions
 * that are enabled later).
 */
struct mrf_key_direct {
	uint32_t rkey;
	uint64_t iova_base; /* add to the peer's address: in-page offset or 0 */
};

#define MRF_KEY_DIRECT (1ull << 62)  /* carries in-page offset and rkey */
#define MRF_KEY_COUNTER (2ull << 62) /* says nothing: the target has to be asked */
#define MRF_KEY_OFFSET_SHIFT 32
#define MRF_KEY_OFFSET_MASK (0xffffull << MRF_KEY_OFFSET_SHIFT)

uint64_t mrf_key_pack(uint64_t mode, uint32_t rkey, uint64_t page_offset);

/* What keys look like that carry it, in the domains of one mr_mode. */
struct mrf_key_form {
	uint64_t fixed;	 /* the bits that are the same in all of them ... */
	uint64_t want;	 /* ... and what they are; beside them: there is no such key */
	uint64_t offset; /* the bits of the offset */
};

static inline struct mrf_key_form mrf_key_form(uint64_t target_mode)
{
	bool virt = target_mode & FI_MR_VIRT_ADDR;
	uint64_t offset = virt ? 0 : MRF_KEY_OFFSET_MASK;

	/* Where raw keys are required, no other will do. */
	if ((target_mode & (FI_MR_PROV_KEY | FI_MR_RAW)) != FI_MR_PROV_KEY)
		return (struct mrf_key_form){ .want = 1 };
	return (struct mrf_key_form){ .fixed = ~(offset | UINT32_MAX),
				      .want = virt ? 0 : MRF_KEY_DIRECT,
				      .offset = offset };
}

/* False: ask the target. Inline for the sake of 8-byte accesses. */
static inline bool mrf_key_take(const struct mrf_key_form *form, uint64_t key,
				struct mrf_key_direct *direct)
{
	if ((key & form->fixed) != form->want || !(uint32_t)key)
		return false;
	direct->rkey = (uint32_t)key;
	direct->iova_base = (key & form->offset) >> MRF_KEY_OFFSET_SHIFT;
	return true;
}

/* The same; target_mode: mr_mode of the domain that made the key. */
static inline bool mrf_key_unpack(uint64_t target_mode, uint64_t key,
				  struct mrf_key_direct *direct)
{
	struct mrf_key_form form = mrf_key_form(target_mode);

	return mrf_key_take(&form, key, direct);
}

/* --- the key space; the caller holds space->lock ----------------------------------- */

/* Who has the key that was asked for: copied under the lock, told after it. */
struct mrf_mr_holder {
	uint64_t addr;
	uint64_t len;
};

/*
 * Enters a region with a remote right under the requested key or one of ours and sets
 * key and fid.key. -FI_ENOKEY (*holder filled in) or -FI_ENOMEM: nothing changed.
 */
int mrf_mr_key_take(struct mrf_mr *mr, uint64_t requested, struct mrf_mr_holder *holder);
/* For one that could not be told its provider key before it is pinned; else harmless. */
int mrf_mr_key_take_own(struct mrf_mr *mr);

/* Takes it out and remembers it as closed. Harmless without a key. */
void mrf_mr_key_release(struct mrf_mr *mr);

#endif
