/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receives: a queue from which all queue pairs made with it (struct mrf_vqp_attr.srq) take
 * the receive for the next SEND, whichever of them it comes over. Each completes on the receive
 * queue of the queue pair that took it; mrf_vcq_poll_from says which one that was.
 *
 * The opener owns the queue, and closes it after the queue pairs that use it. It serialises
 * mrf_vsrq_post; rxe takes receives off meanwhile, and queue pairs come and go, by any thread.
 *
 * What rxe does (Linux 6.1 and 6.12):
 * - It takes receives in the order in which they were posted, and one message takes one.
 * - If there is none, the sender waits and tries again, as often as its connection says (for ever:
 *   verbs/vcm.c), at intervals of some milliseconds. Nothing of that queue pair overtakes; others
 *   go on.
 * - A message longer than the receive breaks both ends: REFUSED at the sender, UNSENT at the
 *   receiver, whose shared receive is used up.
 * - A queue pair that breaks leaves the receives that it has not taken to the others: nothing is
 *   flushed, and only rdma_cm tells of it.
 * - A message that breaks off after its first packet has taken a receive. On 6.1 that comes back as
 *   FLUSHED when the queue pair is put into error (mrf_vconn_disconnect), and is lost if it is
 *   reset before. On 6.12 it is lost: no completion ever comes. Until the queue
 *   pair is destroyed, packets may still be stored in it.
 */
#ifndef MRF_VERBS_VSRQ_H
#define MRF_VERBS_VSRQ_H

#include <stdint.h>

struct mrf_sge;
struct mrf_vpd;
struct mrf_vsrq;

/*
 * A queue for at least depth receives of one piece each. Returns the device's errors; -FI_EINVAL:
 * it makes none that long.
 */
int mrf_vsrq_open(struct mrf_vpd *pd, uint32_t depth, struct mrf_vsrq **srq);
/*
 * What is still posted is forgotten: its memory may be used again. If the kernel keeps the queue,
 * that is logged (MRF-W3496).
 */
void mrf_vsrq_close(struct mrf_vsrq *srq);
/*
 * Posts a receive; sge is read before the call returns. Its memory belongs to the same protection
 * domain as the queue pairs: the kernel looks at that only when a message comes, and then
 * breaks the queue pair. -FI_EAGAIN: the queue is full.
 */
int mrf_vsrq_post(struct mrf_vsrq *srq, uint64_t wr_id, struct mrf_sge *sge);

#endif
