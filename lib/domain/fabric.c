/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "base/log.h"
#include "contract/limits.h"
#include "domain/domain.h"
#include "domain/fabric.h"
#include "obj/cntr.h"
#include "obj/cq.h"
#include "obj/eq.h"

static struct mrf_fabric *to_fabric(const struct fid *fid)
{
	return mrf_container_of(fid, struct mrf_fabric, fid.fid);
}

static void describe_fabric(const struct fid *fid, char *buf, size_t len)
{
	const struct mrf_fabric *fabric = to_fabric(fid);

	snprintf(buf, len, "%s", fabric->name ? fabric->name : "no name");
}

static int fabric_close(struct fid *fid)
{
	struct mrf_fabric *fabric = to_fabric(fid);
	int ret = mrf_obj_busy(&fabric->obj);

	if (ret)
		return ret;
	mrf_leaks_closed(&fabric->leaks);
	mrf_obj_fini(&fabric->obj);
	free(fabric->name);
	free(fabric);
	return 0;
}

static int open_domain(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **domain,
		       void *context)
{
	struct mrf_fabric *fabric = to_fabric(&fid->fid);
	int ret = mrf_obj_check(&fabric->obj, "fi_domain");

	return ret ? ret : mrf_domain_open(fabric, info, domain, context);
}

static int open_domain2(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **domain,
			uint64_t flags, void *context)
{
	if (flags & FI_PEER)
		return mrf_refuse(FI_ENOSYS, FI_LOG_FABRIC, 2101,
				  "fi_domain2: flags=%#lx: FI_PEER is not offered", flags);
	if (flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_FABRIC, 2102,
				  "fi_domain2: flags=%#lx: there is no such flag", flags);
	return open_domain(fid, info, domain, context);
}

static int open_passive_ep(struct fid_fabric *fid, struct fi_info *info, struct fid_pep **pep,
			   void *context)
{
	(void)fid, (void)info, (void)pep, (void)context;
	return mrf_refuse(FI_ENOSYS, FI_LOG_FABRIC, 2103,
			  "fi_passive_ep: only FI_EP_RDM endpoints are offered, which connect "
			  "by themselves");
}

static int open_eq(struct fid_fabric *fid, struct fi_eq_attr *attr, struct fid_eq **eq,
		   void *context)
{
	struct mrf_obj *fabric = &to_fabric(&fid->fid)->obj;
	int ret = mrf_obj_check(fabric, "fi_eq_open");

	return ret ? ret : mrf_eq_open(fabric, attr, eq, context);
}

static int open_wait(struct fid_fabric *fid, struct fi_wait_attr *attr, struct fid_wait **waitset)
{
	(void)fid, (void)attr, (void)waitset;
	return mrf_refuse(FI_ENOSYS, FI_LOG_FABRIC, 2104,
			  "fi_wait_open: wait sets are not offered: open queues and "
			  "counters with FI_WAIT_FD");
}

static int trywait_one(struct fid *fid)
{
	switch (fid ? fid->fclass : FI_CLASS_UNSPEC) {
	case FI_CLASS_CQ:
		return mrf_cq_trywait(mrf_cq_from_fid(fid));
	case FI_CLASS_CNTR:
		return mrf_cntr_trywait(mrf_cntr_from_fid(fid));
	case FI_CLASS_EQ:
		return mrf_eq_trywait(mrf_eq_from_fid(fid));
	default:
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 2105,
				  "fi_trywait: %s %p is not a CQ, a counter or an EQ",
				  fid ? mrf_obj_class_name(fid->fclass) : "fid", (void *)fid);
	}
}

static int trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int i, ret = mrf_obj_check(&to_fabric(&fabric->fid)->obj, "fi_trywait");

	if (ret)
		return ret;
	if (count < 0 || (count && !fids))
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 2106,
				  "fi_trywait: fids=%p, count=%d: fids must be an array "
				  "of count objects",
				  (void *)fids, count);
	for (i = 0; i < count; i++) {
		ret = trywait_one(fids[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = mrf_no_bind,
	.control = mrf_no_control,
	.ops_open = mrf_no_ops_open,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = open_domain,
	.passive_ep = open_passive_ep,
	.eq_open = open_eq,
	.wait_open = open_wait,
	.trywait = trywait,
	.domain2 = open_domain2,
};

static int check_fabric_attr(const struct fi_fabric_attr *attr, uint32_t api_version,
			     struct fid_fabric **out)
{
	if (!attr || !out)
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 2107, "fi_fabric: %s must not be NULL",
				  attr ? "fabric" : "attr");
	if (!attr->prov_name)
		return mrf_refuse(FI_EINVAL, FI_LOG_FABRIC, 2108,
				  "fi_fabric: prov_name must be \"%s\", not NULL", MRF_PROV_NAME);
	if (strcmp(attr->prov_name, MRF_PROV_NAME))
		return mrf_refuse(FI_ENODEV, FI_LOG_FABRIC, 2108,
				  "fi_fabric: prov_name is \"%s\", but must be \"%s\"",
				  attr->prov_name, MRF_PROV_NAME);
	if (FI_VERSION_LT(MRF_API_RULES, api_version))
		return mrf_refuse(
			FI_ENOSYS, FI_LOG_FABRIC, 2109,
			"fi_fabric: api_version=%u.%u is above %u.%u, the highest that is known",
			FI_MAJOR(api_version), FI_MINOR(api_version), FI_MAJOR(MRF_API_RULES),
			FI_MINOR(MRF_API_RULES));
	return 0;
}

int mrf_fabric_open(const struct fi_fabric_attr *attr, const struct mrf_domain_up *up,
		    struct fid_fabric **out, void *context)
{
	uint32_t api_version = attr ? attr->api_version : 0;
	struct mrf_fabric *fabric;
	int ret = check_fabric_attr(attr, api_version, out);

	if (ret)
		return ret;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		goto err_memory;
	if (attr->name) {
		fabric->name = strdup(attr->name);
		if (!fabric->name)
			goto err_free;
	}
	fabric->up = up;
	fabric->api_version = api_version;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &fabric_fid_ops;
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = api_version;
	mrf_obj_init(&fabric->obj, &fabric->fid.fid, describe_fabric);
	mrf_leaks_opened(&fabric->leaks, &fabric->obj, NULL);
	*out = &fabric->fid;
	return 0;

err_free:
	free(fabric);
err_memory:
	return mrf_refuse(FI_ENOMEM, FI_LOG_FABRIC, 2110,
			  "fi_fabric: there is no memory for the fabric");
}
