/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where parts of long messages go from that are in memory of a device: places in registered memory of
 * the host, to which they are copied (ep/msg/copies.h) when the target has asked for them. A peer has a
 * few, while any are used; its messages share them. Parts are posted in the order in which they were
 * asked for, and copied in this order, one at a time, ahead of what is posted.
 *
 * With ep->lock held.
 */
#ifndef MRF_EP_TX_LIFT_H
#define MRF_EP_TX_LIFT_H

#include "ep/model/peer.h"
#include "ep/msg/copies.h"

/* A part of op is there, or (why) cannot be; op may have failed. The line is the one that it was. */
typedef void mrf_lifted(struct mrf_bulk *bulk, struct mrf_op *op, const struct mrf_why *why);

/* Of a peer. */
struct mrf_lift {
	struct mrf_peer *peer;
	struct mrf_stage_ring *ring; /* NULL: none yet, or no place is used */
	struct mrf_copy copy;	     /* that is made for peer->lifted, or the ring */
	struct mrf_granted *granted; /* which part of it; NULL: its line has been lost since */
	unsigned first, last;	     /* places used, oldest first; only go up */
	mrf_lifted *over;
};

/*
 * Has the next part copied that is asked for, if it has to be, and a place is free; then `over` is
 * called. -FI_EIO: the target asks for what it was not offered; -FI_ENOMEM.
 */
int mrf_lift_next_locked(struct mrf_bulk *bulk, mrf_lifted *over);
/* Where a part is that was copied. */
struct mrf_sge mrf_lift_sge_locked(const struct mrf_peer *peer, const struct mrf_granted *granted);
/* A part that was copied has been sent. */
void mrf_lift_sent_locked(struct mrf_peer *peer);
/* The line is lost, and nothing is sent any more. */
void mrf_lift_lost_locked(struct mrf_peer *peer);
/* The endpoint closes: what has not begun will not. False: a thread is at it. */
bool mrf_lift_abandon_locked(struct mrf_peer *peer);
/* Nothing is copied. Harmless without. */
void mrf_lift_free_locked(struct mrf_peer *peer);

#endif
