/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's memory regions. Each error is -FI_E*; none is logged. */
#ifndef MRF_VERBS_VMR_H
#define MRF_VERBS_VMR_H

#include <stddef.h>
#include <stdint.h>

struct mrf_vpd;

enum mrf_right {
	MRF_RIGHT_LOCAL_WRITE = 1 << 0, /* the device may write for a local operation */
	MRF_RIGHT_REMOTE_READ = 1 << 1,
	MRF_RIGHT_REMOTE_WRITE = 1 << 2, /* the kernel wants LOCAL_WRITE with it: added */
	MRF_RIGHT_REMOTE_ATOMIC = 1 << 3 /* likewise */
};

struct mrf_vmr {
	void *handle; /* NULL: not registered */
	uint32_t lkey;
	uint32_t rkey;
};

/*
 * Pins [addr, addr + len) and registers it at iova, which must be congruent with addr modulo
 * the page size. len > 0. Exactly the rights asked for. -FI_EFAULT (not mapped, or not
 * writable though needed), -FI_ENOMEM (memlock, regions or memory), -FI_EPERM (memlock 0), -FI_EINVAL.
 */
int mrf_vmr_reg(struct mrf_vpd *pd, const void *addr, size_t len, uint64_t iova,
		unsigned rights, struct mrf_vmr *vmr);
/* On return the kernel lets nobody through to the memory. Harmless when not registered. */
int mrf_vmr_dereg(struct mrf_vmr *vmr);
/*
 * mrf_vmr_dereg for one that is registered, but gives no memory back to the allocator (which
 * might be locked by the thread that waits for this); mrf_vmr_free does, later.
 */
int mrf_vmr_revoke(struct mrf_vmr *vmr);
void mrf_vmr_free(struct mrf_vmr *vmr);

#endif
