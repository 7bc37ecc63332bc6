/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an operation needs done without its endpoint's lock, because it may take long:
 *
 *   prepare  The next of many buffers are brought within the device's reach, in place of those
 *            that are done with: between posts. (The first ones are, before the call returns.) Or
 *            the next chunk is copied from or to memory of a device, while others are in flight.
 *   deliver  Results are copied to the application's buffers, which may have to be read in or may
 *            wait for another thread (userfaultfd). Then the operation completes.
 *   drop     Its own registrations are ended, when it has completed.
 *
 * Whoever makes progress does it, one thread at a time for each peer, in the order in which the
 * peer's operations ended; what ends behind results that are still being copied completes behind
 * them. Drops wait for no turn. What would have to wait for memory becomes a job (loop/job.h), so
 * that a thread which reads a queue can serve its own faults; and the agent copies nothing.
 */
#ifndef MRF_EP_TX_CHORES_H
#define MRF_EP_TX_CHORES_H

#include "ep/model/peer.h"

/* A new peer has none. */
void mrf_chores_init(struct mrf_peer *peer);
/*
 * What becomes of an operation that ends (tx/settle.h, which alone calls these two). Success:
 * copies back what op brings, writes a completion if one is wanted, and frees op. If that may take
 * time, or op's peer has operations before it for which this is not done yet, all of it is left to
 * mrf_chores_run: operations to one peer complete in the order in which they end. ep->lock is held.
 */
void mrf_chores_done_locked(struct mrf_ep *ep, struct mrf_op *op);
/*
 * Failure: always writes a completion with op->why, and frees op; in the same order. ep->lock is
 * held.
 */
void mrf_chores_failed_locked(struct mrf_ep *ep, struct mrf_op *op);
/*
 * op is in its peer's queue, and no other is prepared. Either it is the first, has nothing in flight
 * and its byte at pos is not within reach: then it is not looked at again before that has changed.
 * Or mrf_stage_has_step: then what is within reach, of any operation, may be posted meanwhile. Then
 * `then` is called. ep->lock is held.
 */
void mrf_chores_prepare_locked(struct mrf_ep *ep, struct mrf_op *op, mrf_prepared *then);
/*
 * Frees op, which is in no list, and everything it holds, without a completion. No lock is held.
 */
void mrf_chores_free(struct mrf_ep *ep, struct mrf_op *op);

/*
 * Does what there is to do; leaves what other threads are doing of that. The thread that
 * made progress calls it, without any lock, before it does anything else.
 */
void mrf_chores_run(struct mrf_ep *ep);
/* Waits until no thread is at any. For an endpoint that is being closed; no lock is held. */
void mrf_chores_wait(struct mrf_ep *ep);
/* Releases ep->lock, under which operations may have ended; then as mrf_chores_run. */
void mrf_chores_unlock(struct mrf_ep *ep);

#endif
