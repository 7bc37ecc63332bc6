/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines that are cut off. Agent thread, no lock held. */
#ifndef MRF_EP_RX_CUT_H
#define MRF_EP_RX_CUT_H

#include "ep/msg/inbox.h"

/* The initiator of a line breaks the protocol, or the line is to be closed (mrf_inbox_calls). */
void mrf_passive_cut(struct mrf_inlet *inlet);

#endif
