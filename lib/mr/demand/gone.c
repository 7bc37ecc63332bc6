/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "mr/demand/back.h"
#include "mr/demand/backs.h"
#include "mr/demand/gone.h"
#include "mr/demand/pin.h"
#include "mr/space.h"

void mrf_gone_note_locked(const struct mrf_pin *pin)
{
	struct mrf_mr_gones *gones = &pin->back->space->backs->gones;

	mrf_monitor_held();
	gones->last[gones->count++ % MRF_MR_GONE] =
		(struct mrf_mr_gone){ .key = pin->back->key, .pos = pin->pos, .len = pin->len };
}

uint64_t mrf_mr_gone_so_far(const struct mrf_mr_space *space)
{
	uint64_t count;

	mrf_monitor_lock();
	count = space->backs->gones.count;
	mrf_monitor_unlock();
	return count;
}

unsigned mrf_mr_gone_since(const struct mrf_mr_space *space, uint64_t *told,
			   struct mrf_mr_gone gone[MRF_MR_GONE])
{
	const struct mrf_mr_gones *gones = &space->backs->gones;
	unsigned n = 0;
	uint64_t i;

	mrf_monitor_lock();
	if (gones->count - *told > MRF_MR_GONE)
		n = MRF_MR_GONE_ALL;
	else
		for (i = *told; i < gones->count; i++)
			gone[n++] = gones->last[i % MRF_MR_GONE];
	*told = gones->count;
	mrf_monitor_unlock();
	return n;
}
