/* SPDX-License-Identifier: BSD-2-Clause */
/* Evaluates the fi_info with which a domain is opened. */
#ifndef MRF_DOMAIN_DOMAIN_INFO_H
#define MRF_DOMAIN_DOMAIN_INFO_H

#include "domain/fabric.h"
#include "obj/addr.h"

/* Can this fi_info be opened on this fabric? -FI_EINVAL, -FI_ENOSYS, each logged. */
int mrf_domain_check(const struct mrf_fabric *fabric, const struct fi_info *info);

/*
 * Finds the local address to use: src_addr, or without one the first usable address that
 * fits the domain's name and the address format. The port is 0. -FI_EINVAL, -FI_ENODEV.
 */
int mrf_domain_address(const struct fi_info *info, union mrf_addr *addr);

#endif
