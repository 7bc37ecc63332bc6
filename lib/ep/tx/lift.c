/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "ep/link/conn.h"
#include "ep/msg/inbox.h"
#include "ep/tx/lift.h"
#include "ep/tx/offered.h"
#include "ep/tx/settle.h"
#include "verbs/vqp.h"

static struct mrf_copies *copies_of(const struct mrf_peer *peer)
{
	return &peer->ep->inbox->copies;
}

static uint8_t *place_at(const struct mrf_lift *lift, unsigned i)
{
	return (uint8_t *)lift->ring->memory + i % MRF_STAGE_CHUNKS * MRF_STAGE_CHUNK;
}

/* --- memory --------------------------------------------------------------------------- */

/* -FI_ENOMEM. */
static int need_lift_locked(struct mrf_peer *peer)
{
	if (peer->lift)
		return 0;
	peer->lift = calloc(1, sizeof(*peer->lift));
	if (!peer->lift)
		return -FI_ENOMEM;
	peer->lift->peer = peer;
	mrf_list_init(&peer->lift->copy.node);
	return 0;
}

static void give_ring_locked(struct mrf_peer *peer)
{
	struct mrf_lift *lift = peer->lift;

	if (!lift || !lift->ring || peer->lifted || lift->first != lift->last)
		return;
	mrf_copies_give_ring_locked(copies_of(peer), &peer->ep->buf.going, lift->ring);
	lift->ring = NULL;
}

/* --- a part --------------------------------------------------------------------------- */

/* It is posted when all parts before it are, and each of these has to be copied before. */
static struct mrf_granted *next_part_locked(struct mrf_bulk *bulk, struct mrf_op **op)
{
	unsigned i;

	for (i = bulk->first; i != bulk->last; i++) {
		struct mrf_granted *granted = &bulk->granted[i % MRF_GRANTS];

		if (granted->place)
			continue;
		*op = mrf_offered_find_locked(bulk->conn->peer, granted->number);
		if (*op && (*op)->local.kind == MRF_LOCAL_APART)
			return granted;
	}
	return NULL;
}

static bool was_offered(const struct mrf_op *op, const struct mrf_granted *granted)
{
	return granted->length <= MRF_STAGE_CHUNK && granted->length <= op->total &&
	       granted->offset <= op->total - granted->length;
}

static void part_over_locked(struct mrf_copy *copy, const struct mrf_why *why)
{
	struct mrf_lift *lift = mrf_container_of(copy, struct mrf_lift, copy);
	struct mrf_granted *granted = lift->granted;
	struct mrf_peer *peer = lift->peer;
	struct mrf_op *op = peer->lifted;

	mrf_lock_held(&peer->ep->lock);
	peer->lifted = NULL;
	op->chore = 0;
	if (copy->kind == MRF_COPY_RING)
		lift->ring = copy->ring;
	else if (granted && !why)
		granted->place = (lift->last - 1) % MRF_STAGE_CHUNKS + 1;
	if (granted) {
		lift->over(peer->conn->bulk, op, why);
		return;
	}
	give_ring_locked(peer);
	mrf_settle_locked(op);
	/* The next line may have come meanwhile, or the peer have waited for this to be freed. */
	mrf_conn_kick_locked(peer);
}

static void begin_part_locked(struct mrf_lift *lift, struct mrf_op *op, struct mrf_granted *granted)
{
	struct mrf_copy *copy = &lift->copy;

	*copy = (struct mrf_copy){ .kind = MRF_COPY_RING,
				   .pool = &lift->peer->ep->buf.going,
				   .over = part_over_locked };
	mrf_list_init(&copy->node);
	if (lift->ring) {
		copy->kind = MRF_COPY_BYTES;
		copy->local = &op->local;
		copy->from = granted->offset;
		copy->len = granted->length;
		copy->host = place_at(lift, lift->last++);
	}
	lift->granted = granted;
	lift->peer->lifted = op;
	op->chore = 1;
	mrf_copies_add_locked(copies_of(lift->peer), copy);
}

int mrf_lift_next_locked(struct mrf_bulk *bulk, mrf_lifted *over)
{
	struct mrf_peer *peer = bulk->conn->peer;
	struct mrf_granted *granted;
	struct mrf_op *op;

	mrf_lock_held(&peer->ep->lock);
	if (peer->lifted)
		return 0;
	granted = next_part_locked(bulk, &op);
	if (!granted) {
		give_ring_locked(peer);
		return 0;
	}
	if (!was_offered(op, granted))
		return -FI_EIO;
	if (need_lift_locked(peer))
		return -FI_ENOMEM;
	if (peer->lift->last - peer->lift->first == MRF_STAGE_CHUNKS)
		return 0;
	if (!peer->lift->ring)
		peer->lift->ring = mrf_copies_ring_locked(copies_of(peer), &peer->ep->buf.going);
	peer->lift->over = over;
	begin_part_locked(peer->lift, op, granted);
	return 0;
}

struct mrf_sge mrf_lift_sge_locked(const struct mrf_peer *peer, const struct mrf_granted *granted)
{
	const struct mrf_lift *lift = peer->lift;

	mrf_lock_held(&peer->ep->lock);
	return (struct mrf_sge){ .addr = (uintptr_t)place_at(lift, granted->place - 1),
				 .len = granted->length,
				 .lkey = lift->ring->mr.lkey };
}

void mrf_lift_sent_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	peer->lift->first++;
}

/* --- the end -------------------------------------------------------------------------- */

void mrf_lift_lost_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	if (!peer->lift)
		return;
	peer->lift->granted = NULL;
	peer->lift->first = peer->lift->last = 0;
	give_ring_locked(peer);
}

bool mrf_lift_abandon_locked(struct mrf_peer *peer)
{
	struct mrf_op *op = peer->lifted;

	mrf_lock_held(&peer->ep->lock);
	if (!op)
		return true;
	if (!mrf_copies_drop_locked(copies_of(peer), &peer->lift->copy))
		return false;
	peer->lifted = NULL;
	op->chore = 0;
	/* It has failed, and waited for this. */
	if (!op->out && !op->queued)
		mrf_list_add_tail(&op->node, &peer->redo);
	return true;
}

void mrf_lift_free_locked(struct mrf_peer *peer)
{
	mrf_lift_lost_locked(peer);
	free(peer->lift);
	peer->lift = NULL;
}
