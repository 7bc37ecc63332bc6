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
	struct mrf_mr_gone *gone = &gones->last[gones->count++ % MRF_MR_GONE];

	mrf_monitor_held();
	gone->key = pin->back->key;
	gone->pos = pin->pos;
	gone->len = pin->len;
	gone->class = pin->back->class;
}

uint64_t mrf_mr_gone_so_far(const struct mrf_mr_space *space)
{
	uint64_t count;

	mrf_monitor_lock();
	count = space->backs->gones.count;
	mrf_monitor_unlock();
	return count;
}

/* To peers of another class these regions do not exist. */
static unsigned copy_of_class_locked(const struct mrf_mr_gones *gones,
				     const struct mrf_mr_class *class, uint64_t told,
				     struct mrf_mr_gone gone[MRF_MR_GONE])
{
	unsigned n = 0;

	mrf_monitor_held();
	for (; told < gones->count; told++) {
		const struct mrf_mr_gone *one = &gones->last[told % MRF_MR_GONE];

		if (one->class == class)
			gone[n++] = *one;
	}
	return n;
}

unsigned mrf_mr_gone_since(const struct mrf_mr_space *space, const struct mrf_mr_class *class,
			   uint64_t *told, struct mrf_mr_gone gone[MRF_MR_GONE])
{
	const struct mrf_mr_gones *gones = &space->backs->gones;
	unsigned n = MRF_MR_GONE_ALL;

	mrf_monitor_lock();
	if (gones->count - *told <= MRF_MR_GONE)
		n = copy_of_class_locked(gones, class, *told, gone);
	*told = gones->count;
	mrf_monitor_unlock();
	return n;
}
