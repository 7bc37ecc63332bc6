/* SPDX-License-Identifier: BSD-2-Clause */
/* What the application hears of an operation that has ended: queue and counter; ep->lock held. */
#ifndef MRF_EP_TX_TELL_H
#define MRF_EP_TX_TELL_H

#include "base/compiler.h"
#include "buf/uses.h"
#include "ep/model/ep.h"
#include "obj/cq.h"

/* The counter of its kind; NULL: none is bound. */
static inline struct mrf_cntr *mrf_tell_cntr_locked(const struct mrf_ep *ep,
						    const struct mrf_op *op)
{
	if (op->comp_flags & FI_READ)
		return ep->rd_cntr;
	if (op->comp_flags & FI_SEND)
		return ep->snd_cntr;
	return op->comp_flags & FI_WRITE ? ep->wr_cntr : NULL;
}

/* Before anybody learns that it has ended: its regions may be closed now. */
static MRF_ALWAYS_INLINE void mrf_tell_unused_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	if (mrf_likely(!op->uses))
		return;
	op->uses = false;
	mrf_uses_end(&ep->buf, &op->local);
}

/* Success. Inline for the sake of mrf_chores_done_locked and atomic operations. */
static MRF_ALWAYS_INLINE void mrf_tell_ok_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	struct mrf_cntr *cntr;

	mrf_tell_unused_locked(ep, op);
	if (ep->tx_cq && !op->silent)
		mrf_cq_write_own(ep->tx_cq, op->context, op->comp_flags, op->total);
	cntr = mrf_tell_cntr_locked(ep, op);
	if (cntr)
		mrf_cntr_add(cntr, 1);
}

/* Failure, with op->why. Always tells. */
void mrf_tell_error_locked(struct mrf_ep *ep, struct mrf_op *op);
/* It was done, but its results could not be stored: why is -FI_ECANCELED or -FI_EFAULT. */
void mrf_tell_undelivered_locked(struct mrf_ep *ep, struct mrf_op *op, int why);

#endif
