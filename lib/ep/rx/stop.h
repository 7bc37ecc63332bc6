/* SPDX-License-Identifier: BSD-2-Clause */
/* How the queue pair of a connection for accesses ends at its target. Agent thread, no lock held. */
#ifndef MRF_EP_RX_STOP_H
#define MRF_EP_RX_STOP_H

#include "ep/link/passive.h"

/*
 * Disconnects it, and takes in what has arrived. Nothing arrives on it any more, and its initiator may ask how
 * far it came. Waits for the kernel, up to MRF_FLUSH_MS. False: it was destroyed meanwhile.
 */
bool mrf_passive_stop(struct mrf_passive *passive);

#endif
