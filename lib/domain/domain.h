/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A domain owns the device, its protection domains, the key space (a struct mrf_mr_space)
 * and the agent thread, which answers peers and drives connections, so that an
 * application that only registers memory need not call anything.
 */
#ifndef MRF_DOMAIN_DOMAIN_H
#define MRF_DOMAIN_DOMAIN_H

#include <rdma/fi_domain.h>
#include "base/compiler.h"
#include "contract/form.h"
#include "contract/promise.h"
#include "domain/fabric.h"
#include "domain/leaks.h"
#include "mr/mr.h"
#include "obj/av.h"
#include "obj/obj.h"

struct mrf_domain {
	struct fid_domain fid;
	struct mrf_obj obj;
	struct mrf_hold parent; /* the fabric */
	struct mrf_fabric *fabric;
	int mr_mode; /* as given at opening, like av_type */
	enum fi_av_type av_type;
	union mrf_addr addr; /* local address that all endpoints use (port 0) */
	struct mrf_vdev *vdev;
	struct mrf_vpd *pd; /* isolation class "default" */
	struct mrf_mr_space space;
	const struct mrf_promise *promise; /* what endpoints may do; immutable */
	const struct mrf_form *form;	   /* of addresses, for the application; immutable */
	struct mrf_leaks_node leaks;
	uint64_t told;	      /* for mrf_log_due: when all that is open on it was named */
	struct mrf_hold eq;   /* on the bound event queue; guarded by lock */
	struct mrf_eps *eps;  /* of ep/, from its first endpoint on; guarded by lock */
	struct mrf_lock lock; /* rank AGENT */
};

/*
 * fi_domain(3). Fails like mrf_domain_check and mrf_domain_address, or with the device's
 * error.
 */
int mrf_domain_open(struct mrf_fabric *fabric, const struct fi_info *info, struct fid_domain **out,
		    void *context);

static inline struct mrf_domain *mrf_domain_from_fid(struct fid_domain *fid)
{
	return mrf_container_of(fid, struct mrf_domain, fid);
}

static inline struct mrf_mr_space *mrf_domain_mr_space(struct fid *domain)
{
	return &mrf_container_of(domain, struct mrf_domain, fid.fid)->space;
}

#endif
