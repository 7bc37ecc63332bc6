/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_getinfo and related calls, and fi_tostr. The work is done in info. */
#include "base/compiler.h"
#include "info/api.h"

MRF_EXPORT int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
			  const struct fi_info *hints, struct fi_info **info)
{
	return mrf_info_get(version, node, service, flags, hints, info);
}

MRF_EXPORT struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	return mrf_info_dup(info);
}

MRF_EXPORT void fi_freeinfo(struct fi_info *info)
{
	mrf_info_free(info);
}

MRF_EXPORT char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
{
	return mrf_info_tostr_r(buf, len, data, datatype);
}

MRF_EXPORT char *fi_tostr(const void *data, enum fi_type datatype)
{
	return mrf_info_tostr(data, datatype);
}
