/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_DOMAIN_DOMAIN_BIND_H
#define MRF_DOMAIN_DOMAIN_BIND_H

#include <rdma/fabric.h>

/*
 * fi_domain_bind(3): -FI_EINVAL, -FI_EBADFLAGS, -FI_EOPBADSTATE (the domain has regions),
 * or the error of starting the thread that registers.
 */
int mrf_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags);

#endif
