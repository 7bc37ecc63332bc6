/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of lib/domain do for each other.
 */
#ifndef MRF_DOMAIN_DOMAIN_INT_H
#define MRF_DOMAIN_DOMAIN_INT_H

#include "domain/domain.h"

/*
 * fi_domain(3). The errors of mrf_domain_check, mrf_domain_address and the device's
 * own.
 */
int mrf_domain_open(struct mrf_fabric *fabric, const struct fi_info *info,
		    struct fid_domain **out, void *context);

/* Can this fi_info be opened on this fabric? -FI_EINVAL, -FI_ENOSYS, with the reason. */
int mrf_domain_check(const struct mrf_fabric *fabric, const struct fi_info *info);

/*
 * The local address to use: src_addr, or without one the first usable address that fits
 * the domain's name and the address format. Port 0. -FI_EINVAL, -FI_ENODEV.
 */
int mrf_domain_address(const struct fi_info *info, union mrf_addr *addr);

/* fi_domain_bind. In domain_bind.c. */
int mrf_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags);

extern struct fi_ops_domain mrf_domain_ops;

#endif
