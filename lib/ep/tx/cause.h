/* SPDX-License-Identifier: BSD-2-Clause */
/* How operations end that cannot go on: what the completion says; ep->lock held. */
#ifndef MRF_EP_TX_CAUSE_H
#define MRF_EP_TX_CAUSE_H

#include "ep/model/peer.h"

/* Has op come back flushed each time that it was tried? Then nothing else is known of it. */
bool mrf_cause_is_lasting(const struct mrf_op *op, enum mrf_wc_status status);
/*
 * op fails, because of this status (not OK) of a work request or a request. doubt: what that means
 * for it, behind the reason; "" if nothing has to be said.
 */
void mrf_cause_fail_locked(struct mrf_op *op, enum mrf_wc_status status, const char *doubt);
/* The same, with what is known of such an operation: it may have been done, or not. */
void mrf_cause_fail_doubt_locked(struct mrf_op *op, enum mrf_wc_status status);

#endif
