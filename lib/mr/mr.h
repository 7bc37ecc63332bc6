/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions: the heart of the library, fi_mr(3). A region is one fid_mr and its
 * kernel MRs, which have exactly the rights asked for and are gone before fi_close
 * returns. There is one kernel MR per segment, pinned when the region is registered or
 * enabled; or, if the memory need not exist yet, one for each part that peers have
 * reached so far (mr/demand/back.h).
 *
 * mr/ never sees a domain or an endpoint, only a struct mrf_mr_space that the domain
 * lends: mode, limits, key space, descriptor table, protection domain. So all of lib/mr
 * can be tested without a peer and without a kernel.
 *
 * Locks: space->lock (rank MR) guards keys, descriptors, bindings and the memory of
 * closed keys; the monitor's lock (rank PIN) guards what is pinned on demand. Regions
 * belong to the application until fi_close. Their memory is reused for later regions and
 * freed with the space only, so that closing a region twice is detected.
 */
#ifndef MRF_MR_MR_H
#define MRF_MR_MR_H

/*
 * The interface for other layers. The fast paths have headers of their own: desc.h,
 * map.h, rawkey.h, backs.h.
 */
#include "mr/bind.h"
#include "mr/event.h"
#include "mr/key.h"
#include "mr/serve.h"
#include "mr/space.h"

#endif
