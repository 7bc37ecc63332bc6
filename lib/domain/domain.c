/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "auth/auth.h"
#include "base/json.h"
#include "base/compiler.h"
#include "base/env.h"
#include "base/errtext.h"
#include "base/log.h"
#include "contract/mr_mode.h"
#include "contract/rules.h"
#include "domain/domain.h"
#include "domain/domain_int.h"
#include "domain/faults.h"
#include "mr/mr_calls.h"
#include "mr/profiled.h"
#include "mr/still_open.h"
#include "verbs/vnode.h"

static struct mrf_domain *from_fid(const struct fid *fid)
{
	return mrf_container_of(fid, struct mrf_domain, fid.fid);
}

static void describe_domain(const struct fid *fid, char *buf, size_t len)
{
	const struct mrf_domain *domain = from_fid(fid);
	char addr[64];

	snprintf(buf, len, "%s at %s", mrf_vdev_name(domain->vdev),
		 mrf_addr_text(&domain->addr, addr, sizeof(addr)));
}

static void domain_free(struct mrf_domain *domain)
{
	mrf_lock_fini(&domain->lock);
	mrf_obj_fini(&domain->obj);
	mrf_auth_free(domain->space.auth);
	free(domain->space.faults);
	mrf_obj_drop(&domain->eq);
	mrf_obj_drop(&domain->parent);
	free(domain);
}

/* A program whose other threads are still closing theirs tries again and again. */
static int tell_open(struct mrf_domain *domain)
{
	struct mrf_json none = { .file = NULL };

	if (mrf_log_due(&domain->told)) {
		mrf_mr_still_open_tell(&domain->space, &none);
		mrf_obj_tell_holders(&domain->obj, &none);
	}
	return -FI_EBUSY;
}

static int domain_close(struct fid *fid)
{
	struct mrf_domain *domain = from_fid(fid);
	int regions, mapped, others;
	int ret = mrf_obj_check(&domain->obj, "fi_close");

	if (ret)
		return ret;
	/* Checks everything, so that the log names all that is in the way. */
	regions = mrf_mr_space_busy(&domain->space);
	mapped = mrf_mr_space_mapped(&domain->space);
	others = mrf_obj_busy_with(&domain->obj, regions ? "other object" : "object");
	if (regions || mapped || others)
		return tell_open(domain);
	mrf_leaks_closed(&domain->leaks);
	if (domain->eps)
		domain->fabric->up->eps_close(domain->eps);
	mrf_mr_space_fini(&domain->space);
	mrf_vpd_free(domain->pd);
	mrf_vdev_close(domain->vdev);
	domain_free(domain);
	return 0;
}

static int domain_control(struct fid *fid, int command, void *arg)
{
	struct mrf_domain *domain = from_fid(fid);
	int ret = mrf_obj_check(&domain->obj, "fi_control");

	if (ret)
		return ret;
	switch (command) {
	case FI_MAP_RAW_MR:
		ret = mrf_mr_profiled_call(&domain->space, MRF_PROFILE_MAP_RAW);
		return ret ? ret : mrf_mr_map_raw(mrf_domain_mr_space(fid), arg);
	case FI_UNMAP_KEY:
		ret = mrf_mr_profiled_call(&domain->space, MRF_PROFILE_MAP_RAW);
		return ret ? ret : mrf_mr_unmap_key(mrf_domain_mr_space(fid), arg);
	case FI_QUEUE_WORK:
	case FI_CANCEL_WORK:
	case FI_FLUSH_WORK:
		return mrf_refuse(FI_ENOSYS, FI_LOG_DOMAIN, 2146,
				  "fi_control(%d): triggered operations are not offered", command);
	default:
		return mrf_no_control(fid, command, arg);
	}
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = mrf_domain_bind,
	.control = domain_control,
	.ops_open = mrf_domain_open_ops,
};

static void init_domain_fid(struct mrf_domain *domain, void *context)
{
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = &domain_fid_ops;
	domain->fid.ops = &mrf_domain_ops;
	domain->fid.mr = &domain->space.ops;
}

/* The library below does not say which file it could not open. */
static bool may_be_file(int err)
{
	return err != -FI_ENOMEM && err != -FI_EMFILE && err != -FI_EINVAL;
}

static int refuse_open(int err, const char *name, const char *addr)
{
	char why[320];

	if (may_be_file(err) && mrf_vnode_bars(&mrf_vnode_dirs, name, why, sizeof(why)))
		return mrf_refuse(-err, FI_LOG_DOMAIN, 5105,
				  "fi_domain: the RDMA device at %s cannot be opened: %s", addr,
				  why);
	return mrf_refuse(-err, FI_LOG_DOMAIN, 5101,
			  "fi_domain: no RDMA device can be opened at %s: it must be an "
			  "address of the network interface that rxe was added to",
			  addr);
}

/* The device at the domain's address, which must be the one that the info names. */
static int open_device(struct mrf_domain *domain, const char *name)
{
	char addr[64], now[64];
	int ret;

	mrf_addr_text(&domain->addr, addr, sizeof(addr));
	ret = mrf_vdev_open(&domain->addr.sa, &domain->vdev);
	if (ret)
		return refuse_open(ret, name, addr);
	/* As fi_getinfo calls it: the name may have changed while another domain is open. */
	mrf_vdev_name_now(domain->vdev, now, sizeof(now));
	if (!name || !strcmp(name, now))
		return 0;
	ret = mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2151,
			 "fi_domain: domain_attr->name is \"%s\", but the device at %s is \"%s\"",
			 name, addr, mrf_vdev_name(domain->vdev));
	mrf_vdev_close(domain->vdev);
	return ret;
}

/* As fi_getinfo has found it, unless the program has changed its environment since. */
static int take_profile(struct mrf_domain *domain)
{
	const char *name = mrf_env_str(MRF_PARAM_PROFILE);
	char why[192];

	domain->promise = &mrf_promise_all;
	if (!name)
		return 0;
	domain->space.profile = mrf_profile_find(name, why, sizeof(why));
	if (domain->space.profile) {
		domain->promise = domain->space.profile->promise;
		domain->space.lax = mrf_profile_lenient(name) ? domain->space.profile->lax : 0;
		return 0;
	}
	return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2164,
			  "fi_domain: FI_MRFAB_PROFILE=\"%.64s%s\": %s", name, MRF_CUT(name, 64),
			  why);
}

static int open_space(struct mrf_domain *domain, const struct fi_info *info)
{
	struct mrf_mr_space *space = &domain->space;
	int ret = mrf_vpd_alloc(domain->vdev, &domain->pd);

	if (ret)
		return mrf_refuse(-ret, FI_LOG_DOMAIN, 5102,
				  "fi_domain: %s has no protection domain left",
				  mrf_vdev_name(domain->vdev));
	space->obj = &domain->obj;
	space->vdev = domain->vdev;
	space->pd = domain->pd;
	space->mode = mrf_mr_mode_runs((uint64_t)info->domain_attr->mr_mode, info->mode);
	/* No capabilities at all stand for all of them. */
	space->atomics = (info->caps ? info->caps : domain->promise->caps) & FI_ATOMIC;
	space->api_version = domain->fabric->api_version;
	space->has_events = info->caps & FI_RMA_EVENT;
	space->max_mr = mrf_vdev_limits(domain->vdev)->max_mr;
	ret = mrf_mr_space_init(space);
	if (!ret)
		return 0;
	if (ret == -FI_EIO)
		mrf_refuse(FI_EIO, FI_LOG_DOMAIN, 2156,
			   "fi_domain: there are no random bytes: getrandom(2) and /dev/urandom "
			   "fail: %s",
			   strerror(errno));
	else
		mrf_refuse(-ret, FI_LOG_DOMAIN, 2152,
			   "fi_domain: there is no memory for the domain");
	mrf_vpd_free(domain->pd);
	return ret;
}

static int take_domain_key(struct mrf_domain *domain, const struct fi_domain_attr *attr)
{
	int ret = 0;

	if (attr->auth_key && attr->auth_key_size && mrf_rule_auth_key(domain->fabric->api_version))
		ret = mrf_auth_new(attr->auth_key, attr->auth_key_size, &domain->space.auth);
	if (ret)
		return mrf_refuse(-ret, FI_LOG_DOMAIN, 2152,
				  "fi_domain: the authorization key cannot be kept: %s",
				  mrf_errtext(-ret));
	return 0;
}

/* NULL: no memory. The domain holds nothing yet. */
static struct mrf_domain *domain_new(struct mrf_fabric *fabric, const struct fi_info *info)
{
	struct mrf_domain *domain = calloc(1, sizeof(*domain));

	if (!domain)
		return NULL;
	domain->fabric = fabric;
	domain->mr_mode = info->domain_attr->mr_mode;
	domain->av_type = info->domain_attr->av_type;
	mrf_obj_init(&domain->obj, &domain->fid.fid, describe_domain);
	domain->obj.api_version = domain->fabric->api_version;
	mrf_lock_init(&domain->lock, MRF_RANK_AGENT);
	return domain;
}

int mrf_domain_open(struct mrf_fabric *fabric, const struct fi_info *info, struct fid_domain **out,
		    void *context)
{
	struct mrf_domain *domain;
	int ret;

	if (!info || !out)
		return mrf_refuse(FI_EINVAL, FI_LOG_DOMAIN, 2153, "fi_domain: %s must not be NULL",
				  info ? "domain" : "info");
	ret = mrf_domain_check(fabric, info);
	if (ret)
		return ret;
	domain = domain_new(fabric, info);
	if (!domain)
		return mrf_refuse(FI_ENOMEM, FI_LOG_DOMAIN, 2152,
				  "fi_domain: there is no memory for the domain");
	ret = take_profile(domain);
	if (!ret)
		ret = mrf_faults_take(&domain->space.faults);
	if (!ret)
		ret = take_domain_key(domain, info->domain_attr);
	domain->form = mrf_profile_form(domain->space.profile, info->addr_format);
	if (!ret)
		ret = mrf_domain_address(info, domain->form, &domain->addr);
	if (ret)
		goto err_free;
	ret = open_device(domain, info->domain_attr->name);
	if (ret)
		goto err_free;
	ret = open_space(domain, info);
	if (ret)
		goto err_device;
	init_domain_fid(domain, context);
	mrf_obj_hold(&domain->parent, &fabric->obj, &domain->fid.fid, describe_domain);
	mrf_leaks_opened(&domain->leaks, &domain->obj, &domain->space);
	*out = &domain->fid;
	return 0;

err_device:
	mrf_vdev_close(domain->vdev);
err_free:
	domain_free(domain);
	return ret;
}
