/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an endpoint of ours does not offer: complete operation tables in which every call answers
 * -FI_ENOSYS after one line that names the call and the capability it would need. Constant,
 * shared by all endpoints; libfabric's endpoint structure wants them without const.
 */
#ifndef MRF_EP_NONE_H
#define MRF_EP_NONE_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

extern struct fi_ops_msg mrf_no_msg;
extern struct fi_ops_tagged mrf_no_tagged;
extern struct fi_ops_atomic mrf_no_atomic;
extern struct fi_ops_collective mrf_no_collective;

#endif
