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

/* A space's backings as a whole. */
struct mrf_mr_backs {
	struct mrf_mr_space *space;
	struct mrf_list node; /* mr/demand/backs.h */
	struct mrf_monitor_client client;
	atomic_bool monitored; /* client is added */
	/* guarded by the monitor's lock */
	struct mrf_list pins; /* struct mrf_pin.all: all that is kept */
	struct mrf_list dead; /* struct mrf_pin.all: to be given back, see reap */
};

/* NULL: no memory. */
struct mrf_mr_backs *mrf_mr_backs_new(struct mrf_mr_space *space);
/* No backing may be left, no lease, no thread that pins. */
void mrf_mr_backs_free(struct mrf_mr_backs *backs);
/* Is there somebody who tells of changes? Starts the monitor at the first call. */
bool mrf_mr_backs_monitored(struct mrf_mr_backs *backs);

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
