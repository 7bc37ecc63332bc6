/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking at messages that have come (FI_PEEK), setting one aside for the receive that will follow
 * (FI_CLAIM), and dropping one (FI_DISCARD), by fi_tagged(3).
 */
#ifndef MRF_EP_MSG_PEEK_H
#define MRF_EP_MSG_PEEK_H

#include "ep/msg/inbox.h"
#include "ep/msg/recv.h"

/*
 * Looks for the message that a receive with these arguments would take; its buffers are not looked
 * at. The entry is in the queue when this returns: what the message is, or FI_ENOMSG. flags: FI_PEEK,
 * and perhaps FI_CLAIM or FI_DISCARD. No lock is held.
 */
void mrf_peek(struct mrf_ep *ep, const struct mrf_recv_req *req, uint64_t flags);
/*
 * Drops the message that was claimed with this context; its entry is in the queue when this
 * returns. -FI_EINVAL: there is none. No lock is held.
 */
int mrf_peek_discard(struct mrf_ep *ep, const struct mrf_recv_req *req);

#endif
