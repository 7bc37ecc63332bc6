/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/verbs.h"
#include "verbs/vdev.h"
#include "verbs/vnl.h"

void mrf_vdev_retries(struct mrf_vdev *dev, struct mrf_vdev_retries *now)
{
	now->known = !mrf_vnl_retries(mrf_vdev_name(dev), &now->count);
}

bool mrf_vdev_sent_again(struct mrf_vdev *dev, const struct mrf_vdev_retries *since)
{
	struct mrf_vdev_retries now;

	mrf_vdev_retries(dev, &now);
	return !since->known || !now.known || now.count != since->count;
}
