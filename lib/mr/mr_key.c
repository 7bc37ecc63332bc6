/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "mr/mr_int.h"

#define KIND_SHIFT 62
#define KIND_DIRECT 1ull  /* carries in-page offset and rkey */
#define KIND_COUNTER 2ull /* says nothing: the target has to be asked */

#define OFFSET_SHIFT 32
#define OFFSET_MASK 0xffffull

uint64_t mrf_key_pack(uint64_t mode, uint32_t rkey, uint64_t page_offset)
{
	if (mode & FI_MR_VIRT_ADDR)
		return rkey;
	return KIND_DIRECT << KIND_SHIFT | (page_offset & OFFSET_MASK) << OFFSET_SHIFT |
	       rkey;
}

bool mrf_key_unpack(uint64_t target_mode, uint64_t key, struct mrf_key_direct *direct)
{
	uint64_t high = target_mode & FI_MR_VIRT_ADDR ? 0 : KIND_DIRECT << KIND_SHIFT;
	uint64_t offset = target_mode & FI_MR_VIRT_ADDR ? 0 : OFFSET_MASK << OFFSET_SHIFT;

	if (!(target_mode & FI_MR_PROV_KEY))
		return false;
	if ((key & ~(offset | UINT32_MAX)) != high || !(uint32_t)key)
		return false;
	direct->rkey = (uint32_t)key;
	direct->iova_base = (key & offset) >> OFFSET_SHIFT;
	return true;
}

static int take_requested(struct mrf_mr *mr, uint64_t key, struct mrf_mr_holder *holder)
{
	struct mrf_mr_space *space = mr->space;
	const struct mrf_mr *other;
	int ret;

	ret = mrf_idmap_insert(&space->keys, key, mr);
	if (ret != -FI_EALREADY)
		return ret;
	other = mrf_idmap_find(&space->keys, key);
	holder->addr = other->seg[0].addr;
	holder->len = other->len;
	return -FI_ENOKEY;
}

/* Some key that peers can use; taken or not is never the application's problem. */
static int take_own(struct mrf_mr *mr, uint64_t *key)
{
	struct mrf_mr_space *space = mr->space;
	int ret;

	if (mr->nseg == 1 && mr->seg[0].rkey) {
		*key = mrf_key_pack(space->mode, mr->seg[0].rkey, mr->seg[0].iova);
		ret = mrf_idmap_insert(&space->keys, *key, mr);
		if (ret != -FI_EALREADY)
			return ret;
	}
	do {
		*key = KIND_COUNTER << KIND_SHIFT | space->next_prov_key++;
		ret = mrf_idmap_insert(&space->keys, *key, mr);
	} while (ret == -FI_EALREADY);
	return ret;
}

int mrf_mr_key_take(struct mrf_mr *mr, uint64_t requested, struct mrf_mr_holder *holder)
{
	uint64_t key = requested;
	int ret;

	if (mr->space->mode & FI_MR_PROV_KEY)
		ret = take_own(mr, &key);
	else
		ret = take_requested(mr, key, holder);
	if (ret)
		return ret;
	mr->fid.key = key;
	mr->keyed = true;
	return 0;
}

void mrf_mr_key_release(struct mrf_mr *mr)
{
	if (!mr->keyed)
		return;
	mrf_idmap_remove(&mr->space->keys, mr->fid.key);
	mrf_mr_space_remember_closed(mr->space, mr->fid.key);
	mr->keyed = false;
}
