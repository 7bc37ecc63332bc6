/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/log.h"
#include "base/page.h"
#include "ep/rx/ring.h"
#include "mr/demand/backs.h"

_Static_assert(MRF_STAGE_OFFSET == MRF_PROTO_RING - 1, "every offset of a ring can be named");

static struct mrf_eps *eps_of(const struct mrf_ring *ring)
{
	return mrf_eps_of(ring->passive->ep->agent);
}

/* --- those that nobody uses ---------------------------------------------------------------- */

void mrf_ring_touch(struct mrf_passive *passive)
{
	struct mrf_ring *ring = passive->ring;

	if (!ring)
		return;
	mrf_list_del(&ring->node);
	mrf_list_add_tail(&ring->node, &eps_of(ring)->rings);
	ring->used = mrf_now_ms();
}

/* Is it the peer's turn to do something? */
static bool is_idle(const struct mrf_ring *ring)
{
	const struct mrf_passive *passive = ring->passive;

	return passive->state == MRF_PASSIVE_UP && passive->first == passive->last;
}

static struct mrf_ring *least_used(const struct mrf_eps *eps)
{
	struct mrf_list *node = mrf_list_first(&eps->rings);

	return node ? mrf_list_entry(node, struct mrf_ring, node) : NULL;
}

/* True: the least recently used ring has not been used for so long, and is taken away. */
static bool give_up_one(struct mrf_eps *eps, int64_t ms)
{
	struct mrf_ring *ring = least_used(eps);
	struct mrf_passive *passive;

	if (!ring || mrf_now_ms() - ring->used < ms || !is_idle(ring))
		return false;
	mrf_info(FI_LOG_EP_CTRL,
		 "a peer that has left memory of a device alone for %lld ms loses its connection",
		 (long long)(mrf_now_ms() - ring->used));
	passive = ring->passive;
	mrf_passive_disconnect(passive);
	mrf_ring_leave(passive);
	return true;
}

static void look_at_rings(struct mrf_timer *timer)
{
	struct mrf_eps *eps = mrf_container_of(timer, struct mrf_eps, ring_look);
	struct mrf_ring *ring;

	while (give_up_one(eps, MRF_RING_MS))
		;
	ring = least_used(eps);
	if (ring && !is_idle(ring))
		mrf_ring_touch(ring->passive);
	ring = least_used(eps);
	if (ring)
		mrf_timer_set(&eps->agent, timer, ring->used + MRF_RING_MS - mrf_now_ms());
}

/* --- their lives --------------------------------------------------------------------------- */

static struct mrf_ring *peer_ring_new(const struct mrf_ep *ep)
{
	const struct mrf_mr_space *space = &ep->domain->space;
	struct mrf_ring *ring = calloc(1, sizeof(*ring));
	void *memory;

	if (!ring)
		return NULL;
	if (posix_memalign(&memory, mrf_page_size(), MRF_PROTO_RING))
		goto err_free;
	/* The peer may read all of it. */
	memset(memory, 0, MRF_PROTO_RING);
	ring->memory = memory;
	ring->holds = 1;
	if (!mrf_room_reg(mrf_mr_port_pd(space, &ep->port), memory, MRF_PROTO_RING, 0,
			  MRF_RIGHT_LOCAL_WRITE | MRF_RIGHT_REMOTE_READ | MRF_RIGHT_REMOTE_WRITE,
			  &ring->mr))
		return ring;
	free(memory);

err_free:
	free(ring);
	return NULL;
}

static void ring_make(struct mrf_passive *passive)
{
	struct mrf_eps *eps = mrf_eps_of(passive->ep->agent);

	if (eps->nrings >= MRF_RINGS && !give_up_one(eps, MRF_RING_GRACE_MS)) {
		mrf_warn(FI_LOG_EP_CTRL, 4169,
			 "%d peers are using memory of devices, so another one is refused",
			 MRF_RINGS);
		return;
	}
	passive->ring = peer_ring_new(passive->ep);
	if (!passive->ring)
		return;
	passive->ring->passive = passive;
	mrf_list_init(&passive->ring->node);
	eps->nrings++;
	eps->ring_look.over = look_at_rings;
	if (!mrf_timer_runs(&eps->ring_look))
		mrf_timer_set(&eps->agent, &eps->ring_look, MRF_RING_MS);
}

uint32_t mrf_ring_rkey(struct mrf_passive *passive)
{
	if (!passive->ring)
		ring_make(passive);
	mrf_ring_touch(passive);
	return passive->ring ? passive->ring->mr.rkey : 0;
}

struct mrf_ring *mrf_ring_get(struct mrf_passive *passive)
{
	passive->ring->holds++;
	return passive->ring;
}

void mrf_ring_put(struct mrf_ring *ring)
{
	if (!ring || --ring->holds)
		return;
	free(ring->memory);
	free(ring);
}

void mrf_ring_leave(struct mrf_passive *passive)
{
	struct mrf_ring *ring = passive->ring;

	if (!ring)
		return;
	mrf_vmr_drop(&ring->mr);
	mrf_list_del(&ring->node);
	eps_of(ring)->nrings--;
	passive->ring = NULL;
	mrf_ring_put(ring);
}
