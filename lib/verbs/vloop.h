/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A loopback connection: two queue pairs of this process, connected to each other.
 * Through it a process accesses its own regions as peers do: the kernel checks keys,
 * bounds and rights, a deregistered region is out of reach, and atomic operations are
 * atomic with those of peers, which no operation of the CPU would be. A loop belongs to
 * its opener; one thread at a time.
 */
#ifndef MRF_VERBS_VLOOP_H
#define MRF_VERBS_VLOOP_H

#include "verbs/vqp.h"

#define MRF_VLOOP_SGE 16 /* local pieces of a work request */

struct mrf_vloop;

/*
 * addr: the device's own (port ignored); pd: that of the regions to access. Returns the
 * device's errors; -FI_EINVAL also if the device does not have the address any more.
 */
int mrf_vloop_open(struct mrf_vdev *dev, const struct sockaddr *addr, struct mrf_vpd *pd,
		   struct mrf_vloop **loop);
/* Closes the loop; no work request of it is under way any more. */
void mrf_vloop_close(struct mrf_vloop *loop);
/*
 * Carries out a READ, WRITE, FETCH_ADD or CMP_SWP; wr_id is ignored. -FI_EACCES: the
 * kernel refused it, at either end, and it has not been done; -FI_EIO and others: it may
 * have been done. After an error the loop can only be closed.
 */
int mrf_vloop_run(struct mrf_vloop *loop, const struct mrf_vwr *wr);

#endif
