/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room for kernel regions. RLIMIT_MEMLOCK and memory are one for the whole process, and so
 * is the device's number of regions. What is kept pinned for peers that may come back (by
 * all domains of the process) gives way to whatever has to be registered now: regions, local
 * buffers, the library's own, and what another domain's peers ask for.
 *
 * Leased pins do not give way: an access is under way there.
 */
#ifndef MRF_MR_DEMAND_BACKS_H
#define MRF_MR_DEMAND_BACKS_H

#include <stdbool.h>
#include <rdma/fi_errno.h>
#include "base/compiler.h"
#include "mr/demand/back.h"

/* No lock held. Between the two, what these keep may have to give way. */
void mrf_room_enter(struct mrf_mr_backs *backs);
void mrf_room_leave(struct mrf_mr_backs *backs);

/*
 * Unpins all that is kept in this process; what is left of it is freed by the next
 * mrf_pins_reap. Any lock but the monitor's may be held. False: there was nothing.
 */
bool mrf_room_make(void);

/* Is this what the kernel says when something is used up? */
static inline bool mrf_room_lacks(int err)
{
	return err == -FI_ENOMEM || err == -FI_EPERM || err == -FI_ENOSPC;
}

/*
 * As mrf_vmr_reg, for all registrations but those that peers ask for; if there is no room,
 * room is made and it is tried once more. Any lock but the monitor's may be held.
 */
static inline int mrf_room_reg(struct mrf_vpd *pd, const void *addr, size_t len,
			       uint64_t iova, unsigned rights, struct mrf_vmr *vmr)
{
	int ret = mrf_vmr_reg(pd, addr, len, iova, rights, vmr);

	if (mrf_unlikely(ret) && mrf_room_lacks(ret) && mrf_room_make())
		ret = mrf_vmr_reg(pd, addr, len, iova, rights, vmr);
	return ret;
}

#endif
