/* SPDX-License-Identifier: BSD-2-Clause */
/* The small calls of fi_endpoint(3) and fi_cm(3). */
#ifndef MRF_EP_EP_CALLS_H
#define MRF_EP_EP_CALLS_H

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

extern struct fi_ops_ep mrf_ep_ops;
extern struct fi_ops_cm mrf_ep_cm_ops;

#endif
