/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes of a device's memory: which chunk is copied next (buf/stage.h). While the first operation in
 * its peer's queue is posted, and its bytes are transferred, the device copies those of the next ones.
 * Only what nothing before it can change is copied ahead: no operation behind a fence.
 */
#ifndef MRF_EP_TX_AHEAD_H
#define MRF_EP_TX_AHEAD_H

#include "ep/model/peer.h"

/*
 * The first in the peer's queue that is not wholly posted (mrf_op.node), whose turn it is: those before
 * it await replies. NULL: there is none. ep->lock is held.
 */
struct mrf_list *mrf_ahead_next_locked(const struct mrf_peer *peer);
/*
 * Has a thread copy the next chunk of op, of which it has just copied one or whose turn it is, or else
 * one of an operation behind it, if there is one to be copied and no thread is at another; then `then`
 * is called. ep->lock is held.
 */
void mrf_ahead_copy_locked(struct mrf_peer *peer, struct mrf_op *op, mrf_prepared *then);
/*
 * What was to be copied, or brought within reach, could not be. True: it was not op's turn, and that will
 * be tried again then. ep->lock is held.
 */
bool mrf_ahead_tries_again_locked(const struct mrf_peer *peer, struct mrf_op *op);

#endif
