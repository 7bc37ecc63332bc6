/* SPDX-License-Identifier: BSD-2-Clause */
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "mr/class.h"
#include "mr/key.h"
#include "mr/region.h"
#include "mr/space.h"

uint64_t mrf_key_pack(uint64_t mode, uint32_t rkey, uint64_t page_offset)
{
	if (mode & FI_MR_VIRT_ADDR)
		return rkey;
	return MRF_KEY_DIRECT | (page_offset << MRF_KEY_OFFSET_SHIFT & MRF_KEY_OFFSET_MASK) | rkey;
}

static void tell_reused_locked(struct mrf_mr_space *space, uint64_t key)
{
	unsigned i = 0;

	mrf_lock_held(&space->lock);
	while (i < MRF_MR_CLOSED_KEYS && !(space->closed[i].seq && space->closed[i].key == key))
		i++;
	if (i < MRF_MR_CLOSED_KEYS && mrf_mr_space_first(space, MRF_WARNED_REUSED))
		mrf_misuse(
			FI_LOG_MR, 3085,
			"requested_key=%#lx was the key of a region that was closed: a peer that still "
			"has it now reaches this region instead, without an error (said once per domain)",
			key);
}

static int take_requested_locked(struct mrf_mr *mr, uint64_t key, struct mrf_mr_holder *holder)
{
	struct mrf_mr_space *space = mr->space;
	const struct mrf_mr *other;
	int ret = mrf_idmap_insert(&space->keys, key, mr);

	if (!ret && space->careful)
		tell_reused_locked(space, key);
	if (ret != -FI_EALREADY)
		return ret;
	other = mrf_idmap_find(&space->keys, key);
	holder->addr = other->seg.addr;
	holder->len = other->len;
	return -FI_ENOKEY;
}

/* Have keys fewer than 8 bytes, by the profile? */
static bool has_short_keys(const struct mrf_mr_space *space)
{
	return space->profile && space->profile->key_size < sizeof(uint64_t);
}

/*
 * If the region counts writes, peers have to ask for its event number. A careful domain whose keys have 8
 * bytes uses all of them, so that it shows if a program passes on only 4.
 */
static bool carries_rkey(const struct mrf_mr *mr)
{
	const struct mrf_mr_space *space = mr->space;
	bool fits = has_short_keys(space) ? space->mode & FI_MR_VIRT_ADDR : !space->careful;

	return mr->nseg == 1 && mr->seg.rkey && !mr->event && !(space->mode & FI_MR_RAW) && fits;
}

/* One that peers have to ask about. With FI_MR_VIRT_ADDR 32 bits would be taken for an rkey. */
static uint64_t next_key_locked(struct mrf_mr_space *space)
{
	uint64_t n = space->next_prov_key++;

	mrf_lock_held(&space->lock);
	if (has_short_keys(space) && !(space->mode & FI_MR_VIRT_ADDR))
		return (uint32_t)n;
	return MRF_KEY_COUNTER | n;
}

/*
 * Finds a key that peers can use and that is free, so that the application never has to.
 */
static int take_own_locked(struct mrf_mr *mr, uint64_t *key)
{
	struct mrf_mr_space *space = mr->space;
	int ret;

	if (carries_rkey(mr)) {
		*key = mrf_key_pack(space->mode, mr->seg.rkey, mr->seg.iova);
		ret = mrf_idmap_insert(&space->keys, *key, mr);
		if (ret != -FI_EALREADY)
			return ret;
	}
	do {
		*key = next_key_locked(space);
		ret = mrf_idmap_insert(&space->keys, *key, mr);
	} while (ret == -FI_EALREADY);
	return ret;
}

int mrf_mr_key_take_locked(struct mrf_mr *mr, uint64_t requested, struct mrf_mr_holder *holder)
{
	uint64_t key = requested;
	int ret;

	mrf_lock_held(&mr->space->lock);
	if (mr->space->mode & FI_MR_PROV_KEY)
		ret = take_own_locked(mr, &key);
	else
		ret = take_requested_locked(mr, key, holder);
	if (ret)
		return ret;
	mr->key = key;
	mr->keyed = true;
	return 0;
}

int mrf_mr_key_take_own_locked(struct mrf_mr *mr)
{
	int ret;

	mrf_lock_held(&mr->space->lock);
	if (mr->keyed || !(mr->access & MRF_MR_REMOTE))
		return 0;
	ret = mrf_mr_key_take_locked(mr, 0, NULL);
	if (!ret)
		mr->entry->key = mr->key;
	return ret;
}

struct longer {
	uint32_t low;
	uint64_t key; /* 0: not found */
};

static void compare(void *value, void *arg)
{
	const struct mrf_mr *mr = value;
	struct longer *longer = arg;

	if ((uint32_t)mr->key == longer->low && mr->key > UINT32_MAX)
		longer->key = mr->key;
}

bool mrf_mr_key_longer_locked(const struct mrf_mr_space *space, uint32_t low, uint64_t *key)
{
	struct longer longer = { .low = low };

	mrf_lock_held(&space->lock);
	mrf_idmap_each(&space->keys, compare, &longer);
	*key = longer.key;
	return longer.key;
}

static void remember_closed_locked(struct mrf_mr_space *space, uint64_t key, uint64_t group)
{
	struct mrf_mr_closed *slot = &space->closed[space->nclosed % MRF_MR_CLOSED_KEYS];

	slot->key = key;
	slot->group = group;
	slot->seq = ++space->nclosed;
}

void mrf_mr_key_release_locked(struct mrf_mr *mr)
{
	mrf_lock_held(&mr->space->lock);
	if (!mr->keyed)
		return;
	mrf_idmap_remove(&mr->space->keys, mr->key);
	remember_closed_locked(mr->space, mr->key, mrf_mr_group_id(mr->group));
	mr->keyed = false;
}
