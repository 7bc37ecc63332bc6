/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of fi_mr(3) as real functions, for callers without a C compiler (other
 * languages, dlsym). The public headers define them as inline functions of the same
 * names; this header includes the public headers with the inline functions renamed to
 * inline_..., so that the names are free. Two structures share the name of a call and are
 * renamed with it: fi_mr_raw_attr and fi_mr_map_raw. Include this before any other public
 * header.
 */
#ifndef MRF_EXPORT_MR_SYMBOLS_H
#define MRF_EXPORT_MR_SYMBOLS_H

#define fi_close inline_fi_close
#define fi_mr_bind inline_fi_mr_bind
#define fi_mr_desc inline_fi_mr_desc
#define fi_mr_enable inline_fi_mr_enable
#define fi_mr_key inline_fi_mr_key
#define fi_mr_map_raw inline_fi_mr_map_raw
#define fi_mr_raw_attr inline_fi_mr_raw_attr
#define fi_mr_refresh inline_fi_mr_refresh
#define fi_mr_reg inline_fi_mr_reg
#define fi_mr_regattr inline_fi_mr_regattr
#define fi_mr_regv inline_fi_mr_regv
#define fi_mr_unmap_key inline_fi_mr_unmap_key
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#undef fi_close
#undef fi_mr_bind
#undef fi_mr_desc
#undef fi_mr_enable
#undef fi_mr_key
#undef fi_mr_map_raw
#undef fi_mr_raw_attr
#undef fi_mr_refresh
#undef fi_mr_reg
#undef fi_mr_regattr
#undef fi_mr_regv
#undef fi_mr_unmap_key

/*
 * These functions do the same as the inline ones, but check the object first: NULL is
 * refused with -FI_EINVAL and a logged line (fi_mr_desc returns NULL, fi_mr_key
 * FI_KEY_NOTAVAIL).
 */
int fi_close(struct fid *fid);
int fi_mr_reg(struct fid_domain *domain, const void *buf, size_t len, uint64_t acs, uint64_t offset,
	      uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context);
int fi_mr_regv(struct fid_domain *domain, const struct iovec *iov, size_t count, uint64_t acs,
	       uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
	       void *context);
int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr, uint64_t flags,
		  struct fid_mr **mr);
void *fi_mr_desc(struct fid_mr *mr);
uint64_t fi_mr_key(struct fid_mr *mr);
int fi_mr_raw_attr(struct fid_mr *mr, uint64_t *base_addr, uint8_t *raw_key, size_t *key_size,
		   uint64_t flags);
int fi_mr_map_raw(struct fid_domain *domain, uint64_t base_addr, uint8_t *raw_key, size_t key_size,
		  uint64_t *key, uint64_t flags);
int fi_mr_unmap_key(struct fid_domain *domain, uint64_t key);
int fi_mr_bind(struct fid_mr *mr, struct fid *bfid, uint64_t flags);
int fi_mr_refresh(struct fid_mr *mr, const struct iovec *iov, size_t count, uint64_t flags);
int fi_mr_enable(struct fid_mr *mr);

#endif
