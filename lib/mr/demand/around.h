/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much around a hole is pinned and watched with it. A kept pin is widened to
 * MRF_PIN_WINDOW, so that the next accesses nearby ask nothing. But pinning a page that
 * was never used allocates it: of those only blocks of MRF_PIN_BLOCK are pinned, or as
 * much as is there right before, and the pin ends where a page is not there
 * (base/present.h). So a peer that reads here and there in a sparse mapping does not fill
 * it. Around a page that cannot be watched the window is made smaller by steps, so that its
 * neighbours are not leased with it.
 */
#ifndef MRF_MR_DEMAND_AROUND_H
#define MRF_MR_DEMAND_AROUND_H

#include "mr/demand/pin.h"

/*
 * Pins a hole in one mapping of private memory, and as much around it as can be watched.
 * *err as with mrf_pin_keep. No lock is held.
 */
enum mrf_pinned mrf_pin_around(struct mrf_mr_back *back, const struct mrf_hole *hole, int *err);
/*
 * As mrf_pin_around, for a hole whose mapping was not looked up; its limits are the extent's.
 * The kernel checks the memory instead: first that it may be accessed in this way, because a
 * pin that fails leaves a line in the kernel's log; and when it is watched, that it is private
 * and in one mapping. False: it is not, or there is no room; look at the mappings. No lock is
 * held.
 */
bool mrf_pin_quick(struct mrf_mr_back *back, const struct mrf_hole *hole);

#endif
