/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fabric and domain. A fabric is a name and an API version. A domain owns the device, its
 * protection domains, the key space (a struct mrf_mr_space) and the agent thread, which
 * answers peers and drives connections, so that an application that only registers memory
 * need not call anything.
 */
#ifndef MRF_DOMAIN_DOMAIN_H
#define MRF_DOMAIN_DOMAIN_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include "base/compiler.h"
#include "mr/mr.h"
#include "obj/av.h"
#include "obj/obj.h"

struct mrf_agent;

/* What lies above the domain, which need not know ep: who opens a fabric says it. */
struct mrf_domain_up {
	int (*endpoint)(struct fid_domain *domain, struct fi_info *info,
			struct fid_ep **ep, void *context);
	void (*agent_stop)(struct mrf_agent *agent); /* before the device is closed */
};

struct mrf_fabric {
	struct fid_fabric fid;
	struct mrf_obj obj;
	const struct mrf_domain_up *up;
	uint32_t api_version;
	char *name;
};

struct mrf_domain {
	struct fid_domain fid;
	struct mrf_obj obj;
	struct mrf_hold parent; /* the fabric */
	struct mrf_fabric *fabric;
	int mr_mode;	     /* as it was opened with */
	union mrf_addr addr; /* local address that all endpoints use (port 0) */
	struct mrf_vdev *vdev;
	struct mrf_vpd *pd; /* isolation class "default" */
	struct mrf_mr_space space;
	struct mrf_hold eq;	 /* what fi_domain_bind has bound it to; guarded by lock */
	struct mrf_agent *agent; /* ep/'s: started by the first endpoint, see below */
	struct mrf_lock lock;	 /* rank AGENT: guards agent being started, eq */
};

/* Open calls; the errors of fi_fabric(3), fi_domain(3). */
int mrf_fabric_open(const struct fi_fabric_attr *attr, const struct mrf_domain_up *up,
		    struct fid_fabric **fabric, void *context);

static inline struct mrf_domain *mrf_domain_from_fid(struct fid_domain *fid)
{
	return mrf_container_of(fid, struct mrf_domain, fid);
}

static inline struct mrf_mr_space *mrf_domain_mr_space(struct fid *domain)
{
	return &mrf_container_of(domain, struct mrf_domain, fid.fid)->space;
}

#endif
