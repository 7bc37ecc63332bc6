/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "ep/model/ep.h"
#include "ep/msg/landing.h"
#include "verbs/vqp.h"

static struct mrf_copies *copies_for(const struct mrf_landing *landing)
{
	return &landing->origin->inbox->copies;
}

static struct mrf_stage_pool *pool_for(const struct mrf_landing *landing)
{
	return &landing->origin->inbox->ep->buf.coming;
}

int mrf_landing_need_locked(struct mrf_origin *origin)
{
	mrf_lock_held(&origin->inbox->ep->lock);
	if (origin->landing)
		return 0;
	origin->landing = calloc(1, sizeof(*origin->landing));
	if (!origin->landing)
		return -FI_ENOMEM;
	origin->landing->origin = origin;
	return 0;
}

static uint8_t *memory_of(const struct mrf_landing *landing, const struct mrf_place *place)
{
	return (uint8_t *)landing->ring->memory + (place - landing->place) * (long)MRF_STAGE_CHUNK;
}

static void want_ring_locked(struct mrf_landing *landing,
			     void (*made)(struct mrf_copy *want, const struct mrf_why *why))
{
	if (landing->wanted)
		return;
	landing->wanted = true;
	landing->want =
		(struct mrf_copy){ .kind = MRF_COPY_RING, .over = made, .pool = pool_for(landing) };
	mrf_list_init(&landing->want.node);
	mrf_copies_add_locked(copies_for(landing), &landing->want);
}

struct mrf_place *mrf_landing_find_locked(struct mrf_landing *landing, struct mrf_sge *sge,
					  void (*made)(struct mrf_copy *want,
						       const struct mrf_why *why))
{
	struct mrf_place *place = landing->place;

	mrf_lock_held(&landing->origin->inbox->ep->lock);
	if (landing->used == MRF_STAGE_CHUNKS)
		return NULL;
	if (!landing->ring && !landing->wanted)
		landing->ring = mrf_copies_ring_locked(copies_for(landing), pool_for(landing));
	if (!landing->ring) {
		want_ring_locked(landing, made);
		return NULL;
	}
	while (place->pull)
		place++;
	*sge = (struct mrf_sge){ .addr = (uintptr_t)memory_of(landing, place),
				 .len = MRF_STAGE_CHUNK,
				 .lkey = landing->ring->mr.lkey };
	return place;
}

struct mrf_landing *mrf_landing_made_locked(struct mrf_copy *want)
{
	struct mrf_landing *landing = mrf_container_of(want, struct mrf_landing, want);

	mrf_lock_held(&landing->origin->inbox->ep->lock);
	landing->wanted = false;
	landing->ring = want->ring;
	return landing;
}

void mrf_landing_take_locked(struct mrf_landing *landing, struct mrf_place *place,
			     struct mrf_pull *pull, uint64_t from, uint64_t len)
{
	mrf_lock_held(&landing->origin->inbox->ep->lock);
	landing->used++;
	place->pull = pull;
	place->copy = (struct mrf_copy){
		.kind = MRF_COPY_BYTES, .from = from, .len = len, .host = memory_of(landing, place)
	};
	mrf_list_init(&place->copy.node);
}

void mrf_landing_leave_locked(struct mrf_landing *landing, struct mrf_place *place)
{
	mrf_lock_held(&landing->origin->inbox->ep->lock);
	landing->used--;
	place->pull = NULL;
}

void mrf_landing_rest_locked(struct mrf_landing *landing)
{
	if (!landing || landing->used || !landing->ring)
		return;
	mrf_copies_give_ring_locked(copies_for(landing), pool_for(landing), landing->ring);
	landing->ring = NULL;
}

void mrf_landing_free_locked(struct mrf_landing *landing)
{
	if (!landing)
		return;
	landing->used = 0;
	mrf_landing_rest_locked(landing);
	free(landing);
}
