/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions of memory that a device's runtime has to copy (FI_MR_HMEM). The kernel pins nothing
 * of them, and their segments have no keys: transfers go through memory of the host. The
 * allocation at an address is looked up when the region is registered, and again by each copy.
 *
 * Managed memory is such memory, although the kernel can pin its pages: the driver moves its bytes
 * to the device whenever the device uses them, and the pinned pages are no longer the memory.
 */
#ifndef MRF_MR_DEVICE_H
#define MRF_MR_DEVICE_H

#include "hmem/hmem.h"
#include "mr/desc.h"

struct mrf_mr_pins;

/* Of one region; immutable. */
struct mrf_mr_device {
	const struct mrf_hmem *hmem;
	unsigned nparts;
	/* The allocations that the segments lie in, in the order of the segments' bytes. */
	struct mrf_mr_part {
		unsigned seg;
		struct mrf_hmem_alloc alloc;
	} part[];
};

/*
 * In a domain with FI_MR_HMEM: looks at attr->iface, attr->device and FI_HMEM_DEVICE_ONLY, for
 * the segments in pins. *device: the region's, to be freed with it; NULL: the kernel can pin
 * all of it. Errors are logged: those of mrf_hmem_open; -FI_EINVAL: it is other memory than
 * attr says; -FI_ENODEV: there is no device of that number; -FI_EIO; -FI_ENOMEM.
 */
int mrf_mr_device_find(const struct fi_mr_attr *attr, uint64_t flags,
		       const struct mrf_mr_pins *pins, struct mrf_mr_device **device);

/*
 * For a buffer without a descriptor. -FI_EINVAL: it is memory that a device has or shares (logged
 * with this code, `what` names the buffer). 0: it is not, as far as the runtimes know that the
 * application uses. now: the call itself copies the bytes, which the processor can do with what
 * the device shares.
 */
int mrf_mr_device_refuse(const void *addr, bool now, unsigned code, const char *what);

/* Is it the live descriptor of such a region? Lock-free. */
static inline bool mrf_desc_is_device(const struct mrf_mr_space *space, const void *desc)
{
	const struct mrf_mr *mr = mrf_desc_find(space->pool, desc);

	return mr && MRF_MR_GET(mr->device);
}

/*
 * Copies len bytes, which are inside the region, from addr, or with `in` to it. The caller is
 * between mrf_mr_enter and mrf_mr_leave. Errors as struct mrf_hmem says.
 */
int mrf_mr_device_copy(const struct mrf_mr *mr, bool in, uint64_t addr, void *host, uint64_t len,
		       struct mrf_hmem_why *why);
/*
 * Copy len bytes, which are inside the region of the descriptor, from or to addr. fi_close of
 * the region waits for it. -FI_ECANCELED: the region has been closed; otherwise as struct
 * mrf_hmem says. No lock is held; takes as long as the device takes.
 */
int mrf_mr_device_get(const struct mrf_mr_space *space, const void *desc, void *to, uint64_t addr,
		      uint64_t len, struct mrf_hmem_why *why);
int mrf_mr_device_put(const struct mrf_mr_space *space, const void *desc, uint64_t addr,
		      const void *from, uint64_t len, struct mrf_hmem_why *why);

#endif
