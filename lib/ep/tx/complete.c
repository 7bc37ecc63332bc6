/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/log.h"
#include "ep/tx/complete.h"

/* A text that fills its room was cut. */
static void want_whole(const char *text)
{
#ifdef MRF_LOCKRANK
	if (strlen(text) + 1 < MRF_ERR_TEXT)
		return;
	fprintf(stderr, "mrfab: an error text is too long: %s\n", text);
	abort();
#else
	(void)text;
#endif
}

void mrf_complete_error_locked(struct mrf_ep *ep, struct mrf_op *op, int err, int code,
			       const char *text)
{
	struct mrf_cntr *cntr = mrf_complete_cntr_locked(ep, op);

	mrf_lock_held(&ep->lock);
	if (ep->tx_cq) {
		struct mrf_comp_err entry = {
			.comp = { .op_context = op->context,
				  .flags = op->comp_flags,
				  .src_addr = FI_ADDR_NOTAVAIL },
			.err = err,
			.prov_errno = code,
		};

		want_whole(text);
		strncpy(entry.text, text, sizeof(entry.text) - 1);
		mrf_cq_write_err(ep->tx_cq, &entry);
	}
	if (cntr)
		mrf_cntr_adderr(cntr, 1);
}

void mrf_complete_undelivered_locked(struct mrf_ep *ep, struct mrf_op *op, int why)
{
	int code = why == -FI_ECANCELED ? 4260 : 4261;
	const char *text =
		code == 4260 ? "the operation was done, but the region for its results was "
			       "closed meanwhile"
			     : "the operation was done, but its results cannot be stored: the "
			       "local buffer is not mapped or may not be written";

	mrf_lock_held(&ep->lock);
	mrf_refuse(FI_EFAULT, FI_LOG_EP_DATA, code, "%s", text);
	mrf_complete_error_locked(ep, op, FI_EFAULT, code, text);
}
