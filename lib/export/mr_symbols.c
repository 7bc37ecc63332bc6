/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/mr_symbols.h"
#include "base/compiler.h"
#include "base/log.h"

static int refuse_null(const char *call, const char *what)
{
	return mrf_refuse(FI_EINVAL, FI_LOG_MR, 3901, "%s: %s is NULL", call, what);
}

MRF_EXPORT int fi_close(struct fid *fid)
{
	return fid ? inline_fi_close(fid) : refuse_null("fi_close", "fid");
}

MRF_EXPORT int fi_mr_reg(struct fid_domain *domain, const void *buf, size_t len, uint64_t acs,
			 uint64_t offset, uint64_t requested_key, uint64_t flags,
			 struct fid_mr **mr, void *context)
{
	if (!domain)
		return refuse_null("fi_mr_reg", "domain");
	return inline_fi_mr_reg(domain, buf, len, acs, offset, requested_key, flags, mr, context);
}

MRF_EXPORT int fi_mr_regv(struct fid_domain *domain, const struct iovec *iov, size_t count,
			  uint64_t acs, uint64_t offset, uint64_t requested_key, uint64_t flags,
			  struct fid_mr **mr, void *context)
{
	if (!domain)
		return refuse_null("fi_mr_regv", "domain");
	return inline_fi_mr_regv(domain, iov, count, acs, offset, requested_key, flags, mr,
				 context);
}

MRF_EXPORT int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr,
			     uint64_t flags, struct fid_mr **mr)
{
	if (!domain)
		return refuse_null("fi_mr_regattr", "domain");
	return inline_fi_mr_regattr(domain, attr, flags, mr);
}

MRF_EXPORT void *fi_mr_desc(struct fid_mr *mr)
{
	return mr ? inline_fi_mr_desc(mr) : NULL;
}

MRF_EXPORT uint64_t fi_mr_key(struct fid_mr *mr)
{
	return mr ? inline_fi_mr_key(mr) : FI_KEY_NOTAVAIL;
}

MRF_EXPORT int fi_mr_raw_attr(struct fid_mr *mr, uint64_t *base_addr, uint8_t *raw_key,
			      size_t *key_size, uint64_t flags)
{
	if (!mr)
		return refuse_null("fi_mr_raw_attr", "mr");
	return inline_fi_mr_raw_attr(mr, base_addr, raw_key, key_size, flags);
}

MRF_EXPORT int fi_mr_map_raw(struct fid_domain *domain, uint64_t base_addr, uint8_t *raw_key,
			     size_t key_size, uint64_t *key, uint64_t flags)
{
	if (!domain)
		return refuse_null("fi_mr_map_raw", "domain");
	return inline_fi_mr_map_raw(domain, base_addr, raw_key, key_size, key, flags);
}

MRF_EXPORT int fi_mr_unmap_key(struct fid_domain *domain, uint64_t key)
{
	if (!domain)
		return refuse_null("fi_mr_unmap_key", "domain");
	return inline_fi_mr_unmap_key(domain, key);
}

MRF_EXPORT int fi_mr_bind(struct fid_mr *mr, struct fid *bfid, uint64_t flags)
{
	if (!mr)
		return refuse_null("fi_mr_bind", "mr");
	return inline_fi_mr_bind(mr, bfid, flags);
}

MRF_EXPORT int fi_mr_refresh(struct fid_mr *mr, const struct iovec *iov, size_t count,
			     uint64_t flags)
{
	if (!mr)
		return refuse_null("fi_mr_refresh", "mr");
	return inline_fi_mr_refresh(mr, iov, count, flags);
}

MRF_EXPORT int fi_mr_enable(struct fid_mr *mr)
{
	return mr ? inline_fi_mr_enable(mr) : refuse_null("fi_mr_enable", "mr");
}
