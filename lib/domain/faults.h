/* SPDX-License-Identifier: BSD-2-Clause */
/* What of a plan of faults (base/fault.h) is the domain's: the plan itself, and its completion queues. */
#ifndef MRF_DOMAIN_FAULTS_H
#define MRF_DOMAIN_FAULTS_H

#include <rdma/fi_eq.h>

struct mrf_fault_plan;

/*
 * The plan of FI_MRFAB_FAULT, which the caller frees; NULL if there is none. -FI_EINVAL (it is none that
 * is understood), -FI_ENOMEM, -FI_EIO; each is logged.
 */
int mrf_faults_take(struct mrf_fault_plan **plan);
/* Of a queue that was just opened on a domain with a plan: reading it fails on order, and it may be full. */
void mrf_faults_of_cq(const struct mrf_fault_plan *plan, struct fid_cq *cq);

#endif
