/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions: the heart of the library, fi_mr(3). A region is one fid_mr and its
 * kernel MRs, with exactly the rights asked for, gone before fi_close returns: one per
 * segment, pinned when it is registered or enabled, or, when the memory need not be there
 * yet, as many as peers have reached so far (mr/demand/back.h).
 *
 * mr/ never sees a domain or an endpoint, only a struct mrf_mr_space that the domain
 * lends: mode, limits, key space, descriptor table, protection domain. So all of it is
 * tested without a peer and without a kernel.
 *
 * Locks: space->lock (rank MR) guards keys, descriptors, bindings and the memory of closed
 * keys; the monitor's lock (rank PIN) guards what is pinned on demand.
 * Regions belong to the application until fi_close. Their memory is kept for the next
 * ones until the space goes, so that closing one twice is found out.
 */
#ifndef MRF_MR_MR_H
#define MRF_MR_MR_H

/* What others use of it. A short way has a header besides: desc.h, map.h, rawkey.h, backs.h. */
#include "mr/bind.h"
#include "mr/event.h"
#include "mr/key.h"
#include "mr/serve.h"
#include "mr/space.h"

#endif
