/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "base/fork.h"
#include "base/log.h"
#include "monitor/import.h"
#include "obj/obj.h"
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <stdlib.h>
#include <string.h>

/*
 * Objects that are found by name rather than through a fabric: the cache, through which
 * memory monitors are imported. It is a handle; closing it ends no import.
 */
struct mr_cache {
	struct fid fid;
	uint64_t owner; /* the process that opened it: base/fork.h */
};

static int check_owner(const struct fid *fid, const char *call)
{
	const struct mr_cache *cache = mrf_container_of(fid, struct mr_cache, fid);

	return mrf_fork_ours(cache->owner) ? 0 : mrf_obj_foreign(fid, cache->owner, call);
}

static int cache_close(struct fid *fid)
{
	int ret = check_owner(fid, "fi_close");

	if (!ret)
		free(mrf_container_of(fid, struct mr_cache, fid));
	return ret;
}

static int cache_import(struct fid *fid, struct fid *monitor, uint64_t flags)
{
	int ret = check_owner(fid, "fi_import_fid");

	return ret ? ret : mrf_monitor_import(monitor, flags);
}

static int cache_control(struct fid *fid, int command, void *arg)
{
	int ret = check_owner(fid, "fi_control");

	return ret ? ret : mrf_no_control(fid, command, arg);
}

static struct fi_ops cache_ops = {
	.size = sizeof(cache_ops),
	.close = cache_close,
	.bind = cache_import,
	.control = cache_control,
	.ops_open = mrf_no_ops_open,
	.tostr = mrf_obj_tostr,
	.ops_set = mrf_no_ops_set,
};

static int open_cache(uint32_t version, size_t attr_len, uint64_t flags, struct fid **fid,
		      void *context)
{
	struct mr_cache *cache;

	if (FI_VERSION_LT(version, FI_VERSION(1, 13)))
		return mrf_refuse(
			FI_EINVAL, FI_LOG_CORE, 2906,
			"fi_open(\"mr_cache\"): this name needs version 1.13 or later, not %u.%u",
			FI_MAJOR(version), FI_MINOR(version));
	if (attr_len)
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 2903,
				  "fi_open(\"mr_cache\"): attr_len must be 0, not %zu", attr_len);
	if (flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_CORE, 2904,
				  "fi_open(\"mr_cache\"): flags must be 0, not 0x%lx", flags);
	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return mrf_refuse(FI_ENOMEM, FI_LOG_CORE, 2907,
				  "fi_open(\"mr_cache\"): out of memory");
	cache->fid.fclass = FI_CLASS_MR_CACHE;
	cache->fid.context = context;
	cache->fid.ops = &cache_ops;
	cache->owner = mrf_fork_here();
	*fid = &cache->fid;
	return 0;
}

MRF_EXPORT int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len,
		       uint64_t flags, struct fid **fid, void *context)
{
	(void)attr;
	if (!name)
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 2901, "fi_open: name is NULL");
	if (!fid)
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 2902, "fi_open(\"%s\"): fid is NULL",
				  name);
	if (strcmp(name, "mr_cache"))
		return mrf_refuse(FI_ENOSYS, FI_LOG_CORE, 2905,
				  "fi_open(\"%s\"): there is no object of this name", name);
	return open_cache(version, attr_len, flags, fid, context);
}
