/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extensions of libmrfab alone: operations that fi_open_ops finds by name. Described in
 * mrfab(7).
 */
#ifndef FI_EXT_MRFAB_H
#define FI_EXT_MRFAB_H

#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* fi_open_ops of a domain: struct fi_mrfab_ops_cache, valid until the domain is closed */
#define FI_MRFAB_CACHE_OPS "mrfab_cache_ops"

/* The cache of local buffers of a domain, since the domain was opened. */
struct fi_mrfab_cache_stats {
	uint64_t hits;		/* buffers that were registered already */
	uint64_t misses;	/* buffers that were not */
	uint64_t evictions;	/* registrations ended for want of room */
	uint64_t invalidations; /* registrations ended because their memory changed */
	uint64_t entries;	/* registrations that are kept now */
	uint64_t bytes;		/* that they cover */
};

struct fi_ops_mrfab_cache {
	size_t size; /* of this structure, in the library */
	/* 0 or -FI_EINVAL; any thread; all 0 before the first endpoint is opened */
	int (*stats)(struct fid_domain *domain, struct fi_mrfab_cache_stats *stats);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_MRFAB_H */
