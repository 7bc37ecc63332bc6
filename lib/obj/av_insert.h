/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of fi_av(3) that insert addresses; fi_av(3) documents their results. */
#ifndef MRF_OBJ_AV_INSERT_H
#define MRF_OBJ_AV_INSERT_H

#include <rdma/fi_domain.h>

int mrf_av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr,
		  uint64_t flags, void *context);
int mrf_av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *fi_addr,
		     uint64_t flags, void *context);
int mrf_av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service,
		     size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context);

#endif
