/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast paths of fi_mr_raw_attr, fi_mr_map_raw and fi_mr_unmap_key for the usual raw
 * key, which is complete and has one segment. They are inlined into fi_control, because a
 * call would cost a good part of their work, and they call nothing, so that no register
 * has to be saved. False: nothing was done, and the call has to take the general path
 * (rawkey.c), whether it is faulty or not. The caller has checked that this process
 * opened the domain, except for fi_mr_raw_attr.
 */
#ifndef MRF_MR_RAWKEY_H
#define MRF_MR_RAWKEY_H

#include <string.h>
#include "mr/map.h"
#include "mr/region.h"
#include "proto/rawkey_one.h"

/* --- fi_mr_raw_attr --------------------------------------------------------------- */

/* Has this process recorded the content of the region's raw key? */
static MRF_ALWAYS_INLINE bool mrf_mr_raw_told(const struct mrf_mr *mr)
{
	return mrf_fork_ours(atomic_load_explicit(&mr->raw_told, memory_order_acquire));
}

/* buf: MRF_RAWKEY_ONE_LEN bytes. */
static MRF_ALWAYS_INLINE void mrf_mr_raw_put(const struct mrf_mr *mr, uint8_t *buf)
{
	put64(buf, mrf_rawkey_one_frame());
	put64(buf + MRF_RAWKEY_SUM_AT, mr->raw_sum);
	buf += MRF_RAWKEY_SAID_AT;
	put64(buf + 8 * MRF_RAWKEY_SPACE, mr->space->id);
	_Static_assert(offsetof(struct mrf_mr, serial) == offsetof(struct mrf_mr, key) + 8 &&
			       MRF_RAWKEY_SERIAL == MRF_RAWKEY_KEY + 1,
		       "key and serial are two of a kind");
	put_two(buf + 8 * MRF_RAWKEY_KEY, (const char *)mr + offsetof(struct mrf_mr, key));
	_Static_assert(offsetof(struct mrf_mr_seg, iova) ==
				       offsetof(struct mrf_mr_seg, len) + 8 &&
			       MRF_RAWKEY_BASE == MRF_RAWKEY_LEN + 1,
		       "so are len and iova");
	put_two(buf + 8 * MRF_RAWKEY_LEN,
		(const char *)&mr->seg + offsetof(struct mrf_mr_seg, len));
	put64(buf + 8 * MRF_RAWKEY_BITS, mr->raw_bits);
}

/* fi_mr_raw_attr for a region whose raw key is recorded, with usual arguments. */
static MRF_ALWAYS_INLINE bool mrf_mr_raw_usually(const struct mrf_mr *mr,
						 const struct fi_mr_raw_attr *attr)
{
	if (mrf_unlikely(!mrf_mr_raw_told(mr) || !attr || !attr->raw_key ||
			 !attr->key_size || *attr->key_size != MRF_RAWKEY_ONE_LEN ||
			 attr->flags))
		return false;
	if (attr->base_addr)
		*attr->base_addr = mr->raw_bits & FI_MR_VIRT_ADDR ? mr->seg.iova : 0;
	mrf_mr_raw_put(mr, attr->raw_key);
	return true;
}

/* --- fi_mr_map_raw and fi_mr_unmap_key -------------------------------------------- */

static MRF_ALWAYS_INLINE bool mrf_mr_map_usually(const struct mrf_mr_space *space,
						 const struct fi_mr_map_raw *attr)
{
	struct mrf_map *map = space->map;
	struct mrf_map_slot *slot;
	const uint8_t *raw_key;
	uint64_t *key;

	if (mrf_unlikely(!attr || !attr->raw_key || !attr->key || attr->flags ||
			 attr->key_size != MRF_RAWKEY_ONE_LEN))
		return false;
	raw_key = attr->raw_key;
	key = attr->key;
	slot = mrf_map_take_short(map);
	if (mrf_unlikely(!slot))
		return false;
	/* Copied first, then checked: another thread may write to the raw key. */
	memcpy(&slot->said, raw_key + MRF_RAWKEY_SAID_AT, sizeof(slot->said));
	if (mrf_unlikely(!mrf_rawkey_one_ok(raw_key, &slot->said, &attr->base_addr))) {
		mrf_map_untake(map, slot);
		return false;
	}
	*key = mrf_map_publish(map, slot);
	return true;
}

static MRF_ALWAYS_INLINE bool mrf_mr_unmap_usually(const struct mrf_mr_space *space,
						   const uint64_t *key)
{
	return mrf_likely(key) && mrf_map_remove_short(space->map, *key);
}

/* --- the general paths ------------------------------------------------------------ */

/* fi_mr_map_raw and fi_mr_unmap_key; each logs a line for every error. */
int mrf_mr_map_raw(struct mrf_mr_space *space, const struct fi_mr_map_raw *attr);
int mrf_mr_unmap_key(struct mrf_mr_space *space, const uint64_t *key);
/* -FI_EBUSY, with a logged line, while keys are mapped. */
int mrf_mr_space_mapped(struct mrf_mr_space *space);

/* fi_mr_raw_attr. */
int mrf_mr_raw_attr(struct mrf_mr *mr, struct fi_mr_raw_attr *attr);

#endif
