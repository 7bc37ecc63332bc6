/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that are offered (op->offered, in peer->offered by op->send.await, in the order of their
 * numbers): the target asks for their bytes, or will. offer_op.h has what that is about. ep->lock is
 * held.
 */
#ifndef MRF_EP_TX_OFFERED_H
#define MRF_EP_TX_OFFERED_H

#include "ep/model/peer.h"

/* op is offered from now on. */
void mrf_offered_await_locked(struct mrf_peer *peer, struct mrf_op *op);
/* It is not any more; harmless if it is not. */
void mrf_offered_unawait_locked(struct mrf_op *op);
/* NULL: it has ended. */
struct mrf_op *mrf_offered_find_locked(struct mrf_peer *peer, uint64_t number);
/* The target wants no more of op, which ends when nothing of it is out. */
void mrf_offered_end_locked(struct mrf_op *op);
/* op fails, or all that are offered. */
void mrf_offered_fail_locked(struct mrf_op *op, const struct mrf_why *why);
void mrf_offered_fail_all_locked(struct mrf_peer *peer, const struct mrf_why *why);

#endif
