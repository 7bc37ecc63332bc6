/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening an endpoint. */
#ifndef MRF_EP_EP_OPEN_H
#define MRF_EP_EP_OPEN_H

#include "ep/model/ep.h"

int mrf_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

#endif
