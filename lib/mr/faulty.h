/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of fi_mr(3) in a domain with a plan of faults (base/fault.h), which take the place of mr_ops.h's. */
#ifndef MRF_MR_FAULTY_H
#define MRF_MR_FAULTY_H

#include <rdma/fi_domain.h>

extern const struct fi_ops_mr mrf_faulty_ops;
extern struct fi_ops mrf_faulty_region_ops;

#endif
