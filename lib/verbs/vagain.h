/* SPDX-License-Identifier: BSD-2-Clause */
/* Has a device sent anything a second time? The kernel counts that, per device. */
#ifndef MRF_VERBS_VAGAIN_H
#define MRF_VERBS_VAGAIN_H

#include <stdbool.h>
#include <stdint.h>

struct mrf_vdev;

/*
 * How often a device has sent packets a second time because no acknowledgement came; the
 * target may have carried them out already.
 */
struct mrf_vdev_retries {
	bool known;
	uint64_t count;
};

/*
 * Reads the device's count up to now; not known if the kernel does not tell it. A dozen
 * system calls on a netlink socket of its own, which wait for nobody: 65,000 instructions
 * on Linux 6.1 and 6.12, be there one queue pair on the device or 2,000. So it is no
 * mrf_slow_call, and a diagnosis (ep/tx/fail.c) asks under the endpoint's lock.
 */
void mrf_vdev_retries(struct mrf_vdev *dev, struct mrf_vdev_retries *now);
/* Has the device sent anything again since then? True also if that is not known. */
bool mrf_vdev_sent_again(struct mrf_vdev *dev, const struct mrf_vdev_retries *since);

#endif
