/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_MR_ENABLE_H
#define MRF_MR_ENABLE_H

#include "mr/pins.h"

/*
 * Makes these pins the region's; space->lock is held. The region is not live, so the fields
 * that its descriptor leads to may be written.
 */
void mrf_mr_put_pins_locked(struct mrf_mr *mr, struct mrf_mr_pins *pins);
/*
 * Publishes key and descriptor, so that everybody may use the region; space->lock is
 * held.
 */
void mrf_mr_open_locked(struct mrf_mr *mr);
/*
 * If the region is in this state, registers everything with the kernel that an enabled
 * region needs there: pins (none if it is pinned on demand) and faces (mr/face.h); on
 * failure faces may hold some, too. Failures are logged. The caller has entered the
 * region; no lock held.
 */
int mrf_mr_make(struct mrf_mr *mr, enum mrf_mr_state state, struct mrf_mr_pins *pins,
		struct mrf_mr_face **faces);

#endif
