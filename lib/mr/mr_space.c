/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/page.h"
#include "mr/mr_pool.h"

int mrf_mr_space_init(struct mrf_mr_space *space)
{
	space->pool = mrf_mr_pool_new();
	if (!space->pool)
		return -FI_ENOMEM;
	space->closed = calloc(MRF_MR_CLOSED_KEYS, sizeof(*space->closed));
	if (!space->closed) {
		mrf_mr_pool_free(space->pool);
		return -FI_ENOMEM;
	}
	space->nclosed = 0;
	space->next_prov_key = 0;
	space->page_mask = mrf_page_size() - 1;
	atomic_init(&space->warned, 0);
	mrf_idmap_init(&space->keys);
	mrf_obj_init(&space->regions, space->obj->fid, space->obj->describe);
	mrf_lock_init(&space->lock, MRF_RANK_MR);
	return 0;
}

void mrf_mr_space_fini(struct mrf_mr_space *space)
{
	mrf_lock_fini(&space->lock);
	mrf_obj_fini(&space->regions);
	mrf_idmap_fini(&space->keys);
	free(space->closed);
	mrf_mr_pool_free(space->pool);
}

int mrf_mr_space_busy(struct mrf_mr_space *space)
{
	int ret;

	mrf_lock_take(&space->lock);
	ret = mrf_obj_busy(&space->regions);
	mrf_lock_release(&space->lock);
	return ret;
}

void mrf_mr_space_remember_closed(struct mrf_mr_space *space, uint64_t key)
{
	struct mrf_mr_closed *slot = &space->closed[space->nclosed % MRF_MR_CLOSED_KEYS];

	slot->key = key;
	slot->seq = ++space->nclosed;
}

static enum mrf_mr_status absent(const struct mrf_mr_space *space, uint64_t key)
{
	unsigned i;

	for (i = 0; i < MRF_MR_CLOSED_KEYS; i++) {
		if (space->closed[i].seq && space->closed[i].key == key)
			return MRF_MR_CLOSED;
	}
	return MRF_MR_UNKNOWN;
}

static void look_at(const struct mrf_mr *mr, struct mrf_mr_view *view)
{
	view->status = MRF_MR_OK;
	view->access = mr->access & MRF_MR_REMOTE;
	view->base = mr->seg.addr;
	view->len = mr->len;
	view->nseg = mr->nseg;
	memcpy(view->seg, mr->segs, mr->nseg * sizeof(view->seg[0]));
}

void mrf_mr_lookup(struct mrf_mr_space *space, uint64_t key, struct mrf_mr_view *view)
{
	const struct mrf_mr *mr;

	mrf_lock_take(&space->lock);
	mr = mrf_idmap_find(&space->keys, key);
	if (mr)
		look_at(mr, view);
	else
		view->status = absent(space, key);
	mrf_lock_release(&space->lock);
}
