/* SPDX-License-Identifier: BSD-2-Clause */
/* Does the invariant of mr/region_state.h hold for a region? space->lock is held. */
#ifndef MRF_TESTS_UNIT_MR_RIGHT_H
#define MRF_TESTS_UNIT_MR_RIGHT_H

#include "mr/key.h"
#include "mr/pool.h"
#include "mr/region.h"
#include "mr/space.h"
#include "mr/region_state.h"

static bool holds_domain_locked(const struct mrf_mr *mr)
{
	mrf_list_each (node, &mr->space->regions.holds) {
		if (node == &mr->held)
			return true;
	}
	return false;
}

static bool key_right_locked(const struct mrf_mr *mr)
{
	bool remote = mr->access & MRF_MR_REMOTE;
	bool known = mr->keyed && mrf_idmap_find(&mr->space->keys, mr->key) == mr;

	switch (mr->state) {
	case MRF_STATE_CLOSED:
	case MRF_STATE_FAILED:
		return !mr->keyed;
	case MRF_STATE_PENDING:
		return known == (remote && !(mr->space->mode & FI_MR_PROV_KEY));
	default:
		return known == remote;
	}
}

/* Are key and descriptor shown to the application as the state requires? */
static bool shows_right_locked(const struct mrf_mr *mr)
{
	bool serves = mrf_mr_state_serves(mr->state);
	bool raw = mr->space->mode & FI_MR_RAW;
	bool live = mrf_mr_is_live(mr);

	if (!serves || raw)
		return mr->fid.key == FI_KEY_NOTAVAIL && live == serves &&
		       !mr->fid.mem_desc == !serves;
	return mr->fid.key == mr->key && live && mr->fid.mem_desc;
}

static bool state_is_right_locked(const struct mrf_mr *mr)
{
	bool gone = mr->state == MRF_STATE_CLOSED && mr->fid.fid.fclass == FI_CLASS_UNSPEC;

	mrf_lock_held(&mr->space->lock);
	return holds_domain_locked(mr) == !gone && key_right_locked(mr) && shows_right_locked(mr) &&
	       (mr->users || mr->state != MRF_STATE_REFRESHING);
}

#endif
