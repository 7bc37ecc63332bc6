/* SPDX-License-Identifier: BSD-2-Clause */
/* The arguments of a registration. */
#ifndef MRF_MR_ATTR_H
#define MRF_MR_ATTR_H

#include "base/iov.h"
#include "mr/region.h"

/* The parts of a checked attribute structure that registering needs. */
struct mrf_mr_plan {
	uint64_t access;
	uint64_t len;
	/* Enabled; disabled, until fi_mr_enable; or pending: the worker makes it, mr/worker.h. */
	enum mrf_mr_state begins;
	bool next;		      /* disabled, but enabled before the call returns */
	bool demand;		      /* pinned on demand */
	bool event;		      /* writes to it are counted */
	struct mrf_mr_group *group;   /* of its authorization key; NULL: the default one */
	struct mrf_mr_device *device; /* mr/device.h; NULL: the kernel pins it */
};

/*
 * Checks everything about a registration that does not depend on the memory or the key
 * space. -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOSYS, each logged with a line of its own.
 */
int mrf_mr_attr_check(struct mrf_mr_space *space, const struct fi_mr_attr *attr, uint64_t flags,
		      struct mrf_mr_plan *plan);

/*
 * About a key above 32 bits that the application chooses for a region that peers may reach:
 * -FI_EKEYREJECTED (logged), or 0, and the log says that not every provider takes it.
 */
int mrf_mr_attr_key(struct mrf_mr_space *space, uint64_t key);

/*
 * True for the usual registration: pinned at once, one segment with bytes, rights and
 * nothing else. mrf_mr_attr_check and mrf_mr_access_warn would find no fault with it.
 */
static inline bool mrf_mr_attr_usual(const struct mrf_mr_space *space,
				     const struct fi_mr_attr *attr, uint64_t flags)
{
	const struct iovec *iov = attr->mr_iov;

	return space->plain && !(flags | attr->offset | attr->auth_key_size) && iov &&
	       attr->iov_count == 1 && iov->iov_len && iov->iov_len <= MRF_VMR_FITS &&
	       attr->access && !(attr->access & ~MRF_MR_RIGHTS) &&
	       mrf_range_ok((uintptr_t)iov->iov_base, iov->iov_len);
}

#endif
