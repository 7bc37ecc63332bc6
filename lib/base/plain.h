/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to the kernel about one range of memory, which cost the same whatever else is mapped. */
#ifndef MRF_BASE_PLAIN_H
#define MRF_BASE_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Is [start, end) memory that may be pinned, for reading, or with write for writing as well? False:
 * it is not, or the mappings (base/maps.h) have to be read to find out. Before Linux 6.11 pages
 * without memory are given some. The result is out of date as soon as it is there. Slow; keeps errno.
 */
bool mrf_plain(uint64_t start, uint64_t end, bool write);

#endif
