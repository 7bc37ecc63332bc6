/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the queue pairs of connections that peers had have stopped. Agent thread. */
#ifndef MRF_EP_RX_ENDS_H
#define MRF_EP_RX_ENDS_H

#include "ep/model/ep.h"
#include "proto/greeting.h"

/* A queue pair has stopped: all of *end but its order is set. The oldest end makes room. */
void mrf_ends_keep(struct mrf_ends *ends, const struct mrf_end *end);
/* The flags of the welcome that say how far the queue pair came; 0: that is not known. */
uint32_t mrf_ends_tell(const struct mrf_ends *ends, const struct mrf_hello *hello);

#endif
