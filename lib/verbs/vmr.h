/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's memory regions. Each error is -FI_E*; none is logged. */
#ifndef MRF_VERBS_VMR_H
#define MRF_VERBS_VMR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "base/page.h"

struct mrf_vpd;

/*
 * The most pages of one kernel region: Linux 6.12 and newer keep 16 bytes for each in one
 * piece of memory, of at most 4 MiB. 6.1 takes any number.
 */
#define MRF_VMR_PAGES 262144
/* So many bytes fit wherever they begin, and whatever the page size is. */
#define MRF_VMR_FITS ((MRF_VMR_PAGES - 1) * 4096ul)

/* How many of len bytes from addr on one kernel region can have. */
static inline uint64_t mrf_vmr_cut(uint64_t addr, uint64_t len)
{
	uint64_t page = mrf_page_size(), room = MRF_VMR_PAGES * page - (addr & (page - 1));

	return len < room ? len : room;
}

/* Takes from rest what one kernel region can have. False: nothing is left. */
static inline bool mrf_vmr_piece(struct iovec *rest, struct iovec *piece)
{
	piece->iov_base = rest->iov_base;
	piece->iov_len = mrf_vmr_cut((uintptr_t)rest->iov_base, rest->iov_len);
	rest->iov_base = (void *)((uintptr_t)rest->iov_base + piece->iov_len);
	rest->iov_len -= piece->iov_len;
	return piece->iov_len;
}

enum mrf_right {
	MRF_RIGHT_LOCAL_WRITE = 1 << 0, /* the device may write for a local operation */
	MRF_RIGHT_REMOTE_READ = 1 << 1,
	MRF_RIGHT_REMOTE_WRITE = 1 << 2, /* implies LOCAL_WRITE for the kernel: added */
	MRF_RIGHT_REMOTE_ATOMIC = 1 << 3 /* LOCAL_WRITE is added here, too */
};

struct mrf_vmr {
	void *handle; /* NULL: not registered */
	uint32_t lkey;
	uint32_t rkey;
};

/*
 * Pins [addr, addr + len) and registers it at iova, which must be congruent with addr
 * modulo the page size. len > 0. The region has exactly these rights. -FI_EFAULT (not
 * mapped, or not writable although it has to be), -FI_ENOMEM (memlock, regions or memory
 * used up), -FI_EPERM (memlock 0), -FI_EINVAL.
 */
int mrf_vmr_reg(struct mrf_vpd *pd, const void *addr, size_t len, uint64_t iova, unsigned rights,
		struct mrf_vmr *vmr);
/*
 * After success the kernel lets nobody access the memory. Harmless when not registered.
 */
int mrf_vmr_dereg(struct mrf_vmr *vmr);
/*
 * As mrf_vmr_dereg, for a registered region, but frees no memory, because the thread that
 * waits for this call may hold the allocator's lock; mrf_vmr_free frees it later. Any lock
 * may be held, an endpoint's, too: freeing memory under it may lead here (monitor/hooks.h).
 */
int mrf_vmr_revoke(struct mrf_vmr *vmr);
void mrf_vmr_free(struct mrf_vmr *vmr);

#endif
