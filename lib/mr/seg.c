/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "mr/seg.h"

/*
 * The number of bytes of [offset, offset + len) that a segment of size bytes serves; 0:
 * the range is outside.
 */
static uint64_t served_bytes(uint64_t size, uint64_t offset, uint64_t len)
{
	if (!len)
		return offset <= size ? 1 : 0;
	return offset < size ? mrf_min(len, size - offset) : 0;
}

uint64_t mrf_mr_locate(const struct mrf_mr_seg *segs, unsigned nseg, bool virt, uint64_t addr,
		       uint64_t len, unsigned *seg, uint64_t *offset)
{
	uint64_t start = 0; /* packed: where segment i begins */
	uint64_t n;
	unsigned i;

	for (i = 0; i < nseg; i++) {
		if (virt)
			start = segs[i].addr;
		n = addr >= start ? served_bytes(segs[i].len, addr - start, len) : 0;
		if (n) {
			*seg = i;
			*offset = addr - start;
			return n;
		}
		start += segs[i].len;
	}
	return 0;
}
