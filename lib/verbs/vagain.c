/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/verbs.h"
#include "verbs/vdev.h"
#include "verbs/vnl.h"

void mrf_vdev_retries(struct mrf_vdev *dev, struct mrf_vdev_retries *now)
{
	char name[64];

	mrf_vdev_name_now(dev, name, sizeof(name));
	now->known = !mrf_vnl_retries(name, &now->count);
}

bool mrf_vdev_sent_again(struct mrf_vdev *dev, const struct mrf_vdev_retries *since)
{
	struct mrf_vdev_retries now;

	mrf_vdev_retries(dev, &now);
	return !since->known || !now.known || now.count != since->count;
}
