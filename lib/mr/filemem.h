/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Persistent memory: regions with FI_RMA_PMEM, whose bytes are those of a file that is
 * mapped shared, and making what peers wrote there outlive a crash of the machine.
 */
#ifndef MRF_MR_FILEMEM_H
#define MRF_MR_FILEMEM_H

#include "mr/space.h"

/*
 * Whether all of [addr, addr + len) is mapped shared and for writing from files that are
 * kept by a file system (no tmpfs, no memfd, no file that was removed), and inside them. NULL,
 * or what is in the way, in words; err then: 0, or positive FI_E*, why it cannot be known.
 */
const char *mrf_pmem_why_not(uint64_t addr, uint64_t len, int *err);
/* Returns when the file system has them on its storage; positive FI_E*. */
int mrf_pmem_flush(uint64_t addr, uint64_t len);

#endif
