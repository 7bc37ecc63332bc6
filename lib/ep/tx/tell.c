/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "base/strict.h"
#include "ep/tx/order.h"
#include "ep/tx/tell.h"

void mrf_tell_error_locked(struct mrf_ep *ep, struct mrf_op *op)
{
	struct mrf_cntr *cntr = mrf_tell_cntr_locked(ep, op);

	mrf_lock_held(&ep->lock);
	/* Nobody has started it: the message that waits for it goes on. */
	if (mrf_order_is_sync(op))
		return;
	mrf_tell_unused_locked(ep, op);
	/* It has its line in the log. */
	if (ep->domain->space.careful)
		mrf_strict_stop(op->why.err);
	if (ep->tx_cq) {
		struct mrf_comp_err entry = {
			.comp = { .op_context = op->context,
				  .flags = op->comp_flags,
				  .src_addr = FI_ADDR_NOTAVAIL },
			.err = op->why.err,
			.prov_errno = op->why.code,
		};

#ifdef MRF_LOCKRANK
		if (strlen(op->why.text) + 1 >= MRF_ERR_TEXT) {
			fprintf(stderr, "mrfab: an error text was cut: %s\n", op->why.text);
			abort();
		}
#endif
		snprintf(entry.text, sizeof(entry.text), "%s", op->why.text);
		mrf_cq_write_err(ep->tx_cq, &entry);
	}
	if (cntr)
		mrf_cntr_adderr(cntr, 1);
}

void mrf_tell_undelivered_locked(struct mrf_ep *ep, struct mrf_op *op, int why)
{
	int code = why == -FI_ECANCELED ? 4260 : 4261;
	const char *text =
		code == 4260 ? "the operation was done, but the region for its results was "
			       "closed meanwhile"
			     : "the operation was done, but its results cannot be stored: the "
			       "local buffer is not mapped or may not be written";

	mrf_lock_held(&ep->lock);
	mrf_refuse(FI_EFAULT, FI_LOG_EP_DATA, code, "%s", text);
	mrf_why_set(&op->why, FI_EFAULT, code, "%s", text);
	mrf_tell_error_locked(ep, op);
}
