/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Persistent memory: regions with FI_RMA_PMEM, whose bytes are those of a file that is
 * mapped shared. Peers' writes to them can be made to survive a crash of the machine.
 */
#ifndef MRF_MR_FILEMEM_H
#define MRF_MR_FILEMEM_H

#include "mr/space.h"

/*
 * Is all of [addr, addr + len) mapped shared and for writing from files that a file
 * system keeps (no tmpfs, no memfd, no removed file), and inside these files? NULL: yes.
 * Otherwise the obstacle in words, with *err 0, or a positive FI_E* if that could not be
 * found out.
 */
const char *mrf_pmem_why_not(uint64_t addr, uint64_t len, int *err);
/* Returns 0 when the file system has these bytes on its storage, or a positive FI_E*. */
int mrf_pmem_flush(uint64_t addr, uint64_t len);

#endif
