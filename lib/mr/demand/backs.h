/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room for kernel regions. RLIMIT_MEMLOCK, memory and the device's number of regions are
 * shared by the whole process. Pins that any domain of the process keeps for peers that
 * may come back give way to registrations that are needed now: regions, local buffers,
 * the library's own memory, and pins for another domain's peers.
 *
 * Leased pins do not give way, because an access is under way there, or was a moment ago.
 */
#ifndef MRF_MR_DEMAND_BACKS_H
#define MRF_MR_DEMAND_BACKS_H

#include <stdbool.h>
#include "base/compiler.h"
#include "mr/demand/back.h"
#include "mr/demand/gone.h"

/* A space's backings as a whole. */
struct mrf_mr_backs {
	struct mrf_mr_space *space;
	struct mrf_list node;		  /* in the list of all such structures of the process */
	struct mrf_monitor_client client; /* of pins that peers use */
	struct mrf_monitor_client local;  /* of pins that only this process uses */
	atomic_bool monitored;		  /* the clients were added to the monitor */
	/* guarded by the monitor's lock */
	struct mrf_list pins;	/* struct mrf_pin.all: all kept pins of regions */
	struct mrf_list locals; /* struct mrf_pin.all: all other kept pins */
	struct mrf_list dead;	/* struct mrf_pin.all: to free, see mrf_pins_reap */
	struct mrf_mr_gones gones;
};

/* NULL: no memory. */
struct mrf_mr_backs *mrf_mr_backs_new(struct mrf_mr_space *space);
/* No backing, no lease and no thread that pins may be left. */
void mrf_mr_backs_free(struct mrf_mr_backs *backs);
/* Does the monitor report changes? Starts it at the first call. */
bool mrf_mr_backs_monitored(struct mrf_mr_backs *backs);

/*
 * Drops all kept pins of this process; the next mrf_pins_reap frees their memory. Any
 * lock but the monitor's may be held. False: there was none.
 */
bool mrf_room_make(void);

/*
 * Can making room help after this error of pinning len bytes? It cannot if so many bytes may never
 * be locked (RLIMIT_MEMLOCK). Slow if the error is for want of room.
 */
bool mrf_room_helps(int err, size_t len);

/*
 * As mrf_vmr_reg, for all registrations except those that peers ask for; if there is no
 * room, makes room and tries once more. Any lock but the monitor's may be held.
 */
static inline int mrf_room_reg(struct mrf_vpd *pd, const void *addr, size_t len, uint64_t iova,
			       unsigned rights, struct mrf_vmr *vmr)
{
	int ret = mrf_vmr_reg(pd, addr, len, iova, rights, vmr);

	if (mrf_unlikely(ret) && mrf_room_helps(ret, len) && mrf_room_make())
		ret = mrf_vmr_reg(pd, addr, len, iova, rights, vmr);
	return ret;
}

#endif
