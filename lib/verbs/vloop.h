/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs of this process that are connected with each other. Through them a
 * process reaches its own regions as peers do: the kernel checks keys, bounds and rights,
 * a region that is deregistered is out of reach, and atomic operations are atomic with
 * those of peers, which nothing that the CPU does would be. Whoever opens it owns it; one
 * thread at a time.
 */
#ifndef MRF_VERBS_VLOOP_H
#define MRF_VERBS_VLOOP_H

#include "verbs/vqp.h"

#define MRF_VLOOP_SGE 16 /* local pieces of a work request */

struct mrf_vloop;

/*
 * addr: the device's own (port ignored); pd: of the regions to be reached. The device's
 * errors; -FI_EINVAL too when it has not got the address any more.
 */
int mrf_vloop_open(struct mrf_vdev *dev, const struct sockaddr *addr, struct mrf_vpd *pd,
		   struct mrf_vloop **loop);
/* No work request of it is under way any more. */
void mrf_vloop_close(struct mrf_vloop *loop);
/*
 * Carries out a READ, WRITE, FETCH_ADD or CMP_SWP; wr_id is not looked at. -FI_EACCES:
 * the kernel refused it, at either end, and it has not been done; -FI_EIO and others: it
 * may have been. After an error it can only be closed.
 */
int mrf_vloop_run(struct mrf_vloop *loop, const struct mrf_vwr *wr);

#endif
