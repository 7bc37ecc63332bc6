/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/page.h"
#include "base/random.h"
#include "base/strict.h"
#include "hmem/hmem.h"
#include "mr/demand/backs.h"
#include "mr/faulty.h"
#include "mr/map.h"
#include "mr/mr_ops.h"
#include "mr/pool.h"
#include "mr/region.h"
#include "mr/space.h"
#include "mr/worker.h"

/* Sets the space's id, which is never 0. -FI_EIO: there are no random bytes. */
static int choose_id(struct mrf_mr_space *space)
{
	while (!space->id) {
		if (!mrf_random(&space->id, sizeof(space->id)))
			return -FI_EIO;
	}
	return 0;
}

/* Sets what the mode says of all regions. -FI_ENOMEM. */
static int init_kind(struct mrf_mr_space *space)
{
	bool allocated = space->mode & FI_MR_ALLOCATED;

	space->events_all = space->has_events && !(space->mode & FI_MR_RMA_EVENT);
	space->plain = allocated && !space->events_all && !space->profile &&
		       !(space->mode & (FI_MR_MMU_NOTIFY | FI_MR_ENDPOINT | FI_MR_HMEM));
	/*
	 * Opens the runtimes that the application has loaded, so that their memory is known
	 * without a registration.
	 */
	if (space->mode & FI_MR_HMEM)
		mrf_hmem_notice();
	space->backs = mrf_mr_backs_new(space);
	return space->backs ? 0 : -FI_ENOMEM;
}

/* -FI_ENOMEM: there is none of it. */
static int init_memory(struct mrf_mr_space *space)
{
	const char *device = space->vdev ? mrf_vdev_name(space->vdev) : "";
	int ret = mrf_ledger_open(&space->ledger, device);

	if (ret)
		return ret;
	space->pool = mrf_mr_pool_new();
	space->closed = calloc(MRF_MR_CLOSED_KEYS, sizeof(*space->closed));
	if (space->pool && space->closed)
		return 0;
	free(space->closed);
	if (space->pool)
		mrf_mr_pool_free(space->pool);
	mrf_ledger_close(&space->ledger);
	return -FI_ENOMEM;
}

static void name_region(const struct mrf_list *node, struct mrf_hold *hold)
{
	hold->holder = &mrf_container_of(node, struct mrf_mr, held)->fid.fid;
	hold->describe = mrf_mr_describe;
}

int mrf_mr_space_init(struct mrf_mr_space *space)
{
	int ret = choose_id(space);

	if (ret)
		return ret;
	space->owner = space->obj->owner;
	space->careful = mrf_strict_careful();
	space->ops = space->faults ? mrf_faulty_ops : mrf_mr_ops;
	space->region_ops = space->faults ? &mrf_faulty_region_ops : &mrf_mr_region_ops;
	ret = init_memory(space);
	if (ret)
		return ret;
	space->next_serial = 1;
	mrf_list_init(&space->ports);
	mrf_list_init(&space->groups);
	mrf_list_init(&space->waiters);
	space->page_mask = mrf_page_size() - 1;
	space->write_rights =
		MRF_RIGHT_REMOTE_WRITE | (space->atomics ? MRF_RIGHT_REMOTE_ATOMIC : 0u);
	mrf_obj_init(&space->regions, space->obj->fid, space->obj->describe);
	space->regions.holder = name_region;
	mrf_lock_init(&space->lock, MRF_RANK_MR);
	space->map = mrf_map_new(space->id);
	ret = init_kind(space);
	if (!space->map || ret) {
		mrf_mr_space_fini(space);
		return -FI_ENOMEM;
	}
	return 0;
}

void mrf_mr_space_fini(struct mrf_mr_space *space)
{
	mrf_mr_space_report_end(space);
	mrf_lock_fini(&space->lock);
	mrf_obj_fini(&space->regions);
	mrf_idmap_fini(&space->keys);
	mrf_idmap_fini(&space->events);
	mrf_map_free(space->map);
	mrf_mr_backs_free(space->backs);
	free(space->closed);
	mrf_mr_pool_free(space->pool);
	mrf_ledger_close(&space->ledger);
}

int mrf_mr_space_busy(struct mrf_mr_space *space)
{
	int ret;

	mrf_lock_take(&space->lock);
	ret = mrf_obj_busy_with(&space->regions, "memory region");
	mrf_lock_release(&space->lock);
	return ret;
}
