/* SPDX-License-Identifier: BSD-2-Clause */
/* The heads of messages, for functions of fake.on_send, and for tests that need them. */
#ifndef HEADS_H
#define HEADS_H

#include "../fake/fake_fabric.h"
#include "ep/model/ep.h"
#include "ep/model/peer.h"
#include "proto/frame.h"

/* The flags of a message with a head or without one; 0: it is no message. */
static inline uint32_t flags_of_message(const uint8_t *msg, size_t len)
{
	struct mrf_frame_message frame;
	struct mrf_frame_bare bare;

	if (fake.imm)
		return mrf_frame_bare_decode(*fake.imm, &bare) ? 0 : bare.flags;
	return mrf_frame_message_decode(msg, len, &frame) ? 0 : frame.flags;
}

/* The next message to this peer has a head, as the first one has. */
static inline void give_next_a_head(struct mrf_ep *ep, fi_addr_t to)
{
	mrf_lock_take(&ep->lock);
	ep->peers[MRF_CONN_LINE].of[to]->line.said = (struct mrf_frame_last){ .any = false };
	mrf_lock_release(&ep->lock);
}

#endif
