/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the application hears of an operation that has ended: a completion, if it wants one, and its
 * counter. The operation stays the caller's. ep->lock is held.
 */
#ifndef MRF_EP_TX_COMPLETE_H
#define MRF_EP_TX_COMPLETE_H

#include "ep/model/ep.h"
#include "ep/model/op.h"
#include "obj/cntr.h"

static inline struct mrf_cntr *mrf_complete_cntr_locked(const struct mrf_ep *ep,
							const struct mrf_op *op)
{
	return op->comp_flags & FI_READ ? ep->rd_cntr : ep->wr_cntr;
}

/* Success. Inline for the sake of mrf_chores_done_locked. */
static MRF_ALWAYS_INLINE void mrf_complete_ok_locked(struct mrf_ep *ep, const struct mrf_op *op)
{
	struct mrf_cntr *cntr;

	if (ep->tx_cq && !op->silent)
		mrf_cq_write_own(ep->tx_cq, op->context, op->comp_flags, op->total);
	cntr = mrf_complete_cntr_locked(ep, op);
	if (cntr)
		mrf_cntr_add(cntr, 1);
}

/* Failure: err (FI_E*), reason code and text. Always tells. */
void mrf_complete_error_locked(struct mrf_ep *ep, struct mrf_op *op, int err, int code,
			       const char *text);
/* It was done, but its results could not be stored: why is -FI_ECANCELED or -FI_EFAULT. */
void mrf_complete_undelivered_locked(struct mrf_ep *ep, struct mrf_op *op, int why);

#endif
