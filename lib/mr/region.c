/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include <stdio.h>
#include "base/log.h"
#include "contract/rules.h"
#include "mr/region.h"

#define NAME_TEXT 96

void mrf_mr_describe(const struct fid *fid, char *buf, size_t len)
{
	const struct mrf_mr *mr = mrf_mr_from_fid(fid);
	int n = snprintf(buf, len, "%#lx, %lu byte%s", mr->seg.addr, mr->len, MRF_S(mr->len));

	if (n > 0 && (size_t)n < len && (mr->access & MRF_MR_REMOTE))
		snprintf(buf + n, len - (size_t)n, ", key %#lx", mr->key);
}

void mrf_mr_name(const struct mrf_mr *mr, char *buf, size_t len)
{
	char detail[NAME_TEXT];

	mrf_mr_describe(&mr->fid.fid, detail, sizeof(detail));
	snprintf(buf, len, "%p (%s)", (const void *)&mr->fid, detail);
}

bool mrf_mr_lets_go(const struct mrf_mr *mr, const char *bound_to)
{
	static atomic_bool said;

	if (mrf_rule_strict())
		return false;
	if (!atomic_exchange(&said, true))
		mrf_warn(FI_LOG_MR, 3065,
			 "fi_close(region %p): the region is unbound from its %s, which "
			 "has to be closed first before API version 2.3 "
			 "(FI_MRFAB_STRICT=off; said once)",
			 (const void *)mr, bound_to);
	return true;
}

/* --- segments ----------------------------------------------------------------------- */

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
