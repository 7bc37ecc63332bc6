/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_rma(3) on an endpoint. */
#ifndef MRF_EP_RMA_H
#define MRF_EP_RMA_H

#include "ep/model/ep.h"

/* Starts an operation, after all checks of fi_rma(3)'s arguments. */
int mrf_rma_submit(struct mrf_ep *ep, const struct mrf_req *req);

#endif
