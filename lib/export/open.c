/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "base/log.h"
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <string.h>

/*
 * Objects that are found by name rather than through a fabric. None is offered yet, so
 * the arguments are checked first, and then the name is refused.
 */
MRF_EXPORT int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len,
		       uint64_t flags, struct fid **fid, void *context)
{
	(void)version;
	(void)attr;
	(void)context;
	if (!name)
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 2901, "fi_open: name is NULL");
	if (!fid)
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 2902, "fi_open(\"%s\"): fid is NULL",
				  name);
	if (strcmp(name, "mr_cache"))
		return mrf_refuse(FI_ENOSYS, FI_LOG_CORE, 2905,
				  "fi_open(\"%s\"): there is no object of this name", name);
	if (attr_len)
		return mrf_refuse(FI_EINVAL, FI_LOG_CORE, 2903,
				  "fi_open(\"mr_cache\"): attr_len=%zu: must be 0", attr_len);
	if (flags)
		return mrf_refuse(FI_EBADFLAGS, FI_LOG_CORE, 2904,
				  "fi_open(\"mr_cache\"): flags=0x%llx: must be 0",
				  (unsigned long long)flags);
	return mrf_refuse(FI_ENOSYS, FI_LOG_CORE, 2906,
			  "fi_open(\"mr_cache\"): registrations are not cached here, so "
			  "there is no cache to open");
}
