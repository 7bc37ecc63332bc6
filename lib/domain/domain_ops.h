/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_DOMAIN_DOMAIN_OPS_H
#define MRF_DOMAIN_DOMAIN_OPS_H

#include <rdma/fi_domain.h>

/* The calls of an open domain: queues, address vectors, endpoints and queries. */
extern struct fi_ops_domain mrf_domain_ops;

#endif
