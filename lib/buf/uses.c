/* SPDX-License-Identifier: BSD-2-Clause */
#include "buf/uses.h"

#include "mr/desc.h"

/* A region that was closed meanwhile has another descriptor, and a count that begins at 0. */
static bool change_one(const struct mrf_buf *buf, const void *desc, int change)
{
	const struct mrf_mr *mr = desc ? mrf_desc_find(buf->space->pool, desc) : NULL;

	if (mr)
		atomic_fetch_add(&mr->entry->uses, (unsigned)change);
	return mr;
}

static bool count_all(const struct mrf_buf *buf, const struct mrf_local *local, int change)
{
	const struct mrf_local_rest *rest = local->rest;
	void *const *desc = rest ? rest->desc : local->desc;
	size_t i, n = rest ? rest->count : (size_t)local->ndesc;
	bool any = false;

	if (!desc || (!rest && local->kind != MRF_LOCAL_DESC))
		return false;
	for (i = 0; i < n; i++)
		any |= change_one(buf, desc[i], change);
	return any;
}

bool mrf_uses_begin(const struct mrf_buf *buf, const struct mrf_local *local)
{
	return buf->space->careful && count_all(buf, local, 1);
}

void mrf_uses_end(const struct mrf_buf *buf, const struct mrf_local *local)
{
	count_all(buf, local, -1);
}
