/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What follows when a part of an operation has come back, or when it is to fail: the table of
 * ep/model/account.h. Operations end here and nowhere else. ep->lock held; op may be gone
 * afterwards.
 */
#ifndef MRF_EP_TX_SETTLE_H
#define MRF_EP_TX_SETTLE_H

#include "ep/model/peer.h"
#include "ep/model/why.h"

/* Something of op has come back, or all of it is done. */
void mrf_settle_locked(struct mrf_op *op);
/* What is not done of op is posted again when nothing of it is out. op is queued. */
void mrf_settle_again_locked(struct mrf_op *op);
/*
 * op cannot go on: it fails when nothing of it is out, for this reason or the one that it was
 * given before. Nobody waits for its replies any more.
 */
void mrf_settle_fail_locked(struct mrf_op *op, const struct mrf_why *why);

#endif
