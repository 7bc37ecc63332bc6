/* SPDX-License-Identifier: BSD-2-Clause */
/* What the frames of messages have in common, those with their bytes and those without. ep->lock is held. */
#ifndef MRF_EP_TX_SEND_FRAME_H
#define MRF_EP_TX_SEND_FRAME_H

#include <rdma/fi_errno.h>
#include "ep/model/peer.h"
#include "ep/msg/reverse.h"
#include "proto/frame.h"

static inline uint32_t mrf_send_frame_flags(const struct mrf_op *op)
{
	return (op->send.cq_data ? MRF_FRAME_CQ_DATA : 0) |
	       (op->send.tagged ? MRF_FRAME_TAGGED : 0) | (op->send.delivers ? MRF_FRAME_ACK : 0);
}

/* What a frame says of op. -FI_EOPNOTSUPP: the target does not take such messages. */
static MRF_ALWAYS_INLINE int mrf_send_frame_fill_locked(struct mrf_peer *peer,
							const struct mrf_op *op,
							struct mrf_frame_message *frame)
{
	uint32_t kind = op->send.tagged ? MRF_LINE_TAGGED : MRF_LINE_MSG;

	mrf_lock_held(&peer->ep->lock);
	if (mrf_unlikely(!(peer->line.kinds & kind)))
		return -FI_EOPNOTSUPP;
	*frame = (struct mrf_frame_message){ .flags = mrf_send_frame_flags(op),
					     .number = (uint32_t)peer->line.posted,
					     .tag = op->send.tag,
					     .cq_data = op->imm.data };
	mrf_reverse_say_locked(peer, frame);
	return 0;
}

/* It has been posted, so that it has its number. */
static MRF_ALWAYS_INLINE void mrf_send_frame_posted_locked(struct mrf_peer *peer, struct mrf_op *op,
							   const struct mrf_frame_message *frame)
{
	mrf_lock_held(&peer->ep->lock);
	if (frame->flags & MRF_FRAME_TAKEN)
		mrf_reverse_said_locked(peer);
	op->imm.posted = true;
	op->psn.from = (uint32_t)peer->line.posted++;
	op->psn.to = op->psn.from + 1;
}

#endif
