/* SPDX-License-Identifier: BSD-2-Clause */
/* What the application hears of its receives: their completions. With ep->lock held. */
#ifndef MRF_EP_MSG_REPORT_H
#define MRF_EP_MSG_REPORT_H

#include "ep/model/ep.h"
#include "ep/msg/deliver.h"

/* The receive has the message, or (why) it fails. */
void mrf_report_end_locked(struct mrf_ep *ep, const struct mrf_recv *recv,
			   const struct mrf_message *message, const struct mrf_why *why);
/* The receive fails; message: with as much of it as there is room for, or NULL. */
void mrf_report_error_locked(struct mrf_ep *ep, const struct mrf_recv *recv,
			     const struct mrf_message *message, int err, int code,
			     const char *text);
/* What a completion says of the message's sender: FI_SOURCE. */
fi_addr_t mrf_report_source(const struct mrf_ep *ep, const struct mrf_message *message);

#endif
