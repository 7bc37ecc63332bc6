/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys as peers see them, which initiators also decode, and the key space. */
#ifndef MRF_MR_KEY_H
#define MRF_MR_KEY_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fi_domain.h>

struct mrf_mr;
struct mrf_mr_space;

/*
 * The provider key of a region with one segment carries everything a peer needs, so that
 * the peer asks no question:
 *   FI_MR_VIRT_ADDR:  the plain rkey (< 2^32), usable by any verbs program
 *   0-based:          01 in bits 63..62, in-page offset in bits 47..32, rkey
 * Any other provider key has 10 in bits 63..62, and peers have to ask: for regions of
 * several segments, and for all regions whose rkeys may change (memory that is not pinned
 * for good, regions that are enabled later). Under a profile with keys of 4 bytes and without
 * FI_MR_VIRT_ADDR all provider keys are of this kind, but < 2^32.
 */
struct mrf_key_direct {
	uint32_t rkey;
	uint64_t iova_base; /* add to the peer's address: in-page offset or 0 */
};

#define MRF_KEY_DIRECT (1ull << 62)  /* carries in-page offset and rkey */
#define MRF_KEY_COUNTER (2ull << 62) /* carries nothing: the target has to be asked */
#define MRF_KEY_OFFSET_SHIFT 32
#define MRF_KEY_OFFSET_MASK (0xffffull << MRF_KEY_OFFSET_SHIFT)

uint64_t mrf_key_pack(uint64_t mode, uint32_t rkey, uint64_t page_offset);

/* The form of the keys that carry an rkey, in domains with one mr_mode. */
struct mrf_key_form {
	uint64_t fixed;	 /* the bits that are the same in all such keys */
	uint64_t want;	 /* their values; with other bits: there are no such keys */
	uint64_t offset; /* the bits of the offset */
};

static inline struct mrf_key_form mrf_key_form(uint64_t target_mode)
{
	bool virt = target_mode & FI_MR_VIRT_ADDR;
	uint64_t offset = virt ? 0 : MRF_KEY_OFFSET_MASK;

	/* Where raw keys are required, no other key is valid. */
	if ((target_mode & (FI_MR_PROV_KEY | FI_MR_RAW)) != FI_MR_PROV_KEY)
		return (struct mrf_key_form){ .want = 1 };
	return (struct mrf_key_form){ .fixed = ~(offset | UINT32_MAX),
				      .want = virt ? 0 : MRF_KEY_DIRECT,
				      .offset = offset };
}

/*
 * Decodes a key. False: the target has to be asked. Inline for the sake of 8-byte
 * accesses.
 */
static inline bool mrf_key_take(const struct mrf_key_form *form, uint64_t key,
				struct mrf_key_direct *direct)
{
	if ((key & form->fixed) != form->want || !(uint32_t)key)
		return false;
	direct->rkey = (uint32_t)key;
	direct->iova_base = (key & form->offset) >> MRF_KEY_OFFSET_SHIFT;
	return true;
}

/* As mrf_key_take; target_mode: mr_mode of the domain that made the key. */
static inline bool mrf_key_unpack(uint64_t target_mode, uint64_t key, struct mrf_key_direct *direct)
{
	struct mrf_key_form form = mrf_key_form(target_mode);

	return mrf_key_take(&form, key, direct);
}

/* --- the key space; each of these functions is called with space->lock held --------- */

/*
 * The region that already has the requested key: copied under the lock, logged after it.
 */
struct mrf_mr_holder {
	uint64_t addr;
	uint64_t len;
};

/*
 * Enters a region with a remote right into the key space, under the requested key or a
 * provider key, and sets key and fid.key. -FI_ENOKEY (*holder filled in) or -FI_ENOMEM:
 * nothing was changed.
 */
int mrf_mr_key_take_locked(struct mrf_mr *mr, uint64_t requested, struct mrf_mr_holder *holder);
/* A key whose lower 32 bits are these, and which has others, too. False: there is none. */
bool mrf_mr_key_longer_locked(const struct mrf_mr_space *space, uint32_t low, uint64_t *key);
/*
 * For a region that could not get its provider key before it was pinned; otherwise does
 * nothing.
 */
int mrf_mr_key_take_own_locked(struct mrf_mr *mr);

/*
 * Takes the key out of the key space and remembers it as closed. Harmless without a key.
 */
void mrf_mr_key_release_locked(struct mrf_mr *mr);

#endif
