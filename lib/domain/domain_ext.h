/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_DOMAIN_DOMAIN_EXT_H
#define MRF_DOMAIN_DOMAIN_EXT_H

#include <rdma/fabric.h>

/*
 * fi_open_ops(3) of a domain: FI_MRFAB_CACHE_OPS. -FI_ENOSYS (another name), -FI_EBADFLAGS
 * (flags), -FI_EINVAL (ops is NULL).
 */
int mrf_domain_open_ops(struct fid *fid, const char *name, uint64_t flags, void **ops,
			void *context);

#endif
