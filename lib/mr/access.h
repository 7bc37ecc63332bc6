/* SPDX-License-Identifier: BSD-2-Clause */
/* Access rights: the FI_* flags, and the kernel's rights for them. */
#ifndef MRF_MR_ACCESS_H
#define MRF_MR_ACCESS_H

#include "mr/space.h"

/* enum mrf_right bits for which the memory has to be writable. */
#define MRF_RIGHTS_WRITE (MRF_RIGHT_LOCAL_WRITE | MRF_RIGHT_REMOTE_WRITE | MRF_RIGHT_REMOTE_ATOMIC)

/* enum mrf_right bits: exactly what the kernel needs for these FI_* rights. */
static inline unsigned mrf_mr_access_kernel(const struct mrf_mr_space *space, uint64_t access)
{
	unsigned rights = 0;

	/* The device reads for FI_SEND and FI_WRITE, which needs no right at all. */
	if (access & (FI_RECV | FI_READ))
		rights |= MRF_RIGHT_LOCAL_WRITE;
	if (access & FI_REMOTE_READ)
		rights |= MRF_RIGHT_REMOTE_READ;
	if (access & FI_REMOTE_WRITE)
		rights |= space->write_rights;
	return rights;
}

/*
 * For a region with a remote right that is pinned on demand: says that there can be no memory, or none
 * that may be written to.
 */
void mrf_mr_demand_tell(struct mrf_mr_space *space, const struct fi_mr_attr *attr);
/* Warns, once per domain, that no right was asked for, or that capabilities were. */
void mrf_mr_access_warn(struct mrf_mr_space *space, uint64_t access);

#endif
