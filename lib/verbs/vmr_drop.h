/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In a file of its own, so that tests with a simulated device still use the real
 * function.
 */
#ifndef MRF_VERBS_VMR_DROP_H
#define MRF_VERBS_VMR_DROP_H

#include "verbs/vmr.h"

/*
 * mrf_vmr_dereg for the library's own memory: if the kernel keeps the region, logs a
 * warning (MRF-W3490) and forgets it.
 */
void mrf_vmr_drop(struct mrf_vmr *vmr);

#endif
