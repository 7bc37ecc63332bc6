/* SPDX-License-Identifier: BSD-2-Clause */
/* Has a device sent anything a second time? The kernel counts that, per device. */
#ifndef MRF_VERBS_VAGAIN_H
#define MRF_VERBS_VAGAIN_H

#include <stdbool.h>
#include <stdint.h>

struct mrf_vdev;

/*
 * What a device has sent a second time, because no acknowledgement came: the target may have
 * carried it out already.
 */
struct mrf_vdev_retries {
	bool known;
	uint64_t count;
};

/* How often that has happened on the device until now; not known when nobody tells. */
void mrf_vdev_retries(struct mrf_vdev *dev, struct mrf_vdev_retries *now);
/* Has it happened since? True as well where that is not known. */
bool mrf_vdev_sent_again(struct mrf_vdev *dev, const struct mrf_vdev_retries *since);

#endif
