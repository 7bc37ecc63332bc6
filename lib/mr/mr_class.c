/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "mr/face.h"

int mrf_mr_class_new(struct mrf_mr_space *space, struct mrf_mr_class **out)
{
	struct mrf_mr_class *class = calloc(1, sizeof(*class));
	int ret;

	if (!class)
		return -FI_ENOMEM;
	class->space = space;
	class->refs = 1;
	ret = mrf_vpd_alloc(space->vdev, &class->pd);
	if (ret) {
		free(class);
		return ret;
	}
	*out = class;
	return 0;
}

void mrf_mr_class_get(struct mrf_mr_class *class)
{
	if (class)
		class->refs++;
}

void mrf_mr_class_put(struct mrf_mr_class *class)
{
	bool last;

	if (!class)
		return;
	mrf_lock_take(&class->space->lock);
	last = !--class->refs;
	mrf_lock_release(&class->space->lock);
	if (!last)
		return;
	mrf_vpd_free(class->pd);
	free(class);
}
