/* SPDX-License-Identifier: BSD-2-Clause */
/* Apart from the other calls so that it is real over a device that is not. */
#ifndef MRF_VERBS_VMR_DROP_H
#define MRF_VERBS_VMR_DROP_H

#include "verbs/vmr.h"

/*
 * mrf_vmr_dereg for memory of the library's own: what the kernel keeps is told to people
 * (MRF-W3490), and forgotten.
 */
void mrf_vmr_drop(struct mrf_vmr *vmr);

#endif
