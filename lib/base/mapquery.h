/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One question about one mapping, to an open /proc/self/maps: PROCMAP_QUERY, which Linux
 * has had since 6.11. No lock; nothing is allocated.
 */
#ifndef MRF_BASE_MAPQUERY_H
#define MRF_BASE_MAPQUERY_H

#include <stdint.h>

struct mrf_mapping;

/*
 * The mapping that contains addr, or the next one behind it. -FI_ENOENT: there is none.
 * -FI_ENOSYS: the kernel does not answer such questions.
 */
int mrf_mapquery(int fd, uint64_t addr, struct mrf_mapping *mapping);

#endif
