/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What follows when a part of an operation has come back, or when it is to fail: the table of
 * ep/model/account.h. Operations end here and nowhere else. ep->lock held; op may be gone
 * afterwards.
 */
#ifndef MRF_EP_TX_SETTLE_H
#define MRF_EP_TX_SETTLE_H

#include "ep/model/account.h"
#include "ep/model/peer.h"
#include "ep/model/why.h"
#include "ep/tx/chores.h"

/* The rest of mrf_settle_locked. */
void mrf_settle_special_locked(struct mrf_op *op);

/* Something of op has come back, or all of it is done. */
static inline void mrf_settle_locked(struct mrf_op *op)
{
	mrf_lock_held(&op->peer->ep->lock);
	if (op->out)
		return;
	/* What is in no queue has posted everything. */
	if (mrf_unlikely(op->next || op->acked != op->total || op->type->done)) {
		mrf_settle_special_locked(op);
		return;
	}
	mrf_account_close_locked(op);
	mrf_chores_done_locked(op->peer->ep, op);
}

/* What is not done of op is posted again when nothing of it is out. op is queued. */
void mrf_settle_again_locked(struct mrf_op *op);
/*
 * op cannot go on: it fails when nothing of it is out, for this reason or the one that it was
 * given before. Nobody waits for its replies any more.
 */
void mrf_settle_fail_locked(struct mrf_op *op, const struct mrf_why *why);

#endif
