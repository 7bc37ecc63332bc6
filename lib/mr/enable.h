/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MRF_MR_ENABLE_H
#define MRF_MR_ENABLE_H

#include "mr/pins.h"

/* The region is not live, so what its descriptor leads to may be written. */
void mrf_mr_put_pins(struct mrf_mr *mr, struct mrf_mr_pins *pins);
/* Shows key and descriptor and lets everybody use the region; space->lock is held. */
void mrf_mr_open_locked(struct mrf_mr *mr);
/* fi_mr_enable. */
int mrf_mr_enable(struct mrf_mr *mr);
/*
 * Registers with the kernel what the region has there while it is enabled, if it is in this
 * state: pins (none if it is pinned on demand), and faces (mr/face.h), some of them
 * on failure, too. Logs why not. The region was entered; no lock held.
 */
int mrf_mr_make(struct mrf_mr *mr, enum mrf_mr_state state, struct mrf_mr_pins *pins,
		struct mrf_mr_face **faces);

#endif
