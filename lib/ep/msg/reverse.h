/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two lines between the same endpoints, one each way. What has been taken of one of them is said in
 * the frames of the other, so that no note is needed where messages go both ways.
 *
 * The two find each other by the address that a sender claims, or by its ticket, which comes with
 * each count: that is known to the two ends of the counted line alone, so no third endpoint can
 * count for them, whatever address it claims. Whoever is told by mistake takes no notice.
 *
 * A note says the window, too; a frame counts from the window that the peer knows. So while a note is
 * on the way, or one is needed for another reason, frames say nothing. With ep->lock held.
 */
#ifndef MRF_EP_MSG_REVERSE_H
#define MRF_EP_MSG_REVERSE_H

#include "ep/model/ep.h"
#include "ep/model/peer.h"
#include "ep/msg/inbox.h"
#include "proto/frame.h"

/* The line of this side is made, or the peer's is: looks for the other one. */
void mrf_reverse_find_inlet_locked(struct mrf_peer *peer);
void mrf_reverse_find_peer_locked(struct mrf_inlet *inlet);
/* It is freed. */
void mrf_reverse_forget_peer_locked(struct mrf_peer *peer);
void mrf_reverse_forget_inlet_locked(struct mrf_inlet *inlet);

/* Is there something to tell that takes no note? */
static inline bool mrf_reverse_has_news_locked(const struct mrf_inlet *inlet)
{
	const struct mrf_origin *origin = inlet->origin;

	mrf_lock_held(&inlet->inbox->ep->lock);
	return (int64_t)(mrf_origin_taken(origin) - origin->told) > 0 && inlet->vconn &&
	       !inlet->noting && !inlet->wrong && !origin->shut && !origin->smaller &&
	       !origin->unsure && !origin->used_up &&
	       mrf_inbox_has_room_locked(inlet->inbox, origin);
}

/* Adds to a frame what has been taken of the reverse line, if that is news. */
static inline void mrf_reverse_say_locked(const struct mrf_peer *peer,
					  struct mrf_frame_message *frame)
{
	const struct mrf_inlet *inlet = peer->line.reverse;

	mrf_lock_held(&peer->ep->lock);
	if (!inlet || !mrf_reverse_has_news_locked(inlet))
		return;
	frame->flags |= MRF_FRAME_TAKEN;
	frame->taken = (uint32_t)mrf_origin_taken(inlet->origin);
	frame->ticket = inlet->origin->ticket;
}

/* That frame was posted. */
static inline void mrf_reverse_said_locked(struct mrf_peer *peer)
{
	mrf_lock_held(&peer->ep->lock);
	mrf_origin_told(peer->line.reverse->origin);
}

/* The line of this side is lost, and frames with it: what they said is said in a note. */
void mrf_reverse_lost_locked(struct mrf_peer *peer);
/* A frame has come that says how much was taken of a line, in so many bits. */
void mrf_reverse_hear_locked(struct mrf_inlet *inlet, const struct mrf_frame_message *frame,
			     unsigned bits);

#endif
