/* SPDX-License-Identifier: BSD-2-Clause */
/* A fabric: a name, an API version, and the layer above its domains. */
#ifndef MRF_DOMAIN_FABRIC_H
#define MRF_DOMAIN_FABRIC_H

#include <rdma/fabric.h>
#include "domain/leaks.h"
#include "obj/obj.h"

struct fi_mrfab_cache_stats;
struct mrf_eps;

/*
 * The calls into the layer above, passed in when a fabric is opened, so that a domain
 * need not know ep.
 */
struct mrf_domain_up {
	int (*endpoint)(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			void *context);
	void (*cache_stats)(struct mrf_eps *eps, struct fi_mrfab_cache_stats *stats);
	void (*eps_close)(struct mrf_eps *eps); /* before the device is closed */
};

struct mrf_fabric {
	struct fid_fabric fid;
	struct mrf_obj obj;
	const struct mrf_domain_up *up;
	uint32_t api_version;
	char *name;
	struct mrf_leaks_node leaks;
};

/*
 * fi_fabric(3) and its errors. up belongs to the caller and stays valid while the fabric
 * is open.
 */
int mrf_fabric_open(const struct fi_fabric_attr *attr, const struct mrf_domain_up *up,
		    struct fid_fabric **fabric, void *context);

#endif
