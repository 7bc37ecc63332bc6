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

/*
 * Is the target to do something for the peer? Not if nothing can be told to the peer: its queue
 * pair is in error, or it takes in no answers.
 */
static bool is_busy(const struct mrf_ring *ring)
{
	const struct mrf_passive *passive = ring->passive;

	return passive->state == MRF_PASSIVE_UP && passive->first != passive->last &&
	       (passive->away || mrf_passive_has_room(passive));
}

static struct mrf_ring *ring_at(struct mrf_list *node)
{
	return mrf_list_entry(node, struct mrf_ring, node);
}

/* NULL: there is none. */
static struct mrf_ring *least_used(const struct mrf_eps *eps)
{
	struct mrf_list *node = mrf_list_first(&eps->rings);

	return node ? ring_at(node) : NULL;
}

static int64_t unused_for(const struct mrf_ring *ring)
{
	return mrf_now_ms() - ring->used;
}

static void give_up(struct mrf_ring *ring)
{
	struct mrf_passive *passive = ring->passive;

	mrf_info(FI_LOG_EP_CTRL,
		 "a peer that has not used device memory for %lld ms loses its connection",
		 (long long)unused_for(ring));
	mrf_passive_disconnect(passive);
	mrf_ring_leave(passive);
}

static void look_at_rings(struct mrf_timer *timer)
{
	struct mrf_eps *eps = mrf_container_of(timer, struct mrf_eps, ring_look);
	struct mrf_ring *ring;

	while ((ring = least_used(eps)) && unused_for(ring) >= MRF_RING_MS) {
		if (is_busy(ring))
			mrf_ring_touch(ring->passive);
		else
			give_up(ring);
	}
	if (ring)
		mrf_timer_set(&eps->agent, timer, MRF_RING_MS - unused_for(ring));
}

/* --- room for one more ------------------------------------------------------------------------ */

static bool is_from(const struct mrf_ring *ring, const union mrf_addr *addr)
{
	return mrf_addr_same_host(&addr->sa, &ring->passive->addr.sa);
}

static unsigned count_from(const struct mrf_eps *eps, const union mrf_addr *addr)
{
	unsigned n = 0;

	mrf_list_each (node, &eps->rings)
		n += is_from(ring_at(node), addr);
	return n;
}

/*
 * Takes one away that has been left alone for long enough, and with addr is of a peer there. False:
 * there is none.
 */
static bool make_room(struct mrf_eps *eps, const union mrf_addr *addr)
{
	mrf_list_each (node, &eps->rings) {
		struct mrf_ring *ring = ring_at(node);

		if (unused_for(ring) < MRF_RING_GRACE_MS)
			return false;
		if (is_busy(ring) || (addr && !is_from(ring, addr)))
			continue;
		give_up(ring);
		return true;
	}
	return false;
}

static bool within_quota_of_rings(struct mrf_eps *eps, const union mrf_addr *addr)
{
	char text[MRF_ADDR_TEXT];

	if (count_from(eps, addr) < MRF_RINGS_PER_ADDR || make_room(eps, addr))
		return true;
	mrf_warn(FI_LOG_EP_CTRL, 4170,
		 "%d peers at %s are using device memory, so another one there is refused",
		 MRF_RINGS_PER_ADDR, mrf_addr_text(addr, text, sizeof(text)));
	return false;
}

static bool is_room(struct mrf_eps *eps)
{
	if (eps->nrings < MRF_RINGS || make_room(eps, NULL))
		return true;
	mrf_warn(FI_LOG_EP_CTRL, 4169,
		 "%d peers are using device memory, so another one is refused", MRF_RINGS);
	return false;
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

	if (!within_quota_of_rings(eps, &passive->addr) || !is_room(eps))
		return;
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
	if (!ring->kept)
		free(ring->memory);
	free(ring);
}

void mrf_ring_leave(struct mrf_passive *passive)
{
	struct mrf_ring *ring = passive->ring;

	if (!ring)
		return;
	if (!mrf_vmr_drop(&ring->mr))
		ring->kept = true;
	mrf_list_del(&ring->node);
	eps_of(ring)->nrings--;
	passive->ring = NULL;
	mrf_ring_put(ring);
}
