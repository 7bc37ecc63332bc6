/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments of a region, and which of them serves an access. Pure. */
#ifndef MRF_MR_SEG_H
#define MRF_MR_SEG_H

#include <stdbool.h>
#include <stdint.h>

#define MRF_MR_IOV_LIMIT 16 /* segments of one region (mr_iov_limit) */

struct mrf_mr_seg {
	uint64_t addr; /* where the application thinks it is: address in this process */
	uint64_t len;  /* bytes */
	uint64_t iova; /* what the kernel calls its first byte */
	uint32_t rkey;
	uint32_t lkey;
};

/*
 * Which segment serves the access at addr of at most len bytes: with virt addr is an
 * address inside a segment (the first that contains it), else an offset into the
 * segments packed one after the other. Returns the number of bytes that this segment
 * can serve (<= len) and sets *seg and *offset, or 0 when addr is outside. A len of 0
 * is in bounds up to and including the end: 1 is returned then (never 0 for in bounds).
 * Pure.
 */
uint64_t mrf_mr_locate(const struct mrf_mr_seg *segs, unsigned nseg, bool virt,
		       uint64_t addr, uint64_t len, unsigned *seg, uint64_t *offset);

#endif
