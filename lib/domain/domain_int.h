/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/domain: opening a domain, and the calls of an open one. */
#ifndef MRF_DOMAIN_DOMAIN_INT_H
#define MRF_DOMAIN_DOMAIN_INT_H

#include <rdma/fi_domain.h>
#include "base/addr.h"
#include "contract/form.h"
#include "domain/fabric.h"

/* --- the fi_info with which a domain is opened: domain_info.c ----------------------- */

/* Can this fi_info be opened on this fabric? -FI_EINVAL, -FI_ENOSYS, each logged. */
int mrf_domain_check(const struct mrf_fabric *fabric, const struct fi_info *info);

/*
 * Finds the local address to use: src_addr, or without one the first usable address that
 * fits the domain's name and the address format. The port is 0. -FI_EINVAL, -FI_ENODEV.
 */
int mrf_domain_address(const struct fi_info *info, const struct mrf_form *form,
		       union mrf_addr *addr);

/* --- its calls: domain_ops.c -------------------------------------------------------- */

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
