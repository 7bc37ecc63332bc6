/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_DOMAIN_DOMAIN_OPS_H
#define MRF_DOMAIN_DOMAIN_OPS_H

#include <rdma/fi_domain.h>

/* The calls of an open domain: queues, address vectors, endpoints and queries. */
extern struct fi_ops_domain mrf_domain_ops;

/*
 * fi_domain_bind(3), of the event queue that reports registrations. Without FI_REG_MR the queue
 * would be the default for events of endpoints, and as there are none, it is only held.
 * -FI_EINVAL, -FI_EBADFLAGS, -FI_EOPBADSTATE (the domain has regions), or the error of starting
 * the thread that registers.
 */
int mrf_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags);

/*
 * fi_open_ops(3) of a domain: FI_MRFAB_CACHE_OPS. -FI_ENOSYS (another name), -FI_EBADFLAGS
 * (flags), -FI_EINVAL (ops is NULL).
 */
int mrf_domain_open_ops(struct fid *fid, const char *name, uint64_t flags, void **ops,
			void *context);

#endif
