/* SPDX-License-Identifier: BSD-2-Clause */
/* The address of an endpoint: fi_getname and fi_setname of fi_cm(3). Any thread, no lock held. */
#ifndef MRF_EP_EP_NAME_H
#define MRF_EP_EP_NAME_H

#include <rdma/fabric.h>

/* As the page says. -FI_EINVAL; -FI_ETOOSMALL, which is not logged. */
int mrf_ep_getname(fid_t fid, void *addr, size_t *addrlen);
/*
 * Until it is enabled, the endpoint can be moved to another port: -FI_EOPBADSTATE. It has the host of
 * its domain: -FI_EADDRNOTAVAIL. -FI_EINVAL, and errors of the kernel about the port; in each case the
 * endpoint keeps its address.
 */
int mrf_ep_setname(fid_t fid, void *addr, size_t addrlen);

#endif
