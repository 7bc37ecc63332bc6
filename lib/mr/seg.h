/* SPDX-License-Identifier: BSD-2-Clause */
/* Segments of a region, and which of them serves an access. Pure. */
#ifndef MRF_MR_SEG_H
#define MRF_MR_SEG_H

#include <stdbool.h>
#include <stdint.h>

#define MRF_MR_IOV_LIMIT 16 /* segments of one region (mr_iov_limit) */

struct mrf_mr_seg {
	uint64_t addr; /* address in this process */
	uint64_t len;  /* bytes */
	uint64_t iova; /* the kernel's address of its first byte */
	uint32_t rkey;
	uint32_t lkey;
};

/*
 * Finds the segment that serves an access to at most len bytes at addr. With virt, addr
 * is an address inside a segment (the first that contains it counts); otherwise it is an
 * offset into the segments laid end to end. Returns the number of bytes that this segment
 * can serve (<= len) and sets *seg and *offset; 0: addr is out of bounds. A len of 0 is
 * in bounds up to and including the end; 1 is returned then, so that 0 always means out
 * of bounds. Pure.
 */
uint64_t mrf_mr_locate(const struct mrf_mr_seg *segs, unsigned nseg, bool virt, uint64_t addr,
		       uint64_t len, unsigned *seg, uint64_t *offset);

#endif
